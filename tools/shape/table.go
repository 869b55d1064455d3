package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// column is a measure: a row of the first table, and a column of the second.
type column struct {
	title string // in the first
	short string // in the second
	cell  func(*shape) string
}

// columns are the measures. One that has no cell for the whole was not measured.
var columns = []column{
	{"files in the largest cycle of mutual use", "cycle", func(s *shape) string { return s.cycle.String() }},
	{"references between files, of these running back up", "references, up", func(s *shape) string {
		return fmt.Sprintf("%d, %d", s.arrows, s.up)
	}},
	{"methods declared in another file than their type", "methods away", func(s *shape) string { return s.away.String() }},
	{"largest struct: fields, methods, and their files", "largest struct", func(s *shape) string { return s.largest.String() }},
	{"uses of a parent pointer", "parent pointer", func(s *shape) string { return fmt.Sprint(s.parents) }},
	{"places that ask which kind an operation is, and their files", "kind asked", func(s *shape) string { return s.kinds.String() }},
	{"functions met on the way of an uncontended `TryAcquire`, and their files", "`TryAcquire`", func(s *shape) string {
		if s.way.n == 0 {
			return ""
		}
		return s.way.String()
	}},
	{fmt.Sprintf("functions with more than %d branches", maxBranches), "branches", func(s *shape) string { return s.branchy.String() }},
	{"Go: files, lines, of these with code", "Go", func(s *shape) string { return s.code.String() }},
	{"Lua: files, lines, of these with code", "Lua", func(s *shape) string { return s.luaCode.String() }},
	{"packages, layer by layer", "imports", func(s *shape) string {
		return cmp.Or(s.layers, strings.Join(s.below, ", "), "none")
	}},
}

func (s share) String() string { return fmt.Sprintf("%d of %d", s.n, s.all) }
func (s spots) String() string { return fmt.Sprintf("%d, %d", s.n, s.files) }
func (t text) String() string  { return fmt.Sprintf("%d, %d, %d", t.files, t.lines, t.code) }

func (s structure) String() string {
	if s.name == "" {
		return "none"
	}
	return fmt.Sprintf("`%s`: %d, %d, %d", s.name, s.fields, s.methods, s.files)
}

// write writes both tables.
func write(out io.Writer, whole *shape, parts []*shape) error {
	measured := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.cell(whole) == "" })
	rows := [][]string{{"", whole.name}}
	for _, c := range measured {
		rows = append(rows, []string{c.title, c.cell(whole)})
	}
	err := writeTable(out, rows)
	if err != nil {
		return err
	}
	head := []string{"package"}
	for _, c := range measured {
		head = append(head, c.short)
	}
	rows = [][]string{head}
	for _, s := range parts {
		row := []string{s.name}
		for _, c := range measured {
			row = append(row, c.cell(s))
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return writeTable(out, rows)
}

// writeTable writes a table in Markdown. Its head is the first row.
func writeTable(out io.Writer, rows [][]string) error {
	rule := slices.Repeat([]string{"---"}, len(rows[0]))
	var b strings.Builder
	for _, row := range slices.Insert(rows, 1, rule) {
		for _, cell := range row {
			b.WriteString("| ")
			if cell != "" {
				b.WriteString(cell + " ")
			}
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
