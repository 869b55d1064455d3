package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: "held by another", "no quorum", "cancelled" and "expired" came back as one error.
func TestTrap08ErrorsTellWhatHappened(t *testing.T) {
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(2*serverTTL), redlock.WithIdentity("me"))
	addr := func(i int) string { return s.Node(i).Addr() }
	all := []error{redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrTimeout, redlock.ErrLost, redlock.ErrReleased,
		redlock.ErrClosed, redlock.ErrNotHeld, context.Canceled, context.DeadlineExceeded}
	acquire := func(ctx context.Context, key string) error {
		_, err := q.TryAcquire(ctx, key)
		return err
	}
	for _, test := range []struct {
		name  string
		cause func(t *testing.T) error
		is    []error
		typed string
		check func(t *testing.T, err error) // may be nil
	}{
		{"held", func(*testing.T) error {
			s.hold(q, "held")
			return acquire(t.Context(), "held")
		}, []error{redlock.ErrHeld}, "held", func(t *testing.T, err error) {
			var held *redlock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, "held", held.Key)
			require.Equal(t, "me", held.Holder.Identity)
			require.GreaterOrEqual(t, held.Holder.Nodes, 2)
			require.Positive(t, held.Holder.TTL)
			require.ErrorContains(t, err, "me")
		}},
		{"not held", func(*testing.T) error {
			_, err := q.Holder(t.Context(), "nobody's")
			return err
		}, []error{redlock.ErrNotHeld}, "not_held", nil},
		{"canceled", func(*testing.T) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return acquire(ctx, "key")
		}, []error{context.Canceled}, "canceled", nil},
		{"deadline exceeded while waiting", func(*testing.T) error {
			s.hold(q, "waited for")
			ctx, cancel := context.WithTimeout(t.Context(), serverTTL/4)
			defer cancel()
			_, err := q.Acquire(ctx, "waited for")
			return err
		}, []error{context.DeadlineExceeded, redlock.ErrHeld}, "deadline_exceeded", nil},
		{"released", func(*testing.T) error {
			l := s.hold(q, "released")
			require.NoError(t, l.Release(t.Context()))
			return l.Extend(t.Context())
		}, []error{redlock.ErrReleased}, "released", nil},
		{"lost", func(*testing.T) error {
			l := s.hold(q, "lost")
			s.do([]string{"DEL", lockKey("lost")})
			s.requireLost(l, redlock.LostRefused)
			return l.Err()
		}, []error{redlock.ErrLost}, "lost_refused", nil},
		{"closed", func(*testing.T) error {
			closed := s.open()
			require.NoError(t, closed.Close())
			_, err := closed.Acquire(t.Context(), "key")
			return err
		}, []error{redlock.ErrClosed}, "closed", nil},
		{"lost to close", func(*testing.T) error {
			closed := s.open()
			l := s.hold(closed, "lost to close")
			require.NoError(t, closed.Close())
			return l.Err()
		}, []error{redlock.ErrLost, redlock.ErrClosed}, "lost_closed", nil},
		{"timeout", func(*testing.T) error {
			s.freeze(0, 1)
			defer s.thaw(0, 1)
			return acquire(t.Context(), "key")
		}, []error{redlock.ErrNoQuorum, redlock.ErrTimeout}, "timeout", func(t *testing.T, err error) {
			requireNodeErrors(t, err, "timeout", addr(0), addr(1))
		}},
		{"no quorum", func(*testing.T) error {
			s.kill(0, 1)
			return acquire(t.Context(), "key")
		}, []error{redlock.ErrNoQuorum}, "no_quorum", func(t *testing.T, err error) {
			requireNodeErrors(t, err, "connection", addr(0), addr(1))
		}},
		{"no quorum to release", func(*testing.T) error {
			for i := range 2 {
				require.NoError(t, s.Node(i).Restart(false))
			}
			l, err := q.Acquire(t.Context(), "key")
			require.NoError(t, err)
			s.kill(0, 1)
			return l.Release(t.Context())
		}, []error{redlock.ErrNoQuorum}, "no_quorum", func(t *testing.T, err error) {
			requireNodeErrors(t, err, "connection", addr(0), addr(1))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.cause(t)
			require.Error(t, err)
			for _, sentinel := range all {
				require.Equal(t, slices.Contains(test.is, sentinel), errors.Is(err, sentinel), "%v: is it %v?", err, sentinel)
			}
			require.Equal(t, test.typed, redlock.ErrorType(err))
			require.Regexp(t, "^redlock: ", err.Error())
			if test.check != nil {
				test.check(t, err)
			}
		})
	}
}

// requireNodeErrors demands one error of that type for each of the nodes.
func requireNodeErrors(t *testing.T, err error, typed string, addrs ...string) {
	t.Helper()
	var qe *redlock.QuorumError
	require.ErrorAs(t, err, &qe)
	require.Equal(t, 3, qe.Nodes)
	require.Equal(t, 2, qe.Need)
	var failed []string
	for _, ne := range qe.Errs {
		failed = append(failed, ne.Node)
		require.Equal(t, typed, ne.ErrorType(), "%v", ne)
		require.Equal(t, qe.Op, ne.Op)
		require.ErrorContains(t, err, ne.Node)
	}
	require.Equal(t, addrs, failed)
}

// Nodes that are down, or refusals that come before the other answers, must turn "held" neither
// into "no quorum", with which a waiter would poll instead of sleeping until the release, nor into
// a split vote, which is tried again.
func TestTrap08HeldIsHeldWhateverTheMinorityDoes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ nodes, down int }{{2, 0}, {3, 1}, {4, 0}, {4, 1}, {5, 1}, {5, 2}} {
		t.Run(fmt.Sprint(test.down, " of ", test.nodes, " down"), func(t *testing.T) {
			t.Parallel()
			s := startServers(t, test.nodes)
			var tracer rounds
			q, other := s.open(redlock.WithTTL(longTTL)), s.open(redlock.WithTTL(longTTL), redlock.WithTracer(&tracer))
			s.hold(q, "key")
			for i := range test.down {
				s.kill(i)
			}
			for range 20 {
				_, err := other.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
				require.EqualValues(t, 1, tracer.all.Swap(0), "one owner has the key, and the vote is taken for split")
			}
		})
	}
}

// A key that only a minority has is nobody's, and one that another program wrote is reported as it
// is.
func TestHolderNeedsAQuorum(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	s.squat("key", longTTL, 0)
	_, err := q.Holder(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNotHeld)
	s.do([]string{"SET", lockKey("key"), "somebody's own format"})
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "somebody's own format", h.Identity)
}

// A replica does not take writes, so its vote is missing and its answer says why.
func TestReplicaHasNoVote(t *testing.T) {
	t.Parallel()
	s := startServers(t, 2)
	host, port, err := net.SplitHostPort(s.Node(0).Addr())
	require.NoError(t, err)
	s.do([]string{"REPLICAOF", host, port}, 1)
	_, err = tryUntilAnswered(t, s.open(redlock.WithReplicas()), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "its role is \"slave\", its master "+s.Node(0).Addr())
	var ne *redlock.NodeError
	require.ErrorAs(t, err, &ne)
	require.Equal(t, s.Node(1).Addr(), ne.Node)
	require.Equal(t, "replica", ne.ErrorType())
}
