package redlock_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// quarantine follows from the TTL of these tests and the default skew: (4 s + 2 s) × 1.01 + 2 ms,
// rounded up, and one.
const quarantine = 8 * time.Second

func restart(t *testing.T, fleet *redlocktest.Fleet, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		require.NoError(t, fleet.Node(i).Restart(false))
	}
}

func nodeAddr(n *redlocktest.Node) string { return strings.TrimPrefix(n.URL(), "valkey://") }

// A client that was not there when the servers were restarted goes by their uptime.
func TestGateNewClientGoesByUptime(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		restart(t, fleet, 0, 1, 2)
		time.Sleep(quarantine - 1500*time.Millisecond)
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.Equal(t, "no_quorum", redlock.ErrorType(err))
		require.ErrorContains(t, err, "quarantined until")
		for _, n := range q.Nodes(t.Context()) {
			require.True(t, n.Reachable)
			require.Equal(t, "quarantined", redlock.ErrorType(n.Err))
			require.WithinRange(t, n.QuarantinedUntil, time.Now().Add(time.Second), time.Now().Add(3*time.Second))
		}
		require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
		require.Equal(t, 3, strings.Count(log.String(), "does not vote"), "%s", &log)
		require.Contains(t, log.String(), nodeAddr(fleet.Node(0)))

		start := time.Now()
		l, err := q.Acquire(t.Context(), "key")
		require.NoError(t, err)
		require.NoError(t, l.Err())
		require.GreaterOrEqual(t, time.Since(start), 1500*time.Millisecond)
		require.LessOrEqual(t, time.Since(start), 4*time.Second)
		require.NoError(t, q.Healthy())
		for _, n := range q.Nodes(t.Context()) {
			require.True(t, n.Votes)
			require.Zero(t, n.QuarantinedUntil)
			require.NoError(t, n.Err)
		}
	})
}

// A process that knows of no TTL as long as another's would trust a restarted server too early.
func TestGateLongerTTLThanDeclaredIsWarnedAbout(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet, redlock.WithTTL(2*ttl)))
		for _, n := range fleet.Nodes() {
			ask(t, n, "DEL", rosterKey) // as if the first had not said it
		}
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for range 3 {
			_, err := q.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrHeld)
		}
		require.Equal(t, 1, strings.Count(log.String(), "a longer TTL"), "%s", &log)
		_, err := q.TryAcquire(t.Context(), "other", redlock.WithTTL(2*ttl))
		require.ErrorContains(t, err, "WithMaxTTL(8s)")
	})
}

// The holder may always keep what a server still has, and release it. What a restarted server has
// lost is put back when it votes again, and not before: see TestRefillOnARestartedNodeDoesNotCount.
func TestGateAndExtensions(t *testing.T) {
	withQuorum(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		l := acquire(t, q)
		synctest.Wait()
		require.NoError(t, fleet.Node(0).Restart(true))
		restart(t, fleet, 1)
		for start := time.Now(); time.Since(start) < quarantine-time.Second; time.Sleep(ttl / 10) {
			require.NoError(t, l.Err())
			require.Positive(t, fleet.Node(0).TTL("tenure:{key}"), "an extension did not get there")
			_, ok := fleet.Node(1).Get("tenure:{key}")
			require.False(t, ok, "put back too early")
		}
		time.Sleep(2*time.Second + ttl)
		synctest.Wait()
		owner, ok := fleet.Node(1).Get("tenure:{key}")
		require.True(t, ok, "not put back")
		require.Contains(t, owner, l.Identity())

		require.NoError(t, fleet.Node(0).Restart(true))
		finish(t, l.Release)
		_, ok = fleet.Node(0).Get("tenure:{key}")
		require.False(t, ok, "a release does not get to a quarantined node")
	})
}

