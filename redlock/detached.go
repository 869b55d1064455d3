package redlock

import (
	"context"
	"time"
)

// detached is a context with the values of another, that never ends: context.WithoutCancel, but
// Value of that allocates at each call, and those who measure ask for the current span at each
// measurement.
type detached struct{ values context.Context }

func (*detached) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (*detached) Done() <-chan struct{}                   { return nil }
func (*detached) Err() error                              { return nil }
func (d *detached) Value(key any) any                     { return d.values.Value(key) }

// detach returns a context for what goes on when the caller's has ended. Nobody but tracers look at
// its values.
func (q *Quorum) detach(ctx context.Context) context.Context {
	if q.cfg.tracers.acquire == nil {
		return context.Background()
	}
	return &detached{ctx}
}
