package scheduler

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// Jobs is gocron's.
func (s *Scheduler) Jobs() []gocron.Job {
	jobs := s.executor.Gocron().Jobs()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range jobs {
		if own := s.jobs[j.ID()]; own != nil {
			jobs[i] = &publicJob{own.gocron, own}
		}
	}
	return jobs
}

// JobsWaitingInQueue is gocron's: how many ticks wait for a place (gocron.WithLimitConcurrentJobs).
func (s *Scheduler) JobsWaitingInQueue() int { return s.limit.waitingTicks() }

// RemoveJob is gocron's. A run that goes on is told to end and keeps its lease until it has; ticks
// that wait are given up. How far the job has come stays on the nodes.
func (s *Scheduler) RemoveJob(id uuid.UUID) error {
	defer s.prune()
	return s.executor.Gocron().RemoveJob(id)
}

// RemoveByTags is gocron's; see RemoveJob.
func (s *Scheduler) RemoveByTags(tags ...string) {
	defer s.prune()
	s.executor.Gocron().RemoveByTags(tags...)
}

// isOver removes a job that has no tick left.
func (s *state) isOver(j *job) {
	defer s.prune()
	_ = s.executor.Gocron().RemoveJob(j.gocron.ID()) // it was removed meanwhile
}

// prune forgets jobs that gocron has forgotten.
func (s *state) prune() {
	s.executor.Gocron().Jobs() // when it has answered it has done what it was asked before
	var gone []*job
	s.mu.Lock()
	for id, j := range s.jobs {
		select {
		case <-j.gocron.Removed():
			gone = append(gone, j)
			delete(s.jobs, id)
			if s.names[j.name] == j {
				delete(s.names, j.name)
			}
		default:
		}
	}
	s.mu.Unlock()
	for _, j := range gone {
		j.stop()
	}
}

// Conflicts returns the conflicts of all jobs that this replica has found since they were made, by
// the jobs' names. See Conflict. It does no I/O.
func (s *Scheduler) Conflicts() []Conflict {
	var found []Conflict
	for _, j := range s.all() {
		j.mu.Lock()
		if j.conflict != nil {
			found = append(found, *j.conflict)
		}
		j.mu.Unlock()
	}
	return found
}

// Overdue returns the names of the jobs that have not succeeded for as long as WithSucceedWithin
// says, as far as this replica knows. It does no I/O, and is no matter of readiness: a restart
// heals nothing.
func (s *Scheduler) Overdue() []string {
	var late []string
	for _, j := range s.all() {
		if at := j.state().OverdueAt; !at.IsZero() && s.now().After(at) {
			late = append(late, j.name)
		}
	}
	return late
}

// all are the jobs, by their names.
func (s *state) all() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

// list is all, called with mu held.
func (s *state) list() []*job {
	return slices.SortedFunc(maps.Values(s.jobs), func(a, b *job) int { return strings.Compare(a.name, b.name) })
}

// named returns the job of that name, or nil.
func (s *state) named(name string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name]
}