// A server's clock that jumps forward lets keys expire early.
func TestClockJumpCostsTheVote(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		first, second := open(t, fleet), open(t, fleet)
		freeze(t, fleet, 2)
		held := acquire(t, first, redlock.WithoutAutoExtend())
		thaw(t, fleet, 2)
		synctest.Wait()
		require.NoError(t, fleet.Node(2).Restart(true))
		fleet.Node(2).FlushAll()
		time.Sleep(time.Second)
		fleet.Node(1).JumpClock(ttl)
		fleet.Node(2).JumpClock(ttl)
		_, ok := fleet.Node(1).Get("tenure:{key}")
		require.False(t, ok, "the key has not expired early, so this tests nothing")
		_, err := second.TryAcquire(t.Context(), "key")
		require.NoError(t, held.Err())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		requireConditionOf(t, err, nodeAddr(fleet.Node(1)), redlock.ConditionClockJumped)
		status := second.Nodes(t.Context())[1]
		require.False(t, status.Votes)
		require.WithinRange(t, status.QuarantinedUntil, time.Now().Add(quarantine-time.Second), time.Now().Add(quarantine))
		synctest.Wait()
		_, ok = fleet.Node(1).Get("tenure:{key}")
		require.False(t, ok, "what it granted is released")

		time.Sleep(quarantine)
		require.True(t, second.Nodes(t.Context())[1].Votes, "it votes again after that")
	})
}

func TestClockJumpIsNoticedWhileIdle(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		time.Sleep(10 * ttl)
		require.NotRegexp(t, "level=(WARN|ERROR)", log.String())
		fleet.Node(0).JumpClock(time.Second)
		fleet.Node(1).JumpClock(-time.Second)
		time.Sleep(ttl + time.Millisecond)
		synctest.Wait()
		require.False(t, q.Nodes(t.Context())[0].Votes)
		require.True(t, q.Nodes(t.Context())[1].Votes, "keys that live longer endanger nobody")
		require.Contains(t, log.String(), "jumped forward by 1s")
		require.Contains(t, log.String(), "jumped backward")
	})
}

// The model's counterexample (tools/model/testdata/searches.md): a server votes for B, is
// restarted, and takes back A's key. If that counts for A's extension, the server has helped both:
// B's vote is from before the restart, and still counts in B's round.
func TestRefillOnARestartedNodeDoesNotCount(t *testing.T) {
	twice := func(a *redlock.Lease) {
		time.Sleep(200 * time.Millisecond)
		_ = a.Extend(context.Background()) // which finds out that the connection, or the process, is another
		_ = a.Extend(context.Background())
	}
	t.Run("gate", func(t *testing.T) { require.False(t, refilled(t, twice), "two leases are live") })
	// One that extends more often would find, and count, a key that was taken back without being
	// counted. How soon it notices the restart is not the same each time.
	t.Run("more often", func(t *testing.T) {
		for range 8 {
			require.False(t, refilled(t, func(a *redlock.Lease) {
				for range 8 {
					ctx, cancel := context.WithTimeout(context.Background(), 40*time.Millisecond)
					_ = a.Extend(ctx)
					cancel()
				}
			}), "two leases are live")
		}
	})
	t.Run("without it", func(t *testing.T) {
		require.True(t, refilled(t, twice, redlock.WithoutRestartGate()), "this tests nothing")
	})
}

