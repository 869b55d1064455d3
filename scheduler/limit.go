package scheduler

import (
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// gocron.WithLimitConcurrentJobs with LimitModeReschedule drops what it has no place for, and calls
// no Lock. The next call for the job finds the ticks that were passed over. Behind the last tick of
// a job there is none, so gocron's monitor is asked.

// errNoPlace is why gocron begins no run.
var errNoPlace = errors.New("gocron has as many runs as it may (gocron.WithLimitConcurrentJobs, LimitModeReschedule)")

// limitMonitor is the user's monitor, which also tells the Scheduler what gocron has dropped.
type limitMonitor struct {
	gocron.SchedulerMonitor
	s *state
}

// ConcurrencyLimitReached is called where a run would have begun.
func (m *limitMonitor) ConcurrencyLimitReached(limit string, of gocron.Job) {
	m.SchedulerMonitor.ConcurrencyLimitReached(limit, of)
	m.s.turnedAway(of.ID())
}

// turnedAway reports the last tick of a job that gocron has no place for, and has it run late if
// the job catches up.
func (s *state) turnedAway(id uuid.UUID) {
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j == nil || j.unlocked || !j.claims.isLast() {
		return
	}
	ctx := s.cfg.context
	due, skip := j.due(ctx)
	if skip == nil {
		late := newLateTick(j, due.scheduled, SkipMissed)
		skip = &SkipError{Job: j.name, Tick: late.tick, Reason: SkipOther, Err: errNoPlace}
		skip.Pending = j.cfg.catchUp != CatchUpNone && j.backlog.add(late)
	}
	s.skip(ctx, skip)
}

// noMonitor is that of a user without one.
type noMonitor struct{}

func (noMonitor) SchedulerStarted()                                   {}
func (noMonitor) SchedulerStopped()                                   {}
func (noMonitor) SchedulerShutdown()                                  {}
func (noMonitor) JobRegistered(gocron.Job)                            {}
func (noMonitor) JobUnregistered(gocron.Job)                          {}
func (noMonitor) JobStarted(gocron.Job)                               {}
func (noMonitor) JobRunning(gocron.Job)                               {}
func (noMonitor) JobFailed(gocron.Job, error)                         {}
func (noMonitor) JobCompleted(gocron.Job)                             {}
func (noMonitor) JobExecutionTime(gocron.Job, time.Duration)          {}
func (noMonitor) JobSchedulingDelay(gocron.Job, time.Time, time.Time) {}
func (noMonitor) ConcurrencyLimitReached(string, gocron.Job)          {}
