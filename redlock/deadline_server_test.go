package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: the contender acquired 1.9 s before the holder's context ended, in 12 of 12 trials.
func TestTrap21PartitionedHolderEndsBeforeTheNextBegins(t *testing.T) {
	s := startServers(t, 3)
	network := newPartition()
	holder := s.open(redlock.WithTTL(2*serverTTL), redlock.WithClientOption(network.option))
	contender := s.open(redlock.WithTTL(2 * serverTTL))

	const trials = 12 // each key's extensions have a phase of their own
	var held, next [trials]*redlock.Lease
	var ended [trials]chan time.Time
	var granted [trials]<-chan grant
	for i := range trials {
		key := fmt.Sprint("key", i)
		held[i] = s.hold(holder, key)
		ended[i] = make(chan time.Time, 1)
		context.AfterFunc(held[i].Context(), func() { ended[i] <- time.Now() })
		granted[i] = s.wait(contender, key)
	}
	s.staysHeld(held[0], serverTTL)
	network.cut.Store(true)
	for i := range trials {
		g := receive(t, granted[i], 3*serverTTL, "the key never became free")
		require.NoError(t, g.err)
		next[i] = g.lease
		require.ErrorIs(t, held[i].Err(), redlock.ErrLost, "two leases are live")
		gap := g.at.Sub(receive(t, ended[i], lateness, "the context goes on"))
		require.Positive(t, gap, "%s: the contender had it before the holder's context ended", held[i].Key())
		require.Greater(t, next[i].FencingToken(), held[i].FencingToken())
	}
}

// frozenFor is longer than a TTL. What lies in a frozen server's sockets does not age: the server
// carries it out when it goes on, with a full TTL.
const frozenFor = 2 * serverTTL

func TestMinorityOfAnotherOwnerChangesNothing(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.squat("key", longTTL, 1)
	s.staysHeld(l, 2*serverTTL)
	require.Greater(t, s.pttl(1, "key"), longTTL/2, "another owner's key was extended or taken")
}