// refilled reports whether two leases are live when A extends the way it is told to, after the
// server was restarted.
func refilled(t *testing.T, extend func(*redlock.Lease), opts ...redlock.Option) (double bool) {
	t.Helper()
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		opts := append(opts, redlock.WithNodeTimeout(time.Second))
		var link cable // from A to node 1
		qa := open(t, fleet, append(opts, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			if url == fleet.Node(1).URL() {
				o.DialCtxFn = link.through(o.DialCtxFn)
			}
		}))...)
		qb := open(t, fleet, opts...)
		require.NoError(t, fleet.Node(2).Kill())
		a := acquire(t, qa, redlock.WithoutAutoExtend())
		require.NoError(t, fleet.Node(2).Restart(false))
		time.Sleep(2 * quarantine)
		a = reacquire(t, qa, a, fleet)

		start := time.Now()
		at := func(d time.Duration) { time.Sleep(d - time.Since(start)) }
		at(3450 * time.Millisecond)
		freeze(t, fleet, 1)
		link.cut()
		at(3500 * time.Millisecond)
		granted := trying(t.Context(), qb, "key")
		synctest.Wait()
		_, voted := fleet.Node(2).Get("tenure:{key}")
		require.True(t, voted, "the server has not voted for B, so this tests nothing")
		restart(t, fleet, 2)
		extended := make(chan struct{})
		go func() {
			defer close(extended)
			extend(a)
		}()
		at(ttl + 50*time.Millisecond) // A's key on node 1 has expired
		thaw(t, fleet, 1)
		b := (<-granted).lease
		<-extended
		double = b != nil && b.Err() == nil && a.Err() == nil
	})
	return double
}

// cable is a way to a node that can be cut for good.
type cable struct {
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	gone  bool       // guarded by mu
}

type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

func (c *cable) through(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.gone {
			return nil, syscall.ECONNREFUSED
		}
		conn, err := dial(ctx, addr, d, tc)
		if err == nil {
			c.conns = append(c.conns, conn)
		}
		return conn, err
	}
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}

// reacquire makes sure that the lease is on nodes 0 and 1, and on nothing else.
func reacquire(t *testing.T, q *redlock.Quorum, old *redlock.Lease, fleet *redlocktest.Fleet) *redlock.Lease {
	t.Helper()
	_ = old.Release(t.Context())
	synctest.Wait()
	freeze(t, fleet, 2)
	l := acquire(t, q, redlock.WithoutAutoExtend())
	synctest.Wait()
	thaw(t, fleet, 2)
	synctest.Wait()
	fleet.Node(2).FlushAll()
	return l
}

const (
	rosterKey    = "tenure:roster"
	lifetime     = quarantine - time.Second // of what a process says of a server
	lifetimeMore = 30 * time.Second         // of a list of nodes
)

// write has a node keep an entry of its roster.
func write(t *testing.T, n *redlocktest.Node, e wire.Entry) {
	t.Helper()
	written := e.Written(time.Duration(time.Now().UnixNano()))
	ask(t, n, "HSET", rosterKey, written[0], written[1])
}

// listBy is the entry of a list of nodes.
func listBy(who string, maxTTL time.Duration, names ...string) wire.Entry {
	return wire.Entry{Field: append([]string{wire.RosterList, "true", maxTTL.String(), "2s"}, names...), Says: []string{who}, Life: lifetime}
}

// keeps reports whether a node has an entry that begins so.
func keeps(t *testing.T, n *redlocktest.Node, begins string) bool {
	t.Helper()
	fields, err := ask(t, n, "HKEYS", rosterKey).AsStrSlice()
	require.NoError(t, err)
	return slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(field, begins) })
}

// openOn makes a Quorum of some of the fleet's nodes.
func openOn(t *testing.T, fleet *redlocktest.Fleet, nodes []int, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q := dialOn(t, fleet, nodes, opts...)
	q.Nodes(t.Context())
	return q
}

// dialOn does not wait. No nodes are all of them.
func dialOn(t *testing.T, fleet *redlocktest.Fleet, nodes []int, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	urls := fleet.URLs()
	if nodes != nil {
		urls = nil
	}
	for _, i := range nodes {
		urls = append(urls, fleet.Node(i).URL())
	}
	return openOf(t, urls, append(onFleet(fleet), opts...)...)
}

// onFleet are the options of a Quorum on the fleet, whose URLs may have names.
func onFleet(fleet *redlocktest.Fleet) []redlock.Option {
	return []redlock.Option{redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			url, _, _ = strings.Cut(url, "?")
			fleet.ClientOption(url, o)
		})}
}

