//go:build long

package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// A server's uptime is the difference of two looks at its wall clock, and lies when that is set
// meanwhile. A client that knew the process before it does not go by it.
func TestGateWitnessDoesNotBelieveTheUptime(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var away atomic.Bool // the clock is moved while the client looks elsewhere
	q := s.gated(redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if away.Load() {
				return nil, errors.New("away")
			}
			return d.DialContext(ctx, "tcp", addr)
		}
	}))
	away.Store(true)
	s.kill(1)
	require.NoError(t, s.Node(1).JumpClock(-day))
	down := time.Now()
	s.restart(1)
	require.NoError(t, s.Node(1).JumpClock(day))
	s.requireUptime(day, 1)
	away.Store(false)

	_, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.GreaterOrEqual(t, requireVotes(t, q, 1, serverQuarantine+2*whole).Sub(down), serverQuarantine)
	require.True(t, node(t, s.gated(), 1).Votes, "a client that was not there has nothing else to go by")
}

// SCRIPT FLUSH costs a look at the servers, and neither a vote nor an error.
func TestGateFlushedScriptsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log), redlock.WithNodeTimeout(serverTTL/4))
	for i := range 20 {
		s.do([]string{"SCRIPT", "FLUSH"})
		l := s.hold(q, fmt.Sprint("key", i)) // on all nodes: one that is slow would lose its scripts again and again
		s.do([]string{"SCRIPT", "FLUSH"})
		require.NoError(t, l.Extend(t.Context()))
		s.do([]string{"SCRIPT", "FLUSH"})
		require.NoError(t, l.Release(t.Context()))
		s.requireFree(longTTL, "not released")
	}
	for i := range s.Nodes() {
		require.True(t, node(t, q, i).Votes, "%+v %s", node(t, q, i), &log)
	}
	require.NotContains(t, log.String(), "does not vote")
}

func TestGateNewServersDoNotVoteYet(t *testing.T) {
	t.Parallel()
	started := time.Now()
	s := startServers(t, 3)
	var log lockedBuffer
	q := s.gated(redlock.WithTTL(longTTL), logTo(&log))
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	var qe *redlock.QuorumError
	require.ErrorAs(t, err, &qe)
	require.GreaterOrEqual(t, len(qe.Errs), 2)
	for _, ne := range qe.Errs {
		requireCondition(t, ne, ne.Node, redlock.ConditionQuarantined)
		require.ErrorContains(t, err, ne.Error()[len("redlock: "):])
	}
	for i, n := range q.Nodes(t.Context()) {
		addr := s.Node(i).Addr()
		ce := requireCondition(t, n.Err, addr, redlock.ConditionQuarantined)
		require.True(t, n.Reachable)
		require.False(t, n.Votes)
		require.Equal(t, "master", n.Role)
		require.WithinRange(t, n.QuarantinedUntil, started.Add(patientQuarantine-time.Second), time.Now().Add(patientQuarantine))
		require.True(t, n.QuarantinedUntil.Equal(ce.Until))
		require.ErrorContains(t, n.Err, "quarantined until "+n.QuarantinedUntil.Format("15:04:05"))
		require.ErrorContains(t, n.Err, "votes after "+patientQuarantine.String())
		require.Contains(t, log.String(), addr)
		require.Contains(t, log.String(), "until "+n.QuarantinedUntil.Format("15:04:05"))
	}
	require.Equal(t, 3, strings.Count(log.String(), "node does not vote"), "a line a node: %s", &log)
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
	for i := range s.Nodes() {
		require.Empty(t, s.Node(i).Keys(t), "a server that does not vote is asked for nothing")
	}

	// A waiter has the lease when two servers are old enough: 12 s of which INFO may round one
	// away.
	g := receive(t, s.acquire(q, "key"), patience, "the servers never vote")
	require.NoError(t, g.err)
	require.NoError(t, g.lease.Err())
	require.GreaterOrEqual(t, g.at.Sub(started), patientQuarantine-time.Second)
	require.NoError(t, q.Healthy())
	for i := range s.Nodes() {
		requireVotes(t, q, i, patience)
		require.NoError(t, node(t, q, i).Err)
		require.Zero(t, node(t, q, i).QuarantinedUntil)
	}
	require.Equal(t, 3, strings.Count(log.String(), "node votes"), "%s", &log)
}

// A holder keeps its lease while a server is restarted and quarantined, and nobody else comes in.
// After the quarantine the server is as good as before, and has the holder's key.
func TestGateHolderKeepsItsLeaseWhileAServerIsRestarted(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	first, second := s.gated(redlock.WithTTL(longTTL), redlock.WithIdentity("holder")), s.gated(redlock.WithTTL(longTTL))
	held := s.hold(first, "key")
	down := time.Now()
	s.restart(1)
	require.Eventually(t, func() bool { return !node(t, first, 1).Votes }, patientQuarantine-whole, pollTick)
	for !node(t, second, 1).Votes {
		_, err := second.TryAcquire(t.Context(), "key")
		require.Error(t, err)
		require.NoError(t, held.Err())
		if put := s.locks(1); !node(t, first, 1).Votes {
			require.Empty(t, put, "put back too early")
		}
		require.Less(t, time.Since(down), patience)
	}
	require.GreaterOrEqual(t, time.Since(down), patientQuarantine, "it voted too early")
	holder, err := second.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "holder", holder.Identity)
	require.Eventually(t, func() bool { return len(s.locks(1)) == 1 }, patience, pollTick, "not put back")

	s.kill(2)
	_, err = second.Acquire(t.Context(), "other")
	require.NoError(t, err, "its vote is needed and given")
	require.NotEmpty(t, s.tokenOn(1, "other"))
	require.NoError(t, held.Err())
}
