package timetable

import "time"

// Kind is a kind of schedule.
type Kind int

// The kinds, with the fields of a Spec that each reads beside Start, AtOnce and Stop.
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

// Daylight is the policy for times that are skipped when the clock is set forward. The values are
// those of gocron.DaylightSavingsTimePolicy.
type Daylight int

// The policies.
const (
	DaylightDefault Daylight = iota // crontabs skip them, the other kinds run later
	DaylightSkip                    // they are left out
	DaylightLater                   // they are later by the length of the gap
)

// Spec is a schedule as plain values.
type Spec struct {
	Kind Kind

	Text    string // crontab as given to gocron.CronJob, which may begin with TZ= or CRON_TZ=
	Seconds bool   // Text may have a field of seconds

	Every, Most time.Duration // Interval: Every; Random: from Every to Most
	FromEnd     bool          // counted from the end of the last run (gocron.WithIntervalFromCompletion)

	Units    uint            // the interval, in days, weeks or months
	Times    []time.Duration // of the day, since midnight, in any order
	Weekdays []time.Weekday
	Days     []int // of the month; negative: from its end, -1 is the last

	At []time.Time // Once: as the user gave them, in any order, also past ones; may be empty if AtOnce

	Next func(after time.Time) time.Time // Own: the user's gocron.Cron, asked with times in Zone

	Zone     *time.Location // nil is UTC
	Daylight Daylight

	Start  time.Time // gocron.WithStartAt, also a past time; zero for none
	AtOnce bool      // gocron.WithStartImmediately, gocron.OneTimeJobStartImmediately
	Stop   time.Time // gocron.WithStopAt; zero for none
}
