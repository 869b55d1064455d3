package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: the rollback used the caller's cancelled context, the key stayed for 7.6 s.
func TestTrap03CancelledAcquireLeavesNoKey(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL/4))
	entered(t, q)
	s.freeze(0, 1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	granted := tryAcquire(ctx, q, "key")
	s.requireUnread(0, 1, 2)
	cancel()
	g := receive(t, granted, lateness, "TryAcquire ignores its context")
	require.ErrorIs(t, g.err, context.Canceled)
	s.thaw(0, 1, 2)
	s.requireGranted(0, 1, 2)
	s.requireFree(longTTL/4, "granted after the caller had left, and never released")
}

// Field: one of three nodes stalled, Lock took 5.0 s and Unlock 5.0 s.
func TestTrap04FrozenNodeDelaysNobody(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(4*serverTTL), redlock.WithNodeTimeout(serverTTL))
	entered(t, q)
	for frozen := range 3 {
		s.freeze(frozen)
		var l *redlock.Lease
		var err error
		require.Less(t, took(func() { l, err = q.TryAcquire(t.Context(), "key") }), serverTTL/2)
		require.NoError(t, err)
		require.Less(t, took(func() { err = l.Extend(t.Context()) }), serverTTL/2)
		require.NoError(t, err)
		require.Less(t, took(func() { err = l.Release(t.Context()) }), serverTTL/2)
		require.NoError(t, err)
		s.thaw(frozen)
		require.Eventually(t, func() bool { return q.Nodes(t.Context())[frozen].Reachable }, longTTL, pollTick)
	}
	s.requireFree(2*serverTTL, "the node that was frozen kept its key")
}

// Field: an even number of nodes and a tied vote, and the call hangs for ever.
func TestTrap06TiedVoteReturns(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 4} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			t.Parallel()
			s := startServers(t, nodes)
			q := s.open(redlock.WithTTL(longTTL))
			taken := s.all()[:nodes/2]
			s.squat("key", longTTL, taken...)
			var err error
			require.Less(t, took(func() { _, err = q.TryAcquire(t.Context(), "key") }), longTTL/4)
			require.ErrorIs(t, err, redlock.ErrSplit, "nobody can have a quorum")
			for i := range nodes {
				require.Eventually(t, func() bool { return len(s.locks(i)) == 0 || i < nodes/2 }, longTTL/4, pollTick,
					"node %d keeps what the failed attempt was granted", i)
			}
			s.do([]string{"DEL", lockKey("key")}, taken...)
			l := s.hold(q, "key")
			require.NoError(t, l.Release(t.Context()))
			s.requireFree(longTTL/4, "released")
		})
	}
}

// lockedBuffer is a buffer that one goroutine fills while another looks at it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Field: a request abandoned at its timeout ran 2 s later with a full TTL; and the retry after a
// lost reply, with a new owner value, waited for one's own key.
func TestTrap11And17AbandonedAcquireIsUndone(t *testing.T) {
	t.Parallel()
	const ttl = 6 * serverTTL
	for _, test := range []struct {
		name  string
		close bool // thaw after the client has given up its connections
	}{
		{"on the same connection", false},
		{"on a new connection", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 3)
			var log lockedBuffer
			q := s.open(redlock.WithTTL(ttl), redlock.WithNodeTimeout(serverTTL), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			entered(t, q)
			s.freeze(0, 1)
			_, err := q.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrTimeout)
			s.requireUnread(0, 1)
			if test.close {
				for i := range 2 {
					require.Eventually(t, func() bool { return strings.Contains(log.String(), s.Node(i).Addr()) }, ttl/2, pollTick)
				}
			}
			s.thaw(0, 1)
			s.requireGranted(0, 1)
			s.requireFree(ttl/2, "the abandoned request's key is still there")
			l, err := tryUntilAnswered(t, q, "key")
			require.NoError(t, err)
			require.NoError(t, l.Err())
		})
	}
}
