package redlock_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// poolOf makes a client of a node with so many places for dedicated connections.
func poolOf(t *testing.T, fleet *redlocktest.Fleet, places int) valkey.Client {
	t.Helper()
	url := fleet.Node(0).URL()
	o, err := valkey.ParseURL(url)
	require.NoError(t, err)
	fleet.ClientOption(url, &o)
	o.DisableCache, o.ForceSingleClient, o.BlockingPoolSize = true, true, places
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// A Quorum needs two dedicated connections of each client, not more.
func TestDedicatedConnectionsAreTwo(t *testing.T) {
	bubble(t, 1, func(t *testing.T, fleet *redlocktest.Fleet) {
		client := poolOf(t, fleet, 2)
		q, err := redlock.New([]valkey.Client{client}, redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		wait(t, q)
		for range 10 {
			fleet.Node(0).FlushScripts()
			_, err = q.TryAcquire(t.Context(), "other")
			require.True(t, err == nil || redlock.ErrorType(err) == "held", "%v", err)
			time.Sleep(ttl)
		}
	})
}

// wait makes a Quorum listen, which it goes on doing.
func wait(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	l := acquire(t, q)
	ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
	defer cancel()
	_, err := q.Acquire(ctx, "key")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, l.Release(t.Context()))
}

// Without a place for the second the node cannot be vouched for. That is said, once, and costs one
// goroutine.
func TestDedicatedConnectionsOfAnExhaustedPool(t *testing.T) {
	alone(t, 1, func(t *testing.T, fleet *redlocktest.Fleet) {
		client := poolOf(t, fleet, 1)
		var log lockedBuffer
		q, err := redlock.New([]valkey.Client{client}, redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		wait(t, q)
		fleet.Node(0).FlushScripts()
		l, err := q.TryAcquire(t.Context(), "other")
		require.Nil(t, l)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		time.Sleep(2 * ttl)
		synctest.Wait() // goroutines that have just ended are not counted, and those that begin are
		before := runtime.NumGoroutine()
		for range 100 {
			_, err = q.TryAcquire(t.Context(), "other")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			q.Nodes(t.Context()) // which is answered
			time.Sleep(ttl / 4)
		}
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine(), before+10, "each of 100 looks may have left one")
		require.ErrorContains(t, err, "BlockingPoolSize")
		require.ErrorContains(t, q.Healthy(), "BlockingPoolSize")
		require.Equal(t, 1, strings.Count(log.String(), "node failing"), "%s", &log)

		start := time.Now()
		require.NoError(t, q.Close())
		require.LessOrEqual(t, time.Since(start), 2*ttl/5+time.Second)
	})
}

// A look that times out is a timeout, as a request that does is.
func TestGateLookThatTimesOutIsATimeout(t *testing.T) {
	bubble(t, 1, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, err := redlock.New([]valkey.Client{poolOf(t, fleet, 1)}, redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		wait(t, q)
		fleet.Node(0).FlushScripts()
		start := time.Now()
		_, err = q.TryAcquire(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		time.Sleep(ttl/5 + time.Millisecond - time.Since(start)) // the look began with it
		status := q.Nodes(t.Context())[0]
		require.True(t, status.Reachable)
		for _, err := range []error{q.Healthy(), status.Err} {
			require.ErrorIs(t, err, redlock.ErrTimeout)
			require.Equal(t, "timeout", redlock.ErrorType(err))
			require.ErrorContains(t, err, "timed out")
		}
	})
}

// Close does not wait for a connection that never comes.
func TestCloseLeavesAConnectionBehindThatNeverComes(t *testing.T) {
	bubble(t, 1, func(t *testing.T, fleet *redlocktest.Fleet) {
		client := poolOf(t, fleet, 1)
		taken, release := client.Dedicate() // by the caller, who keeps it
		require.NoError(t, taken.Do(t.Context(), taken.B().Ping().Build()).Error())
		q, err := redlock.New([]valkey.Client{client}, redlock.WithTTL(ttl), redlock.WithoutRestartGate(), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		_, err = q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		closed := make(chan struct{})
		start := time.Now()
		go func() {
			_ = q.Close()
			close(closed)
		}()
		select {
		case <-closed:
			require.LessOrEqual(t, time.Since(start), 2*ttl/5+time.Second)
		case <-time.After(time.Hour):
			t.Error("Close waits for a connection that never comes")
		}
		release()
		<-closed
	})
}
