package timetable

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Wall times are the times that a clock in a zone shows. Here they are given as if they were in
// UTC. When the clock is set forward, some are not shown; when it is set back, some are shown
// twice.

// wallTimes is the due times of a schedule in a zone. The schedule gives wall times, without
// changes of the clock.
type wallTimes struct {
	schedule times
	zone     *time.Location
	later    bool // a skipped time is later by the length of the gap; else it is left out
	twice    bool // a time that is shown twice is due twice; else the first time only
}

// words describes the zone by its offsets in two years, those of ten more years in short, and the
// policy for its changes. The years are fixed, so that the passage of time changes no definition.
func (t *wallTimes) words() string {
	at, near, far := date(2025, time.January, 1), date(2027, time.January, 1), date(2037, time.January, 1)
	words, told := []string{"zone"}, 0
	if t.later {
		words = []string{"later zone"}
	}
	if t.twice {
		words = append(words, "twice")
	}
	for change := at; ; {
		words = append(words, at.In(t.zone).Format("Z07:00"))
		if _, change = at.In(t.zone).ZoneBounds(); change.IsZero() || !change.Before(far) {
			break
		}
		if told == 0 && !change.Before(near) {
			told = len(words)
		}
		at = change
		words = append(words, change.UTC().Format("2006-01-02T15:04Z"))
	}
	if told > 0 {
		sum := sha256.Sum256([]byte(strings.Join(words[told:], " ")))
		words = append(words[:told], fmt.Sprintf("then %x", sum[:4]))
	}
	return strings.Join(words, " ")
}

// offset returns by how many seconds the zone of a time is ahead of UTC.
func offset(at time.Time) int {
	_, seconds := at.Zone()
	return seconds
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// wall returns the wall time of an instant.
func wall(at time.Time) time.Time { return at.UTC().Add(seconds(offset(at))) }

func (t *wallTimes) next(after time.Time) time.Time {
	after = after.In(t.zone)
	var best time.Time
	consider := func(times ...time.Time) {
		for _, at := range times {
			if at.After(after) && (best.IsZero() || at.Before(best)) {
				best = at
			}
		}
	}
	from := wall(after)
	start, end := after.ZoneBounds()
	if t.later && !start.IsZero() {
		if skipped := seconds(offset(after) - offset(start.Add(-1))); after.Sub(start) < skipped {
			// Skipped times may still come.
			from = from.Add(-skipped)
		}
	}
	if t.twice && !end.IsZero() {
		if again := seconds(offset(after) - offset(end)); again > 0 && end.Sub(after) <= again {
			// The clock is about to be set back, to times that are not after this one.
			if w := t.schedule(wall(end).Add(-1)); !w.IsZero() {
				times, _ := t.shown(w)
				consider(times...)
			}
		}
	}
	for w := t.schedule(from); !w.IsZero(); w = t.schedule(w) {
		times, earliest := t.shown(w)
		if consider(times...); !best.IsZero() && !earliest.Before(best) {
			break
		}
	}
	return best
}

// shown returns when a wall time is due, which the clock shows once, twice or never. No result of
// it, nor of a later wall time, is before earliest.
func (t *wallTimes) shown(w time.Time) (times []time.Time, earliest time.Time) {
	guess := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), t.zone)
	offsets := []int{offset(guess)}
	start, end := guess.ZoneBounds()
	before := offsets[0]
	if !start.IsZero() {
		before = offset(start.Add(-1))
		offsets = append(offsets, before)
	}
	if !end.IsZero() {
		offsets = append(offsets, offset(end))
	}
	for _, o := range offsets {
		if at := w.Add(-seconds(o)).In(t.zone); offset(at) == o && !slices.ContainsFunc(times, at.Equal) {
			times = append(times, at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	switch {
	case len(times) == 0:
		// The guess of time.Date may be on either side of the change.
		change, ahead := end, offsets[0]
		if wall(guess).After(w) {
			change, ahead = start, before
		}
		if t.later {
			times = []time.Time{w.Add(-seconds(ahead)).In(t.zone)}
		}
		return times, change
	case !t.twice:
		times = times[:1]
	}
	return times, times[0]
}
