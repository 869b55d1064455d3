package timetable

import "time"

// Kind is a kind of schedule.
type Kind int

// The kinds. Each names the fields of a Spec that it reads, beside Start, AtOnce and Stop.
const (
	Crontab  Kind = iota // Text, Seconds, Zone, Daylight
	Interval             // Every, FromEnd
	Random               // Every, Most, FromEnd
	Daily                // Units, Times, Zone, Daylight
	Weekly               // Units, Times, Weekdays, Zone, Daylight
	Monthly              // Units, Times, Days, Zone, Daylight
	Once                 // At
	Own                  // Text, Next, Zone
)

// Daylight is what becomes of a time that the clock does not show, because it is set forward. The
// values are those of gocron.DaylightSavingsTimePolicy.
type Daylight int

// The policies.
const (
	DaylightDefault Daylight = iota // crontabs leave it out, other kinds are later by what is skipped
	DaylightSkip                    // it is left out
	DaylightLater                   // it is later by what is skipped
)

// Spec is a schedule in plain values.
type Spec struct {
	Kind Kind

	Text    string // crontab as given to gocron.CronJob, which may begin with TZ= or CRON_TZ=
	Seconds bool   // it may have a field of seconds

	Every, Most time.Duration // Interval: Every; Random: at least and at most
	FromEnd     bool          // counted from the end of the last run (gocron.WithIntervalFromCompletion)

	Units    uint            // every so many days, weeks or months
	Times    []time.Duration // of the day, since midnight, in any order
	Weekdays []time.Weekday
	Days     []int // of the month; from its end if negative, -1 is the last

	At []time.Time // of Once, in any order, as the user gave them, past ones too; none if AtOnce

	Next func(after time.Time) time.Time // of Own: the user's gocron.Cron, asked with times of Zone

	Zone     *time.Location // nil is UTC
	Daylight Daylight

	Start  time.Time // gocron.WithStartAt, also one that has passed; zero for none
	AtOnce bool      // gocron.WithStartImmediately, gocron.OneTimeJobStartImmediately
	Stop   time.Time // gocron.WithStopAt; zero for none
}
