package tenureotel

import (
	"context"
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/scheduler"
)

// monitored returns the job if it is of a bare gocron scheduler. It returns nil for a job that a
// scheduler.Scheduler reports.
func (i *Instrumentation) monitored(name string) *job {
	if j := i.jobs.get(name); !j.own.Load() {
		return j
	}
	return nil
}

// monitoredSkips are the statuses of ticks that gocron skips, with their reasons.
var monitoredSkips = map[gocron.JobStatus]scheduler.Reason{gocron.Skip: skipMonitored, gocron.SingletonRescheduled: scheduler.SkipOverlap}

// IncrementJob implements gocron.Monitor.
func (i *Instrumentation) IncrementJob(_ uuid.UUID, name string, _ []string, status gocron.JobStatus) {
	if j := i.monitored(name); j != nil {
		j.skipped.add(context.Background(), monitoredSkips[status], 1)
	}
}

// RecordJobTiming implements gocron.Monitor. It does nothing, because gocron also calls
// RecordJobTimingWithStatus.
func (i *Instrumentation) RecordJobTiming(time.Time, time.Time, uuid.UUID, string, []string) {}

// RecordJobTimingWithStatus implements gocron.MonitorStatus.
func (i *Instrumentation) RecordJobTimingWithStatus(start, end time.Time, _ uuid.UUID, name string, _ []string, status gocron.JobStatus, err error) {
	outcome := outcomeError
	switch {
	case status == gocron.Success:
		outcome = outcomeSuccess
	case ask(func() bool { return errors.Is(err, gocron.ErrPanicRecovered) }):
		outcome = outcomePanic
	}
	if j := i.monitored(name); j != nil {
		if outcome == outcomeSuccess {
			j.known.Store(&scheduler.JobTrace{Succeeded: end})
		}
		j.runs.add(context.Background(), outcome, 1)
		i.jobDuration.Record(context.Background(), end.Sub(start).Seconds(), j.record...)
	}
}

// JobSchedulingDelay implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobSchedulingDelay(j gocron.Job, scheduled, actual time.Time) {
	if own := i.monitored(j.Name()); own != nil {
		i.jobLateness.Record(context.Background(), max(actual.Sub(scheduled), 0).Seconds(), own.record...)
	}
}

// JobRegistered implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobRegistered(j gocron.Job) {
	if own := i.monitored(j.Name()); own != nil && !own.bare.Swap(true) {
		i.announce(func() {
			own.runs.zero(runOutcomes[:bareOutcomes]...)
			own.skipped.zero(bareReasons...)
		})
	}
}

// ConcurrencyLimitReached implements gocron.SchedulerMonitor. A tick that finds no place in its
// scheduler has no status of gocron's; one that comes while the job runs has.
func (i *Instrumentation) ConcurrencyLimitReached(limit string, j gocron.Job) {
	if limit == "limit" {
		i.IncrementJob(uuid.Nil, j.Name(), nil, gocron.Skip)
	}
}

// The other methods of gocron.SchedulerMonitor add nothing to those above.

// SchedulerStarted implements gocron.SchedulerMonitor.
func (i *Instrumentation) SchedulerStarted() {}

// SchedulerStopped implements gocron.SchedulerMonitor.
func (i *Instrumentation) SchedulerStopped() {}

// SchedulerShutdown implements gocron.SchedulerMonitor.
func (i *Instrumentation) SchedulerShutdown() {}

// JobUnregistered implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobUnregistered(gocron.Job) {}

// JobStarted implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobStarted(gocron.Job) {}

// JobRunning implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobRunning(gocron.Job) {}

// JobFailed implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobFailed(gocron.Job, error) {}

// JobCompleted implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobCompleted(gocron.Job) {}

// JobExecutionTime implements gocron.SchedulerMonitor.
func (i *Instrumentation) JobExecutionTime(gocron.Job, time.Duration) {}