// requireNoMember demands that none of the nodes votes that answer, and returns what is said.
func requireNoMember(t *testing.T, q *redlock.Quorum, want redlock.Condition) (said []string) {
	t.Helper()
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
	for _, n := range q.Nodes(t.Context()) {
		require.False(t, n.Votes)
		if n.Reachable {
			requireCondition(t, n.Err, n.Node, want)
			said = append(said, n.Err.Error())
		}
	}
	require.NotEmpty(t, said)
	return said
}

// Who acquires nothing enters nothing: with a wrong list it keeps nobody out, and is told so
// itself.
func TestWhoOnlyLooksKeepsNobodyOut(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		wrong := openOn(t, fleet, []int{0, 3, 4}, redlock.WithIdentity("looks"))
		time.Sleep(lifetime)
		require.NoError(t, wrong.Healthy(), "nobody is there who disagrees")
		q := openOn(t, fleet, []int{0, 1, 2})
		l, err := q.TryAcquire(t.Context(), "key")
		require.NoError(t, err)

		late := openOn(t, fleet, []int{0, 3, 4}, redlock.WithIdentity("looks"))
		require.ErrorIs(t, late.Healthy(), redlock.ErrNoQuorum)
		n := late.Nodes(t.Context())[0]
		requireCondition(t, n.Err, n.Node, redlock.ConditionAnotherList)
		right := openOn(t, fleet, []int{0, 1, 2}, redlock.WithIdentity("looks"))
		require.Equal(t, l.FencingToken(), mustHolder(t, right).FencingToken)
		time.Sleep(2 * lifetime)
		require.NoError(t, q.Healthy())
		for i, n := range fleet.Nodes() {
			require.Equal(t, i < 3, keeps(t, n, "list "))
			require.False(t, keeps(t, n, "refused looks"))
		}
		_, err = wrong.TryAcquire(t.Context(), "key")
		requireRefusedFor(t, err, redlock.ConditionAnotherList)
		require.False(t, keeps(t, fleet.Node(3), "list "), "it is refused before it writes which nodes it uses")
	})
}

// acquireAnother acquires another key than acquire.
func acquireAnother(t *testing.T, q *redlock.Quorum) *redlock.Lease {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), "another key")
	require.NoError(t, err)
	return l
}

// requireRefusedFor demands that an acquisition failed for that on every node.
func requireRefusedFor(t *testing.T, err error, want redlock.Condition) {
	t.Helper()
	e := errorAs[*redlock.QuorumError](t, err)
	require.NotEmpty(t, e.Errs)
	for _, err := range e.Errs {
		require.Equal(t, string(want), redlock.ErrorType(err))
	}
}

// Processes with the restart gate and without it are told of each other.
func TestMixedGatesAreRefused(t *testing.T) {
	for _, gate := range []bool{true, false} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			opts := [][]redlock.Option{{redlock.WithoutRestartGate()}, nil}
			if !gate {
				opts[0], opts[1] = opts[1], opts[0]
			}
			held := acquire(t, open(t, fleet, append(opts[0], redlock.WithIdentity("the first"))...))
			other := dialOn(t, fleet, []int{0, 1, 2}, opts[1]...)
			time.Sleep(ttl / 2)
			n := other.Nodes(t.Context())[0]
			requireCondition(t, n.Err, n.Node, redlock.ConditionAnotherList)
			require.ErrorContains(t, n.Err, "give all processes WithoutRestartGate or none")
			require.ErrorContains(t, n.Err, "the first uses")
			require.NoError(t, held.Err())
		})
	}
}

