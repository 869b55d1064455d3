package redlock_test

import (
	"bytes"
	"context"
	"fmt"

	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

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

// Field: Unlock was handed a context that had been cancelled to end the job, and did nothing.
func TestTrap03ReleaseWorksWithACancelledContext(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, l.Release(ctx))
	s.requireFree(longTTL/4, "the release died with its context")
}

func TestTrap23ReleaseAfterLossSaysSoAndCleansUp(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(3*serverTTL)), "key")
	s.do([]string{"DEL", lockKey("key")}, 0, 1)
	s.requireLost(l, redlock.LostRefused)
	require.NotEmpty(t, s.locks(2), "nothing to clean up")
	for range 2 {
		err := l.Release(t.Context())
		require.ErrorIs(t, err, redlock.ErrLost)
		require.Equal(t, "lost_refused", redlock.ErrorType(err))
	}
	s.requireFree(serverTTL, "keys of a lost lease stayed after its release")
}

func TestMinHoldKeepsTheKeyAfterRelease(t *testing.T) {
	t.Parallel()
	const hold = 3 * serverTTL / 2
	s := startServers(t, 3)
	q, other := s.open(redlock.WithTTL(2*serverTTL)), s.open(redlock.WithTTL(longTTL))
	began := time.Now()
	l := s.hold(q, "key", redlock.WithMinHold(hold))
	granted := s.wait(other, "key") // polls too seldom to find out by itself
	require.NoError(t, l.Release(t.Context()))
	require.ErrorIs(t, l.Err(), redlock.ErrReleased, "the lease itself ends at the release")
	for _, i := range s.all() {
		require.Eventually(t, func() bool { left := s.pttl(i, "key"); return left <= hold }, hold/2, pollTick)
		require.Positive(t, s.pttl(i, "key"))
	}
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.LessOrEqual(t, h.TTL, hold)

	g := receive(t, granted, longTTL/2, "the waiter did not hear when the minimum hold would be over")
	require.NoError(t, g.err)
	require.WithinRange(t, g.at, began.Add(hold), began.Add(hold+serverTTL/2))
}

// A lock whose expiry something else has taken away is freed after the minimum hold like any other.
func TestMinHoldOfALockWithoutExpiry(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	const hold = 200 * time.Millisecond
	q := s.open(redlock.WithTTL(longTTL))
	l := s.hold(q, "key", redlock.WithMinHold(hold))
	s.do([]string{"PERSIST", lockKey("key")})
	require.NoError(t, l.Release(t.Context()))
	s.requireFree(longTTL, "key")
}
