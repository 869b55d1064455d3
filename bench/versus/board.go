package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// column is a quantity that a row measures.
type column struct {
	Name string
	// Of, if set, makes this column a ratio: the values of column Of, divided round by round by
	// those of the rival To.
	Of string
	To *rival.Kind
}

// line is the results of one rival in a row.
type line struct {
	of     *rival.Kind
	values map[string][]float64 // by column, one a round
	absent string               // why the rival has no values
}

// board is the results of a row. It is not safe for concurrent use.
type board struct {
	*row
	lines   []*line
	foreign float64 // the part of all processors' time that others took meanwhile
}

func newBoard(r *row) *board { return &board{row: r} }

// watch runs the row, and measures what other processes take of the processors meanwhile: that may
// be why a row fails.
func (b *board) watch(ctx context.Context, s *stage) error {
	before, _ := s.load(ctx)
	err := b.run(ctx, s)
	if after, seen := s.load(ctx); seen {
		b.foreign = stat.Foreign(before, after)
	}
	return err
}

func (b *board) others() string {
	return fmt.Sprintf("other processes took %.1f %% of the processors' time", 100*b.foreign)
}

// line returns the line of a rival. It makes one if there is none.
func (b *board) line(k *rival.Kind) *line {
	for _, l := range b.lines {
		if l.of == k {
			return l
		}
	}
	l := &line{of: k, values: make(map[string][]float64)}
	b.lines = append(b.lines, l)
	return l
}

// add notes a measurement. It panics if the row measures no such column.
func (b *board) add(k *rival.Kind, name string, value float64) {
	if slices.ContainsFunc(b.columns, func(c column) bool { return c.Name == name && c.Of == "" }) {
		values := b.line(k).values
		values[name] = append(values[name], value)
	} else {
		panic(fmt.Sprintf("versus: row %s has no column %q to be measured", b.name, name))
	}
}

// quantiles notes the median and the 99th percentile of times, in a unit.
func (b *board) quantiles(k *rival.Kind, unit string, times []float64) {
	b.add(k, "p50 "+unit, stat.Quantile(times, 0.5))
	b.add(k, "p99 "+unit, stat.Quantile(times, 0.99))
}

// absent notes why a rival has no numbers.
func (b *board) absent(k *rival.Kind, why string) { b.line(k).absent = why }

// finish computes the ratios, and sorts the lines in the order of the rivals. Lines without numbers
// come last.
func (b *board) finish() {
	order := append(rival.All(), tenureScheduler, gocronRedisLock, gocronAlone)
	place := func(l *line) int {
		at := slices.Index(order, l.of)
		if l.absent != "" {
			at += len(order)
		}
		return at
	}
	slices.SortFunc(b.lines, func(x, y *line) int { return place(x) - place(y) })
	for _, c := range b.columns {
		for _, l := range b.lines {
			if c.Of == "" {
				continue
			}
			if ratios := stat.Ratios(l.values[c.Of], b.line(c.To).values[c.Of]); len(ratios) > 0 {
				l.values[c.Name] = ratios
			}
		}
	}
}

// boards are the results of rows that measure the same.
type boards []*board

// markdown renders the boards as one table of medians. The first column and ratios also have the
// least and the most, in parentheses. Rivals without numbers are listed under the table.
func (bs boards) markdown(w *strings.Builder) {
	first := bs[0]
	var names []string
	for _, b := range bs {
		names = append(names, b.name)
	}
	fmt.Fprintf(w, "### %s: %s\n", strings.Join(names, ", "), first.title)
	for _, b := range bs {
		if b.foreign > foreignMost {
			fmt.Fprintf(w, "\n**Other processes took %.1f %% of the processors' time in %s, more than %.0f %%: do not quote it.**\n\n", 100*b.foreign, b.name, 100*foreignMost)
		}
	}
	w.WriteString("| | servers |")
	for _, c := range first.columns {
		fmt.Fprintf(w, " %s |", c.Name)
	}
	fmt.Fprintf(w, "\n| --- | --- |%s\n", strings.Repeat(" ---: |", len(first.columns)))
	under := strings.TrimSpace(first.work)
	for _, b := range bs {
		for _, l := range b.lines {
			if l.absent != "" {
				under += fmt.Sprintf(" No %s: %s.", l.of.Name, l.absent)
				continue
			}
			name := l.of.Name
			if len(bs) > 1 {
				name = b.name + ": " + name
			}
			fmt.Fprintf(w, "| %s | %d |", name, l.of.Servers)
			for i, c := range b.columns {
				fmt.Fprintf(w, " %s |", spread(l.values[c.Name], i == 0 || c.Of != ""))
			}
			w.WriteByte('\n')
		}
	}
	fmt.Fprintf(w, "\n%s\n\n", strings.TrimSpace(under))
}

// foreignMost is the most of the processors' time that other processes may take. Above it, the
// report says that a row is not to be quoted.
const foreignMost = 0.10

// spread returns the median of values, with their range if it is wanted, or a dash without values.
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

// number prints three significant digits, or the whole part from 100 on.
func number(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
