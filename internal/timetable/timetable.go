package timetable

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/internal/joblog"
)

// Bounds of intervals, and of the time between two due times of a one-time job.
const (
	MinInterval = 10 * time.Millisecond
	MaxSpan     = 10 * 365 * 24 * time.Hour
)

const (
	daylong = 24 * time.Hour
	year    = 366 * daylong
)

// OptionError reports an invalid option or argument, and the bound that it broke.
type OptionError struct {
	Option string // the option or argument as written in code, such as "WithTTL"
	Reason string // what is wrong with it and what would be right
	Err    error  // redlock's or gocron's own error when they refused it; may be nil
}

func (e *OptionError) Error() string { return "scheduler: " + e.Option + ": " + e.Reason }

// Unwrap returns redlock's or gocron's error, if any.
func (e *OptionError) Unwrap() error { return e.Err }

// ErrorType returns the stable value "invalid" for the error.type attribute of traces and metrics.
func (e *OptionError) ErrorType() string { return "invalid" }

// timetable is a schedule while New checks it, and afterwards behind its definition.
type timetable struct {
	spec  Spec
	words string
	rest  time.Duration // see joblog.Definition
	// base returns the due times that count from a time, without Start and AtOnce; nil for a Chain.
	base func(from time.Time) times
}

// times returns the first due time after a time; zero if there is none.
type times func(after time.Time) time.Time

// New checks a Spec, and returns the definition in canonical words. Definitions with the same due
// times have the same words, however they were written: a zone is described by its offsets, not by
// its name. The program is not part of the words. Errors are *OptionError.
func New(spec Spec) (joblog.Definition, error) {
	spec.Zone = cmp.Or(spec.Zone, time.UTC)
	if spec.AtOnce {
		spec.Start = time.Time{} // as gocron has it
	}
	t := &timetable{spec: spec}
	var err error
	switch spec.Kind {
	case Crontab:
		err = t.newCrontab()
	case Interval, Random:
		err = t.newInterval()
	case Daily, Weekly, Monthly:
		err = t.newCalendar()
	case Once:
		err = t.newOnce()
	case Own:
		t.words, t.rest = "own cron "+spec.Text+", "+(&wallTimes{zone: spec.Zone}).words(), year
		t.base = func(time.Time) times {
			return func(after time.Time) time.Time { return spec.Next(after.In(spec.Zone)) }
		}
	default:
		err = &OptionError{Option: "definition", Reason: fmt.Sprintf("a schedule of kind %d is not known", spec.Kind)}
	}
	if err != nil {
		return joblog.Definition{}, err
	}
	t.bound()
	return joblog.Definition{Words: t.words, Table: t.table, Rest: t.rest}, nil
}

// bound adds the parts that all kinds have to the words, and shortens words that are too long.
func (t *timetable) bound() {
	if t.spec.AtOnce {
		t.words += ", at once"
	}
	for _, end := range []struct {
		word string
		at   time.Time
	}{{"from", t.spec.Start}, {"until", t.spec.Stop}} {
		if !end.at.IsZero() {
			t.words += fmt.Sprintf(", %s %s", end.word, instant(end.at))
		}
	}
	t.words = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '?' // each takes one byte in a record
		}
		return r
	}, t.words)
	if len(t.words) > joblog.MaxWords {
		sum := sha256.Sum256([]byte(t.words))
		t.words = strings.ToValidUTF8(fmt.Sprintf("%.*s", joblog.MaxWords/2, t.words), "") + fmt.Sprintf("... sha256 %x", sum)
	}
}

// instant formats a time independently of its zone.
func instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// table returns the due times of the definition if it was first made at since.
func (t *timetable) table(since time.Time) joblog.Table {
	since = since.Round(0) // drops the reading of the monotonic clock
	b := bounded{since: since, start: t.spec.Start.Round(0), stop: t.spec.Stop, named: t.spec.Kind == Once && len(t.spec.At) > 0}
	if t.spec.AtOnce {
		b.once = since
	}
	if t.base == nil {
		return &chain{bounded: b, least: t.spec.Every, most: max(t.spec.Every, t.spec.Most), fromEnd: t.spec.FromEnd}
	}
	if b.next = t.base(since); !b.start.IsZero() {
		b.next = t.base(b.start)
	}
	return &b
}

// bounded is due times with a start and an end.
type bounded struct {
	next  times
	since time.Time
	start time.Time // the first due time; zero if there is none
	once  time.Time // a due time beside those of next; zero if there is none
	stop  time.Time // nothing is due from then on; zero if there is none
	named bool      // the definition names its times
}

