// Package jobs is the workload with scheduled jobs: jobs of all kinds, the ticks that each must
// have, and the replica process that has them in two Schedulers, one that shares the runs with the
// other replicas and one that elects a leader. It keeps a journal of all that the Schedulers tell.
package jobs

import (
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
	Duration Kind = "duration" // gocron.DurationJob, from when it was first made anywhere
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
	Leader   bool // by the Scheduler with an election
	CatchUp  scheduler.CatchUp
	Delivery scheduler.Delivery
	Overlap  scheduler.Overlap
	Fails    bool  // returns an error each third time
	Panics   bool  // each fourth tick, at the first attempt
	Deaf     bool  // does not end with its context
	Phase    int64 // of a duration job: its ticks are so many milliseconds after multiples of Every; the checker finds it
	Paused   bool  // an operator pauses it now and then, so no tick has to be run
	Idle     bool  // ticks seldom: missed ticks are caught up for so long that there are some at any time
}

// Ticked reports whether the judge knows all ticks of the job from its first on.
func (j *Job) Ticked() bool { return j.Then == 0 && (j.Kind == Cron || j.Kind == Duration) }

// In returns the job as a version of the replicas has it.
func (j Job) In(version int) Job {
	if version%2 == 1 && j.Then != 0 {
		j.Every, j.Then = j.Then, j.Every
	}
	return j
}

// Definition is the job for gocron.
func (j *Job) Definition() gocron.JobDefinition {
	switch j.Kind {
	case Duration:
		return gocron.DurationJob(j.Every)
	case Random:
		return gocron.DurationRandomJob(j.Every, 2*j.Every)
	case Manual:
		return gocron.CronJob("0 0 1 1 *", false)
	}
	if j.Every == time.Minute {
		return gocron.CronJob("0 * * * * *", true)
	}
	return gocron.CronJob(fmt.Sprintf("*/%d * * * * *", int(j.Every.Seconds())), true)
}

// Ticks returns the ticks from a time up to another one, in milliseconds since 1970, both included.
func (j *Job) Ticks(from, to int64) []int64 {
	every := j.Every.Milliseconds()
	var ticks []int64
	for tick := from + ((j.Phase-from)%every+every)%every; tick <= to; tick += every {
		ticks = append(ticks, tick)
	}
	return ticks
}

// Window is for how long missed ticks are caught up, and IdleWindow for those of idle jobs.
const (
	Window     = 30 * time.Second
	IdleWindow = 150 * time.Second
)

// Within is for how long the job's missed ticks are caught up.
func (j *Job) Within() time.Duration {
	if j.Idle {
		return IdleWindow
	}
	return Window
}

// Long reports whether the job takes longer than its interval, so that it cannot run all ticks.
func (j *Job) Long() bool { return j.Takes >= j.Every }

// All returns the jobs that there are from the start: so few that two processors carry five
// replicas.
func All() []Job {
	const second, latest, all, atLeastOnce, queue = time.Second, scheduler.CatchUpLatest, scheduler.CatchUpAll, scheduler.AtLeastOnce, scheduler.OverlapQueue
	jobs := []Job{
		// Nothing is caught up, and yet no tick is lost while all is well.
		{Kind: Cron, Every: 2 * second},
		{Kind: Cron, Every: 2 * second, Takes: 200 * ms, Leader: true, Fails: true},
		{Kind: Duration, Every: 3 * second, Takes: 200 * ms},
		{Kind: Duration, Every: 4 * second, Leader: true},
		// Runs that take longer than the interval.
		{Kind: Cron, Every: 4 * second, Takes: 5 * second, Deaf: true},
		{Kind: Cron, Every: 3 * second, Takes: 4 * second, Overlap: queue},
		{Kind: Duration, Every: 5 * second, Takes: 6 * second},
		{Kind: Cron, Every: 4 * second, Takes: 5 * second, CatchUp: all, Delivery: atLeastOnce, Overlap: queue},
		// What is missed is caught up, all of it or the latest.
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
		// What keeps a leader that is stopped in order.
		{Kind: Cron, Every: 10 * second, Takes: 6 * second, Deaf: true, Leader: true},
		// Ticks that are far apart, and that the servers have to remember.
		{Kind: Cron, Every: 20 * second, CatchUp: all, Delivery: atLeastOnce, Idle: true},
		{Kind: Cron, Every: 30 * second, CatchUp: all, Delivery: atLeastOnce, Leader: true, Idle: true},
		{Kind: Cron, Every: time.Minute, CatchUp: all, Leader: true, Idle: true},
		{Kind: Cron, Every: time.Minute, CatchUp: latest, Delivery: atLeastOnce, Idle: true},
		// No ticks that are known ahead.
		{Kind: Random, Every: 3 * second, Takes: 200 * ms},
		{Kind: Random, Every: 4 * second, Takes: 100 * ms, Leader: true},
		{Kind: Manual, Every: 8 * second, Takes: 400 * ms},
		{Kind: Manual, Every: 12 * second, Leader: true},
		// Schedules that a deploy changes, and the next one changes back.
		{Kind: Cron, Every: 3 * second, Then: 4 * second, CatchUp: all},
		{Kind: Duration, Every: 5 * second, Then: 4 * second, CatchUp: all},
		// Those that an operator pauses: see PausedName.
		{Kind: Cron, Every: 2 * second, Paused: true},
		{Kind: Cron, Every: 3 * second, Takes: 100 * ms, CatchUp: all, Paused: true},
	}
	for i := range jobs {
		jobs[i].Name = fmt.Sprintf("%s-%d", jobs[i].Kind, i+1)
	}
	return jobs
}

const ms = time.Millisecond

// PausedName is the name of a job that an operator pauses.
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
