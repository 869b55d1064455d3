//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
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
	qe := errorAs[*redlock.QuorumError](t, err)
	require.GreaterOrEqual(t, len(qe.Errs), 2)
	for _, ne := range qe.Errs {
		require.Equal(t, "oom", ne.ErrorType())
		require.ErrorContains(t, ne, "OOM")
	}
	require.NoError(t, l.Release(t.Context()))
	s.requireFree(serverTTL/2, "a full server kept what was released")
}

// While no quorum of nodes votes, waiters ask as seldom as their pauses say, and do not wake each
// other, or themselves: a node that was not asked has granted nothing that were to be taken back.
func TestWaitersAreQuietInAnOutage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		hurt  func(s *servers)
		votes int // nodes that vote on
	}{
		{"all restarted", func(s *servers) { s.restart(s.all()...) }, 0},
		{"two of three restarted", func(s *servers) { s.restart(0, 1) }, 1},
		{"two of three killed", func(s *servers) { s.kill(0, 1) }, 1},
		{"foreign counters", func(s *servers) {
			s.do([]string{"DEL", lockKey("key")})
			s.do([]string{"ZADD", fences, strconv.FormatInt(time.Now().Add(48*time.Hour).UnixMicro(), 10), wire.NewKeys("tenure", "key").Slot})
		}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3)
			const waiters = 3
			q := s.gated(redlock.WithTTL(longTTL))
			held := s.hold(s.gated(redlock.WithTTL(longTTL)), "key", redlock.WithTTL(serverTTL))
			for i := range waiters {
				if i == 0 {
					s.acquire(q, "key")
				} else {
					s.acquire(s.gated(redlock.WithTTL(longTTL)), "key")
				}
			}
			for _, i := range s.all() {
				require.Eventually(t, func() bool { return s.waiting(i, "key") == waiters }, longTTL, pollTick)
			}
			test.hurt(s)
			held.StopExtending() // nobody is in the way
			require.Eventually(t, func() bool { return held.Err() != nil }, longTTL, pollTick)
			require.Eventually(t, func() bool {
				votes := 0
				for _, n := range q.Nodes(t.Context()) {
					if n.Votes {
						votes++
					}
				}
				return votes == test.votes
			}, longTTL, pollTick, "the outage is seen")
			time.Sleep(3 * time.Second) // pauses are short at first; what waits for a node is sent with the next look, every two seconds
			const during = 3 * time.Second
			s.Node(2).ResetStats(t)
			time.Sleep(during)
			// An attempt is up to four requests, with what takes it back and has the place in the
			// queue again, and a pause is half of a second on average.
			stats := s.own(2)
			require.LessOrEqual(t, stats["evalsha"], int64(waiters*20*during/time.Second), "%v", stats)
			if test.votes == 0 {
				require.Zero(t, stats["publish"], "what was not sent is not taken back: %v", stats)
				require.Equal(t, stats["hgetall"], stats["exists"], "which looks for those who wait, except in what asks who uses the node: %v", stats)
			}
		})
	}
}

// A server that closes connections which are idle (timeout) is well: nothing is said of it, also if
// the next request finds its connection closed.
func TestIdleConnectionsThatAreClosedAreNoOutage(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, valkeytest.WithArgs("--timeout", "1"))
	var log lockedBuffer
	q := s.gated(redlock.WithTTL(longTTL), logTo(&log))
	for range 3 {
		require.Eventually(t, func() bool {
			for i := range s.Nodes() {
				if s.info(i, "connected_clients") != "1" { // which asks
					return false
				}
			}
			return true
		}, 2*longTTL, 10*pollTick, "idle connections are not closed, so this tests nothing")
		l, err := tryUntilAnswered(t, q, "key")
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
	}
	require.NotContains(t, log.String(), "failing")
	require.NotContains(t, log.String(), "answers again")

	s.kill(0)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "node failing") }, 2*longTTL, pollTick, "it is dead")
}

// fullEnv has a process of this test's be many clients of servers, of which one is full.
const fullEnv = "TENURE_TEST_FULL_SERVER"

// A server at maxclients sends a refusal that nobody asked for, and a busy client is done with the
// connection by then. valkey-go panics at it, and that ended 50 of 2,313 processes.
func TestFullServerEndsNoProcess(t *testing.T) {
	if urls := os.Getenv(fullEnv); urls != "" {
		crowd(t, strings.Split(urls, ","))
		return
	}
	s := startAged(t, 3)
	s.do([]string{"CONFIG", "SET", "maxclients", "1"}, 0)
	var processes sync.WaitGroup
	defer processes.Wait()
	for range 3 {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFullServerEndsNoProcess$", "-test.count", "1")
		process.Env = append(os.Environ(), fullEnv+"="+strings.Join(s.URLs(), ","))
		processes.Go(func() {
			if output, err := process.CombinedOutput(); err != nil {
				t.Errorf("a client died: %v\n%s", err, output)
			}
		})
	}
}

