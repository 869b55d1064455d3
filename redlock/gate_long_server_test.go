//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A promoted replica has been up for as long as it was one. Neither who saw it promoted goes by
// that, nor who did not.
func TestGatePromotedReplica(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	s.follow(3, 0)
	witness := gatedURLs(t, s.three(3, 1, 2), redlock.WithReplicas())
	requireCondition(t, node(t, witness, 0).Err, s.Node(3).Addr(), redlock.Condition(wire.Replica))

	promoted := time.Now()
	s.promote(3)
	fresh := gatedURLs(t, s.three(3, 1, 2), redlock.WithReplicas())
	n := node(t, fresh, 0)
	requireCondition(t, n.Err, s.Node(3).Addr(), redlock.ConditionQuarantined)
	require.GreaterOrEqual(t, n.Uptime, day)
	require.WithinRange(t, n.QuarantinedUntil, promoted.Add(serverQuarantine), time.Now().Add(serverQuarantine))

	refusing := gatedURLs(t, s.three(3, 1, 2))
	ce := requireCondition(t, node(t, refusing, 0).Err, s.Node(3).Addr(), redlock.ConditionReplicated)
	require.ErrorContains(t, ce, "was a replica")

	const recheck = 2 * time.Second // of a replica
	require.GreaterOrEqual(t, requireVotes(t, fresh, 0, serverQuarantine+whole).Sub(promoted), serverQuarantine)
	require.GreaterOrEqual(t, requireVotes(t, witness, 0, recheck+whole).Sub(promoted), serverQuarantine)
	_, err := fresh.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.False(t, node(t, refusing, 0).Votes, "it stays one that was a replica")
}

// A server that is replaced at its address while it lives on has no vote from the next look on, nor
// does it help to extend a lease: a process that comes later votes with its successor.
func TestServerThatIsReplacedWhileItLivesOn(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	way := startDetour(t, s.Node(0).Addr())
	urls := []string{"valkey://" + way.Addr().String(), s.Node(1).URL(), s.Node(2).URL()}
	var log lockedBuffer
	q := looking(t, urls, &log)
	s.squat("key", time.Minute, 2)
	var held *redlock.Lease
	require.Eventually(t, func() (ok bool) {
		var err error
		held, err = q.TryAcquire(t.Context(), "key")
		return err == nil
	}, longTTL, pollTick)

	successor := startServers(t, 1)
	to := successor.Node(0).Addr()
	way.lead(to)
	select {
	case <-held.Context().Done():
	case <-time.After(longTTL):
		require.Fail(t, "the lease is still extended by a server that has been replaced")
	}
	require.NoError(t, s.Node(0).Do(t, "EXISTS", lockKey("key")).Error(), "it lives")
	n := node(t, q, 0)
	require.False(t, n.Votes)
	require.Error(t, n.Err)
	require.Contains(t, log.String(), "another server answers")
	require.Eventually(t, func() bool { return node(t, q, 0).Votes }, longTTL, pollTick, "the successor")
	l, err := q.TryAcquire(t.Context(), "another")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		there, err := successor.Node(0).Do(t, "EXISTS", lockKey("another")).AsInt64()
		return err == nil && there == 1
	}, longTTL, pollTick)
	require.NoError(t, l.Release(t.Context()))
}
