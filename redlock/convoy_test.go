package redlock

import (
	"fmt"
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

// A node that is slow gets no extension of a lease that was lost meanwhile.
func TestConvoyIsNotSentAfterALoss(t *testing.T) {
	n := testNode()
	n.q.texts = n.q.cfg.texts()
	now := n.q.clock.Now()
	var leases []*Lease
	for i, left := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		l := &Lease{q: n.q, attempt: &attempt{keys: &keyset{lock: fmt.Sprint("key", i)}, owner: fmt.Sprint("owner", i)}}
		l.deadline.Store(int64(now.Add(left)))
		leases = append(leases, l)
	}
	c := n.q.startConvoy(leases, now)
	require.Len(t, n.queue, 1)
	require.Equal(t, now.Add(time.Hour), n.queue[0].expires)
	require.Equal(t, []string{"key0", "key1", "key2", n.q.texts.extend.ttl, "owner0", "owner1", "owner2"}, c.words)
}

// nobody is a NodeTracer.
type nobody struct{ NodeTracer }
