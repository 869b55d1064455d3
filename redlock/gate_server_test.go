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

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

func TestGateNewServersDoNotVoteYet(t *testing.T) {
	t.Parallel()
	started := time.Now()
	s := startServers(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
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
		require.WithinRange(t, n.QuarantinedUntil, started.Add(serverQuarantine-time.Second), time.Now().Add(serverQuarantine))
		require.True(t, n.QuarantinedUntil.Equal(ce.Until))
		require.ErrorContains(t, n.Err, "quarantined until "+n.QuarantinedUntil.Format("15:04:05"))
		require.ErrorContains(t, n.Err, "votes after "+serverQuarantine.String())
		require.Contains(t, log.String(), addr)
		require.Contains(t, log.String(), "until "+n.QuarantinedUntil.Format("15:04:05"))
	}
	require.Equal(t, 3, strings.Count(log.String(), "node does not vote"), "a line a node: %s", &log)
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
	for i := range s.Nodes() {
		require.Empty(t, s.Node(i).Keys(t), "a server that does not vote is asked for nothing")
	}

	// A waiter has the lease when two servers are old enough: 3 s of which INFO may round one away.
	g := receive(t, s.acquire(q, "key"), serverQuarantine+whole, "the servers never vote")
	require.NoError(t, g.err)
	require.NoError(t, g.lease.Err())
	require.GreaterOrEqual(t, g.at.Sub(started), serverQuarantine-time.Second)
	require.NoError(t, q.Healthy())
	for i := range s.Nodes() {
		requireVotes(t, q, i, whole)
		require.NoError(t, node(t, q, i).Err)
		require.Zero(t, node(t, q, i).QuarantinedUntil)
	}
	require.Equal(t, 3, strings.Count(log.String(), "node votes"), "%s", &log)
}

// The known hole of Redlock: the holder has two of three servers, one of these comes back empty,
// and helps somebody else to a quorum.
func TestGateClosesTheHoleOfRedlock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		connected bool // before the restart
		opts      []redlock.Option
	}{
		{"a client that was there", true, nil},
		{"a new client", false, nil},
		{"a client that was there, without the gate", true, []redlock.Option{redlock.WithoutRestartGate()}},
		{"a new client, without the gate", false, []redlock.Option{redlock.WithoutRestartGate()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3)
			opts := append(test.opts, redlock.WithTTL(3*longTTL)) // nothing expires here
			first := s.gated(append(opts, cutOff(s.Node(2)))...)
			var second *redlock.Quorum
			if test.connected {
				second = s.gated(opts...)
			}
			held, err := first.TryAcquire(t.Context(), "key", redlock.WithoutAutoExtend())
			require.NoError(t, err)
			s.restart(1)
			require.Empty(t, s.locks(1))
			require.Empty(t, s.locks(2))
			if len(test.opts) > 0 {
				s.do([]string{"DEL", "tenure:members"}) // else it would be noticed that the server has lost its data
			}
			if !test.connected {
				second = s.gated(opts...)
			}
			l, err := second.TryAcquire(t.Context(), "key")
			require.NoError(t, held.Err())
			if len(test.opts) > 0 {
				require.NoError(t, err, "this test would not see two leases")
				require.NoError(t, l.Err())
				return
			}
			require.ErrorIs(t, err, redlock.ErrHeld)
			requireCondition(t, node(t, second, 1).Err, s.Node(1).Addr(), redlock.ConditionQuarantined)
			require.Empty(t, s.locks(1))
			s.requireFreeOn(2, "what the other server granted is released")
			for range 10 {
				_, err = second.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
			}
			require.ErrorIs(t, held.Extend(t.Context()), redlock.ErrNoQuorum, "only one server has it still")
			require.Empty(t, s.locks(1), "what was put back must not count, so it is not put back")
			_, err = second.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrHeld)
			require.NoError(t, held.Err())
		})
	}
}

// A holder keeps its lease while a server is restarted and quarantined, and nobody else comes in.
// After the quarantine the server is as good as before, and has the holder's key.
func TestGateHolderKeepsItsLeaseWhileAServerIsRestarted(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	first, second := s.gated(redlock.WithIdentity("holder")), s.gated()
	held := s.hold(first, "key")
	down := time.Now()
	s.restart(1)
	require.Eventually(t, func() bool { return !node(t, first, 1).Votes }, serverTTL, pollTick)
	for !node(t, second, 1).Votes {
		_, err := second.TryAcquire(t.Context(), "key")
		require.Error(t, err)
		require.NoError(t, held.Err())
		if !node(t, first, 1).Votes {
			require.Empty(t, s.locks(1), "put back too early")
		}
		require.Less(t, time.Since(down), serverQuarantine+2*whole)
	}
	require.GreaterOrEqual(t, time.Since(down), serverQuarantine, "it voted too early")
	holder, err := second.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "holder", holder.Identity)
	require.Eventually(t, func() bool { return len(s.locks(1)) == 1 }, longTTL, pollTick, "not put back")

	s.kill(2)
	_, err = second.Acquire(t.Context(), "other")
	require.NoError(t, err, "its vote is needed and given")
	require.NotEmpty(t, s.tokenOn(1, "other"))
	require.NoError(t, held.Err())
}

// A server that was restarted is not asked to promise anything, in whatever words, although the
// client's connection came back by itself.
func TestGateRestartedServerIsGivenNoAcquisition(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := s.gated()
	s.hold(q, "before", redlock.WithoutAutoExtend())
	s.restart(1)
	require.Eventually(t, func() bool {
		_, err := tryUntilAnswered(t, q, fmt.Sprint("key", time.Now().UnixNano()), redlock.WithoutAutoExtend())
		require.NoError(t, err, "the others are a quorum")
		return s.Node(1).CommandStats(t)["evalsha"] > 0
	}, serverQuarantine/2, pollTick, "it was never asked, so this tests nothing")
	require.Eventually(t, func() bool { return !node(t, q, 1).Votes }, serverQuarantine/2, pollTick, "its answer never came")
	asked := s.Node(1).CommandStats(t)["evalsha"]
	const later = 20
	for i := range later {
		_, err := tryUntilAnswered(t, q, fmt.Sprint("later", i), redlock.WithoutAutoExtend())
		require.NoError(t, err, "the others are a quorum")
	}
	stats := s.Node(1).CommandStats(t)
	require.Less(t, stats["evalsha"]-asked, int64(later/2), "the gate is closed by the first answer; it is told who uses it: %v", stats)
	require.Empty(t, s.Node(1).Keys(t))
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

func TestGateServersThatKeptTheirData(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		opts  []redlock.Option
		votes bool
	}{
		{"gate", nil, false},
		{"without it", []redlock.Option{redlock.WithoutRestartGate()}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, valkeytest.WithPersistence())
			opts := append(test.opts, redlock.WithTTL(3*longTTL), redlock.WithNodeTimeout(longTTL/2)) // fsync takes its time
			first, second := s.gated(opts...), s.gated(opts...)
			held := s.hold(first, "key")
			require.NoError(t, s.Node(1).Restart(true))
			require.NotEmpty(t, s.locks(1))
			s.kill(2)
			_, err := second.TryAcquire(t.Context(), "key")
			require.Error(t, err)
			require.NoError(t, held.Err())
			l, err := second.TryAcquire(t.Context(), "other")
			require.Equal(t, test.votes, node(t, second, 1).Votes)
			if test.votes {
				require.NoError(t, err)
				require.NoError(t, l.Err())
				return
			}
			requireCondition(t, errorOf(t, err, s.Node(1).Addr()), s.Node(1).Addr(), redlock.ConditionQuarantined)
		})
	}
}

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
