package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/internal/view"
)

// document is what a command shows: as JSON, whose fields docs/steering.md has, or as text for
// people.
type document interface {
	text(w *page)
}

const (
	asTable = "table"
	asJSON  = "json"
)

// shows has a command take -o.
func (p *program) shows(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&p.output, "output", "o", asTable, "table, for people, or json, for programs")
	return cmd
}

// checkOutput checks -o; of a command without it, there is nothing.
func (p *program) checkOutput() error {
	if !slices.Contains([]string{"", asTable, asJSON}, p.output) {
		return fmt.Errorf("-o %s is neither table nor json", quoted(p.output))
	}
	return nil
}

// show writes a document. What a terminal might obey is escaped, in JSON as escaped does, and in
// text as line does. What cannot be written is told in the
// end, by run.
func (p *program) show(d document) error {
	var text []byte
	if p.output == asJSON {
		line, err := view.JSON(d)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if _, one := d.(*happening); one {
			b.Write(line)
		} else {
			_ = json.Indent(&b, line, "", "  ") // which fails for what is no JSON
		}
		b.WriteByte('\n')
		text = escaped(b.Bytes())
	} else {
		w := &page{now: now()}
		d.text(w)
		text = []byte(w.String())
	}
	_, err := p.Write(text)
	return err
}

// escaped is JSON in which a terminal obeys nothing: characters that are not to be shown stand as
// JSON's own escapes. Outside of texts JSON has none of them.
func escaped(document []byte) []byte {
	safe := make([]byte, 0, len(document))
	for _, r := range string(document) {
		if r < 0x7f || !view.Hidden(r) { // the encoder has escaped controls below
			safe = utf8.AppendRune(safe, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	return safe
}

// page is text for people.
type page struct {
	strings.Builder

	now view.Time
}

// now is the present.
func now() view.Time { return view.At(time.Now()) }

// clock is the time of day, in the zone of the terminal.
func (w *page) clock(at view.Time) string { return view.Time{Time: at.Local()}.Clock(w.now.Time) }

// ago is the time with its distance from now.
func (w *page) ago(at view.Time) string {
	if at.IsZero() {
		return ""
	}
	if d := at.Sub(w.now.Time); d > 0 {
		return fmt.Sprintf("%s (in %s)", w.clock(at), view.Rough(d))
	}
	return fmt.Sprintf("%s (%s ago)", w.clock(at), view.Rough(w.now.Sub(at.Time)))
}

// linef writes a line. Texts of others among the arguments are escaped.
func (w *page) linef(format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = line(text)
		}
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// list writes a table, or what is said where it has no rows.
func (w *page) list(none string, heads []string, rows [][]string) {
	if len(rows) > 0 {
		w.table(heads, rows)
	} else {
		fmt.Fprintln(w, none)
	}
}

// table writes rows below their heads, if there are any, each column as wide as its widest cell.
// Cells are escaped, and cut where they are long: JSON has all of them.
func (w *page) table(heads []string, rows [][]string) {
	if len(heads) > 0 {
		rows = append([][]string{heads}, rows...)
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, text := range row {
			most := widestCell
			if i == len(row)-1 {
				most = widestLine // nothing is behind it
			}
			row[i] = view.Shortened(line(cmp.Or(text, "-")), most)
		}
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	_ = columns.Flush() // to a text in memory
}

// How wide a cell may be, and one at the end of a line.
const (
	widestCell = 60
	widestLine = 160
)

// line makes a text of others safe for a terminal, on one line.
var line = view.Visible

// quoted is a text of others within a sentence.
func quoted(text string) string { return `"` + strings.ReplaceAll(line(text), `"`, `\"`) + `"` }

// join joins those texts that are not empty.
func join(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), between)
}
