package redlock

import (
	"context"
	"time"
)

// detached is a context that has the values of another one, and never ends. context.WithoutCancel
// does the same, but its Value allocates at each call, and instruments ask for the current span at
// each measurement.
type detached struct{ values context.Context }

func (*detached) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (*detached) Done() <-chan struct{}                   { return nil }
func (*detached) Err() error                              { return nil }
func (d *detached) Value(key any) any                     { return d.values.Value(key) }

// detach returns a context for work that goes on when the caller's context has ended. Only tracers
// look at its values, so without a tracer it has none.
func (q *Quorum) detach(ctx context.Context) context.Context {
	if q.cfg.tracers.acquire == nil {
		return context.Background()
	}
	return &detached{ctx}
}
