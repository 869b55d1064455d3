// Package gocronx is the one door to gocron. gocron stays the interface, its definitions, options,
// listeners and monitors, and it calls tasks; it times nothing.
//
//   - A Reader has gocron itself read what NewJob was asked for, and returns a Definition: what
//     package timetable is to know of the schedule, the user's task, and the options that gocron
//     still gets.
//   - Option makes an option of the caller's own that is a gocron.JobOption.
//   - Settings are what options of gocron.NewScheduler set. Those that have gocron do what a
//     Scheduler does by itself are refused.
//   - An Executor is a gocron scheduler whose jobs are never due, and which runs until Shutdown. A
//     Job runs when it is offered a run, and tells gocron of a skip when it is offered one.
//
// gocron has no accessors for most of what options set, so private fields of its are read: those
// of jobFields and schedulerFields, and no others. They are read and never written. Check tells
// whether the gocron that the program was built with still has them.
package gocronx
