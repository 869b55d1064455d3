package redlock

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Whatever a server answers instead of INFO, its warning has the type that is promised.
func TestWarningsAreConditions(t *testing.T) {
	n := testQuorum(1).nodes[0]
	for _, err := range []error{
		fmt.Errorf("%w: 7", wire.ErrUnexpected),
		&wire.Fault{Condition: wire.Busy},
	} {
		var s NodeStatus
		s.fill(n, &vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: err}, 0, nil)
		require.True(t, s.Reachable)
		require.Len(t, s.Warnings, 1)
		_, ok := s.Warnings[0].(*ConditionError)
		require.True(t, ok, "%T", s.Warnings[0])
		require.Equal(t, n.failure(OpObserve, err).ErrorType() == "busy", s.Warnings[0].(*ConditionError).Condition == Condition(wire.Busy))
	}
	var s NodeStatus
	s.fill(n, &vote.Reply{Answer: wire.Answer{Verdict: wire.OK}.With(wire.More{Info: &wire.ServerInfo{Name: "valkey 8.0.1", Version: "7.2.4", Role: "slave"}})}, 0, nil)
	require.Equal(t, "valkey 8.0.1", s.Version)
	var known *ConditionError
	require.True(t, errors.As(s.Warnings[0], &known))
	require.Equal(t, Condition(wire.Replica), known.Condition)
}

// A node that answers INFO, and not what a lease needs, does not vote, and says that.
func TestNodeThatAnswersNoTrial(t *testing.T) {
	q := testQuorum(1)
	n := q.nodes[0]
	tried := q.ask(n, wire.Trial, 1)
	require.True(t, tried.unanswered(t.Context(), 0))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, tried.unanswered(ended, 0), "nobody waited")
	q.fake(0).answer(0, wire.Answer{Verdict: wire.Failed}, node.ErrTimeout)
	require.True(t, tried.unanswered(t.Context(), 0))
	tried = q.ask(n, wire.Trial, 1)
	q.fake(0).answer(1, wire.Answer{Verdict: wire.OK}, nil)
	require.False(t, tried.unanswered(t.Context(), 0))

	s := NodeStatus{Node: n.addr, Reachable: true}
	s.judge(n, false)
	require.True(t, s.Votes)
	require.NoError(t, s.Err)
	s.judge(n, true)
	require.False(t, s.Votes)
	require.ErrorIs(t, s.Err, ErrTimeout)
	require.ErrorContains(t, s.Err, "CLIENT UNPAUSE")
}
