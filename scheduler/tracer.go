package scheduler

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/timetable"
)

// Tracer is a set of functions that a Scheduler calls to tell what it does. Each may be nil. They
// are called synchronously and concurrently, never under a lock, and must not block or panic.
type Tracer struct {
	// Job is told what this replica knows of a job: when the job is made, even if it never runs
	// here, and after each change. For a job that is stopped, or that another replica leads, only
	// the name, the election and the conflict are set.
	Job func(ctx context.Context, data JobTrace)
	// Tick is called before the lease of a tick, or of another run, is asked for. The lease's
	// context, and so the run's, has the values of the context that Tick returns. The end of the
	// acquisition and the release are told to a tracer of the Quorum (redlock.WithTracer).
	Tick func(ctx context.Context, data TickTrace) context.Context
	// RunStart is called before each call of the task, with the run's context. The task gets the
	// context that RunStart returns.
	RunStart func(ctx context.Context, data RunStartTrace) context.Context
	// RunEnd is called with the context that RunStart returned, before the lease is released.
	RunEnd func(ctx context.Context, data RunEndTrace)
	// TraceID returns the id of the run's trace, for the history of runs; empty for a run without a
	// trace. ctx is the context that RunStart returned.
	TraceID func(ctx context.Context) string
	// Skip is told why ticks are not run; see SkipError. A tick whose SkipError is pending is run
	// later or told again.
	Skip func(ctx context.Context, e *SkipError)
	// Campaign is told of the election (WithElection).
	Campaign elector.CampaignTracer
}

// JobTrace is a job as this replica knows it.
type JobTrace struct {
	Job       string
	Election  string     // the name given to WithElection; empty without
	Next      time.Time  // the next tick; zero if there is none, or it is not known
	Succeeded time.Time  // the end of the last success; zero if there was none
	OverdueAt time.Time  // when the job becomes overdue; zero without WithSucceedWithin
	Pause     PauseTrace // the pause that goes on; zero for none
	Conflict  *Conflict  // the conflict that was found last, a new value for each; nil for none
}

// PauseTrace describes a pause.
type PauseTrace struct {
	Paused bool // true for a pause that goes on
	All    bool // all jobs are paused
	Since  time.Time
	Until  time.Time // zero for a pause that lasts until a resume
	By     string
	Reason string
}

// Conflict is a job of this name that another replica defines in another way: on another schedule,
// or in another zone. The two jobs take each other's ticks. A tick that one of them calls late may
// be no tick of the other. Give each service a redlock.WithPrefix of its own, and give all replicas
// of one service the same schedule and WithLocation.
type Conflict struct {
	Job   string
	Own   string    // the definition of this replica
	Other string    // the definition on the nodes, which a replica finds when it starts
	Since time.Time // when this replica first saw Other
	By    string    // the replica that has run the job last; empty if not known
}

// TickTrace describes a tick that is about to be asked for.
type TickTrace struct {
	Job string
	Key string    // of its lease
	Due time.Time // zero for a run that is no tick; see Job.RunNow
	Why string    // see Run.Why
}

// RunStartTrace describes a run whose task is about to be called.
type RunStartTrace struct {
	Run      Run
	Lateness time.Duration // from the due time to this moment; zero without a tick
	Term     *elector.Term // the term in which the run takes place; nil without an election
}

// RunEndTrace describes the end of a call of the task.
type RunEndTrace struct {
	Run      Run
	Duration time.Duration
	Err      error // the error that the task returned, or a *PanicError
}

// WithTracer sets the tracer. Default: none.
func WithTracer(t *Tracer) Option {
	return option(func(c *config) error {
		c.tracer = t
		return timetable.Refuse(t == nil, "WithTracer", "nil; leave the option out for no tracing")
	})
}
