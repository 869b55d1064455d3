package scheduler

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

// RunTracer is told of every run of a job of a Scheduler. It is what WithTracer takes; a value that
// also implements SkipTracer is told of ticks that were not run too, one that implements JobTracer
// of the jobs themselves, one that implements TickTracer of every tick whose lease is asked for,
// one that implements BacklogTracer of the backlog, one that implements PauseTracer of pauses, one
// that implements ConflictTracer of conflicts, and one that is an elector.CampaignTracer of the
// election too (WithElection). One that implements TraceIdentifier is asked for the traces of runs.
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

// TickTracer is told of every tick, or other run, whose lease this replica is about to ask for. How
// that ends, and the release, a tracer of the Quorum hears (redlock.WithTracer); the run between
// them RunTracer.
type TickTracer interface {
	// TraceTick returns the context of the acquisition. Its values reach the lease's context, and
	// so the run's.
	TraceTick(ctx context.Context, data TraceTickData) context.Context
}

// TraceTickData describes a tick.
type TraceTickData struct {
	Job  string
	Key  string    // of its lease
	Tick time.Time // zero for a run that is no tick, see Job.RunNow
	Late bool      // it is not asked for at its time: see WithCatchUp and WithOverlap
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
	Ticks  int       // how many are in the backlog
	Oldest time.Time // the oldest of them; zero if there are none
}

// PauseTracer is told of jobs that are paused, see redlock.Quorum.Pause.
type PauseTracer interface {
	// TracePause is called when a tick of this replica meets with a pause that is new to it, and
	// when one is granted again, or this replica does not lead any more: a follower asks for no
	// tick.
	TracePause(ctx context.Context, data TracePauseData)
}

// TracePauseData is what a tick has met with.
type TracePauseData struct {
	Job   string
	Pause redlock.Pause // Version is 0 when the job is not paused any more
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
	tick     TickTracer
	skip     SkipTracer
	job      JobTracer
	backlog  BacklogTracer
	pause    PauseTracer
	conflict ConflictTracer
}

// WithTracer sets the tracer; see RunTracer. Default: the Quorum's (redlock.WithTracer), if it is
// one; or else none, which costs one nil check.
func WithTracer(t RunTracer) Option {
	return option(func(c *config) error {
		if t == nil {
			return &OptionError{Option: "WithTracer", Reason: "nil; leave the option out for no tracing"}
		}
		c.tracer.set(t)
		return nil
	})
}

func (ts *tracers) set(t RunTracer) {
	ts.run = t
	ts.tick, _ = t.(TickTracer)
	ts.skip, _ = t.(SkipTracer)
	ts.job, _ = t.(JobTracer)
	ts.backlog, _ = t.(BacklogTracer)
	ts.pause, _ = t.(PauseTracer)
	ts.conflict, _ = t.(ConflictTracer)
}
