// Package timetable computes when a job is due: a job of a Scheduler, or of tenure run --tick. It
// is pure: it reads no clock, and knows no gocron.
//
// A Spec holds a definition of gocron and its options as plain values. New checks it, and returns
// the definition in canonical words, with the due times for the moment in which the definition was
// first made anywhere (since):
//
//	d, err := timetable.New(timetable.Spec{Kind: timetable.Interval, Every: 15 * time.Minute})
//	rec, table := joblog.Adopt(rec, d, nodesNow)
//	next := table.Next(time.Now())
//
// Replicas agree on a tick by its time. So the due times follow from the words and from since
// alone, whenever a replica was started and for whatever time it asks:
//
//   - an interval has Start + n * Every, or since + n * Every without a Start;
//   - every second day, week (from Sunday) or month counts from the day of Start, or of since;
//   - Start is the first due time, as in gocron; so is since for a job that starts at once, once
//     for the definition and not once for each start of a replica;
//   - nothing is due from Stop on;
//   - random intervals, and intervals from the end of a run, are a joblog.Chain: the record has the
//     next due time.
//
// # Days on which clocks are changed
//
// A wall clock that is set forward skips some times, and one that is set back shows some times
// twice. Crontabs leave a skipped time out; for daily, weekly and monthly jobs it is later by the
// length of the gap. Daylight can say otherwise. A time that is shown twice is due the first time
// only; but a crontab whose hour field begins with an asterisk is due both times.
package timetable
