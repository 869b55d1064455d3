package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/harness/report"
)

func TestSheet(t *testing.T) {
	s := &report.Sheet{Run: report.Run{Command: "run it"}, Rows: []report.Row{{"seed", "7"}, {"**ticks**", "0"}}}
	var text, page strings.Builder
	s.Text(&text)
	require.Equal(t, "seed   7\nticks  0\nPASS: no violation\nschedule of this run: run it\n", text.String())
	s.Markdown(&page)
	require.Equal(t, "**PASS: no violation**\n\n```sh\nrun it\n```\n\n| | |\n| --- | --- |\n| seed | 7 |\n| **ticks** | 0 |\n", page.String())

	s.Halted = true
	text.Reset()
	s.Text(&text)
	require.Contains(t, text.String(), "interrupted: no violation so far\n")
}

// Of a long list the first are enough, but how many there are is not hidden.
func TestSheetOfManyViolations(t *testing.T) {
	s := &report.Sheet{Excluded: []string{"on\ntwo lines"}}
	for i := range 30 {
		s.Violations.Add("kind", "violation %d", i)
	}
	var text, page strings.Builder
	s.Text(&text)
	require.Contains(t, text.String(), "VIOLATION kind: violation 24\nVIOLATION and 5 more\nFAIL: 30 violations\n")
	require.NotContains(t, text.String(), "violation 25")
	s.Markdown(&page)
	require.Contains(t, page.String(), "\nExcluded:\n\n* on two lines\n\nViolations:\n\n* kind: violation 0\n")
	require.Contains(t, page.String(), "* and 5 more\n")
}

func TestCounts(t *testing.T) {
	require.Equal(t, "none", report.Counts(nil))
	require.Equal(t, "none", report.Counts(map[string]int{"a": 0}))
	require.Equal(t, "6: b 3, a 2, c 1", report.Counts(map[string]int{"a": 2, "b": 3, "c": 1}))
	require.Equal(t, "2: a 1, b 1", report.Counts(map[string]int{"b": 1, "a": 1}))
}
