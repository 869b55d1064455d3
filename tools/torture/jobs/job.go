// Package jobs is the workload with scheduled jobs: jobs of all kinds, the ticks that each must
// have, and the replica process that runs them. A replica has two Schedulers: one shares the runs
// with the other replicas, one elects a leader. Its journal has all events that the Schedulers
// report.
package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Kind is how a job is scheduled.
type Kind string

// The kinds.
const (
	Cron     Kind = "cron"     // gocron.CronJob, at multiples of Every
	Duration Kind = "duration" // gocron.DurationJob; its ticks count from when the first replica made it
	Random   Kind = "random"   // gocron.DurationRandomJob between Every and twice that
	Manual   Kind = "manual"   // never due; each replica asks for runs with RunNow, at random every Every
)

// Job is a job as all replicas have it.
type Job struct {
	Name     string
	Kind     Kind
	Every    time.Duration
	Then     time.Duration // in place of Every after each second deploy; 0 for a schedule that stays
	Takes    time.Duration
	Leader   bool // run by the Scheduler with an election
	CatchUp  scheduler.CatchUp
	Delivery scheduler.Delivery
	Overlap  scheduler.Overlap
	Fails    bool          // the task returns an error each third time
	Panics   bool          // the task panics at each fourth tick, in the first attempt
	Deaf     bool          // the task does not end with its context
	Phase    int64         // of a duration job: ms from a multiple of Every to a tick; the checker finds it
	Paused   bool          // an operator pauses it now and then, so no tick has to be run
	Window   time.Duration // for which missed ticks are caught up; 0 for the usual one
}

// Ticked reports whether the checker knows all ticks of the job, from the first one on.
func (j *Job) Ticked() bool { return j.Then == 0 && (j.Kind == Cron || j.Kind == Duration) }

// In returns the job with the schedule that a version of the replicas has.
func (j Job) In(version int) Job {
	if version%2 == 1 && j.Then != 0 {
		j.Every, j.Then = j.Then, j.Every
	}
	return j
}

// Definition returns the definition of the job for gocron.
func (j *Job) Definition() gocron.JobDefinition {
	switch j.Kind {
	case Duration:
		return gocron.DurationJob(j.Every)
	case Random:
		return gocron.DurationRandomJob(j.Every, 2*j.Every)
	case Manual:
		return gocron.CronJob("0 0 1 1 *", false)
	}
	return gocron.CronJob(fmt.Sprintf("*/%d * * * * *", int(j.Every.Seconds())), true)
}

// Ticks returns the ticks between two times, both included, in milliseconds since 1970.
func (j *Job) Ticks(from, to int64) []int64 {
	every := j.Every.Milliseconds()
	var ticks []int64
	for tick := from + ((j.Phase-from)%every+every)%every; tick <= to; tick += every {
		ticks = append(ticks, tick)
	}
	return ticks
}

const (
	// Window is how long missed ticks are caught up.
	Window = 30 * time.Second
	// idle is the same for jobs that tick seldom: so long that some ticks are always missed.
	idle = 150 * time.Second
)

// Within returns how long the job's missed ticks are caught up.
func (j *Job) Within() time.Duration { return cmp.Or(j.Window, Window) }

// Long reports whether the job takes longer than its interval, so that it cannot run all ticks.
func (j *Job) Long() bool { return j.Takes >= j.Every }

