// Package scheduler makes gocron (https://github.com/go-co-op/gocron) run the jobs of a service
// with several replicas, with leases and registers over a quorum of Valkey nodes (package redlock).
//
// There are two ways. A [Scheduler] is a gocron.Scheduler: each tick of a job is run once, by one
// of the replicas, and runs of one job never overlap. Ticks that no replica ran are run late if
// that is wanted. A task hears when its lease is lost, and knows its tick and its fencing token.
//
//	q, err := redlock.Open([]string{"valkey://a", "valkey://b", "valkey://c"}, redlock.WithPrefix("billing"))
//	...
//	s, err := scheduler.New(q)
//	...
//	_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(report),
//		gocron.WithName("nightly-report"), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest))
//	...
//	s.Start()
//
// A job is known by its name, under the Quorum's prefix. Two services that share nodes need a
// prefix each. Otherwise jobs of one name take each other's ticks; see [Conflict].
//
// A [Locker] locks the jobs of a gocron scheduler of your own. The end of this page is about it.
//
// # A job is a log of ticks
//
// A tick is a job and the time at which it is due. The nodes keep one record a job, which says how
// far its log has come: which definition was made and when, up to where ticks are settled, the last
// run, and the last success. Each replica repeats one sentence: take the lease, read the record,
// run what the log owes now, write how it ended. There is no second way for late ticks, for
// elections or for orders, and gocron is the interface and the executor, and times nothing.
//
//   - A tick is run when it is due. A replica asks for it some 300 ms ahead (with many jobs up to
//     950), at a moment of its own, and begins at the due time, by a clock that never steps.
//   - A tick that nobody ran at its time is run as long as it is late by [Grace] at most, or within
//     the window of [WithCatchUp]. It does not matter why nobody did: no replica was up, the nodes
//     were out of reach, a process stood still, or a clock was set.
//   - A tick whose run was cut short is run again with [AtLeastOnce]: its replica was killed, lost
//     its lease, or told the task to end, and that returned an error. nil from a task means that
//     the run is complete. A run that never ended is told as [SkipCutShort].
//   - Ticks that come during a run are left out, or the last of them is run after it, or ends it:
//     [WithOverlap].
//   - An interval counts from when its definition was first made anywhere, or from
//     gocron.WithStartAt, so a deploy does not move it. A definition that is changed counts anew.
//   - Random intervals, intervals from completion and limited runs have one sequence over all
//     replicas.
//
// docs/scheduling.md says what gocron's schedules and options mean with it. docs/guarantees.md says
// what is promised under which faults, and what is not: with any delivery a run may begin while an
// earlier one still acts, in a process that stood still for longer than its lease lived. That is
// what the fencing token is for, see [Run.FencingToken].
//
// # Stopping
//
// [Scheduler.Shutdown] gives up the leadership, tells runs to end and waits for them. Call it
// before redlock's Quorum.Close.
//
// # Locker
//
// A Locker is a drop-in for gocron.WithDistributedLocker, for all jobs of a scheduler, and for
// gocron.WithDistributedJobLocker, for one job:
//
//	q, err := redlock.Open([]string{"valkey://a", "valkey://b", "valkey://c"}, redlock.WithPrefix("billing"))
//	...
//	locker, err := scheduler.NewLocker(q)
//	...
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	...
//	_, err = s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(report), gocron.WithName("nightly-report"))
//
// When a job is due, every replica tries once to acquire the job's lease. One gets it and runs the
// job; the others skip the tick, which is no failure. While the job runs its lease is extended, so
// a job may take longer than the TTL, and no replica starts it a second time, the same one
// included.
//
// # The minimum hold
//
// Replicas do not tick at the same instant. Their clocks differ, by well under a second where NTP
// keeps them, and a busy process is late. A job that is done before the slowest replica has tried
// would free its lease, and that replica would run the same tick again: three replicas whose job
// took no time ran five ticks fifteen times. Therefore the lease's key stays on the servers for a
// minimum time after it was acquired, see [WithMinHold]. It has to obey:
//
//	clock difference between replicas + try timeout  <  MINIMUM HOLD  <  shortest interval of any job
//
// An attempt may be answered as late as the try timeout (WithTryTimeout, 1 s), where nodes are slow
// or fail. So with the defaults clocks may differ by a second.
//
// THE DEFAULT OF 2 s IS TOO LONG FOR A JOB THAT RUNS EVERY SECOND OR TWO: its next tick falls into
// the hold and is refused on every replica, so such a job runs only every second or third tick. A
// locker is not told the interval: it is for you to set. When a job's ticks follow each other
// faster than the minimum hold and one is refused, the Locker logs a warning, once for the job.
// Leave the left side as room at the upper end too, because the next tick may be that of a
// replica whose clock is ahead, and the hold counts from the grant; no warning tells you of that.
//
// # What it does not do
//
//   - It cannot tell a running job that its lease was lost. gocron gives the job no way to learn of
//     its lock. When too few nodes can be reached for a TTL, or a process is paused for as long,
//     another replica may start the next run while this one is still at work. The loss is logged;
//     the job goes on. Keep jobs idempotent, or protect what they write with the lease's fencing
//     token: wrap the Locker and take the lease from its [Lock.Lease].
//   - It does not run a tick for which no quorum of nodes could be reached, and no replica makes up
//     for it later. Nor does the crash of a replica free its jobs: their ticks are refused until
//     the lease's TTL has run out.
//   - It does not compare ticks, only times. Jobs that do not tick together have nothing to agree
//     on: gocron.DurationJob counts from the start of each replica unless gocron.WithStartAt aligns
//     it, and a one-time job that is started on each replica at different times runs on each of
//     them. gocron.CronJob ticks together if the zone is the same on all: gocron's is time.Local
//     unless gocron.WithLocation says otherwise. On the days on which clocks are changed gocron
//     decides by what each replica ran before.
//
// # Traps in gocron
//
// If a gocron scheduler has both an elector and a locker, gocron asks the elector only and NO JOB
// IS LOCKED, without a word: set one of them, gocron.WithDistributedElector or
// gocron.WithDistributedLocker.
//
// What is locked is the name of a job, and a job that was not named has that of its function. The
// compiler calls anonymous functions "main.main.func1", all of those made in a loop alike, and
// numbers them anew when the code around them changes, so that replicas of two builds lock
// different keys during a deploy. Two jobs of one name exclude each other, which a Locker cannot
// see. Name every job with gocron.WithName, and no two alike. A Locker logs a warning for a name
// that looks made by the compiler.
//
// # Shutting down
//
// First gocron's Shutdown, which waits for running jobs and frees their leases, then redlock's
// Quorum.Close. If Shutdown gives up on a job (gocron.WithStopTimeout), the job still runs: its
// lease is not released, and closing the Quorum leaves the key to run out by itself.
package scheduler
