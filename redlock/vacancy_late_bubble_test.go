package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
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
				return relay(conn, oneWay), nil
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
func opened(t *testing.T, fleet *redlocktest.Fleet, identity string, option redlock.Option) *redlock.Quorum {
	q, err := redlock.Open(fleet.URLs(), option, redlock.WithIdentity(identity))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	lease, err := q.Acquire(t.Context(), "another")
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
	return q
}

// Who asks while an attempt is in flight that its caller gives up is told that the key is held. It
// comes when that is taken back.
func TestGivenUpAttemptCallsTheNext(t *testing.T) {
	const oneWay = 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		far := opened(t, fleet, "far", distant(fleet, oneWay, oneWay, oneWay))
		near := opened(t, fleet, "near", redlock.WithClientOption(fleet.ClientOption))
		ctx, cancel := context.WithTimeout(t.Context(), oneWay+oneWay/2)
		defer cancel()
		go func() { _, _ = far.TryAcquire(ctx, "key") }()
		time.Sleep(oneWay + oneWay/4) // the nodes have granted it, and it has not heard yet
		_, err := near.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld)
		began := time.Now()
		lease, err := near.Acquire(t.Context(), "key")
		require.NoError(t, err)
		require.Less(t, time.Since(began), 3*time.Second, "the TTL is 10 s")
		require.NoError(t, lease.Release(t.Context()))
	})
}
