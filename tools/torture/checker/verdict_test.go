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
	s.Command = "run it"
	var text strings.Builder
	s.check().Text(&text)
	require.Contains(t, text.String(), "PASS: no violation, 0 excused: run it\n")
	require.Contains(t, text.String(), "     1  faults: clock-forward\n     1  faults: restart-empty\n")
}

// Of a long list the first are enough, but how many there are is not hidden.
func TestReportOfManyViolations(t *testing.T) {
	h := &history.History{Account: history.Account{Began: 1, Over: 1}}
	for i := range 30 {
		h.Failures = append(h.Failures, fmt.Sprint("failure\n", i))
	}
	v := checker.Check(h, nil)
	v.Excused = []string{"an overlap"}
	var text strings.Builder
	v.Text(&text)
	require.Contains(t, text.String(), "excused: an overlap\n")
	require.Contains(t, text.String(), "VIOLATION after 0.0s: failure: failure\n24\nFAIL: 30 violations, 1 excused: ")
}
