package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ledger has the runs of each tick, by Unix second.
type ledger map[int64]runs

// runs are those of one tick.
type runs struct {
	count, attempt int
	twice          bool
}

// record notes a run of a tick. It returns false if the tick has run before, unless this run is a
// later attempt: the nodes count those, and grant one only if the run before was not completed.
func (l ledger) record(tick time.Time, attempt int) bool {
	r := l[tick.Unix()]
	again := r.count > 0 && attempt <= r.attempt
	l[tick.Unix()] = runs{count: r.count + 1, attempt: max(attempt, r.attempt), twice: r.twice || again}
	return !again
}

// check sums up the ticks from the first that ran to the last. It fails if one of them ran twice or
// was lost.
func (l ledger) check() (string, error) {
	if len(l) == 0 {
		return "", fmt.Errorf("no tick ran")
	}
	seconds := slices.Sorted(maps.Keys(l))
	first, last := seconds[0], seconds[len(seconds)-1]
	once := 0
	var again, twice, lost []string
	for second := first; second <= last; second++ {
		switch r := l[second]; {
		case r.count == 0:
			lost = append(lost, clock(second))
		case r.twice:
			twice = append(twice, clock(second))
		case r.count > 1:
			again = append(again, clock(second))
		default:
			once++
		}
	}
	text := fmt.Sprintf("summary: %d ticks were due from %s to %s\n  ran once                  %4d\n", last-first+1, clock(first), clock(last), once)
	text += row("cut short, and run again", again) + row("ran twice", twice) + row("lost", lost)
	if len(twice)+len(lost) > 0 {
		return text, fmt.Errorf("%d ticks ran twice, %d were lost", len(twice), len(lost))
	}
	return text, nil
}

func row(what string, ticks []string) string {
	return strings.TrimRight(fmt.Sprintf("  %-24s  %4d  %s", what, len(ticks), strings.Join(ticks, ", ")), " ") + "\n"
}

func clock(second int64) string { return time.Unix(second, 0).Format(time.TimeOnly) }
