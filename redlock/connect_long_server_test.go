//go:build long

package redlock_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// Field: a retried SET was granted by a restarted, empty server.
func TestTrap18AcquireIsNotRepeatedOnARestartedServer(t *testing.T) {
	t.Parallel()
	t.Run("minority", func(t *testing.T) {
		t.Parallel()
		s := startServers(t, 3)
		q := s.open(redlock.WithTTL(longTTL))
		s.enter(q)
		s.freeze(2)
		l, err := q.TryAcquire(t.Context(), "key", redlock.WithoutAutoExtend())
		require.NoError(t, err)
		s.requireUnread(2)
		require.NoError(t, s.Node(2).Restart(false))
		requireUnasked(s, q, 2)
		require.Empty(t, s.locks(2))
		require.NoError(t, l.Err())
	})
	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		s := startServers(t, 3)
		q := s.open(redlock.WithTTL(longTTL))
		s.enter(q)
		s.freeze(1, 2)
		granted := tryAcquire(t.Context(), q, "key")
		s.requireUnread(1, 2)
		s.kill(1, 2)
		g := receive(t, granted, longTTL/4, "TryAcquire hangs")
		require.ErrorIs(t, g.err, redlock.ErrNoQuorum)
		require.NoError(t, s.Node(1).Restart(false))
		require.NoError(t, s.Node(2).Restart(false))
		requireUnasked(s, q, 1, 2)
		s.requireFree(longTTL/4, "a failed attempt left a key")
	})
}

// A server that closes connections which are idle (timeout) is well: nothing is said of it, also if
// the next request finds its connection closed.
func TestIdleConnectionsThatAreClosedAreNoOutage(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, valkeytest.WithArgs("--timeout", "1"))
	var log lockedBuffer
	q := s.gated(redlock.WithTTL(longTTL), logTo(&log))
	for range 3 {
		require.Eventually(t, func() bool {
			for i := range s.Nodes() {
				if s.info(i, "connected_clients") != "1" { // which asks
					return false
				}
			}
			return true
		}, 2*longTTL, 10*pollTick, "idle connections are not closed, so this tests nothing")
		l, err := tryUntilAnswered(t, q, "key")
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
	}
	require.NotContains(t, log.String(), "failing")
	require.NotContains(t, log.String(), "answers again")

	s.kill(0)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "node failing") }, 2*longTTL, pollTick, "it is dead")
}

// fullEnv has a process of this test's be many clients of servers, of which one is full.
const fullEnv = "TENURE_TEST_FULL_SERVER"

// A server at maxclients sends a refusal that nobody asked for, and a busy client is done with the
// connection by then. valkey-go panics at it, and that ended 50 of 2,313 processes.
func TestFullServerEndsNoProcess(t *testing.T) {
	if urls := os.Getenv(fullEnv); urls != "" {
		crowd(t, strings.Split(urls, ","))
		return
	}
	s := startAged(t, 3)
	s.do([]string{"CONFIG", "SET", "maxclients", "1"}, 0)
	var processes sync.WaitGroup
	defer processes.Wait()
	for range 3 {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFullServerEndsNoProcess$", "-test.count", "1")
		process.Env = append(os.Environ(), fullEnv+"="+strings.Join(s.URLs(), ","))
		processes.Go(func() {
			if output, err := process.CombinedOutput(); err != nil {
				t.Errorf("a client died: %v\n%s", err, output)
			}
		})
	}
}

// crowd opens many Quorums on a busy machine.
func crowd(t *testing.T, urls []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var work sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for ctx.Err() == nil { // keeps a processor busy
			}
		})
	}
	for range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				q, err := redlock.Open(urls, redlock.WithTTL(time.Second), redlock.WithMaxTTL(time.Minute),
					redlock.WithNodeTimeout(time.Millisecond), redlock.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				for range 5 {
					if l, err := q.TryAcquire(ctx, "key"); err == nil {
						_ = l.Release(ctx)
					}
				}
				require.NoError(t, q.Close())
			}
		})
	}
	work.Wait()
}

// Whoever waits for a node that drops packets waits for the node timeout, which is above the
// bounds of what does not. Nodes that answer have as long, on a busy machine too.
func TestTrap15And22OpenDoesNotWaitForABlackHole(t *testing.T) {
	t.Parallel()
	const nodeTimeout = serverTTL
	opts := append(quietOptions(), redlock.WithTTL(4*nodeTimeout), redlock.WithNodeTimeout(nodeTimeout))
	s := startServers(t, 2)
	urls := append(s.URLs(), "valkey://"+blackHole(t))
	var q *redlock.Quorum
	var err error
	require.Less(t, took(func() { q, err = redlock.Open(urls, opts...) }), nodeTimeout/4)
	require.NoError(t, err)
	var l *redlock.Lease
	require.Eventually(t, func() bool { // the connections may not be there yet
		require.Less(t, took(func() { l, err = q.TryAcquire(t.Context(), "key") }), nodeTimeout/2)
		return err == nil
	}, longTTL, pollTick)
	s.staysHeld(l, 5*nodeTimeout)
	var status []redlock.NodeStatus
	require.Eventually(t, func() bool {
		status = q.Nodes(t.Context())
		return status[0].Reachable && status[1].Reachable
	}, patience, pollTick)
	require.False(t, status[2].Reachable)
	require.ErrorIs(t, status[2].Err, redlock.ErrTimeout)
	require.Less(t, took(func() { err = l.Release(t.Context()) }), nodeTimeout/2)
	require.NoError(t, err)
	// Twice the time after which a connection is given up, which is two node timeouts here.
	require.Less(t, took(func() { require.NoError(t, q.Close()) }), 5*nodeTimeout)
}
