//go:build long

package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: returning at quorum and releasing at once left 61 to 244 of 2,000 keys behind, most of
// them with several connections a node.
func TestTrap05ReleaseNeverOvertakesAcquire(t *testing.T) {
	const cycles, workers = 2000, 8
	s := startServers(t, 5)
	q := s.open(redlock.WithTTL(longTTL))
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for range cycles / workers {
				l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", w))
				if !assert.NoError(t, err) || !assert.NoError(t, l.Release(t.Context())) {
					return
				}
			}
		})
	}
	work.Wait()
	s.requireFree(longTTL/4, "keys were left behind")
	for _, i := range s.all() {
		require.Equal(t, []string{fences}, s.Node(i).Keys(t), "the counters and nothing else")
	}
}

// A release returns at the node timeout; what has not been sent by then is not dropped by Close.
func TestCloseSendsWhatWasReleased(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5)
	q := s.open(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(time.Second)) // what was released outlives the test
	const heldTTL = 4 * serverTTL                                                   // the releases take a node timeout each
	held := s.hold(q, "held", redlock.WithTTL(heldTTL))
	leases := make([]*redlock.Lease, 10)
	for i := range leases {
		leases[i] = s.hold(q, fmt.Sprint("key", i))
	}
	s.freeze(s.all()...)
	var work sync.WaitGroup
	for i, l := range leases {
		work.Go(func() { assert.ErrorIs(t, l.Release(t.Context()), redlock.ErrTimeout) })
		if i == 0 {
			s.requireUnread(s.all()...) // the others wait behind it
		}
	}
	work.Wait()
	closed := make(chan error, 1)
	go func() { closed <- q.Close() }()
	s.requireLost(held, redlock.LostClosed)
	s.thaw(s.all()...)
	require.NoError(t, receive(t, closed, longTTL/2, "Close hangs"))
	s.requireFree(2*heldTTL, "a release was dropped by Close")
}

// The extensions of a lost lease put its key back when the servers go on. Its release takes it away
// again.
func TestTrap17ExtensionThatSleptPastItsTTLIsUndone(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.freeze(0, 1)
	s.requireLost(l, redlock.LostDeadline)
	require.ErrorIs(t, l.Release(t.Context()), redlock.ErrLost)
	<-time.After(frozenFor)
	s.thaw(0, 1)
	require.Eventually(t, func() bool { return s.Node(0).CommandStats(t)["evalsha"] > 0 }, longTTL, pollTick)
	s.requireFree(serverTTL/2, "a lease that was lost and released blocks the key")
}

// Field: at maxmemory SET fails, and leases that were extended with it were lost.
func TestTrap13FullServersKeepTheLease(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	l := s.hold(q, "key")
	s.do([]string{"CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1mb"})
	for _, n := range s.Nodes() {
		require.ErrorContains(t, n.Do(t, "SET", "other", "value").Error(), "OOM", "the server is not full")
	}
	s.staysHeld(l, 5*serverTTL/2)
	require.NoError(t, l.Extend(t.Context()))

	_, err := q.TryAcquire(t.Context(), "another")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	var qe *redlock.QuorumError
	require.ErrorAs(t, err, &qe)
	require.GreaterOrEqual(t, len(qe.Errs), 2)
	for _, ne := range qe.Errs {
		require.Equal(t, "oom", ne.ErrorType())
		require.ErrorContains(t, ne, "OOM")
	}
	require.NoError(t, l.Release(t.Context()))
	s.requireFree(serverTTL/2, "a full server kept what was released")
}
