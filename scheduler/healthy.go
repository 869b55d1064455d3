package scheduler

// ErrNotRunning means that this replica runs no jobs: Start was not called, or StopJobs or Shutdown
// was, or the context of WithContext has ended.
var ErrNotRunning error = notRunning{}

type notRunning struct{}

func (notRunning) Error() string {
	return "scheduler: not running: call Start, or see which of StopJobs, Shutdown and the end of its context has stopped it"
}

// ErrorType returns the stable value "not_running".
func (notRunning) ErrorType() string { return "not_running" }

// Healthy returns nil if this replica takes part in running jobs as it should: the Scheduler is
// started, and a quorum of nodes answered when it was last asked, or it leads the election
// (WithElection). Following is healthy, and so are jobs that fail. It does no I/O.
//
// As a readiness check it would take all replicas out of service when the nodes are out of reach:
// package health has rules that do not.
//
// Errors: ErrNotRunning, what Elector.Healthy returns, or what Quorum.Healthy does.
func (s *Scheduler) Healthy() error {
	if s.none() {
		return ErrNotRunning
	}
	s.mu.Lock()
	running := s.started != nil && s.started.Err() == nil
	s.mu.Unlock()
	switch {
	case !running:
		return ErrNotRunning
	case s.leader != nil:
		return s.leader.elector.Healthy()
	}
	return s.q.Healthy()
}
