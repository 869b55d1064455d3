package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// publicJob is a job as users see it.
type publicJob struct {
	gocron.Job
	job *job
}

// RunNow begins a run now, on this replica. It excludes other runs of the job on all replicas, and
// is not a tick of the schedule: it neither takes one's place nor is it caught up.
//
// It returns nil when the run begins, and does not wait for its end. In contrast to gocron's own it
// returns an error if there is no run: a *SkipError whose Reason is SkipOverlap if a run of the job
// goes on, on whatever replica; SkipNotLeader on a replica that does not lead (WithElection);
// SkipNoQuorum, SkipTimeout, SkipSplit or SkipQuarantined if the lease could not be acquired within
// the try timeout; SkipStopped if the Scheduler is not started or is being stopped; and SkipOther,
// which matches gocron.ErrJobRunNowFailed, if gocron did not begin the run within the try timeout,
// because of gocron.WithLimitConcurrentJobs. A job that was removed is gocron.ErrJobNotFound. The
// error is for the caller: tracers and gocron's listeners are not told of it.
func (p *publicJob) RunNow() error {
	s := p.job.s
	s.mu.Lock()
	ctx, j := s.started, s.jobs[p.ID()]
	s.mu.Unlock()
	switch {
	case ctx == nil:
		return &SkipError{Job: p.job.name, Reason: SkipStopped, Err: fmt.Errorf("the Scheduler is not started: %w", gocron.ErrJobRunNowFailed)}
	case j == nil:
		return gocron.ErrJobNotFound
	case j.unlocked:
		s.asking.RLock()
		defer s.asking.RUnlock()
		return p.Job.RunNow()
	}
	if _, err := j.runNow(ctx, ""); err != nil {
		if errors.Is(err, gocron.ErrJobNotFound) {
			return err
		}
		return newSkipError(j.name, time.Time{}, err)
	}
	return nil
}

// Schedule returns what NewJob was asked for.
func (p *publicJob) Schedule() gocron.JobSchedule { return p.job.schedule }

// NextRun is gocron's: zero if nothing is scheduled.
func (p *publicJob) NextRun() (time.Time, error) {
	runs, err := p.NextRuns(1)
	if len(runs) == 0 {
		return time.Time{}, err
	}
	return runs[0], err
}

// NextRuns is gocron's. It returns fewer times if there are no more.
func (p *publicJob) NextRuns(n int) ([]time.Time, error) {
	runs, err := p.Job.NextRuns(n)
	return p.job.local(until(never, runs)), err
}

// until returns the times before an end.
func until(end time.Time, times []time.Time) []time.Time {
	if i := slices.IndexFunc(times, func(at time.Time) bool { return at.IsZero() || !at.Before(end) }); i >= 0 {
		return times[:i]
	}
	return times
}
