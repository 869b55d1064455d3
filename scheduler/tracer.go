package scheduler

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/timetable"
)

// Tracer is a set of functions that are told what a Scheduler does. Each may be nil. They are
// called synchronously and concurrently, never under a lock, and must not block or panic.
type Tracer struct {
	// Job is told what this replica knows of a job: when it is made, also if it is never run here,
	// and whenever that has changed. Of a job that is stopped, and where another replica leads, it
	// is the name, the election and the conflict.
	Job func(ctx context.Context, data JobTrace)
	// Tick is called before the lease of a tick, or of another run, is asked for. The values of the
	// context that it returns reach the lease's context, and so the run's. How the acquisition
	// ends, and the release, a tracer of the Quorum hears (redlock.WithTracer).
	Tick func(ctx context.Context, data TickTrace) context.Context
	// RunStart is called before each call of the task, with the run's context. The task gets the
	// context that it returns.
	RunStart func(ctx context.Context, data RunStartTrace) context.Context
	// RunEnd is called with that context, before the lease is released.
	RunEnd func(ctx context.Context, data RunEndTrace)
	// TraceID returns under which trace a run is found, for the history of runs, from the context
	// that RunStart returned; empty for a run without a trace.
	TraceID func(ctx context.Context) string
	// Skip is told why ticks are not run: see SkipError. One that is pending is run later or told
	// again.
	Skip func(ctx context.Context, e *SkipError)
	// Campaign is told of the election (WithElection). May be nil.
	Campaign elector.CampaignTracer
}

// JobTrace is a job as this replica knows it.
type JobTrace struct {
	Job       string
	Election  string     // of WithElection; empty without
	Next      time.Time  // the next tick; zero if there is none, or it is not known
	Succeeded time.Time  // the end of the last success; zero if there was none
	OverdueAt time.Time  // from when on the job is overdue unless it succeeds; zero without WithSucceedWithin
	Pause     PauseTrace // that goes on; zero for none
	Conflict  *Conflict  // that was found last, each time another one; nil for none
}

// PauseTrace describes a pause.
type PauseTrace struct {
	Paused bool // true
	All    bool // all jobs are paused
	Since  time.Time
	Until  time.Time // zero until somebody resumes
	By     string
	Reason string
}

// Conflict is a job of this name that another replica defines in another way: on another schedule,
// or in another zone. The two take each other's ticks, and what one of them calls late the other
// has never heard of. Give each service a redlock.WithPrefix of its own, and all replicas of one
// the same schedule and WithLocation.
type Conflict struct {
	Job   string
	Own   string    // what this replica has
	Other string    // what the nodes have, where a replica that starts finds it
	Since time.Time // when this replica saw that first
	By    string    // who has run the job last; empty if not known
}

// TickTrace describes a tick that is about to be asked for.
type TickTrace struct {
	Job string
	Key string    // of its lease
	Due time.Time // zero for a run that is no tick, see Job.RunNow
	Why string    // see Run.Why
}

// RunStartTrace describes a run whose task is about to be called.
type RunStartTrace struct {
	Run      Run
	Lateness time.Duration // from the due time to this moment; zero without a tick
	Term     *elector.Term // the term in which it is run; nil without an election
}

// RunEndTrace is how a call of the task ended.
type RunEndTrace struct {
	Run      Run
	Duration time.Duration
	Err      error // that the task returned, or a *PanicError
}

// WithTracer sets the tracer. Default none.
func WithTracer(t *Tracer) Option {
	return option(func(c *config) error {
		c.tracer = t
		return timetable.Refuse(t == nil, "WithTracer", "nil; leave the option out for no tracing")
	})
}