// What a process finds later costs it nothing, and is said in the log, by Nodes, by Healthy and to
// tracers.
func TestAnotherListInFlightIsReported(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		v, watching := watch()
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), watching)
		l := acquire(t, q)
		addr := fleet.Node(1).URL()[len("valkey://"):]
		v.take(addr)
		write(t, fleet.Node(1), listBy("somebody", ttl, "far:1", addr))
		time.Sleep(ttl + time.Second)
		require.NoError(t, l.Err())
		ne := errorAs[*redlock.NodeError](t, q.Healthy())
		require.Equal(t, string(redlock.ConditionAnotherList), ne.ErrorType())
		require.ErrorContains(t, ne, "far:1")
		require.ErrorContains(t, ne, "somebody")
		n := q.Nodes(t.Context())[1]
		require.True(t, n.Votes)
		require.Len(t, n.Warnings, 1)
		require.Equal(t, string(redlock.ConditionAnotherList), redlock.ErrorType(n.Warnings[0]))
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "%s", &log)
		told := v.take(addr)
		require.NotEmpty(t, told)
		require.True(t, told[len(told)-1].Votes)
		require.Equal(t, string(redlock.ConditionAnotherList), redlock.ErrorType(told[len(told)-1].Warning))
		finish(t, acquireAnother(t, q).Release)
		time.Sleep(lifetime + 2*ttl)
		require.NoError(t, q.Healthy())
		require.Contains(t, log.String(), "agree on their nodes again")
		require.NoError(t, l.Err())
	})
}

// A process that was refused shows at the others for as long as it tries, and a minute, also if it
// has their name: it is in nobody's way.
func TestRefusedProcessIsShown(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		namesake := redlock.WithIdentity("stale, 1")
		q := openOn(t, fleet, []int{0, 1, 2}, logTo(&log), namesake)
		acquire(t, q)
		other := openOn(t, fleet, []int{0, 3, 4}, namesake)
		_, err := other.TryAcquire(t.Context(), "key")
		requireRefusedFor(t, err, redlock.ConditionAnotherList)
		time.Sleep(3 * ttl) // it tries again every two to three seconds, and the others look once a TTL
		n := q.Nodes(t.Context())[0]
		require.True(t, n.Votes)
		require.Len(t, n.Warnings, 1)
		require.ErrorContains(t, n.Warnings[0], "stale, 1")
		require.ErrorContains(t, n.Warnings[0], nodeAddr(fleet.Node(3)))
		require.Empty(t, q.Nodes(t.Context())[1].Warnings)
		require.NoError(t, q.Healthy(), "it keeps nobody from working")
		require.Equal(t, 1, strings.Count(log.String(), "a process was refused that has other nodes"), "%s", &log)
		require.NoError(t, other.Close())
		time.Sleep(time.Minute + 2*ttl)
		require.Empty(t, q.Nodes(t.Context())[0].Warnings)
	})
}

// What was damaged on one node is removed there, keeps nobody out, and is written again.
func TestDamagedRosterOfOneNode(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		l := acquire(t, q)
		n := fleet.Node(0)
		fields, err := ask(t, n, "HKEYS", rosterKey).AsStrSlice()
		require.NoError(t, err)
		for i, field := range fields {
			ask(t, n, "HSET", rosterKey, field, []string{"", "x", "9 9", strings.Repeat("9", 300) + " 1 x"}[i%4])
		}
		ask(t, n, "HSET", rosterKey, "list of something", "1 2 3")
		acquireAnother(t, openOn(t, fleet, []int{0, 1, 2}))
		time.Sleep(2 * ttl)
		require.NoError(t, q.Healthy())
		require.NoError(t, l.Err())
		require.False(t, keeps(t, n, "list of something"))
		require.True(t, keeps(t, n, "list "))
		requireNoMember(t, openOn(t, fleet, []int{0, 1}), redlock.ConditionAnotherList)
	})
}

