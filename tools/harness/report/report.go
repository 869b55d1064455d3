// Package report lays out what a program found for people to read: rows, what was excluded,
// violations, and a last word.
package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Run is what every report tells of a run.
type Run struct {
	Command  string `json:"command"` // that repeats the schedule of faults
	Seed     uint64 `json:"seed"`
	Duration string `json:"duration"`
	Halted   bool   `json:"halted"` // it was interrupted, and what comes after the faults was left out
}

// Sheet is what is laid out.
type Sheet struct {
	Run
	Rows       []Row
	Excluded   []string
	Violations Violations
}

// Row is a name and a value. Names of values that must be zero are in bold, as Markdown writes it.
type Row [2]string

// listed is how many violations and exclusions a sheet lists of each.
const listed = 25

// result is the last word.
func (s *Sheet) result() string {
	switch {
	case len(s.Violations) > 0:
		return fmt.Sprintf("FAIL: %d violations", len(s.Violations))
	case s.Halted:
		return "interrupted: no violation so far"
	default:
		return "PASS: no violation"
	}
}

// texts are the violations, for people.
func (s *Sheet) texts() []string {
	var texts []string
	for _, v := range s.Violations {
		texts = append(texts, fmt.Sprintf("%s: %s", v.Kind, v.Text))
	}
	return most(texts)
}

// Text writes the sheet for a terminal.
func (s *Sheet) Text(w io.Writer) {
	plain := func(row Row) string { return strings.ReplaceAll(row[0], "**", "") }
	width := 0
	for _, row := range s.Rows {
		width = max(width, len(plain(row)))
	}
	for _, row := range s.Rows {
		fmt.Fprintf(w, "%-*s  %s\n", width, plain(row), row[1])
	}
	for _, text := range most(s.Excluded) {
		fmt.Fprintf(w, "excluded: %s\n", text)
	}
	for _, text := range s.texts() {
		fmt.Fprintf(w, "VIOLATION %s\n", text)
	}
	fmt.Fprintf(w, "%s\nschedule of this run: %s\n", s.result(), s.Command)
}

// Markdown writes the sheet for a page.
func (s *Sheet) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s**\n\n```sh\n%s\n```\n\n| | |\n| --- | --- |\n", s.result(), s.Command)
	for _, row := range s.Rows {
		fmt.Fprintf(w, "| %s | %s |\n", row[0], row[1])
	}
	list(w, "Excluded", most(s.Excluded))
	list(w, "Violations", s.texts())
}

func list(w io.Writer, title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n\n", title)
	for _, text := range texts {
		fmt.Fprintf(w, "* %s\n", strings.ReplaceAll(text, "\n", " "))
	}
}

func most(texts []string) []string {
	if len(texts) > listed {
		return append(slices.Clone(texts[:listed]), fmt.Sprintf("and %d more", len(texts)-listed))
	}
	return texts
}

// Counts lists what there is, most first, after the sum; "none" for nothing.
func Counts(m map[string]int) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, len(names))
	total := 0
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %d", name, m[name])
		total += m[name]
	}
	if total == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}
