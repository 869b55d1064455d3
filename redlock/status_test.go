package redlock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Whatever a server answers instead of INFO, its warning has the type that is promised.
func TestWarningsAreConditions(t *testing.T) {
	n := testNode()
	for _, err := range []error{
		fmt.Errorf("%w: 7", wire.ErrUnexpected),
		&ConditionError{Condition: ConditionBusy},
	} {
		var s NodeStatus
		s.fill(outcome{replies: []reply{{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(OpObserve, err)}}}, 0, nil)
		require.True(t, s.Reachable)
		require.Len(t, s.Warnings, 1)
		_, ok := s.Warnings[0].(*ConditionError)
		require.True(t, ok, "%T", s.Warnings[0])
		require.ErrorIs(t, s.Warnings[0], err)
	}
	var s NodeStatus
	s.fill(outcome{replies: []reply{{Answer: wire.Answer{Verdict: wire.OK, Info: &wire.ServerInfo{Version: "7.2.4", Role: "slave"}}}}}, 0, nil)
	var known *ConditionError
	require.True(t, errors.As(s.Warnings[0], &known))
	require.Equal(t, ConditionReplica, known.Condition)
}
