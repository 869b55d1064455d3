package cluster_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

func TestKeysThatAreLeft(t *testing.T) {
	const ttl = redlock.MinTTL
	servers := start(t, plan.Topology{Servers: 1}, "", "")
	q, err := redlock.Open(servers.URLs(plan.Left), redlock.WithTTL(ttl), redlock.WithPrefix("p"), redlock.WithIdentity("c0.1"))
	require.NoError(t, err)
	defer q.Close()
	left := func(killed history.Instant) []string {
		found, err := servers.Leftover("p", ttl, []history.Life{{Name: "c0.1", Killed: killed}})
		require.NoError(t, err)
		return found
	}
	require.Empty(t, left(0))
	acquire := func(opts ...redlock.LeaseOption) *redlock.Lease {
		l, err := q.Acquire(t.Context(), "key", opts...)
		require.NoError(t, err)
		return l
	}
	l := acquire(redlock.WithoutAutoExtend())
	require.Equal(t, []string{"server 1: p:{key} of c0.1"}, left(0), "of a life that was stopped, before its TTL")
	require.NoError(t, l.Release(t.Context()))
	l = acquire()
	require.Len(t, left(1), 1, "of one that was killed, extended beyond its TTL")
	require.NoError(t, l.Release(t.Context()))
	l = acquire(redlock.WithoutAutoExtend())
	defer l.Release(context.Background())
	require.Empty(t, left(1), "of one that was killed, gone after its TTL")
}