// A TTL that something else has written to one node counts as if a process had it: servers that
// were restarted have no vote, and say which key on which node that is by. Once it is deleted they
// vote. A process that has heard of it while a server voted remembers it for that server, which is
// restarted without its data: another process does not.
func TestTTLThatNobodyHas(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		said := listBy("somebody", 24*time.Hour)
		for _, n := range fleet.Nodes() {
			said.Field = append(said.Field, nodeAddr(n))
		}
		said.Life = 48 * time.Hour
		write(t, fleet.Node(0), said)
		restart(t, fleet, 1, 2)
		q := openOn(t, fleet, []int{0, 1, 2})
		time.Sleep(2*quarantine + 2*time.Minute)
		require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
		n := q.Nodes(t.Context())[1]
		requireCondition(t, n.Err, n.Node, redlock.ConditionQuarantined)
		require.ErrorContains(t, n.Err, "a TTL of 24h0m0s, a skew of 2s, by "+rosterKey+" on "+nodeAddr(fleet.Node(0)))
		require.ErrorContains(t, n.Err, "delete the key that is named on every node")
		ask(t, fleet.Node(0), "DEL", rosterKey)
		time.Sleep(5 * ttl) // two looks, and a moment
		require.NoError(t, q.Healthy())

		write(t, fleet.Node(1), said)
		time.Sleep(5 * ttl)
		restart(t, fleet, 1)
		time.Sleep(2 * quarantine)
		require.ErrorContains(t, q.Nodes(t.Context())[1].Err, "then restart processes that still say this")
		require.True(t, openOn(t, fleet, []int{0, 1, 2}).Nodes(t.Context())[1].Votes)
	})
}

// A server that is restarted without its data hears who uses it before it votes, so that it does
// not let others in.
func TestSuccessorIsTold(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := openOn(t, fleet, []int{0, 1, 2})
		finish(t, acquire(t, q).Release)
		restart(t, fleet, 0)
		finish(t, acquire(t, q).Release)
		for q.Nodes(t.Context())[0].QuarantinedUntil.IsZero() {
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		require.True(t, keeps(t, fleet.Node(0), "list "))
		require.True(t, keeps(t, fleet.Node(0), "at node-2"), "the other two")
		require.False(t, keeps(t, fleet.Node(0), "at node-1"), "it has no vote yet")
		other := openOn(t, fleet, []int{0, 3, 4})
		require.ErrorIs(t, other.Healthy(), redlock.ErrNoQuorum)
		n := other.Nodes(t.Context())[1]
		requireCondition(t, n.Err, n.Node, redlock.ConditionAnotherList)
		time.Sleep(2 * quarantine)
		require.True(t, q.Nodes(t.Context())[0].Votes)
	})
}

// named opens a Quorum whose URLs have names, and lead to those nodes.
func named(t *testing.T, fleet *redlocktest.Fleet, to map[string]int, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	var urls []string
	for _, name := range slices.Sorted(maps.Keys(to)) {
		urls = append(urls, fleet.Node(to[name]).URL()+"?name="+name)
	}
	q := openOf(t, urls, append(onFleet(fleet), opts...)...)
	q.Nodes(t.Context())
	return q
}

// A server has one vote, under however many addresses it is listed.
func TestServerThatIsListedTwice(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := openOn(t, fleet, []int{0, 1, 2}, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			if url == fleet.Node(2).URL() {
				fleet.ClientOption(fleet.Node(0).URL(), o)
			}
		}))
		finish(t, acquire(t, q).Release)
		twin := q.Nodes(t.Context())[0]
		if twin.Votes {
			twin = q.Nodes(t.Context())[2]
		}
		require.False(t, twin.Votes)
		require.ErrorContains(t, requireCondition(t, twin.Err, twin.Node, redlock.ConditionDuplicate), "list it once")
		require.NoError(t, fleet.Node(1).Kill())
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum, "one server is no quorum of three")
	})
}

