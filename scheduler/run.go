package scheduler

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Run is what a task may know of its run, see RunFromContext.
type Run struct {
	Job string
	// Tick is the scheduled time, the same for each attempt; zero for a run that RunNow asked for.
	// Of a DurationJob without a start that a replica found missed, it is the beginning of the
	// interval: each replica counts from its own start, so nobody knows the time.
	Tick    time.Time
	Attempt int  // 1, or more if earlier runs of the tick were cut short (redlock.AtLeastOnce)
	CatchUp bool // the tick was missed or had to wait, and is run late
	lease   *redlock.Lease
}

// FencingToken returns a number that is greater than that of every earlier run of the job on any
// replica. Pass it with every write, and let the resource refuse a smaller one than the largest it
// has seen.
func (r Run) FencingToken() uint64 { return r.lease.FencingToken() }

// Deadline returns until when no other replica runs the job, as known now; extensions move it. To
// be compared with time.Now.
func (r Run) Deadline() time.Time { return r.lease.Deadline() }

// Lease returns the run's lease. Do not release it: that is done when the task has returned.
func (r Run) Lease() *redlock.Lease { return r.lease }

type runKey struct{}

// RunFromContext returns the run that a task was called for, from the context that the task got or
// one made of it. It returns false outside of a run of a Scheduler, and for jobs with
// gocron.WithDisabledDistributedJobLocker, which run everywhere.
func RunFromContext(ctx context.Context) (Run, bool) {
	if ctx == nil {
		return Run{}, false
	}
	r, ok := ctx.Value(runKey{}).(Run)
	return r, ok
}
