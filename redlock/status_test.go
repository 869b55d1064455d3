package redlock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a server answers instead of INFO, its warning has the type that is promised.
func TestWarningsAreConditions(t *testing.T) {
	n := testNode()
	for _, err := range []error{
		fmt.Errorf("%w: 7", errUnexpected),
		&ConditionError{Condition: ConditionBusy},
	} {
		var s NodeStatus
		s.fill(outcome{replies: []reply{{verdict: failed, err: n.failure(OpObserve, err)}}}, 0, nil)
		require.True(t, s.Reachable)
		require.Len(t, s.Warnings, 1)
		_, ok := s.Warnings[0].(*ConditionError)
		require.True(t, ok, "%T", s.Warnings[0])
		require.ErrorIs(t, s.Warnings[0], err)
	}
	var s NodeStatus
	s.fill(outcome{replies: []reply{{verdict: agreed, info: &serverInfo{version: "7.2.4", role: "slave"}}}}, 0, nil)
	var known *ConditionError
	require.True(t, errors.As(s.Warnings[0], &known))
	require.Equal(t, ConditionReplica, known.Condition)
}
