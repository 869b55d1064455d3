package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// target is what Tenure's median of a column must be. It is about a ratio to a floor of the same
// run wherever there is a floor: times do not hold from machine to machine.
type target struct {
	row, column string
	of          *rival.Kind // Tenure with something on; Tenure if it is nil
	text        string      // as it was agreed
	atMost      float64
	atLeast     float64 // if it is set, instead
	// full targets are for the sizes of a full run only.
	full bool
}

// targets are all that was agreed on.
var targets = []target{
	{row: "pair", column: "p50 x floor", text: "at most 1.25 x floor, token and gate on", atMost: 1.25},
	{row: "pair", column: "p50 x redsync", text: "below redsync's", atMost: 1},
	{row: "pair", column: "keys left", text: "no key left", atMost: 0},
	{row: "pair", column: "allocations/pair", text: "at most 35 allocations per pair", atMost: 35},
	{row: "distinct64", column: "x batching", text: "at least 0.75 x the batching floor", atLeast: 0.75},
	{row: "distinct64", column: "x redsync", text: "at least 4 x redsync", atLeast: 4},
	{row: "distinct64", column: "x no standby", of: rival.TenureStandby, text: "no fewer with a standby (here: 0.95)", atLeast: 0.95},
	{row: "stall", column: "lost", text: "none lost", atMost: 0},
	{row: "distinct64", column: clientCPU, text: "at most 20 us", atMost: 20},
	{row: "contended", column: "acquisitions x floor", text: "at least 0.9 x floor (next known)", atLeast: 0.9},
	{row: "contended", column: "commands each", text: "at most 18 commands", atMost: 18},
	{row: "contended", column: "hand-over x floor", text: "p50 at most 1.1 x floor (next known)", atMost: 1.1},
	{row: "contended", column: "least/most", text: "min/max of contenders at least 0.8", atLeast: 0.8},
	{row: "frozen", column: "p99 x healthy", text: "p99 at most 1.5 x its healthy p99", atMost: 1.5},
	{row: "frozen", column: "more goroutines", text: "goroutines bounded (here: at most one more for each caller)", atMost: goroutines},
	{row: "frozen", column: "keys left on the healthy", text: "nothing left on healthy nodes", atMost: 0},
	{row: "held", column: "CPU s", text: "10,000 leases held 30 s: at most 0.45 s of CPU", atMost: 0.45, full: true},
	{row: "held", column: "RSS growth MiB", text: "at most 60 MiB", atMost: 60, full: true},
	{row: "held", column: "goroutines", text: "goroutines independent of leases (here: at most 100)", atMost: 100},
	{row: "crash", column: "after expiry ms", text: "expiry + 20 ms at most (median)", atMost: 20},
	{row: "crash", column: "after expiry ms, beside other keys", text: "also with 100k other volatile keys", atMost: 20},
	{row: "handover", column: "x floor", text: "p50 at most 1.25 x floor (next known)", atMost: 1.25},
	{row: "waiter", column: "commands/s", text: "at most 1 command a second", atMost: 1},
	{row: "waiter", column: "commands per TTL per node", text: "at most 2 commands per TTL per node", atMost: 2},
	{row: "due10", column: "p99 ms", of: tenureScheduler, text: "10 jobs due at once: p99 at most 5 ms late", atMost: 5},
	{row: "due1000", column: "p99 ms", of: tenureScheduler, text: "1,000 jobs due at once: p99 at most 60 ms late", atMost: 60, full: true},
	{row: "due1000", column: "lost", of: tenureScheduler, text: "each once", atMost: 0},
	{row: "due1000", column: "twice", of: tenureScheduler, text: "each once", atMost: 0},
	{row: "far", column: "within 5 ms of a timer, %", of: tenureScheduler, text: "99 % within 5 ms of a timer", atLeast: 99, full: true},
}

func (t target) meets(v float64) bool {
	if t.atLeast != 0 {
		return v >= t.atLeast
	}
	return v <= t.atMost
}

// judge compares boards with the targets of their rows, and names those that were not met.
func judge(boards []*board, full bool) string {
	judged, missed := 0, []string(nil)
	for _, b := range boards {
		for _, t := range targets {
			if t.row != b.name {
				continue
			}
			judged++
			result := stat.Median(b.line(cmp.Or(t.of, rival.Tenure)).values[t.column])
			verdict := "missed"
			switch {
			case t.full && !full:
				verdict = "not judged: a smaller run"
			case t.meets(result):
				continue
			}
			missed = append(missed, fmt.Sprintf("%s, %s %s (%s): %s", t.row, t.column, number(result), t.text, verdict))
		}
	}
	return fmt.Sprintf("Of %d targets %d are met. %s", judged, judged-len(missed), strings.Join(missed, "; "))
}
