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

// document is the output of a command: it is written as JSON, with the fields of docs/steering.md,
// or as text for people.
type document interface {
	text(w *page)
}

const (
	asTable = "table"
	asJSON  = "json"
)

// shows adds the flag -o to cmd.
func (p *program) shows(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&p.output, "output", "o", asTable, "table, for people, or json, for programs")
	return cmd
}

// show writes a document. Characters that would control a terminal are escaped: see escaped for
// JSON, and line for text. run reports an error of writing at the end.
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
			_ = json.Indent(&b, line, "", "  ") // it fails only for invalid JSON
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

// escaped returns the JSON document with every character that could control a terminal written as a
// JSON escape. In JSON such characters occur only inside strings.
func escaped(document []byte) []byte {
	safe := make([]byte, 0, len(document))
	for _, r := range string(document) {
		if r < 0x7f || !view.Hidden(r) { // the encoder has escaped control characters below 0x20
			safe = utf8.AppendRune(safe, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	return safe
}

// page collects text for people.
type page struct {
	strings.Builder

	now view.Time
}

// now returns the current time.
func now() view.Time { return view.At(time.Now()) }

// clock returns the time of day in the local time zone.
func (w *page) clock(at view.Time) string { return view.Time{Time: at.Local()}.Clock(w.now.Time) }

// ago returns the time and its distance from now, or "" for the zero time.
func (w *page) ago(at view.Time) string {
	if at.IsZero() {
		return ""
	}
	if d := at.Sub(w.now.Time); d > 0 {
		return fmt.Sprintf("%s (in %s)", w.clock(at), view.Rough(d))
	}
	return fmt.Sprintf("%s (%s ago)", w.clock(at), view.Rough(w.now.Sub(at.Time)))
}

// linef writes a line. It escapes the arguments that are strings, because they may come from other
// processes.
func (w *page) linef(format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = line(text)
		}
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// list writes a table, or the text none if there are no rows.
func (w *page) list(none string, heads []string, rows [][]string) {
	if len(rows) > 0 {
		w.table(heads, rows)
	} else {
		fmt.Fprintln(w, none)
	}
}

// table writes rows below their heads, if there are any. Each column is as wide as its widest cell.
// Cells are escaped, and long cells are cut: only JSON has the full text.
func (w *page) table(heads []string, rows [][]string) {
	if len(heads) > 0 {
		rows = append([][]string{heads}, rows...)
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, text := range row {
			most := widestCell
			if i == len(row)-1 {
				most = widestLine // the last column
			}
			row[i] = view.Shortened(line(cmp.Or(text, "-")), most)
		}
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	_ = columns.Flush() // writes to memory, which cannot fail
}

// The maximum width of a cell, and of the last cell of a row.
const (
	widestCell = 60
	widestLine = 160
)

// line makes a text from another process safe for a terminal, on one line.
var line = view.Visible

// quoted returns a text from another process in quotes, for use in a sentence.
func quoted(text string) string { return `"` + strings.ReplaceAll(line(text), `"`, `\"`) + `"` }

// join joins the texts that are not empty.
func join(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), between)
}
