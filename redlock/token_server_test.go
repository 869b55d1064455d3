package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func TestTokensOfTwoQuorumsIncrease(t *testing.T) {
	s := startServers(t, 3)
	quorums := []*redlock.Quorum{s.open(redlock.WithTTL(longTTL)), s.wrap(redlock.WithTTL(longTTL))}
	last := uint64(0)
	for i := range 200 {
		switch { // nodes that forget their counters must not take the tokens back
		case i == 100:
			s.do([]string{"FLUSHALL"})
		case i%10 == 5:
			s.do([]string{"FLUSHALL"}, i/10%3)
		}
		l, err := quorums[i%2].TryAcquire(t.Context(), "key")
		require.NoError(t, err)
		require.Greater(t, l.FencingToken(), last)
		last = l.FencingToken()
		require.NoError(t, l.Release(t.Context()))
	}
}

// The counters of the nodes differ, and the two that are left have to agree in a second round.
func TestTokenIsAboveEveryCounterAndAgreed(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	ahead := uint64(time.Now().Add(time.Hour).UnixMicro())
	for i := range s.all() {
		s.do([]string{"SET", fenceKey("key"), fmt.Sprint(ahead + uint64(1000*i))}, i)
	}
	s.kill(0)
	l, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, ahead+2001, l.FencingToken())
	require.EqualValues(t, l.FencingToken(), s.tokenOn(1, "key"))
	require.EqualValues(t, l.FencingToken(), s.tokenOn(2, "key"))
	require.NoError(t, l.Release(t.Context()))

	next, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, l.FencingToken()+1, next.FencingToken())
}

// Counters live for a day after their last use, and with the wall clock's microseconds for a hint start above their
// past.
func TestTokenStartsAboveItsPast(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	before := uint64(time.Now().UnixMicro())
	l := s.hold(q, "key")
	require.GreaterOrEqual(t, l.FencingToken(), before)
	require.Less(t, l.FencingToken(), before+uint64(time.Minute.Microseconds()))
	for _, n := range s.Nodes() {
		ms, err := n.Do(t, "PTTL", fenceKey("key")).AsInt64()
		require.NoError(t, err)
		require.InDelta(t, 24*time.Hour.Milliseconds(), ms, float64(time.Minute.Milliseconds()))
	}
}
