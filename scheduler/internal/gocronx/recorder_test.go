package gocronx_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// recorder is every listener and monitor, and writes down what it is told.
type recorder struct {
	mu    sync.Mutex
	told  []string      // guarded by mu
	more  chan struct{} // guarded by mu; closed when there is more
	jobs  []gocron.Job  // guarded by mu; that scheduler monitors have seen
	block func()        // called in JobUnregistered, on gocron's loop
}

func (r *recorder) tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf(format, args...))
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

func (r *recorder) see(j gocron.Job) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, j)
	return j.Name()
}

// take waits until n things were told, and returns and forgets them all.
func (r *recorder) take(n int) []string {
	for {
		r.mu.Lock()
		if len(r.told) >= n {
			defer r.mu.Unlock()
			told := r.told
			r.told = nil
			return told
		}
		if r.more == nil {
			r.more = make(chan struct{})
		}
		more := r.more
		r.mu.Unlock()
		<-more
	}
}

// settings are those of gocron's options for all monitors.
func (r *recorder) settings() []gocron.SchedulerOption {
	return []gocron.SchedulerOption{gocron.WithMonitor(r), gocron.WithMonitorStatus(r), gocron.WithSchedulerMonitor(r)}
}

// listeners is gocron's option for all of them.
func (r *recorder) listeners() gocron.JobOption {
	return gocron.WithEventListeners(
		gocron.BeforeJobRuns(func(_ uuid.UUID, name string) { r.tell("before %s", name) }),
		gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(_ uuid.UUID, name string) error { r.tell("before that may refuse %s", name); return nil }),
		gocron.AfterJobRuns(func(_ uuid.UUID, name string) { r.tell("after %s", name) }),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, name string, err error) { r.tell("after %s: %v", name, err) }),
		gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, name string, value any) { r.tell("after panic of %s: %v", name, value) }),
		gocron.AfterLockError(func(_ uuid.UUID, name string, err error) { r.tell("lock error of %s: %v", name, err) }),
	)
}

func (r *recorder) IncrementJob(_ uuid.UUID, name string, tags []string, status gocron.JobStatus) {
	r.tell("counted %s %v: %s", name, tags, status)
}

func (r *recorder) RecordJobTiming(_, _ time.Time, _ uuid.UUID, name string, _ []string) {
	r.tell("timed %s", name)
}

func (r *recorder) RecordJobTimingWithStatus(_, _ time.Time, _ uuid.UUID, name string, _ []string, status gocron.JobStatus, err error) {
	r.tell("timed %s: %s, %v", name, status, err)
}

func (r *recorder) SchedulerStarted()          { r.tell("scheduler started") }
func (r *recorder) SchedulerStopped()          { r.tell("scheduler stopped") }
func (r *recorder) SchedulerShutdown()         { r.tell("scheduler shut down") }
func (r *recorder) JobRegistered(j gocron.Job) { r.tell("registered %s", r.see(j)) }
func (r *recorder) JobStarted(j gocron.Job)    { r.tell("started %s", r.see(j)) }
func (r *recorder) JobRunning(j gocron.Job)    { r.tell("running %s", r.see(j)) }
func (r *recorder) JobCompleted(j gocron.Job)  { r.tell("completed %s", r.see(j)) }
func (r *recorder) JobFailed(j gocron.Job, err error) {
	r.tell("failed %s: %v", r.see(j), err)
}

func (r *recorder) JobUnregistered(j gocron.Job) {
	r.tell("unregistered %s", r.see(j))
	if r.block != nil {
		r.block()
	}
}

func (r *recorder) JobExecutionTime(j gocron.Job, _ time.Duration) {
	r.tell("took its time %s", r.see(j))
}

func (r *recorder) JobSchedulingDelay(j gocron.Job, scheduled, started time.Time) {
	r.tell("delay of %s: scheduled %s, started then: %t", r.see(j), scheduled.UTC().Format(time.RFC3339Nano), time.Since(started) < time.Minute)
}

func (r *recorder) ConcurrencyLimitReached(limit string, j gocron.Job) {
	r.tell("limit %s of %s", limit, r.see(j))
}
