package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ledger counts the runs of each tick, by Unix second.
type ledger map[int64]int

// record counts a run of a tick, and returns how often the tick has run by now.
func (l ledger) record(tick time.Time) int {
	l[tick.Unix()]++
	return l[tick.Unix()]
}

// check sums up the ticks from the first that ran to the last. The error says which of them ran more
// than once or not at all.
func (l ledger) check() (string, error) {
	if len(l) == 0 {
		return "", fmt.Errorf("no tick ran")
	}
	seconds := slices.Sorted(maps.Keys(l))
	first, last := seconds[0], seconds[len(seconds)-1]
	once, repeated, lost := 0, []string(nil), []string(nil)
	for second := first; second <= last; second++ {
		switch l[second] {
		case 0:
			lost = append(lost, clock(second))
		case 1:
			once++
		default:
			repeated = append(repeated, clock(second))
		}
	}
	text := fmt.Sprintf("summary: %d ticks were due from %s to %s\n  ran once   %4d\n  ran twice  %4d  %s\n  lost       %4d  %s\n",
		last-first+1, clock(first), clock(last), once,
		len(repeated), strings.Join(repeated, ", "), len(lost), strings.Join(lost, ", "))
	if len(repeated)+len(lost) > 0 {
		return text, fmt.Errorf("%d ticks ran more than once, %d were lost", len(repeated), len(lost))
	}
	return text, nil
}

func clock(second int64) string { return time.Unix(second, 0).Format(time.TimeOnly) }
