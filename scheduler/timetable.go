package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// Replicas agree on a tick by its time, so the times of a job must follow from its schedule alone,
// whenever a replica was started. gocron computes a tick from the one before, and on the days on
// which clocks are changed what comes out depends on when it began. Therefore this package computes
// the times itself, and gocron asks for them as it asks for those of a crontab. It does not where
// the user gave a gocron.Cron, or for jobs with an interval, which ticker numbers in another way.

// timetable is the times of a job.
type timetable interface {
	// next returns the first time after another, and never if there is none.
	next(after time.Time) time.Time
}

// never is so late that nothing is due then. gocron removes a job that is not due again, and then
// it could not be run late or by RunNow.
var never = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// cron is a timetable as gocron asks for it.
type cron struct {
	timetable
	zone *time.Location // of the times that gocron gets
}

// IsValid has nothing to find: the schedule was looked at when the timetable was made.
func (cron) IsValid(string, *time.Location, time.Time) error { return nil }

// Next returns the time after another. gocron passes over one that has the same time of the day as
// the one before, on the same day, because clocks may have been set back. Here such a time is
// meant, and is returned in another zone.
func (c cron) Next(after time.Time) time.Time {
	at := c.next(after)
	for _, zone := range []*time.Location{c.zone, time.UTC, time.FixedZone("", 3600)} {
		if at = at.In(zone); at.Format(time.DateTime) != after.Format(time.DateTime) {
			break
		}
	}
	return at
}

// instants are the times of a one-time job, ascending.
type instants []time.Time

func (i instants) next(after time.Time) time.Time {
	n, _ := slices.BinarySearchFunc(i, after.Add(1), time.Time.Compare)
	if n == len(i) {
		return never
	}
	return i[n]
}

// bounded are the times of a job that ends (gocron.WithStopAt).
type bounded struct {
	timetable
	end time.Time
}

func (b bounded) next(after time.Time) time.Time {
	if at := b.timetable.next(after); at.Before(b.end) {
		return at
	}
	return never
}

// interval are the times of a duration job that ends, as gocron would have them: counted from its
// start, or from when the job was made.
type interval struct {
	every time.Duration
	first time.Time
}

func (i interval) next(after time.Time) time.Time {
	if after.Before(i.first) {
		return i.first
	}
	return i.first.Add((after.Sub(i.first)/i.every + 1) * i.every)
}

// A clock on the wall shows the time of a zone; here, such times are given as if they were in UTC.
// When it is set forward some times are not shown, and when it is set back some are shown twice.

// wallSchedule is the times of a job as the clock shows them, for ever and without changes of the
// clock.
type wallSchedule interface {
	next(after time.Time) time.Time // zero if there is none
}

// wallTimes is the times of a schedule in a zone.
type wallTimes struct {
	schedule wallSchedule
	zone     *time.Location
	later    bool // a time that is not shown, because the clock is set forward, is later by as much; else it is left out
	twice    bool // a time that is shown twice is due twice; else the first time
}

