package main

import (
	"maps"
	"slices"
	"time"
)

// ledger counts the runs of each tick.
type ledger struct {
	runs map[int64]int // by unix second
}

func newLedger() *ledger { return &ledger{runs: make(map[int64]int)} }

// record counts a run of a tick and returns how often the tick has run by now.
func (l *ledger) record(tick time.Time) int {
	l.runs[tick.Unix()]++
	return l.runs[tick.Unix()]
}

// ran tells whether anything ran.
func (l *ledger) ran() bool { return len(l.runs) > 0 }

// account is what the ledger adds up to, between the first and the last tick that ran.
type account struct {
	first, last time.Time
	ticks       int         // that were due
	once        int         // that ran once
	repeated    []time.Time // that ran more often
	takeOver    []time.Time // that did not run, between the kill and the take-over
	missed      []time.Time // that did not run for another reason
}

// close adds up. Ticks that were due from the kill to the take-over are expected to be missed; zero times mean that
// there was none.
func (l *ledger) close(killed, takenOver time.Time) account {
	if !l.ran() {
		return account{}
	}
	seconds := slices.Sorted(maps.Keys(l.runs))
	a := account{first: time.Unix(seconds[0], 0), last: time.Unix(seconds[len(seconds)-1], 0)}
	for tick := a.first; !tick.After(a.last); tick = tick.Add(time.Second) {
		a.ticks++
		switch n := l.runs[tick.Unix()]; {
		case n == 1:
			a.once++
		case n > 1:
			a.repeated = append(a.repeated, tick)
		case tick.After(killed) && tick.Before(takenOver):
			a.takeOver = append(a.takeOver, tick)
		default:
			a.missed = append(a.missed, tick)
		}
	}
	return a
}

// earliness is how much a timer may be early by the wall clock, which is adjusted while it runs.
const earliness = 50 * time.Millisecond

// tickAt returns the tick that a run which begins at t belongs to.
func tickAt(t time.Time) time.Time { return t.Add(earliness).Truncate(time.Second) }
