package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMinorityOfAnotherOwnerChangesNothing(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.squat("key", longTTL, 1)
	s.staysHeld(l, 2*serverTTL)
	require.Greater(t, s.pttl(1, "key"), longTTL/2, "another owner's key was extended or taken")
}
