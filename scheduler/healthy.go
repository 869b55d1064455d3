package scheduler

import "cmp"

// ErrNotRunning means that this replica runs no jobs: Start was not called, or StopJobs or Shutdown
// was.
var ErrNotRunning error = notRunning{}

type notRunning struct{}

func (notRunning) Error() string {
	return "scheduler: not running: call Start, or see which of StopJobs and Shutdown has stopped it"
}

// ErrorType returns the stable value "not_running".
func (notRunning) ErrorType() string { return "not_running" }

// Healthy returns nil if this replica takes part in running jobs as it should: the Scheduler is
// started, a quorum of nodes answered when it was last asked, or it leads the election
// (WithElection), and its clock is neither ahead of the nodes' nor behind by more than ticks allow
// (redlock.Quorum.CheckClock). Following is healthy, and so are jobs that fail. It does no I/O.
//
// As a readiness check it would take all replicas out of service when the nodes are out of reach:
// package health has rules that do not.
//
// Errors: ErrNotRunning, what Elector.Healthy returns, or what Quorum.Healthy does, or
// *redlock.ClockError.
func (s *Scheduler) Healthy() error {
	if s.none() || s.life() == nil {
		return ErrNotRunning
	}
	nodes := s.q.Healthy
	if s.leader != nil {
		nodes = s.leader.elector.Healthy
	}
	return cmp.Or(nodes(), s.q.CheckClock(s.now()))
}