// Nodes are the same by their names, whatever their addresses are. A server that is stopped for
// good is replaced by another one under its name, once the first was not seen for a lifetime.
func TestNodesAreKnownByTheirNames(t *testing.T) {
	bubble(t, 4, func(t *testing.T, fleet *redlocktest.Fleet) {
		old := named(t, fleet, map[string]int{"a": 0, "b": 1, "c": 2}, redlock.WithIdentity("old"))
		held := acquire(t, old)
		requireNoMember(t, openOn(t, fleet, []int{0, 1, 2}), redlock.ConditionAnotherList)
		moved := named(t, fleet, map[string]int{"a": 0, "b": 1, "c": 3})
		n := moved.Nodes(t.Context())[2]
		requireCondition(t, n.Err, n.Node, redlock.ConditionSeveralServers)
		require.ErrorContains(t, n.Err, "old")
		finish(t, acquireAnother(t, moved).Release)
		require.NoError(t, moved.Healthy(), "the other two are a quorum")
		require.NoError(t, old.Healthy())

		require.NoError(t, fleet.Node(2).Kill())
		time.Sleep(lifetime + lifetimeMore + 5*ttl) // the old one was written for some looks after its end
		require.True(t, moved.Nodes(t.Context())[2].Votes)
		_, err := moved.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.NoError(t, held.Err())
		require.NoError(t, fleet.Node(2).Restart(true))
		time.Sleep(2 * quarantine)
		n = old.Nodes(t.Context())[2]
		requireCondition(t, n.Err, n.Node, redlock.ConditionSeveralServers)
		require.True(t, moved.Nodes(t.Context())[2].Votes)
	})
}

// The same servers under other names are other nodes, and that is said at level Error, once.
func TestServersUnderOtherNamesAreRefused(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, openOn(t, fleet, []int{0, 1, 2}))
		var log lockedBuffer
		v, watching := watch()
		q := named(t, fleet, map[string]int{"a": 0, "b": 1, "c": 2}, watching, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for range 5 {
			requireNoMember(t, q, redlock.ConditionAnotherList)
			time.Sleep(ttl / 2)
		}
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "%s", &log)
		require.Regexp(t, "level=ERROR.*this process is refused.*another_list", log.String())
		told := v.take(nodeAddr(fleet.Node(0)))
		require.Equal(t, string(redlock.ConditionAnotherList), redlock.ErrorType(told[len(told)-1].Err), "for a metric")
	})
}

// The clock of the one server that two lists have in common is set back. Who goes on is known there
// all the same, and once it has ended the other is let in, as without that.
func TestServerWhoseClockWasSetBackKnowsWhoUsesIt(t *testing.T) {
	for _, by := range []time.Duration{time.Minute, time.Hour, 48 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := openOn(t, fleet, []int{0, 1, 2})
				l := acquire(t, q)
				time.Sleep(ttl / 2)
				fleet.Node(0).JumpClock(-by)
				wrong := openOn(t, fleet, []int{0, 3, 4})
				_, err := wrong.TryAcquire(t.Context(), "key")
				requireRefusedFor(t, err, redlock.ConditionAnotherList)
				require.NoError(t, l.Err())

				require.NoError(t, q.Close())
				ended := time.Now()
				_, err = wrong.Acquire(t.Context(), "key")
				require.NoError(t, err)
				require.Greater(t, time.Since(ended), lifetime)
				require.Less(t, time.Since(ended), lifetime+lifetimeMore+4*ttl, "it is dated anew with the next try or the one after that")
			})
		})
	}
}

// A process that enters only when the key was granted, because too few nodes had answered its entry
// before, has spent the time of the lease on it.
func TestLeaseIsNotReturnedWhenTheEntryTookItsTime(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const timeout, little = ttl / 4, ttl / 80
		q := dialOn(t, fleet, nil, redlock.WithNodeTimeout(timeout))
		q.Nodes(t.Context())
		delay(fleet, timeout+little)
		time.AfterFunc(timeout-little, func() { delay(fleet, timeout-2*little) })
		began := time.Now()
		l, err := q.TryAcquire(t.Context(), "key")
		require.Nil(t, l)
		require.ErrorIs(t, err, redlock.ErrTimeout)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.Equal(t, timeout+little+3*(timeout-2*little), time.Since(began), "an entry in vain, the key, and an entry in two questions")
	})
}

