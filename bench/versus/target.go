package main

import (
	"fmt"
	"strings"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// target is what Tenure's median of a column must be.
type target struct {
	row, column string
	text        string // as it was agreed
	atMost      float64
	atLeast     float64 // if it is set, instead
	// full targets are for the sizes of a full run only.
	full bool
}

// targets are all that was agreed on.
var targets = []target{
	{row: "pair", column: "p50 x same commands", text: "at most 1.10 x floor (the same commands), token and gate on", atMost: 1.10},
	{row: "pair", column: "keys left", text: "no key left", atMost: 0},
	{row: "pair", column: "allocations/pair", text: "at most 35 allocations per pair", atMost: 35},
	{row: "distinct64", column: "x redsync", text: "at least 4 x redsync", atLeast: 4},
	{row: "distinct512", column: "x redsync", text: "at least 5 x redsync", atLeast: 5},
	{row: "contended", column: "acquisitions/s", text: "at least 160/s", atLeast: 160},
	{row: "contended", column: "commands each", text: "at most 18 commands", atMost: 18},
	{row: "contended", column: "hand-over p50 ms", text: "p50 under 0.7 ms", atMost: 0.7},
	{row: "contended", column: "least/most", text: "min/max of contenders at least 0.8", atLeast: 0.8},
	{row: "frozen", column: "p99 x healthy", text: "p99 at most 1.5 x its healthy p99", atMost: 1.5},
	{row: "frozen", column: "more goroutines", text: "goroutines bounded (here: at most one more for each caller)", atMost: frozenCallers},
	{row: "frozen", column: "keys left on the healthy", text: "nothing left on healthy nodes", atMost: 0},
	{row: "held", column: "CPU s", text: "10,000 leases held 30 s: at most 0.4 s of CPU", atMost: 0.4, full: true},
	{row: "held", column: "RSS growth MiB", text: "at most 60 MiB", atMost: 60, full: true},
	{row: "held", column: "goroutines", text: "goroutines independent of leases (here: at most 100)", atMost: 100},
	{row: "crash", column: "after expiry ms", text: "expiry + 20 ms at most (median)", atMost: 20},
	{row: "crash", column: "after expiry ms, beside other keys", text: "also with 100k other volatile keys", atMost: 20},
	{row: "handover", column: "p50 ms", text: "at most 1 ms", atMost: 1},
	{row: "waiter", column: "commands per TTL per node", text: "at most 2 commands per TTL per node", atMost: 2},
	{row: "isleader", column: "IsLeader ns", text: "under 100 ns", atMost: 100},
	{row: "isleader", column: "IsLeader allocations", text: "no allocation", atMost: 0},
	{row: "isleader", column: "Lease.Err ns", text: "under 100 ns", atMost: 100},
	{row: "isleader", column: "Lease.Err allocations", text: "no allocation", atMost: 0},
}

// The verdicts.
const (
	met       = "met"
	missed    = "missed"
	notJudged = "not judged: a smaller run"
)

// judgement is a target beside what was measured.
type judgement struct {
	Row     string  `json:"row"`
	Column  string  `json:"column"`
	Target  string  `json:"target"`
	Result  float64 `json:"result"` // a median
	Verdict string  `json:"verdict"`
}

// judge compares boards with the targets of their rows.
func judge(boards []*board, full bool) []judgement {
	var js []judgement
	for _, b := range boards {
		for _, t := range targets {
			if t.row != b.Row {
				continue
			}
			j := judgement{Row: t.row, Column: t.column, Target: t.text, Verdict: missed}
			if l := b.of(rival.Tenure.Name); l != nil && len(l.Values[t.column]) > 0 {
				j.Result = stat.Median(l.Values[t.column])
				if t.meets(j.Result) {
					j.Verdict = met
				}
				if t.full && !full {
					j.Verdict = notJudged
				}
			} else {
				j.Verdict = missed + ": not measured"
			}
			js = append(js, j)
		}
	}
	return js
}

func (t target) meets(v float64) bool {
	if t.atLeast != 0 {
		return v >= t.atLeast
	}
	return v <= t.atMost
}

func targetTable(w *strings.Builder, js []judgement) {
	if len(js) == 0 {
		return
	}
	w.WriteString("### Targets\n\n| row | measured | Tenure | target | |\n| --- | --- | ---: | --- | --- |\n")
	for _, j := range js {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", j.Row, cell(j.Column), number(j.Result), cell(j.Target), j.Verdict)
	}
	w.WriteByte('\n')
}
