// Package gocronx is the only package that uses gocron's inner workings. gocron stays the
// interface: its definitions, options, listeners and monitors are used, and it calls tasks. It
// times nothing.
//
//   - A Reader has gocron itself read the arguments of NewJob, and returns a Definition: the
//     schedule for package timetable, the user's task, and the options that gocron still gets.
//   - Option makes a gocron.JobOption that is the caller's own.
//   - Settings are the values that options of gocron.NewScheduler set. Options for which gocron
//     would do what a Scheduler does itself are refused.
//   - An Executor is a gocron scheduler whose jobs are never due, and which runs until Shutdown. A
//     Job runs when it is offered a run, and tells gocron of a skip when it is offered a skip.
//
// gocron has no accessors for most of the values that options set. So this package reads private
// fields of gocron: those of jobFields and schedulerFields, and no others. It never writes them.
// Check reports whether the gocron that the program was built with still has them.
package gocronx
