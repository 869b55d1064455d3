package redlock_test

import (
	"context"
	"errors"

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
	all := []error{redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrTimeout, redlock.ErrLost, redlock.ErrReleased,
		redlock.ErrClosed, redlock.ErrNotHeld, context.Canceled, context.DeadlineExceeded}
	acquire := func(ctx context.Context, key string) error {
		_, err := q.TryAcquire(ctx, key)
		return err
	}
	for _, test := range []struct {
		typed string
		is    []error
		cause func() error
		nodes string // the type of the errors of nodes 0 and 1
	}{
		{"held", []error{redlock.ErrHeld}, func() error {
			s.hold(q, "held")
			err := acquire(t.Context(), "held")
			var held *redlock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, []any{"held", "me"}, []any{held.Key, held.Holder.Identity})
			require.GreaterOrEqual(t, held.Holder.Nodes, 2)
			require.Positive(t, held.Holder.TTL)
			require.ErrorContains(t, err, "me")
			return err
		}, ""},
		{"not_held", []error{redlock.ErrNotHeld}, func() error {
			_, err := q.Holder(t.Context(), "nobody's")
			return err
		}, ""},
		{"canceled", []error{context.Canceled}, func() error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return acquire(ctx, "key")
		}, ""},
		{"deadline_exceeded", []error{context.DeadlineExceeded, redlock.ErrHeld}, func() error {
			s.hold(q, "waited for")
			ctx, cancel := context.WithTimeout(t.Context(), serverTTL/4)
			defer cancel()
			_, err := q.Acquire(ctx, "waited for")
			require.ErrorContains(t, err, `gave up on "waited for": context deadline exceeded`)
			return err
		}, ""},
		{"released", []error{redlock.ErrReleased}, func() error {
			l := s.hold(q, "released")
			require.NoError(t, l.Release(t.Context()))
			return l.Extend(t.Context())
		}, ""},
		{"lost_refused", []error{redlock.ErrLost}, func() error {
			l := s.hold(q, "lost")
			s.do([]string{"DEL", lockKey("lost")})
			s.requireLost(l, redlock.LostRefused)
			return l.Err()
		}, ""},
		{"closed", []error{redlock.ErrClosed}, func() error {
			closed := s.open()
			require.NoError(t, closed.Close())
			require.Equal(t, "closed", redlock.ErrorType(closed.Nodes(t.Context())[0].Err))
			_, err := closed.Acquire(t.Context(), "key")
			return err
		}, ""},
		{"lost_closed", []error{redlock.ErrLost, redlock.ErrClosed}, func() error {
			closed := s.open()
			l := s.hold(closed, "lost to close")
			require.NoError(t, closed.Close())
			return l.Err()
		}, ""},
		{"timeout", []error{redlock.ErrNoQuorum, redlock.ErrTimeout}, func() error {
			s.freeze(0, 1)
			defer s.thaw(0, 1)
			return acquire(t.Context(), "key")
		}, "timeout"},
		{"no_quorum", []error{redlock.ErrNoQuorum}, func() error {
			s.kill(0, 1)
			return acquire(t.Context(), "key")
		}, "connection"},
		{"no_quorum", []error{redlock.ErrNoQuorum}, func() error {
			s.restart(0, 1)
			l, err := q.Acquire(t.Context(), "key")
			require.NoError(t, err)
			s.kill(0, 1)
			return l.Release(t.Context())
		}, "connection"},
	} {
		err := test.cause()
		require.Error(t, err)
		for _, sentinel := range all {
			require.Equal(t, slices.Contains(test.is, sentinel), errors.Is(err, sentinel), "%v: is it %v?", err, sentinel)
		}
		require.Equal(t, test.typed, redlock.ErrorType(err))
		require.Regexp(t, "^redlock: ", err.Error())
		if test.nodes != "" {
			requireNodeErrors(t, err, test.nodes, s.Node(0).Addr(), s.Node(1).Addr())
		}
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
