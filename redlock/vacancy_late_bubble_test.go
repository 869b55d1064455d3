package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// An attempt whose connections break when the nodes have granted it is taken back as soon as they
// can be reached again. Who was told meanwhile that the key is held comes then, and not when it
// would have expired.
func TestLateRollbackCallsTheNext(t *testing.T) {
	const oneWay = 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // what is on its way arrives
		fleet := redlocktest.StartPipes(t, 3)
		var wire cable
		far := opened(t, fleet, "far", redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			dial := o.DialCtxFn
			o.DialCtxFn = wire.through(func(ctx context.Context, addr string, dialer *net.Dialer, cfg *tls.Config) (net.Conn, error) {
				conn, err := dial(ctx, addr, dialer, cfg)
				if err != nil {
					return nil, err
				}
				return relay(conn, constant(oneWay)), nil
			})
		}))
		near := opened(t, fleet, "near", redlock.WithClientOption(fleet.ClientOption))
		failed := make(chan error, 1)
		go func() {
			_, err := far.TryAcquire(t.Context(), "key")
			failed <- err
		}()
		time.Sleep(oneWay + oneWay/2) // the nodes have granted it, and it has not heard yet
		wire.cut()
		require.Error(t, <-failed)
		_, err := near.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld)
		time.AfterFunc(100*time.Millisecond, wire.mend)
		began := time.Now()
		lease, err := near.Acquire(t.Context(), "key")
		require.NoError(t, err)
		require.Less(t, time.Since(began), 3*time.Second, "the TTL is 10 s")
		require.NoError(t, lease.Release(t.Context()))
	})
}

// opened has used its nodes once.
func opened(t *testing.T, fleet *redlocktest.Fleet, identity string, opts ...redlock.Option) *redlock.Quorum {
	q, err := redlock.Open(fleet.URLs(), append(opts, redlock.WithIdentity(identity))...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	lease, err := q.Acquire(t.Context(), "another")
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
	synctest.Wait() // the last node has joined
	return q
}

// An attempt is granted by all nodes, too late: it has failed when it hears of that. Who was told
// meanwhile that the key is held comes when that is taken back, whether its owner asks again or
// not.
func TestLateGrantsCallTheNext(t *testing.T) {
	const oneWay = 300 * time.Millisecond // and back is more than the node timeout, 500 ms
	for name, ask := range map[string]func(context.Context, *redlock.Quorum) error{
		"of one that asks once": func(ctx context.Context, q *redlock.Quorum) error {
			_, err := q.TryAcquire(ctx, "key")
			return err
		},
		"of one that asks again": func(ctx context.Context, q *redlock.Quorum) error {
			_, err := q.Acquire(ctx, "key")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(time.Second) }) // what is on its way arrives
				fleet := redlocktest.StartPipes(t, 3)
				var lag atomic.Int64
				far := opened(t, fleet, "far", away(fleet, func(int) time.Duration { return time.Duration(lag.Load()) }))
				near := opened(t, fleet, "near", redlock.WithClientOption(fleet.ClientOption))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				lag.Store(int64(oneWay))
				failed := make(chan error, 1)
				go func() { failed <- ask(ctx, far) }()
				time.Sleep(oneWay + oneWay/2) // the nodes have granted it, and it has not heard yet
				_, err := near.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
				began := time.Now()
				lease, err := near.Acquire(t.Context(), "key")
				require.NoError(t, err)
				require.Less(t, time.Since(began), 2*time.Second, "the TTL is 10 s")
				cancel()
				require.Error(t, <-failed)
				require.NoError(t, lease.Release(t.Context()))
			})
		})
	}
}

// Two of five nodes have lost the holder's keys, so every attempt is granted by them. Those who
// wait ask no more often for that.
func TestWaitersOfAHeldKeyDoNotCallEachOther(t *testing.T) {
	const waiters, polls = 5, 6
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // what is on its way arrives
		fleet := redlocktest.StartPipes(t, 5)
		long := redlock.WithMaxTTL(2 * polls * redlock.DefaultTTL)
		holder := opened(t, fleet, "holder", redlock.WithClientOption(fleet.ClientOption), long)
		lease, err := holder.Acquire(t.Context(), "key", redlock.WithTTL(2*polls*redlock.DefaultTTL), redlock.WithoutAutoExtend())
		require.NoError(t, err)
		synctest.Wait()
		for _, n := range fleet.Nodes()[:2] {
			n.FlushAll()
		}
		var attempts rounds
		ctx, cancel := context.WithTimeout(t.Context(), polls*redlock.DefaultTTL)
		defer cancel()
		var work sync.WaitGroup
		for i := range waiters {
			q := opened(t, fleet, strconv.Itoa(i), redlock.WithClientOption(fleet.ClientOption), long, redlock.WithTracer(&attempts))
			work.Go(func() {
				_, err := q.Acquire(ctx, "key")
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		work.Wait()
		require.Less(t, attempts.all.Load(), int64(waiters*(polls+10)))
		require.NoError(t, lease.Release(t.Context()))
	})
}
