package redlock_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A lease that nobody has any more is extended on, as a program may mean to hold it for as long as
// it lives; but nobody can release it, so that is said. Whoever has its context has it.
func TestDroppedLeaseIsSaid(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	var log lockedBuffer
	q, err := redlock.Open(fleet.URLs(), logTo(&log), redlock.WithoutRestartGate(), redlock.WithPrefix("dropped"))
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	acquire := func(key string, opts ...redlock.LeaseOption) *redlock.Lease {
		l, err := q.Acquire(t.Context(), key, opts...)
		require.NoError(t, err)
		return l
	}

	var kept context.Context
	func() {
		kept = acquire("kept").Context()
		require.NoError(t, acquire("released").Release(t.Context()))
		acquire("by hand", redlock.WithoutAutoExtend())
		acquire("left to run out").StopExtending()
		acquire("dropped")
	}()
	warned := func() int { return strings.Count(log.String(), "a Lease was dropped") }
	require.Eventually(t, func() bool { runtime.GC(); return warned() > 0 }, 30*time.Second, 10*time.Millisecond)
	for range 5 {
		runtime.GC()
	}
	require.Equal(t, 1, warned(), "%s", &log)
	require.Contains(t, log.String(), "key=dropped")
	h, err := q.Holder(t.Context(), "dropped")
	require.NoError(t, err)
	require.NotZero(t, h.FencingToken)
	require.NoError(t, kept.Err())
	runtime.KeepAlive(kept)
}
