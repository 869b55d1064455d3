package rival

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// openTenure opens a Quorum with defaults, so with fencing tokens and the restart gate. A
// *redlock.Lease is a Held, and extends itself.
func openTenure(c Config) (Rival, error) {
	q, err := OpenQuorum(c)
	if err != nil {
		return nil, err
	}
	return library{func(ctx context.Context, key string, wait bool) (Held, error) {
		acquire := q.TryAcquire
		if wait {
			acquire = q.Acquire
		}
		l, err := acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return l, nil
	}, q.Close}, nil
}

// OpenQuorum opens a Quorum with the settings of Tenure's Rival.
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

// standbyPause is how long openStandby gives the waiter to begin to wait.
const standbyPause = 100 * time.Millisecond

// openStandby opens Tenure while another process waits for a key that is held.
func openStandby(c Config) (Rival, error) {
	r, err := openTenure(c)
	if err != nil {
		return nil, err
	}
	waiter, err := OpenQuorum(c)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	key := "standby/" + nextID()
	lease, err := r.Try(ctx, key)
	if err != nil {
		cancel()
		return nil, errors.Join(err, waiter.Close(), r.Close())
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = waiter.Acquire(ctx, key) }) // until the end
	time.Sleep(standbyPause)
	return library{r.(library).lock, func() error {
		cancel()
		waiting.Wait()
		return errors.Join(lease.Release(context.WithoutCancel(ctx)), waiter.Close(), r.Close())
	}}, nil
}
