package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
)

var _ gocron.Lock = (*Lock)(nil)

// Lock is the lease of one run of a job. gocron gets it from Locker.Lock and calls Unlock when the
// job is done. It is safe for concurrent use.
type Lock struct {
	job    string
	lease  *redlock.Lease
	logger *slog.Logger
	// unwatch ends the watch for a loss. It returns false if a loss was seen.
	unwatch func() bool

	once    sync.Once
	outcome error // of the first Unlock
}

func newLock(ctx context.Context, job string, lease *redlock.Lease, logger *slog.Logger) *Lock {
	l := &Lock{job: job, lease: lease, logger: logger}
	l.unwatch = context.AfterFunc(lease.Context(), func() {
		l.warn(context.WithoutCancel(ctx), "scheduler: the lease of a running job was lost: another replica may run the job as well", lease.Err())
	})
	return l
}

// Lease returns the lease. gocron's interface has no room for its fencing token, nor for its
// context, which is cancelled when the lease is lost. A Locker of your own that wraps this
// package's can pass both to the task.
//
// The lease is extended until Unlock. Do not release it yourself while the job runs.
func (l *Lock) Lease() *redlock.Lease { return l.lease }

// Unlock releases the lease, or leaves it to run out at the end of the minimum hold (WithMinHold)
// if that is later. It uses only the values of ctx, so it works with a cancelled ctx, which gocron
// passes during a shutdown. It waits for a quorum of nodes, at most redlock's node timeout.
//
// It may be called any number of times and concurrently; every call returns the same. It returns
// nil, or a *redlock.LostError (redlock.ErrLost) if the lease was lost while the job ran. It
// returns a *redlock.QuorumError (redlock.ErrNoQuorum) if too few nodes confirmed; then the lease
// runs out by itself, at the end of its TTL at the latest. After a panic within Unlock it returns a
// *PanicError. gocron drops the error of Unlock, so it is logged too.
func (l *Lock) Unlock(ctx context.Context) error {
	l.once.Do(func() { l.outcome = l.unlock(ctx) })
	return l.outcome
}

func (l *Lock) unlock(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = recovered(ctx, l.logger, l.job, p)
		}
	}()
	unreported := l.unwatch()
	if err = l.lease.Release(ctx); err == nil {
		return nil
	}
	err = fmt.Errorf("scheduler: job %q: %w", l.job, err)
	switch {
	case !errors.Is(err, redlock.ErrLost):
		l.warn(ctx, "scheduler: the job is done and its lease could not be released: it runs out by itself", err)
	case unreported:
		l.warn(ctx, "scheduler: the job is done and its lease was lost: another replica may have run the job as well", err)
	}
	return err
}

func (l *Lock) warn(ctx context.Context, text string, err error) {
	defer func() { _ = recover() }() // the logger may panic, in a goroutine of the lease's context
	l.logger.WarnContext(ctx, text, "job", l.job, "fencing_token", l.lease.FencingToken(),
		"error.type", redlock.ErrorType(err), "error", err)
}
