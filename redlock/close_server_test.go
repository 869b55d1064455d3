package redlock_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: closing with held leases hung, or freed keys under work that was still running.
func TestTrap23CloseWithHeldLeases(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	held := []*redlock.Lease{s.hold(q, "a"), s.hold(q, "b", redlock.WithoutAutoExtend()), s.hold(q, "c")}
	released := s.hold(q, "released")
	require.NoError(t, released.Release(t.Context()))
	var closing sync.WaitGroup
	for range 5 {
		closing.Go(func() { assert.NoError(t, q.Close()) })
	}
	closing.Wait()
	for _, l := range held {
		s.requireLost(l, redlock.LostClosed)
		require.ErrorIs(t, l.Err(), redlock.ErrClosed)
		require.ErrorIs(t, l.Err(), redlock.ErrLost)
		for _, i := range s.all() {
			require.Positive(t, s.pttl(i, l.Key()), "freed under the work")
		}
	}
	require.ErrorIs(t, released.Err(), redlock.ErrReleased)

	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrClosed)
	_, err = q.Acquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrClosed)
	_, err = q.Holder(t.Context(), "a")
	require.ErrorIs(t, err, redlock.ErrClosed)
	require.ErrorIs(t, held[0].Extend(t.Context()), redlock.ErrClosed)
	require.Less(t, took(func() { err = held[0].Release(t.Context()) }), serverTTL/2)
	require.ErrorIs(t, err, redlock.ErrClosed)
	for _, status := range q.Nodes(t.Context()) {
		require.False(t, status.Reachable)
		require.Equal(t, "closed", redlock.ErrorType(status.Err))
	}
	require.NoError(t, q.Close())
	s.requireFree(5*serverTTL/4, "keys of closed leases are extended still")
}
