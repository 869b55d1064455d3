package scheduler

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/elector"
)

// RunTracer is told of every run of a job of a Scheduler. It is what WithTracer takes; a value that
// also implements SkipTracer is told of ticks that were not run too, one that implements JobTracer
// of the jobs themselves, one that implements BacklogTracer of the backlog, and one that is
// an elector.CampaignTracer of the election too (WithElection).
//
// Tracer methods are called synchronously and concurrently, and must not block or panic.
type RunTracer interface {
	// TraceRunStart is called before the task, with the run's context. The task gets the context
	// that it returns.
	TraceRunStart(ctx context.Context, data TraceRunStartData) context.Context
	// TraceRunEnd is called with the context that TraceRunStart returned, before the lease is
	// released.
	TraceRunEnd(ctx context.Context, data TraceRunEndData)
}

// TraceRunStartData describes a run.
type TraceRunStartData struct {
	Run   Run
	Delay time.Duration // from the tick to this moment; zero without a tick
	Term  *elector.Term // the term in which it is run; nil without an election
}

// TraceRunEndData is how a run ended.
type TraceRunEndData struct {
	Run      Run
	Duration time.Duration
	Err      error // what the task returned
	Panicked bool  // it did not return
}

// SkipTracer is told why ticks are not run on this replica: see SkipError. A tick that is skipped
// as pending is run later or reported again, unless it is a follower's (SkipNotLeader): nothing
// more is heard of the ticks that the leader runs.
type SkipTracer interface {
	TraceSkip(ctx context.Context, data TraceSkipData)
}

// TraceSkipData describes a tick that was not run.
type TraceSkipData struct {
	Skip *SkipError
}

// JobTracer is told of the jobs of a Scheduler: also of what is never run on this replica.
type JobTracer interface {
	// TraceJob is called when a job is created or updated.
	TraceJob(ctx context.Context, data TraceJobData)
}

// TraceJobData describes a job.
type TraceJobData struct {
	Job      string
	Election string // of WithElection; empty without
}

// BacklogTracer is told how many ticks of a job are in its backlog: due, not run, and still wanted
// (WithCatchUp, WithOverlap). Ticks that another replica runs do not count, nor those of a
// follower.
type BacklogTracer interface {
	// TraceBacklog is called when the number has changed. Calls for one job do not overlap.
	TraceBacklog(ctx context.Context, data TraceBacklogData)
}

// TraceBacklogData is what this replica knows of a job's backlog.
type TraceBacklogData struct {
	Job    string
	Ticks  int
	Oldest time.Time // the oldest of them; zero if there are none
}

// ConflictTracer is told of jobs that other replicas run in another way: see Conflict.
type ConflictTracer interface {
	// TraceConflict is called for every tick that this replica reads of such a job, so as long as
	// the conflict lasts.
	TraceConflict(ctx context.Context, data TraceConflictData)
}

// TraceConflictData describes a conflict.
type TraceConflictData struct {
	Conflict Conflict
}

type tracers struct {
	run      RunTracer
	skip     SkipTracer
	job      JobTracer
	backlog  BacklogTracer
	conflict ConflictTracer
}

// WithTracer sets the tracer; see RunTracer. Default none, which costs one nil check.
func WithTracer(t RunTracer) Option {
	return option(func(c *config) error {
		if t == nil {
			return &OptionError{Option: "WithTracer", Reason: "nil; leave the option out for no tracing"}
		}
		c.tracer.run = t
		c.tracer.skip, _ = t.(SkipTracer)
		c.tracer.job, _ = t.(JobTracer)
		c.tracer.backlog, _ = t.(BacklogTracer)
		c.tracer.conflict, _ = t.(ConflictTracer)
		return nil
	})
}
