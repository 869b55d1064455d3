package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

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
			opts := append(test.opts, redlock.WithTTL(3*longTTL), redlock.WithNodeTimeout(longTTL/2)) // nothing expires here
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
				s.do([]string{"DEL", "tenure:roster"}) // else it would be noticed that the server has lost its data
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
			require.Eventually(t, func() bool { return len(s.locks(2)) == 0 }, patience, pollTick, "what the other server granted is released")
			for range 10 {
				_, err = second.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
			}
			require.ErrorIs(t, held.Extend(t.Context()), redlock.ErrLost, "only one server has it still")
			require.Empty(t, s.locks(1), "what was put back must not count, so it is not put back")
			_, err = second.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrHeld)
		})
	}
}

// cutOff has nobody connect to a node.
func cutOff(n *valkeytest.Node) redlock.Option {
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		if url == n.URL() {
			o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
				return nil, errors.New("cut off")
			}
		}
	})
}

// follow makes a node a replica of another and waits until it has its data.
func (s *servers) follow(replica, master int) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.Node(master).Addr())
	require.NoError(s.t, err)
	s.do([]string{"CONFIG", "SET", "repl-diskless-sync-delay", "0"}, master)
	s.do([]string{"REPLICAOF", host, port}, replica)
	require.Eventually(s.t, func() bool {
		return s.info(replica, "master_link_status") == "up" && s.info(master, "connected_slaves") != "0"
	}, longTTL, pollTick, "node %d never follows", replica)
}

func (s *servers) promote(replica int) {
	s.t.Helper()
	s.do([]string{"REPLICAOF", "NO", "ONE"}, replica)
}

// three are the URLs of three of a fleet's nodes.
func (s *servers) three(nodes ...int) []string {
	urls := make([]string, len(nodes))
	for i, n := range nodes {
		urls[i] = s.Node(n).URL()
	}
	return urls
}

func TestGateMasterWithAReplica(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	s.follow(3, 0)
	q := gatedURLs(t, s.three(0, 1, 2))
	ce := requireCondition(t, node(t, q, 0).Err, s.Node(0).Addr(), redlock.ConditionReplicated)
	require.ErrorContains(t, ce, "1 replica")
	require.ErrorContains(t, ce, "WithReplicas")
	_, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err, "the others are a quorum")

	accepting := gatedURLs(t, s.three(0, 1, 2), redlock.WithReplicas())
	require.True(t, node(t, accepting, 0).Votes)
	require.NoError(t, node(t, accepting, 0).Err)
	s.kill(1)
	_, err = accepting.TryAcquire(t.Context(), "other")
	require.NoError(t, err, "its vote counts")
}

const (
	// day is older than any quarantine.
	day = 24 * time.Hour
	// serverQuarantine follows from serverTTL and the least skew: (2 s + 1 ms) × 1.01 + 2 ms,
	// rounded up, and one.
	serverQuarantine = 4 * time.Second

	// whole is what the rounding of uptimes may add to the end of a quarantine.
	whole = 2 * time.Second
)

// startAged starts servers that have been up for a day, as they say.
func startAged(t *testing.T, n int, opts ...valkeytest.Option) *servers {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("servers are aged on Linux only")
	}
	s := startServers(t, n, append(opts, valkeytest.WithAge(day))...)
	s.requireUptime(day, s.all()...)
	return s
}

// requireUptime waits until servers say that they have been up for so long.
func (s *servers) requireUptime(least time.Duration, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.Eventually(s.t, func() bool {
			var seconds int64
			_, err := fmt.Sscan(s.info(i, "uptime_in_seconds"), &seconds)
			return err == nil && time.Duration(seconds)*time.Second >= least
		}, patience, pollTick, "node %d is too young", i)
	}
}

// info is a field of a node's INFO; empty while it does not answer.
func (s *servers) info(node int, field string) string {
	s.t.Helper()
	text, _ := s.Node(node).Do(s.t, "INFO", "everything").ToString()
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// restart ends a server as a crash does and starts it without its data.
func (s *servers) restart(nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).Restart(false))
	}
}

// gated is open with the gate on, and returns when all nodes were asked who they are.
func (s *servers) gated(opts ...redlock.Option) *redlock.Quorum {
	s.t.Helper()
	return gatedURLs(s.t, s.URLs(), opts...)
}

func gatedURLs(t *testing.T, urls []string, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	opts = append([]redlock.Option{redlock.WithTTL(serverTTL), redlock.WithClockSkew(time.Millisecond),
		redlock.WithNodeTimeout(serverTTL / 4), // for loaded machines
		redlock.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	q, err := redlock.Open(urls, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	require.Eventually(t, func() bool {
		for _, n := range q.Nodes(t.Context()) {
			if !n.Reachable && redlock.ErrorType(n.Err) == "timeout" {
				return false // a loaded machine
			}
		}
		return true
	}, patience, pollTick)
	return q
}

// node is what the Quorum says of one node, once that has answered.
func node(t *testing.T, q *redlock.Quorum, i int) redlock.NodeStatus {
	t.Helper()
	var n redlock.NodeStatus
	require.Eventually(t, func() bool {
		n = q.Nodes(t.Context())[i]
		return n.Reachable
	}, patience, pollTick, "node %d never answers", i)
	return n
}

// requireVotes waits until a node votes, and returns when that was seen.
func requireVotes(t *testing.T, q *redlock.Quorum, i int, within time.Duration) time.Time {
	t.Helper()
	require.Eventually(t, func() bool { return q.Nodes(t.Context())[i].Votes }, within, pollTick, "node %d never votes", i)
	return time.Now()
}

// requireCondition demands that err is a node's, because of a condition, and returns that.
func requireCondition(t *testing.T, err error, addr string, want redlock.Condition) *redlock.ConditionError {
	t.Helper()
	var ne *redlock.NodeError
	require.ErrorAs(t, err, &ne)
	require.Equal(t, addr, ne.Node)
	require.Equal(t, string(want), ne.ErrorType(), "%v", ne)
	var ce *redlock.ConditionError
	require.ErrorAs(t, ne, &ce)
	require.Equal(t, want, ce.Condition)
	require.ErrorContains(t, err, addr)
	return ce
}

// errorOf returns a node's error within a QuorumError.
func errorOf(t *testing.T, err error, addr string) error {
	t.Helper()
	var qe *redlock.QuorumError
	require.ErrorAs(t, err, &qe)
	for _, ne := range qe.Errs {
		if ne.Node == addr {
			return ne
		}
	}
	require.FailNow(t, "no error of that node", "%s in %v", addr, err)
	return nil
}

func logTo(log *lockedBuffer) redlock.Option {
	return redlock.WithLogger(slog.New(slog.NewTextHandler(log, nil)))
}
