package scheduler

import "cmp"

// ErrNotRunning means that this replica runs no jobs, because Start was not called, or because
// StopJobs or Shutdown was.
var ErrNotRunning error = notRunning{}

type notRunning struct{}

func (notRunning) Error() string {
	return "scheduler: not running: call Start, or see which of StopJobs and Shutdown has stopped it"
}

// ErrorType returns the stable value "not_running".
func (notRunning) ErrorType() string { return "not_running" }

// Healthy returns nil if this replica takes part in running jobs as it should. The Scheduler must
// be started. A quorum of nodes must have answered when it was last asked, or this replica must
// lead the election (WithElection). Its clock must be neither ahead of the nodes' clocks nor behind
// them by more than ticks allow (redlock.Quorum.CheckClock). A replica that follows is healthy, and
// so is one whose jobs fail. Healthy does no I/O.
//
// As a readiness check it would take all replicas out of service when the nodes are out of reach.
// Package health has rules that do not.
//
// Errors: ErrNotRunning, the errors of Elector.Healthy with an election and of Quorum.Healthy
// without, and *redlock.ClockError.
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
