package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Start is gocron's. It also begins the candidature (WithElection), and looks for ticks that were
// missed (WithCatchUp).
func (s *Scheduler) Start() {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	if s.down {
		return
	}
	s.mu.Lock()
	if s.started == nil {
		before := s.cfg.clock.Now().Add(-1)
		for _, j := range s.jobs {
			j.restart(before)
		}
	}
	s.mu.Unlock()
	s.inner.Start()
	s.mu.Lock()
	if s.started != nil {
		s.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(s.cfg.context)
	s.started, s.stop = ctx, cancel
	jobs := s.list()
	s.mu.Unlock()
	for _, j := range jobs {
		s.begin(j)
	}
	s.leader.join(s.cfg.context)
}

// list is called with mu held.
func (s *state) list() []*job {
	jobs := make([]*job, 0, len(s.jobs))
	for _, j := range s.jobs {
		jobs = append(jobs, j)
	}
	return jobs
}

// begin lets a job's ticks be chased, unless the Scheduler is stopped.
func (s *state) begin(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == nil || s.jobs[j.gocron.ID()] != j {
		return
	}
	j.chase.start(s.started)
	if s.leader.check(s.started) == nil {
		s.lookUp(s.started, j)
	}
}

// elected looks for the ticks that nobody ran before this replica was elected.
func (s *state) elected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == nil {
		return
	}
	for _, j := range s.jobs {
		s.lookUp(s.started, j)
	}
}

// A look for missed ticks that found no quorum is repeated after pauses that double between these.
const (
	minLookUpPause = 50 * time.Millisecond
	maxLookUpPause = time.Second
)

// lookUp asks the nodes, in the background, which ticks of the job were missed. Called with mu
// held.
func (s *state) lookUp(ctx context.Context, j *job) {
	if j.cfg.catchUp == CatchUpNone { //mutant:missed-ticks-not-looked-for
		return
	}
	s.lookups.Go(func() {
		pause := minLookUpPause
		for {
			missed, err := j.backlog(ctx)
			if err == nil {
				j.chase.add(j.quarries(SkipMissed, missed...)...)
				return
			}
			if !errors.Is(err, redlock.ErrNoQuorum) {
				if ctx.Err() == nil {
					s.cfg.logger.WarnContext(ctx, "scheduler: cannot tell which ticks were missed: none is caught up", "job", j.name, "error", err)
				}
				return
			}
			select {
			case <-time.After(pause):
				pause = min(2*pause, maxLookUpPause)
			case <-ctx.Done():
				return
			}
		}
	})
}

// StopJobs is gocron's: it waits for runs, at most the stop timeout. Before that, ticks that wait
// are given up and the candidature ends, so that another replica leads until Start.
func (s *Scheduler) StopJobs() error {
	if s.none() {
		return nil
	}
	return s.halt(s.inner.StopJobs)
}

// StopJobsWithContext is StopJobs with a context.
func (s *Scheduler) StopJobsWithContext(ctx context.Context) error {
	if s.none() {
		return nil
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	return s.halt(func() error { return s.inner.StopJobsWithContext(ctx) })
}

// Shutdown stops in order: no tick is begun any more; the leadership is given up, so that another
// replica runs what is due from now on; runs are told to end, and have the stop timeout for it, in
// which their leases are extended, so that no other replica begins the same jobs; each lease is
// released as its run ends. The lease of a run that does not end is not released: as long as the
// Quorum is open it is extended. The error then matches gocron.ErrStopJobsTimedOut and names the
// jobs. Close the Quorum afterwards, which lets such leases run out.
//
// Of a nil Scheduler, which comes with an error, there is nothing to stop, so a deferred Shutdown
// may stand before the check of the error.
func (s *Scheduler) Shutdown() error {
	if s.none() {
		return nil
	}
	return s.end(s.inner.Shutdown)
}

// ShutdownWithContext is Shutdown with a context.
func (s *Scheduler) ShutdownWithContext(ctx context.Context) error {
	if s.none() {
		return nil
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	return s.end(func() error { return s.inner.ShutdownWithContext(ctx) })
}

// none reports whether the Scheduler is nil or zero.
func (s *Scheduler) none() bool { return s == nil || s.state == nil } //mutant:nil-scheduler-stopped

// end is halt for good.
func (s *Scheduler) end(stop func() error) error {
	return s.halt(func() error {
		s.down = true
		return stop()
	})
}

func (s *Scheduler) halt(stop func() error) error {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	s.asking.Lock()
	s.mu.Lock()
	if s.stop != nil {
		s.stop()
		s.started, s.stop = nil, nil
	}
	jobs := s.list()
	s.mu.Unlock()
	s.asking.Unlock()
	s.lookups.Wait()
	for _, j := range jobs {
		j.chase.halt()
	}
	// Each run has a lease of its own, so the next leader need not wait for it.
	if left := s.leader.leave(); left != nil { //mutant:leadership-after-the-runs
		<-left
	}
	return s.tasks.name(stop()) //mutant:leadership-after-the-runs/2
}