// offset returns by how many seconds the zone of a time is ahead of UTC.
func offset(at time.Time) int {
	_, seconds := at.Zone()
	return seconds
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// wall returns what the clock shows.
func wall(at time.Time) time.Time { return at.UTC().Add(seconds(offset(at))) }

func (t *wallTimes) next(after time.Time) time.Time {
	after = after.In(t.zone)
	best := never
	consider := func(times ...time.Time) {
		for _, at := range times {
			if at.After(after) && at.Before(best) {
				best = at
			}
		}
	}
	from := wall(after)
	start, end := after.ZoneBounds()
	if t.later && !start.IsZero() {
		if skipped := seconds(offset(after) - offset(start.Add(-1))); after.Sub(start) < skipped {
			// Times that were not shown may still come.
			from = from.Add(-skipped)
		}
	}
	if t.twice && !end.IsZero() {
		if again := seconds(offset(after) - offset(end)); again > 0 && end.Sub(after) <= again {
			// The clock is about to show times again that are not after this one's.
			if w := t.schedule.next(wall(end).Add(-1)); !w.IsZero() {
				times, _ := t.shown(w)
				consider(times...)
			}
		}
	}
	for w := t.schedule.next(from); !w.IsZero(); w = t.schedule.next(w) {
		times, earliest := t.shown(w)
		if consider(times...); !earliest.Before(best) {
			break
		}
	}
	return best
}

// shown returns when a time is due that the clock shows once, twice or never, and a bound that
// neither these nor later ones are before.
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
		// Go's guess is on either side of the change.
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

// newWallTimes returns the times of a daily, weekly or monthly job.
func newWallTimes(schedule wallSchedule, policy gocron.DaylightSavingsTimePolicy, zone *time.Location) *wallTimes {
	return &wallTimes{schedule: schedule, zone: zone, later: policy != gocron.DaylightSavingsTimeSkip}
}

// crontab is the schedule of a crontab, computed by gocron's own parser.
type crontab struct{ gocron.Cron }

func (c crontab) next(after time.Time) time.Time { return c.Next(after) }

// parseCrontab takes what gocron takes. A time whose hours are fixed is due once on a day on which
// the clock shows it twice; if the field of the hours begins with an asterisk, every time that the
// clock shows is due.
func parseCrontab(text string, policy gocron.DaylightSavingsTimePolicy, zone *time.Location) (timetable, error) {
	rest := text
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		var name string
		name, rest, _ = strings.Cut(text, " ")
		_, name, _ = strings.Cut(name, "=")
		var err error
		if zone, err = time.LoadLocation(name); err != nil {
			return nil, fmt.Errorf("%w: %w", gocron.ErrCronJobParse, err)
		}
	}
	if strings.HasPrefix(strings.TrimSpace(rest), "@every") {
		return nil, &OptionError{Option: "gocron.CronJob", Reason: "@every is counted from the start of each replica: use gocron.DurationJob"}
	}
	parsed := gocron.NewDefaultCron(true)
	if err := parsed.IsValid(strings.TrimSpace(rest), time.UTC, time.Time{}); err != nil {
		return nil, err
	}
	fields := strings.Fields(rest)
	hours := fields[max(0, len(fields)-4)] // or @daily and the like
	return &wallTimes{
		schedule: crontab{parsed}, zone: zone,
		later: policy == gocron.DaylightSavingsTimeRunAfterTransition,
		twice: strings.HasPrefix(hours, "*") || strings.HasPrefix(hours, "?") || hours == "@hourly",
	}, nil
}

// ownCron is the times of a job whose gocron.Cron is the user's. gocron computes them, in a
// scheduler of their own whose clock stands still.
type ownCron struct {
	definition gocron.JobDefinition
	options    []gocron.JobOption // without those that name times
	zone       *time.Location
}

// gapsChecked is how many gaps between ticks of a user's gocron.Cron are looked at. All cannot be.
const gapsChecked = 5

// check refuses ticks that are too close together, among the next few.
func (f *ownCron) check(now time.Time) error {
	tick := f.next(now)
	for range gapsChecked {
		if tick.Equal(never) {
			break
		}
		next := f.next(tick)
		gap := next.Sub(tick)
		if tick.Truncate(time.Second).Equal(next.Truncate(time.Second)) {
			gap /= 2 // gocron has passed over a tick between them: it takes the second for that of before
		}
		if err := checkGap("gocron.WithCronImplementation", gap); err != nil {
			return err
		}
		tick = next
	}
	return nil
}

func (f *ownCron) next(after time.Time) time.Time {
	s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(after)), gocron.WithLocation(f.zone))
	if err != nil {
		return never
	}
	defer func() { _ = s.Shutdown() }()
	j, err := s.NewJob(f.definition, gocron.NewTask(func() {}), f.options...)
	if err != nil {
		return never
	}
	s.Start()
	if next, err := j.NextRun(); err == nil && next.After(after) {
		return next
	}
	return never
}
