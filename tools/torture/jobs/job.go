// Package jobs is the workload with scheduled jobs: jobs of all kinds, the ticks that each must
// have, and the replica process that has them in two Schedulers, one that shares the runs with the
// other replicas and one that elects a leader. It keeps a journal of all that the Schedulers tell.
package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Kind is how a job is scheduled.
type Kind string

// The kinds.
const (
	Cron     Kind = "cron"     // gocron.CronJob, at multiples of Every
	Daily    Kind = "daily"    // gocron.DailyJob with a long list of times, at multiples of Every
	Weekly   Kind = "weekly"   // gocron.WeeklyJob on each day, likewise
	Duration Kind = "duration" // gocron.DurationJob, from when it was first made anywhere
	Random   Kind = "random"   // gocron.DurationRandomJob between Every and twice that
	Once     Kind = "once"     // gocron.OneTimeJob, created while replicas run
	Manual   Kind = "manual"   // never due; each replica asks for runs with RunNow, at random every Every
)

// Job is a job as all replicas have it.
type Job struct {
	Name     string
	Kind     Kind
	Every    time.Duration
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

// Ticked reports whether the judge knows the ticks of the job.
func (j *Job) Ticked() bool { return j.Kind != Random && j.Kind != Manual && j.Kind != Once }

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

// All returns the jobs that there are from the start.
func All() []Job {
	jobs := []Job{
		{Kind: Cron, Every: time.Second},
		{Kind: Cron, Every: time.Second, Takes: 200 * time.Millisecond, Fails: true},
		{Kind: Cron, Every: time.Second, Takes: 2500 * time.Millisecond},
		{Kind: Cron, Every: time.Second, Takes: 1500 * time.Millisecond, Overlap: scheduler.OverlapQueue},
		{Kind: Cron, Every: time.Second, Leader: true},
		{Kind: Cron, Every: time.Second, Takes: 300 * time.Millisecond, Leader: true},
		{Kind: Cron, Every: 2 * time.Second, CatchUp: scheduler.CatchUpLatest},
		{Kind: Cron, Every: 3 * time.Second, CatchUp: scheduler.CatchUpAll},
		{Kind: Cron, Every: 3 * time.Second, Takes: 200 * time.Millisecond, CatchUp: scheduler.CatchUpAll},
		{Kind: Cron, Every: 4 * time.Second, CatchUp: scheduler.CatchUpAll, Leader: true},
		{Kind: Cron, Every: 2 * time.Second, Takes: 3 * time.Second, Deaf: true},
		{Kind: Cron, Every: 2 * time.Second, Takes: 100 * time.Millisecond, CatchUp: scheduler.CatchUpLatest, Leader: true},
		{Kind: Cron, Every: 3 * time.Second, Takes: 300 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce},
		{Kind: Cron, Every: 4 * time.Second, Takes: 300 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce, Leader: true},
		{Kind: Cron, Every: 3 * time.Second, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce, Panics: true},
		{Kind: Cron, Every: 3 * time.Second, Takes: time.Second, CatchUp: scheduler.CatchUpLatest, Delivery: scheduler.AtLeastOnce},
		{Kind: Cron, Every: 4 * time.Second, Takes: 500 * time.Millisecond, CatchUp: scheduler.CatchUpAll},
		{Kind: Cron, Every: 4 * time.Second, Takes: 5 * time.Second, Overlap: scheduler.OverlapQueue},
		{Kind: Cron, Every: 4 * time.Second, Takes: 3 * time.Second, CatchUp: scheduler.CatchUpLatest, Leader: true},
		{Kind: Cron, Every: 5 * time.Second, CatchUp: scheduler.CatchUpAll},
		{Kind: Cron, Every: 5 * time.Second, Takes: time.Second, CatchUp: scheduler.CatchUpAll, Leader: true},
		{Kind: Cron, Every: 6 * time.Second, Takes: 2 * time.Second, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce},
		{Kind: Cron, Every: 10 * time.Second, Takes: 100 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Fails: true},
		{Kind: Cron, Every: 12 * time.Second, Takes: 4 * time.Second, CatchUp: scheduler.CatchUpLatest},
		{Kind: Cron, Every: 15 * time.Second, CatchUp: scheduler.CatchUpAll, Leader: true},
		{Kind: Daily, Every: 4 * time.Second},
		{Kind: Daily, Every: 6 * time.Second, Takes: 200 * time.Millisecond, CatchUp: scheduler.CatchUpAll},
		{Kind: Daily, Every: 10 * time.Second, CatchUp: scheduler.CatchUpAll, Leader: true},
		{Kind: Weekly, Every: 5 * time.Second, CatchUp: scheduler.CatchUpAll},
		{Kind: Weekly, Every: 15 * time.Second, Takes: 500 * time.Millisecond, CatchUp: scheduler.CatchUpLatest, Leader: true},
		{Kind: Duration, Every: 2 * time.Second},
		{Kind: Duration, Every: 3 * time.Second, Takes: 200 * time.Millisecond},
		{Kind: Duration, Every: 4 * time.Second, Takes: 100 * time.Millisecond, CatchUp: scheduler.CatchUpAll},
		{Kind: Duration, Every: 5 * time.Second, Takes: 6 * time.Second},
		{Kind: Duration, Every: 3 * time.Second, Leader: true},
		{Kind: Random, Every: 2 * time.Second, Takes: 200 * time.Millisecond, Leader: true},
		{Kind: Random, Every: 2 * time.Second, Takes: 100 * time.Millisecond},
		{Kind: Manual, Every: 3 * time.Second, Takes: 400 * time.Millisecond},
		{Kind: Manual, Every: 5 * time.Second, Leader: true},

		// Runs that take a part of the interval of a duration job.
		{Kind: Duration, Every: 2 * time.Second, Takes: 600 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce},
		{Kind: Duration, Every: 3 * time.Second, Takes: 2200 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce},
		{Kind: Duration, Every: 4 * time.Second, Takes: time.Second, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce, Leader: true},
		// A queue that is run at least once, with time to spare and without.
		{Kind: Cron, Every: 3 * time.Second, Takes: 2 * time.Second, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce, Overlap: scheduler.OverlapQueue},
		{Kind: Cron, Every: 2 * time.Second, Takes: 2500 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce, Overlap: scheduler.OverlapQueue},
		// Short intervals.
		{Kind: Cron, Every: time.Second, Takes: 200 * time.Millisecond, CatchUp: scheduler.CatchUpAll},
		{Kind: Cron, Every: time.Second, CatchUp: scheduler.CatchUpAll, Leader: true},
		{Kind: Duration, Every: 300 * time.Millisecond},
		{Kind: Duration, Every: 500 * time.Millisecond, Takes: 50 * time.Millisecond, CatchUp: scheduler.CatchUpAll},
		{Kind: Duration, Every: 700 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Leader: true},
		// Nothing is caught up, and yet no tick is lost while all is well.
		{Kind: Cron, Every: 2 * time.Second},
		{Kind: Cron, Every: 2 * time.Second, Takes: 100 * time.Millisecond, Leader: true},
		{Kind: Cron, Every: 3 * time.Second, Takes: 50 * time.Millisecond},
		// A tick that its winner gives back because it is stopped has to find another replica.
		{Kind: Cron, Every: plan.Beat, CatchUp: scheduler.CatchUpLatest},
		{Kind: Cron, Every: plan.Beat, Takes: 50 * time.Millisecond, CatchUp: scheduler.CatchUpLatest},
		{Kind: Cron, Every: plan.Beat, Takes: 100 * time.Millisecond, CatchUp: scheduler.CatchUpLatest},
		// What keeps a leader that is stopped in order.
		{Kind: Cron, Every: 10 * time.Second, Takes: 6 * time.Second, Deaf: true, Leader: true},
		// Ticks that are far apart, and that the servers have to remember.
		{Kind: Cron, Every: 20 * time.Second, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce, Idle: true},
		{Kind: Cron, Every: 30 * time.Second, CatchUp: scheduler.CatchUpAll, Delivery: scheduler.AtLeastOnce, Leader: true, Idle: true},
		{Kind: Cron, Every: time.Minute, CatchUp: scheduler.CatchUpAll, Leader: true, Idle: true},
		{Kind: Cron, Every: time.Minute, CatchUp: scheduler.CatchUpLatest, Delivery: scheduler.AtLeastOnce, Leader: true, Idle: true},
		// Those that an operator pauses: see PausedName.
		{Kind: Cron, Every: time.Second, Paused: true},
		{Kind: Cron, Every: 2 * time.Second, Takes: 100 * time.Millisecond, CatchUp: scheduler.CatchUpAll, Paused: true},
	}
	for i := range jobs {
		jobs[i].Name = fmt.Sprintf("%s-%d", jobs[i].Kind, i+1)
	}
	return jobs
}

// How one-time jobs come: one of each of these after the other, OnceEvery apart, created Ahead of
// its time.
const (
	OnceEvery = 5 * time.Second
	Ahead     = 3 * time.Second
)

// PausedName is the name of a job that an operator pauses.
func PausedName(n int) string {
	all := All()
	return all[len(all)-plan.PausedJobs+n].Name
}

var onces = []Job{
	{Kind: Once},
	{Kind: Once, Takes: 500 * time.Millisecond, CatchUp: scheduler.CatchUpAll},
}

// OneTime returns the one-time job whose time is n times OnceEvery after 1970, and that time.
func OneTime(n int64) (Job, time.Time) {
	j := onces[n%int64(len(onces))]
	j.Name = fmt.Sprintf("%s-at-%d", Once, n)
	return j, time.Unix(0, n*int64(OnceEvery)).UTC()
}

// Find returns a job by its name.
func Find(jobs []Job, name string) (Job, bool) {
	if number, ok := strings.CutPrefix(name, string(Once)+"-at-"); ok {
		var n int64
		if _, err := fmt.Sscan(number, &n); err == nil && n > 0 {
			j, _ := OneTime(n)
			return j, true
		}
		return Job{}, false
	}
	for _, j := range jobs {
		if j.Name == name {
			return j, true
		}
	}
	return Job{}, false
}