// crowd opens many Quorums on a busy machine.
func crowd(t *testing.T, urls []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var work sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for ctx.Err() == nil { // keeps a processor busy
			}
		})
	}
	for range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				q, err := redlock.Open(urls, redlock.WithTTL(time.Second), redlock.WithMaxTTL(time.Minute),
					redlock.WithNodeTimeout(time.Millisecond), redlock.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				for range 5 {
					if l, err := q.TryAcquire(ctx, "key"); err == nil {
						_ = l.Release(ctx)
					}
				}
				require.NoError(t, q.Close())
			}
		})
	}
	work.Wait()
}

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

// The advice is for the cause, and not only for the kind of error.
func TestAdviceIsForTheCause(t *testing.T) {
	t.Parallel()
	for says, test := range map[string]struct {
		rules  []string // of the user
		path   string   // of the URL
		opts   []redlock.Option
		silent string
	}{
		"leave the database number out of the URL":          {nil, "/1", nil, "INFO|\\+evalsha"}, // and no right to SELECT
		"~billing:\\*.*WithPrefix|WithPrefix.*~billing:\\*": {nil, "", []redlock.Option{redlock.WithPrefix("billing")}, "\\+evalsha"},
		"scripts need EVAL.*\\+eval":                        {[]string{"-eval"}, "", nil, "^$"},
		"scripts need EVAL.*\\+eval|":                       {[]string{"-eval"}, "", []redlock.Option{redlock.WithoutRestartGate()}, "^$"},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 1, withUser(t, test.rules...))
			q := gatedURLs(t, []string{s.userURLs()[0] + test.path}, test.opts...)
			var n redlock.NodeStatus
			require.Eventually(t, func() bool {
				n = q.Nodes(t.Context())[0]
				return n.Err != nil && regexp.MustCompile("(?s)"+strings.TrimSuffix(says, "|")).MatchString(n.Err.Error())
			}, longTTL, pollTick, "%v", &n)
			require.NotRegexp(t, test.silent, n.Err.Error())
			for _, w := range n.Warnings {
				require.NotEqual(t, redlock.ErrorType(n.Err), redlock.ErrorType(w), "said twice")
			}
		})
	}
}

// A server that nobody can connect to any more goes on with the connections that it has, and is
// warned of.
func TestServerThatTakesNoConnectionsIsNamed(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	l := s.hold(q, "key")
	ports := make([]string, 3)
	for i, n := range s.Nodes() {
		_, ports[i], _ = net.SplitHostPort(n.Addr())
		s.do([]string{"CONFIG", "SET", "port", "0"}, i)
	}
	for i := range 3 {
		require.Eventually(t, func() bool {
			n := node(t, q, i)
			require.True(t, n.Votes)
			return len(n.Warnings) == 1 && redlock.ErrorType(n.Warnings[0]) == "unconnected"
		}, 2*longTTL, pollTick)
		require.ErrorContains(t, node(t, q, i).Warnings[0], "connection refused")
	}
	require.NoError(t, q.Healthy())
	require.NoError(t, l.Err())
	require.Equal(t, 3, strings.Count(log.String(), "lacks what"), "%s", &log)
	for i := range 3 {
		s.do([]string{"CONFIG", "SET", "port", ports[i]}, i)
	}
	require.Eventually(t, func() bool { return len(node(t, q, 0).Warnings) == 0 }, 2*longTTL, pollTick)
	require.Eventually(t, func() bool { return strings.Count(log.String(), "lacks nothing") == 3 }, 2*longTTL, pollTick, "%s", &log)
}

// A server that answers what it is asked about itself, and holds back what may write, fails for as
// long as it does: that is said once, with what it may be, and no vote comes and goes with its
// answers. Once it goes on it is well.
func TestServersThatHoldWritesBack(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	s.hold(q, "key")
	s.do([]string{"CLIENT", "PAUSE", "600000", "WRITE"})
	require.Eventually(t, func() bool { return strings.Count(log.String(), "CLIENT UNPAUSE") >= 3 }, longTTL, pollTick, "%s", &log)
	require.Never(t, func() bool { return q.Healthy() == nil }, 5*time.Second, pollTick, "no quorum can be had")
	require.Equal(t, 6, strings.Count(log.String(), "failing"), "that it fails, and then why: %s", &log)
	require.Equal(t, 3, strings.Count(log.String(), "CLIENT UNPAUSE"), "%s", &log)
	require.NotContains(t, log.String(), "answers again")
	says := func(err error) bool { return err != nil && strings.Contains(err.Error(), "CLIENT UNPAUSE") }
	require.Eventually(t, func() bool { // a look that is late itself cannot tell
		for _, n := range q.Nodes(t.Context()) {
			require.False(t, n.Votes)
			require.ErrorIs(t, n.Err, redlock.ErrTimeout)
			if !says(n.Err) {
				return false
			}
		}
		return says(q.Healthy())
	}, longTTL, pollTick)
	s.do([]string{"CLIENT", "UNPAUSE"})
	require.Eventually(t, func() bool { return q.Healthy() == nil }, longTTL/2, pollTick, "%s", &log)
	require.Eventually(t, func() bool { return strings.Count(log.String(), "answers again") == 3 }, longTTL/2, pollTick, "%s", &log)
}
