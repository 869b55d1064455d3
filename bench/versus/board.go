package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// column is something that a row measures.
type column struct {
	Name string `json:"name"`
	// Of, if set, makes this a ratio: that column's values, divided round by round by those of the
	// rival To.
	Of string `json:"of,omitempty"`
	To string `json:"to,omitempty"`
}

// line is what one rival did in a row.
type line struct {
	Rival   string               `json:"rival"`
	Servers string               `json:"servers"`
	Values  map[string][]float64 `json:"values,omitempty"` // by column, one a round
	Absent  string               `json:"absent,omitempty"` // why it has none
}

// board is the results of a row. It is not safe for concurrent use.
type board struct {
	Row     string   `json:"row"`
	Title   string   `json:"title"`
	Work    string   `json:"work"` // what was done, with this run's numbers
	Columns []column `json:"columns"`
	Lines   []*line  `json:"lines"`
	// Foreign is which part of all processors' time was others' meanwhile; nil where that cannot be
	// seen.
	Foreign *float64 `json:"foreign,omitempty"`
}

func newBoard(r *row) *board { return &board{Row: r.name, Title: r.title, Columns: r.columns} }

// watch runs the row, and looks what others do meanwhile, which may be why a row fails.
func (b *board) watch(run func() error) error {
	before, seen := stat.LoadNow()
	err := run()
	if !seen {
		return err
	}
	if after, ok := stat.LoadNow(); ok {
		if share, ok := stat.Foreign(before, after); ok {
			b.Foreign = &share
		}
	}
	return err
}

// disturbed reports whether others took more than a row can bear.
func (b *board) disturbed() bool { return b.Foreign != nil && *b.Foreign > foreignMost }

// of returns the line of a rival, or nil.
func (b *board) of(name string) *line {
	for _, l := range b.Lines {
		if l.Rival == name {
			return l
		}
	}
	return nil
}

func (b *board) line(name, servers string) *line {
	if l := b.of(name); l != nil {
		return l
	}
	l := &line{Rival: name, Servers: servers, Values: make(map[string][]float64)}
	b.Lines = append(b.Lines, l)
	return l
}

// add notes a measurement. The column must be one of the row's.
func (b *board) add(k *rival.Kind, column string, value float64) {
	for _, c := range b.Columns {
		if c.Name == column && c.Of == "" {
			l := b.line(k.Name, k.Servers)
			l.Values[column] = append(l.Values[column], value)
			return
		}
	}
	panic(fmt.Sprintf("versus: row %s has no column %q to be measured", b.Row, column))
}

// absent says why a rival has no numbers.
func (b *board) absent(k *rival.Kind, why string) {
	l := b.line(k.Name, k.Servers)
	l.Values, l.Absent = nil, why
}

// finish computes the ratios, and puts the lines into the order of the rivals, those without
// numbers last.
func (b *board) finish() {
	place := func(l *line) int {
		order := slices.IndexFunc(everyKind(), func(k *rival.Kind) bool { return k.Name == l.Rival })
		if l.Absent != "" {
			order += len(everyKind())
		}
		return order
	}
	slices.SortStableFunc(b.Lines, func(x, y *line) int { return place(x) - place(y) })
	for _, c := range b.Columns {
		if c.Of == "" {
			continue
		}
		to := b.of(c.To)
		if to == nil {
			continue
		}
		for _, l := range b.Lines {
			if ratios := stat.Ratios(l.Values[c.Of], to.Values[c.Of]); len(ratios) > 0 {
				l.Values[c.Name] = ratios
			}
		}
	}
}

// boards are rows that measure the same.
type boards []*board

// markdown renders the boards as one table: medians, and of the first column and of ratios also
// from least to most, in parentheses. Rivals without numbers stand under it.
func (bs boards) markdown(w *strings.Builder) {
	first := bs[0]
	var names []string
	for _, b := range bs {
		names = append(names, b.Row)
	}
	fmt.Fprintf(w, "### %s: %s\n", strings.Join(names, ", "), first.Title)
	for _, b := range bs {
		if b.disturbed() {
			fmt.Fprintf(w, "\n**Other processes took %.1f %% of the processors' time in %s, more than %.0f %%: do not quote it.**\n\n", 100**b.Foreign, b.Row, 100*foreignMost)
		}
	}
	w.WriteString("| | servers |")
	for _, c := range first.Columns {
		fmt.Fprintf(w, " %s |", cell(c.Name))
	}
	fmt.Fprintf(w, "\n| --- | --- |%s\n", strings.Repeat(" ---: |", len(first.Columns)))
	under := strings.TrimSpace(first.Work)
	for _, b := range bs {
		for _, l := range b.Lines {
			if l.Absent != "" {
				under = strings.TrimSpace(fmt.Sprintf("%s No %s: %s.", under, l.Rival, l.Absent))
				continue
			}
			name := l.Rival
			if len(bs) > 1 {
				name = b.Row + ": " + name
			}
			fmt.Fprintf(w, "| %s | %s |", cell(name), l.Servers)
			for i, c := range b.Columns {
				fmt.Fprintf(w, " %s |", spread(l.Values[c.Name], i == 0 || c.Of != ""))
			}
			w.WriteByte('\n')
		}
	}
	w.WriteByte('\n')
	if under != "" {
		fmt.Fprintf(w, "%s\n\n", under)
	}
}

// foreignMost is how much of the processors' time others may take before a row says that its
// figures are not its own.
const foreignMost = 0.10

// spread prints the median of values, and their range if it is wanted; or a dash.
func spread(values []float64, ranged bool) string {
	if len(values) == 0 {
		return "-"
	}
	median := number(stat.Median(values))
	if len(values) == 1 || !ranged {
		return median
	}
	least, most := number(stat.Quantile(values, 0)), number(stat.Quantile(values, 1))
	if least == most {
		return median
	}
	return fmt.Sprintf("%s (%s..%s)", median, least, most)
}

// number prints three significant digits, and all of a whole part.
func number(v float64) string {
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	case a >= 1:
		return trimZeros(strconv.FormatFloat(v, 'f', 2, 64))
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

func trimZeros(text string) string { return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") }

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