// Callers have less time than it takes to find out that a node that has just fallen silent is out
// of reach. What one of them began the next one has.
func TestCallersWithLittleTimeEnter(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := openOn(t, fleet, []int{0, 1, 2})
		freeze(t, fleet, 2)
		var err error
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), turn/5)
			var l *redlock.Lease
			l, err = q.TryAcquire(ctx, "key")
			require.NoError(t, l.Release(t.Context()))
			cancel()
		}
		require.NoError(t, err)
	})
}

// Whatever kept nodes from keeping who uses them, and for however long: when they can again, they
// know that this process goes on, so another list is refused. Meanwhile each of them is named.
func TestListThatCouldNotBeKeptIsKeptAgain(t *testing.T) {
	bubble(t, 6, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := openOn(t, fleet, []int{0, 1, 2}, logTo(&log))
		l := acquire(t, q)
		for range 2 * time.Minute / time.Second {
			for i := range 3 {
				set(t, fleet.Node(i), rosterKey, "no hash")
			}
			time.Sleep(time.Second)
		}
		for i := range 3 {
			warnings := q.Nodes(t.Context())[i].Warnings
			require.Len(t, warnings, 1)
			require.Equal(t, "damaged", redlock.ErrorType(warnings[0]))
			require.ErrorContains(t, warnings[0], "it cannot keep who uses it")
			ask(t, fleet.Node(i), "DEL", rosterKey)
		}
		require.Equal(t, 3, strings.Count(log.String(), "a node cannot keep who uses it"), "%s", &log)
		time.Sleep(2 * ttl)
		require.Equal(t, 3, strings.Count(log.String(), "keeps who uses it again"), "%s", &log)
		require.Empty(t, q.Nodes(t.Context())[0].Warnings)
		for _, nodes := range [][]int{{0, 3, 4}, {3, 1, 2}} {
			requireNoMember(t, openOn(t, fleet, nodes), redlock.ConditionAnotherList)
		}
		require.NoError(t, l.Err())
	})
}

// A node that loses a lease while it runs is named, once each time, and one that was restarted is
// not.
func TestNodeThatLosesLeasesIsNamed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log strings.Builder
		l := acquire(t, open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
		for i, want := range []int{1, 1, 2} {
			time.Sleep(time.Minute)
			if fleet.Node(0).FlushAll(); i == 1 {
				require.NoError(t, fleet.Node(0).Restart(false))
			}
			time.Sleep(time.Minute)
			require.Equal(t, 3, on(fleet, "key"))
			require.Equal(t, want, strings.Count(log.String(), "lost a lease"), &log)
		}
		finish(t, l.Release)
	})
}

// One that granted late, with another token, and missed the extension that would have set it, has
// not lost the lease.
func TestNodeWithAnotherTokenIsNotBlamed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		link := &cable{}
		q := open(t, fleet, logTo(&log), redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			if fleet.ClientOption(url, o); url == fleet.Node(2).URL() {
				o.DialCtxFn = link.through(o.DialCtxFn)
			}
		}))
		setFence(t, fleet.Node(0), uint64(time.Now().Add(time.Second).UnixMicro()))
		fleet.Node(2).SetDelay(ttl / 20)
		l := acquire(t, q)
		fleet.Node(2).SetDelay(0) // but for that answer
		time.Sleep(ttl / 4)
		has := func() string { text, _ := fleet.Node(2).Get("tenure:{key}"); return text }
		granted := strconv.FormatUint(l.FencingToken(), 10)
		require.NotContains(t, has(), granted)
		freeze(t, fleet, 0)
		require.Equal(t, l.FencingToken(), mustHolder(t, q).FencingToken, "whoever answers")
		thaw(t, fleet, 0)
		link.cut()
		time.Sleep(ttl / 3)
		link.mend()
		time.Sleep(ttl)
		require.Contains(t, has(), granted)
		require.NotContains(t, log.String(), "lost a lease")
	})
}
