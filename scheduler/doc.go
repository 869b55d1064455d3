// Package scheduler runs the jobs of a service with several replicas: each tick of a job once, on
// one of them. It is gocron (https://github.com/go-co-op/gocron) with leases and records on a
// quorum of Valkey nodes (package redlock).
//
// A [Scheduler] is a gocron.Scheduler. Every replica makes one, with the same jobs:
//
//	s, err := scheduler.New(q) // q is a *redlock.Quorum
//	...
//	_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(report),
//		gocron.WithName("nightly-report"), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest))
//	...
//	s.Start()
//	defer s.Shutdown() // before the Quorum is closed
//
// A job is known by its name, under the Quorum's prefix (redlock.WithPrefix). Services that share
// nodes need a prefix each, or jobs of one name take each other's ticks; see [Conflict].
//
// # A job is a log of ticks
//
// A tick is a job and the time at which it is due. The nodes keep one record a job: its definition,
// the time up to which ticks are settled, the last run, and the last success. Each replica repeats
// the same steps: take the lease, read the record, run what is owed now, write how it ended.
//
//   - A tick runs when it is due. A replica asks for it some 300 ms ahead (950 ms at most, with
//     many jobs), and begins at the due time.
//   - A tick that no replica ran at its time runs late, by at most [Grace] or within the window of
//     [WithCatchUp].
//   - A run that was cut short is lost, and noted as [SkipCutShort]. With [AtLeastOnce] its tick
//     runs again. A run is complete when its task returns nil or an error of its own.
//   - Ticks that come during a run are left out, run after it, or end it: [WithOverlap].
//   - An interval counts from the time at which a replica that may run the job first wrote the
//     job's definition to the nodes. So a deploy does not move it.
//
// A task whose first parameter is a context gets a context that ends when the run's lease is lost.
// [RunFromContext] returns the tick and the fencing token. A process that stood still for longer
// than its lease lived may act late. Only a resource that refuses older tokens stops it.
//
// docs/scheduling.md says what gocron's schedules and options mean here, and docs/guarantees.md
// which promises hold under which faults.
//
// # gocron's own scheduler
//
// A [Locker] is for gocron.WithDistributedLocker and gocron.WithDistributedJobLocker. When a job is
// due, every replica tries once to acquire its lease. One replica runs the job, and the others skip
// the tick. A Locker does less than a Scheduler; see [Locker].
//
// Name every job with gocron.WithName: the compiler names functions anew when the code around them
// changes. Set no elector beside a locker: gocron then asks only the elector, and NO JOB IS LOCKED.
// Shut gocron down before you close the Quorum.
package scheduler
