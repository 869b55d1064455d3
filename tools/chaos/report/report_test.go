package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/chaos/report"
)

func passed() *checker.Verdict {
	return &checker.Verdict{
		Lives: 11, Asked: 100, Grants: 60, Releases: 55, Probes: 4, Stopped: 8,
		Refusals: map[string]int{"held": 30, "timeout": 2},
		Losses:   map[string]int{"refused": 1, "deadline": 3},
		Faults:   map[string]int{"flushall": 1},
		Accepted: 200, Refused: 7, Late: 9,
		Outages: map[string]time.Duration{"b": 1500 * time.Millisecond, "a": 20 * time.Millisecond},
		Ticks:   70, TickGrants: 30,
		TickRefusals: map[string]int{"paused": 25, "done": 15},
		Marks:        map[string]int{"pause": 3, "pause (unknown)": 1, "resume": 3},
		Porcupine:    porcupine.Ok, Operations: 120,
		Overlaps: []checker.Overlap{{
			Older: &checker.Lease{ID: "c0.1/1", Key: "a"}, Newer: &checker.Lease{ID: "c1.1/1"}, Excuse: "FLUSHALL on server 2",
		}},
		Breaches: []checker.Breach{{
			Pause: &checker.Mark{ID: "c1.1/5"}, Lease: &checker.Lease{ID: "c2.1/1", Key: "tick1"}, Excuse: "a quorum was emptied",
		}},
		Twins: []checker.Twin{{
			Older: &checker.Lease{ID: "c0.1/1", Key: "tick2"}, Newer: &checker.Lease{ID: "c1.1/1"}, Excuse: "a quorum was emptied",
		}},
	}
}

func TestPass(t *testing.T) {
	r := report.New(passed(), 5)
	require.True(t, r.Pass)
	require.Equal(t, 0, r.Overlaps)
	require.Equal(t, 1, r.ExcludedOverlaps)
	require.Equal(t, 0, r.PausedTicks)
	require.Equal(t, 1, r.ExcludedPaused)
	require.Equal(t, 0, r.TicksTwice)
	require.Equal(t, 1, r.ExcludedTwice)
	r.Seed, r.Command, r.Duration = 7, "go run ./tools/chaos -seed 7", "10s"
	var text, page, data bytes.Buffer
	r.Sheet().Text(&text)
	require.Contains(t, text.String(), "PASS: no violation")
	require.Contains(t, text.String(), "4: deadline 3, refused 1")
	require.Contains(t, text.String(), "a 0.020 s, b 1.500 s")
	require.Contains(t, text.String(), "excluded: key a: c0.1/1")
	require.Contains(t, text.String(), "excluded: key tick1: the tick of 00:00:00.000 was granted to c2.1/1")
	require.Contains(t, text.String(), "excluded: key tick2: the tick 0 was granted to c0.1/1")
	require.Contains(t, text.String(), "7: pause 3, resume 3, pause (unknown) 1")
	require.Contains(t, text.String(), "40: paused 25, done 15")
	require.NotContains(t, text.String(), "VIOLATION")
	require.NotContains(t, text.String(), "**")

	r.Sheet().Markdown(&page)
	require.Contains(t, page.String(), "| grants | 60 |")
	require.Contains(t, page.String(), "**PASS: no violation**")
	require.Contains(t, page.String(), "go run ./tools/chaos -seed 7")
	for line := range strings.Lines(page.String()) {
		if strings.HasPrefix(line, "|") {
			require.Equal(t, 3, strings.Count(line, "|"), line)
		}
	}

	require.NoError(t, json.NewEncoder(&data).Encode(r))
	var back report.Report
	require.NoError(t, json.Unmarshal(data.Bytes(), &back))
	require.Equal(t, *r, back)
}

func TestFail(t *testing.T) {
	v := passed()
	for range 40 {
		v.Add(checker.Disordered, "one\ntwo")
	}
	v.Overlaps[0].Excuse, v.Breaches[0].Excuse, v.Twins[0].Excuse = "", "", ""
	v.Add(checker.Overlapping, "both")
	v.Add(checker.Unpaused, "paused")
	v.Add(checker.Twice, "twice")
	r := report.New(v, 5)
	require.False(t, r.Pass)
	require.Equal(t, 40, r.TokenViolations)
	require.Equal(t, 1, r.Overlaps)
	require.Zero(t, r.ExcludedOverlaps)
	require.Equal(t, 1, r.PausedTicks)
	require.Zero(t, r.ExcludedPaused)
	require.Equal(t, 1, r.TicksTwice)
	require.Zero(t, r.ExcludedTwice)
	var text, page bytes.Buffer
	r.Sheet().Text(&text)
	require.Contains(t, text.String(), "FAIL: 43 violations")
	require.Contains(t, text.String(), "VIOLATION and 18 more")
	r.Sheet().Markdown(&page)
	require.Contains(t, page.String(), "* token order: one two\n")
}

func TestHalted(t *testing.T) {
	r := report.New(passed(), 5)
	r.Halted = true
	var text bytes.Buffer
	r.Sheet().Text(&text)
	require.Contains(t, text.String(), "interrupted")
	require.NotContains(t, text.String(), "PASS")
}