// All returns the jobs that replicas have from the start. There are so few that two processors
// carry five replicas.
func All() []Job {
	const second, latest, all, atLeastOnce, queue = time.Second, scheduler.CatchUpLatest, scheduler.CatchUpAll, scheduler.AtLeastOnce, scheduler.OverlapQueue
	jobs := []Job{
		// Missed ticks are not caught up, and yet no tick is lost while all is well.
		{Kind: Cron, Every: 2 * second},
		{Kind: Cron, Every: 2 * second, Takes: 200 * ms, Leader: true, Fails: true},
		{Kind: Duration, Every: 3 * second, Takes: 200 * ms},
		{Kind: Duration, Every: 4 * second, Leader: true},
		// Runs that take longer than the interval.
		{Kind: Cron, Every: 4 * second, Takes: 5 * second, Deaf: true},
		{Kind: Cron, Every: 3 * second, Takes: 4 * second, Overlap: queue},
		{Kind: Duration, Every: 5 * second, Takes: 6 * second},
		{Kind: Cron, Every: 4 * second, Takes: 5 * second, CatchUp: all, Delivery: atLeastOnce, Overlap: queue},
		// Missed ticks are caught up, all of them or the latest.
		{Kind: Cron, Every: 3 * second, Takes: 200 * ms, CatchUp: all},
		{Kind: Cron, Every: 5 * second, Takes: second, CatchUp: all, Leader: true},
		{Kind: Duration, Every: 4 * second, Takes: 100 * ms, CatchUp: all},
		{Kind: Cron, Every: 12 * second, Takes: 4 * second, CatchUp: latest},
		{Kind: Cron, Every: 4 * second, Takes: 3 * second, CatchUp: latest, Leader: true},
		// At least once.
		{Kind: Cron, Every: 3 * second, Takes: 300 * ms, CatchUp: all, Delivery: atLeastOnce},
		{Kind: Cron, Every: 4 * second, Takes: 300 * ms, CatchUp: all, Delivery: atLeastOnce, Leader: true},
		{Kind: Cron, Every: 4 * second, CatchUp: all, Delivery: atLeastOnce, Panics: true},
		{Kind: Cron, Every: 5 * second, Takes: second, CatchUp: latest, Delivery: atLeastOnce},
		{Kind: Cron, Every: 6 * second, Takes: 2 * second, CatchUp: all, Delivery: atLeastOnce},
		{Kind: Cron, Every: 5 * second, Takes: 2 * second, CatchUp: all, Delivery: atLeastOnce, Overlap: queue},
		{Kind: Duration, Every: 5 * second, Takes: 2200 * ms, CatchUp: all, Delivery: atLeastOnce},
		{Kind: Duration, Every: 4 * second, Takes: second, CatchUp: all, Delivery: atLeastOnce, Leader: true},
		// A short interval.
		{Kind: Duration, Every: 900 * ms, Takes: 50 * ms, CatchUp: all},
		// A tick that its winner gives back because it is stopped has to find another replica.
		{Kind: Cron, Every: plan.Beat, CatchUp: latest},
		{Kind: Cron, Every: plan.Beat, Takes: 100 * ms, CatchUp: latest},
		// A run that delays a leader's stop in order.
		{Kind: Cron, Every: 10 * second, Takes: 6 * second, Deaf: true, Leader: true},
		// Ticks that are far apart, so that the servers have to remember them.
		{Kind: Cron, Every: 20 * second, CatchUp: all, Delivery: atLeastOnce, Window: idle},
		{Kind: Cron, Every: 30 * second, CatchUp: all, Delivery: atLeastOnce, Leader: true, Window: idle},
		{Kind: Cron, Every: time.Minute, CatchUp: all, Leader: true, Window: idle},
		{Kind: Cron, Every: time.Minute, CatchUp: latest, Delivery: atLeastOnce, Window: idle},
		// Ticks that are not known in advance.
		{Kind: Random, Every: 3 * second, Takes: 200 * ms},
		{Kind: Random, Every: 4 * second, Takes: 100 * ms, Leader: true},
		{Kind: Manual, Every: 8 * second, Takes: 400 * ms},
		{Kind: Manual, Every: 12 * second, Leader: true},
		// Schedules that a deploy changes, and the next one changes back.
		{Kind: Cron, Every: 3 * second, Then: 4 * second, CatchUp: all},
		{Kind: Duration, Every: 5 * second, Then: 4 * second, CatchUp: all},
		// Jobs that an operator pauses: see PausedName.
		{Kind: Cron, Every: 2 * second, Paused: true},
		{Kind: Cron, Every: 3 * second, Takes: 100 * ms, CatchUp: all, Paused: true},
	}
	for i := range jobs {
		jobs[i].Name = fmt.Sprintf("%s-%d", jobs[i].Kind, i+1)
	}
	return jobs
}

const ms = time.Millisecond

// PausedName returns the name of the n-th job that an operator pauses, counted from zero.
func PausedName(n int) string {
	all := All()
	return all[len(all)-plan.PausedJobs+n].Name
}

// Find returns the job of that name; nil if there is none.
func Find(jobs []Job, name string) *Job {
	i := slices.IndexFunc(jobs, func(j Job) bool { return j.Name == name })
	if i < 0 {
		return nil
	}
	return &jobs[i]
}
