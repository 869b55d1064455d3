package redlock

import (
	"context"
	"errors"
)

// Do acquires the key as Acquire does, calls fn, and releases the lease when fn returns, panics
// (the panic goes on) or ends its goroutine.
//
// The context of fn is ctx, so it ends with the caller's, and it ends with the lease as well:
// context.Cause is then the *LostError. Do waits for fn also when the lease is lost, for as long as
// fn takes to heed its context, and returns no earlier than the release. Where a moment matters, fn
// asks l.Err, which is exact, and passes l.FencingToken to the resource. fn may release the lease
// itself.
//
// Errors: those of Acquire, in which case fn was not called; a nil fn is an *OptionError. Otherwise
// fn's own, joined with that of Lease.Release: a *LostError if the lease was lost under fn, even if
// fn returned nil, or a *QuorumError of OpRelease if the release could not be confirmed, after
// which the key expires by itself.
func (q *Quorum) Do(ctx context.Context, key string, fn func(ctx context.Context, l *Lease) error, opts ...LeaseOption) (err error) {
	if fn == nil {
		return &OptionError{"fn", "is nil: give the function that works under the lease"}
	}
	l, err := q.Acquire(ctx, key, opts...)
	if err != nil {
		return err
	}
	within, end := context.WithCancelCause(ctx)
	held := l.Context()
	stop := context.AfterFunc(held, func() { end(context.Cause(held)) })
	defer func() {
		stop()
		end(ErrReleased)
		switch released := l.Release(ctx); {
		case err == nil:
			err = released
		case released != nil && !errors.Is(err, released): // fn may have returned the error of the loss itself
			err = errors.Join(err, released)
		}
	}()
	return fn(within, l)
}
