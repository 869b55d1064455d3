package gocronx

import (
	"cmp"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// monitor wraps the user's monitor and shows it the jobs that the user sees.
type monitor struct {
	gocron.SchedulerMonitor
	executor *Executor
}

// shown returns the job that the user sees in place of gocron's own.
func (m *monitor) shown(j gocron.Job) gocron.Job {
	return cmp.Or(m.executor.Shown(j.ID()), j) // j if the job was removed
}

// SchedulerStarted, SchedulerStopped and SchedulerShutdown do nothing: gocron runs all the time,
// and the owner of the Executor tells the user's monitor.
func (m *monitor) SchedulerStarted()  {}
func (m *monitor) SchedulerStopped()  {}
func (m *monitor) SchedulerShutdown() {}

// JobRegistered does nothing, because the Executor does not know the job yet: Job.Register tells
// the user's monitor.
func (m *monitor) JobRegistered(gocron.Job) {}

// JobUnregistered is called by gocron's loop.
func (m *monitor) JobUnregistered(j gocron.Job) {
	if own := m.executor.job(j.ID()); own != nil {
		m.executor.jobs.Delete(j.ID())
		close(own.removed)
		j = own.shown
	}
	m.SchedulerMonitor.JobUnregistered(j)
}

// JobSchedulingDelay passes on the time of the tick; the time that gocron has scheduled never
// comes.
func (m *monitor) JobSchedulingDelay(j gocron.Job, _, started time.Time) {
	if own := m.executor.job(j.ID()); own != nil {
		if o := own.current.Load(); o != nil && !o.due.IsZero() {
			m.SchedulerMonitor.JobSchedulingDelay(own.shown, o.due, started)
		}
	}
}

func (m *monitor) JobStarted(j gocron.Job)           { m.SchedulerMonitor.JobStarted(m.shown(j)) }
func (m *monitor) JobRunning(j gocron.Job)           { m.SchedulerMonitor.JobRunning(m.shown(j)) }
func (m *monitor) JobFailed(j gocron.Job, err error) { m.SchedulerMonitor.JobFailed(m.shown(j), err) }
func (m *monitor) JobCompleted(j gocron.Job)         { m.SchedulerMonitor.JobCompleted(m.shown(j)) }

func (m *monitor) JobExecutionTime(j gocron.Job, took time.Duration) {
	m.SchedulerMonitor.JobExecutionTime(m.shown(j), took)
}
