package checker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

func TestReport(t *testing.T) {
	s := clean(t)
	s.Seed, s.Command = 7, "run it"
	var text strings.Builder
	v := s.check()
	v.Text(&text)
	require.Contains(t, text.String(), "PASS: no violation\nschedule of this run: run it\n")
	require.Contains(t, text.String(), "2: clock-forward 1, restart-empty 1\n")
	v.Halted = true
	text.Reset()
	v.Text(&text)
	require.Contains(t, text.String(), "interrupted: no violation so far\n")
}

// Of a long list the first are enough, but how many there are is not hidden.
func TestReportOfManyViolations(t *testing.T) {
	h := &history.History{}
	for i := range 30 {
		h.Failures = append(h.Failures, fmt.Sprint("failure\n", i))
	}
	v := checker.Check(h, nil)
	v.Excused = []string{"an overlap"}
	var text strings.Builder
	v.Text(&text)
	require.Contains(t, text.String(), "excused: an overlap\n")
	require.Contains(t, text.String(), "VIOLATION failure: failure\n24\nVIOLATION and 5 more\nFAIL: 30 violations\n")
}
