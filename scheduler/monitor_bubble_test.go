package scheduler_test

import (
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// delayed is a gocron.SchedulerMonitor that keeps what gocron says of delays.
type delayed struct {
	gocron.SchedulerMonitor
	delays []time.Duration
}

func (*delayed) SchedulerStarted()                          {}
func (*delayed) SchedulerStopped()                          {}
func (*delayed) SchedulerShutdown()                         {}
func (*delayed) JobRegistered(gocron.Job)                   {}
func (*delayed) JobUnregistered(gocron.Job)                 {}
func (*delayed) JobStarted(gocron.Job)                      {}
func (*delayed) JobRunning(gocron.Job)                      {}
func (*delayed) JobCompleted(gocron.Job)                    {}
func (*delayed) JobFailed(gocron.Job, error)                {}
func (*delayed) JobExecutionTime(gocron.Job, time.Duration) {}
func (*delayed) ConcurrencyLimitReached(string, gocron.Job) {}
func (m *delayed) JobSchedulingDelay(_ gocron.Job, scheduled, started time.Time) {
	m.delays = append(m.delays, started.Sub(scheduled))
}

// statuses is a gocron.MonitorStatus.
type statuses struct {
	mu       sync.Mutex
	counted  []gocron.JobStatus // guarded by mu
	timed    []gocron.JobStatus // guarded by mu
	unstated int                // guarded by mu
}

func (s *statuses) IncrementJob(_ uuid.UUID, _ string, _ []string, status gocron.JobStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = append(s.counted, status)
}

func (s *statuses) RecordJobTiming(_, _ time.Time, _ uuid.UUID, _ string, _ []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstated++
}

func (s *statuses) RecordJobTimingWithStatus(_, _ time.Time, _ uuid.UUID, _ string, _ []string, status gocron.JobStatus, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timed = append(s.timed, status)
}

// stalling is a gocron.SchedulerMonitor that stalls gocron's loop.
type stalling struct {
	delayed
	stalled time.Duration
}

func (m *stalling) JobUnregistered(j gocron.Job) {
	began := time.Now()
	_, _ = j.NextRun()
	m.stalled = time.Since(began)
}
