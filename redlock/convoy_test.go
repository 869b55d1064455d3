package redlock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A convoy renews keys by the Quorum's TTL. What else an extension may have to do, it does by itself.
func TestWhoJoinsAConvoy(t *testing.T) {
	q := testNode().q
	q.texts, q.counted = q.cfg.texts(), true
	start := q.clock.Now()
	lease := func() *Lease {
		return &Lease{q: q, attempt: &attempt{cfg: q.cfg.lease}, latest: math.MaxInt64, spread: start}
	}
	require.True(t, lease().joins(start))
	require.True(t, lease().joins(start.Add(spreadEvery-1)))
	require.False(t, lease().joins(start.Add(spreadEvery)), "its token is to be spread")
	l := lease()
	l.attempt.cfg.minHold = time.Second
	require.False(t, l.joins(start), "a late extension would undo the end of its minimum hold")
	l = lease()
	l.attempt.cfg.ttl = 2 * q.texts.ttl
	require.False(t, l.joins(start), "another TTL")
	l = lease()
	l.latest = start.Add(q.texts.ttl / 2)
	require.False(t, l.joins(start), "the end of its maximum hold")
	q.counted = false
	require.False(t, lease().joins(start), "a Cluster has its keys on several servers")
	q.counted = true
	q.cfg.tracers.node = nobody{}
	require.False(t, lease().joins(start), "each request is traced")
}

// nobody is a NodeTracer.
type nobody struct{ NodeTracer }
