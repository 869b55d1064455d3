package rival

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// tenure is a Quorum with defaults, the fencing token and the restart gate on. A *redlock.Lease is
// a Held, and extends itself.
type tenure struct{ *redlock.Quorum }

func openTenure(c Config) (Rival, error) {
	q, err := OpenQuorum(c)
	if err != nil {
		return nil, err
	}
	return tenure{q}, nil
}

// OpenQuorum makes a Quorum as Tenure's Rival has one.
func OpenQuorum(c Config) (*redlock.Quorum, error) {
	ttl := max(c.TTL, redlock.MinTTL)
	opts := []redlock.Option{
		redlock.WithTTL(ttl),
		redlock.WithMaxTTL(max(ttl, redlock.DefaultTTL)), // the same for all rows
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if c.Sent != nil {
		opts = append(opts, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) { c.Sent.dialer(o) }))
	}
	return redlock.Open(c.URLs, opts...)
}

func (t tenure) Try(ctx context.Context, key string) (Held, error) {
	l, err := t.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (t tenure) Acquire(ctx context.Context, key string) (Held, error) {
	l, err := t.Quorum.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Preparer is a Rival that needs something done on the servers, once they were emptied.
type Preparer interface {
	Prepare(ctx context.Context) (stop func() error, err error)
}

// standby is Tenure beside another process's waiter.
type standby struct {
	tenure
	waiter *redlock.Quorum
}

// standbyPause is after what time the waiter waits.
const standbyPause = 100 * time.Millisecond

func openStandby(c Config) (Rival, error) {
	q, err := OpenQuorum(c)
	if err != nil {
		return nil, err
	}
	waiter, err := OpenQuorum(c)
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return standby{tenure{q}, waiter}, nil
}

// Prepare has the other one wait for a key that is held.
func (s standby) Prepare(ctx context.Context) (stop func() error, err error) {
	lease, err := s.TryAcquire(ctx, "standby")
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if l, err := s.waiter.Acquire(waiting, "standby"); err == nil {
			_ = l.Release(ctx)
		}
	}()
	time.Sleep(standbyPause)
	return func() error {
		cancel()
		<-ended
		return lease.Release(ctx)
	}, nil
}

func (s standby) Close() error { return errors.Join(s.waiter.Close(), s.Quorum.Close()) }
