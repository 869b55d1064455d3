package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func TestMinorityGetsALostKeyBack(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.do([]string{"DEL", lockKey("key")}, 0)
	require.Eventually(t, func() bool { return s.pttl(0, "key") > 0 }, serverTTL, pollTick, "the next extension leaves it out")
	require.NoError(t, s.Node(1).Restart(false))
	require.Eventually(t, func() bool { return s.pttl(1, "key") > 0 }, 2*serverTTL, pollTick, "restarted empty and left out")
	require.NoError(t, l.Err())
	owner, err := s.Node(2).Do(t, "GET", lockKey("key")).ToString()
	require.NoError(t, err)
	for i := range 2 {
		same, err := s.Node(i).Do(t, "GET", lockKey("key")).ToString()
		require.NoError(t, err)
		require.Equal(t, owner, same)
	}
}

// A node that lost its counter with the key gets both back: otherwise a next owner whose clock is
// behind could get a smaller token from it.
func TestMinorityGetsALostCounterBack(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.staysHeld(l, serverTTL/2) // beyond the first extension
	require.NoError(t, s.Node(1).Restart(false))
	require.Eventually(t, func() bool { return s.pttl(1, "key") > 0 }, 2*serverTTL, pollTick)
	require.Eventually(t, func() bool { return s.tokenOn(1, "key") >= l.FencingToken() }, 2*serverTTL, pollTick)
}

func TestQuorumWithoutTheKeyEndsTheLeaseAtOnce(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(3*serverTTL)), "key")
	s.do([]string{"DEL", lockKey("key")}, 1, 2)
	ended := s.requireLost(l, redlock.LostRefused)
	require.Greater(t, ended.Add(time.Until(l.Deadline())).Sub(ended), serverTTL, "it waited for the deadline")
}

func TestQuorumOfAnotherOwnerEndsTheLeaseAtOnce(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(3*serverTTL)), "key")
	s.squat("key", longTTL, 0, 2)
	s.requireLost(l, redlock.LostRefused)
	require.Greater(t, time.Until(l.Deadline()), serverTTL, "it waited for the deadline")
	require.ErrorIs(t, l.Release(t.Context()), redlock.ErrLost)
	for _, i := range []int{0, 2} {
		require.Greater(t, s.pttl(i, "key"), longTTL/2, "a lost lease touched the next owner's key")
	}
}

func TestMinorityOfAnotherOwnerChangesNothing(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.squat("key", longTTL, 1)
	s.staysHeld(l, 2*serverTTL)
	require.Greater(t, s.pttl(1, "key"), longTTL/2, "another owner's key was extended or taken")
}
