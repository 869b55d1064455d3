package report_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/soak/checker"
	"github.com/tenure-dev/tenure/tools/soak/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPass(t *testing.T) {
	v := &checker.Verdict{Runs: 12, Skips: map[string]int{"held": 3, "done": 9}, Excuses: []string{"a tick"}}
	for i := 1; i <= 200; i++ {
		v.Late = append(v.Late, time.Duration(i)*time.Millisecond)
	}
	r := report.New(v, 5)
	r.Seed, r.Command = 7, "go run"
	var text, page, data bytes.Buffer
	r.Sheet().Text(&text)
	r.Sheet().Markdown(&page)
	require.NoError(t, json.NewEncoder(&data).Encode(r))
	require.Contains(t, text.String(), "12: done 9, held 3")
	require.Contains(t, text.String(), "0.100 s, 0.198 s, 0.200 s")
	require.Contains(t, text.String(), "excluded: a tick")
	require.Contains(t, text.String(), "PASS: no violation")
	require.NotContains(t, text.String(), "**")
	require.Contains(t, page.String(), "**PASS: no violation**")
	require.Contains(t, page.String(), "| seed | 7 |")
	require.Contains(t, page.String(), "* a tick")
	var again report.Report
	require.NoError(t, json.Unmarshal(data.Bytes(), &again))
	require.Equal(t, *r, again)
	r.Halted = true
	text.Reset()
	r.Sheet().Text(&text)
	require.Contains(t, text.String(), "interrupted: no violation so far")
}

func TestFail(t *testing.T) {
	v := &checker.Verdict{}
	for i := range 30 {
		v.Add(checker.Twice, "tick %d", i)
	}
	var text, page bytes.Buffer
	r := report.New(v, 5)
	require.False(t, r.Pass)
	r.Sheet().Text(&text)
	r.Sheet().Markdown(&page)
	require.Contains(t, text.String(), "FAIL: 30 violations")
	require.Contains(t, text.String(), "VIOLATION run twice: tick 24\nVIOLATION and 5 more")
	require.Contains(t, page.String(), "| **ticks run twice** | 30 |")
	require.Contains(t, page.String(), "* run twice: tick 0")
}
