// Package timetable knows when a job is due: one of a Scheduler, or of tenure run --tick. It is
// pure: it reads no clock, and knows no gocron.
//
// A Spec says in plain values what a definition of gocron and its options say. New looks at it, and
// returns the definition in canonical words, and the due times for the moment in which it was first
// made anywhere (since):
//
//	d, err := timetable.New(timetable.Spec{Kind: timetable.Interval, Every: 15 * time.Minute})
//	rec, table := joblog.Adopt(rec, d, nodesNow)
//	next := table.Next(time.Now())
//
// Replicas agree on a tick by its time, so the due times follow from the words and from since
// alone, whenever a replica was started and whatever it is asked with:
//
//   - an interval has Start + n * Every, or since + n * Every if it has no Start;
//   - every second day, week (from Sunday) or month counts from the day of Start, or of since;
//   - Start is a due time itself, as in gocron, and nothing before it is; so is since of a job that
//     starts at once, once for the definition and not once for each start of a replica;
//   - nothing is due from Stop on;
//   - random intervals, and those from the end of a run, are a joblog.Chain: the next is in the
//     record.
//
// # Days on which clocks are changed
//
// A clock on the wall that is set forward does not show some times, and one that is set back shows
// some twice. A time that is not shown is left out by crontabs, and later by what is skipped for
// daily, weekly and monthly jobs, unless Daylight says otherwise. One that is shown twice is due
// the first time; but a crontab whose field of the hours begins with an asterisk is due every time.
package timetable