func (b *bounded) From() time.Time {
	switch {
	case b.named:
		return time.Time{}
	case b.start.Equal(b.since), b.once.Equal(b.since):
		return b.since.Add(-1)
	}
	return b.since
}

func (b *bounded) Next(after time.Time) time.Time {
	after = after.Round(0)
	var at time.Time
	if after.Before(b.start) {
		at = b.start
	} else if at = b.next(after); b.once.After(after) && (at.IsZero() || b.once.Before(at)) {
		at = b.once
	}
	return b.Within(at)
}

// Within returns a time if it is before the end, else the zero time.
func (b *bounded) Within(at time.Time) time.Time {
	if !b.stop.IsZero() && !at.Before(b.stop) {
		return time.Time{}
	}
	return at
}

// chain is the due times of a schedule in which each run decides the next.
type chain struct {
	bounded
	least, most time.Duration
	fromEnd     bool
}

// Next returns the first due time of all.
func (c *chain) Next(time.Time) time.Time {
	switch {
	case !c.once.IsZero():
		return c.Within(c.once)
	case !c.start.Before(c.since):
		return c.Within(c.start)
	}
	return c.Within(c.Follow(c.since))
}

func (c *chain) FromEnd() bool { return c.fromEnd }

func (c *chain) Follow(run time.Time) time.Time {
	pause := c.least
	if c.most > c.least {
		pause += rand.N(c.most - c.least + 1)
	}
	return run.Add(pause).Round(0).Truncate(time.Millisecond)
}

// Refuse returns an *OptionError if wrong is true.
func Refuse(wrong bool, option, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...)}
}

// Within returns an *OptionError for a duration that is out of its bounds.
func Within(option string, d, least, most time.Duration) error {
	return Refuse(d < least || d > most, option, "%v is not between %v and %v", d, least, most)
}

func (t *timetable) newInterval() error {
	s := &t.spec
	option := "gocron.DurationJob"
	t.words = fmt.Sprintf("every %v", s.Every)
	if s.Kind == Random {
		option = "gocron.DurationRandomJob"
		t.words = fmt.Sprintf("every %v to %v", s.Every, s.Most)
		if err := Within(option, s.Most, MinInterval, MaxSpan); err != nil {
			return err
		}
		if s.Most < s.Every {
			return &OptionError{Option: option, Reason: fmt.Sprintf("the most of %v is below the least of %v", s.Most, s.Every)}
		}
	}
	if s.FromEnd {
		t.words += " from completion"
	}
	if s.Kind == Interval && !s.FromEnd {
		every := s.Every
		t.base = func(phase time.Time) times { // equally far apart, without beginning or end
			return func(after time.Time) time.Time {
				const far = math.MaxInt64 / 2 // the longest Duration is 292 years
				phase := phase
				for after.Sub(phase) > far {
					phase = phase.Add(far / every * every)
				}
				n := after.Sub(phase) / every
				if after.Before(phase) && after.Sub(phase)%every != 0 {
					n--
				}
				return phase.Add((n + 1) * every)
			}
		}
	}
	return Within(option, s.Every, MinInterval, MaxSpan)
}

func (t *timetable) newOnce() error {
	if len(t.spec.At) == 0 && !t.spec.AtOnce {
		return &OptionError{Option: "gocron.OneTimeJob", Reason: "no time is given"}
	}
	var at []time.Time
	for _, time := range t.spec.At {
		at = append(at, time.Round(0))
	}
	slices.SortFunc(at, time.Time.Compare)
	at = slices.CompactFunc(at, time.Time.Equal)
	texts := make([]string, len(at))
	for i := range at {
		if texts[i] = instant(at[i]); i == 0 {
			continue
		}
		if err := Within("gocron.OneTimeJobStartDateTimes", at[i].Sub(at[i-1]), MinInterval, math.MaxInt64); err != nil {
			return err
		}
	}
	t.words = strings.TrimSuffix("at "+strings.Join(texts, " "), " ")
	if len(at) > 0 {
		t.rest = min(at[len(at)-1].Sub(at[0]), MaxSpan)
	}
	t.base = func(time.Time) times {
		return func(after time.Time) time.Time {
			if n, _ := slices.BinarySearchFunc(at, after.Add(1), time.Time.Compare); n < len(at) {
				return at[n]
			}
			return time.Time{}
		}
	}
	return nil
}
