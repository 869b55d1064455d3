package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: the call that extends hangs, and the signal waits for it: a validity of 4 s, cancelled
// after 6.0 s.
func TestTrap01HungExtensionDoesNotDelayTheSignal(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	// A wide allowance for drift keeps the deadline further from the expiry than a loaded machine
	// is late.
	q := s.open(redlock.WithDrift(0.2), redlock.WithNodeTimeout(serverTTL/4), redlock.WithoutAutoExtend())
	l := s.hold(q, "key")
	free := time.Now().Add(longTTL) // a moment at which no node has let the key expire
	for _, i := range s.all() {
		asked := time.Now()
		if expiry := asked.Add(s.pttl(i, "key")); expiry.Before(free) {
			free = expiry
		}
	}
	deadline := l.Deadline()
	s.freeze(0, 1)
	hung := make(chan error, 1)
	time.AfterFunc(time.Until(deadline)-serverTTL/40, func() { hung <- l.Extend(context.Background()) })

	ended := s.requireLost(l, redlock.LostDeadline)
	require.WithinRange(t, ended, deadline, deadline.Add(lateness))
	require.True(t, ended.Before(free), "another could have had the key before its holder heard of the loss")
	require.ErrorIs(t, receive(t, hung, serverTTL/4, "Extend hangs"), redlock.ErrLost)
}

func TestTrap01BackgroundExtensionsThatHangDoNotDelayTheSignal(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5)
	l := s.hold(s.open(), "key")
	s.staysHeld(l, serverTTL)
	s.freeze(0, 1, 2)
	ended := s.requireLost(l, redlock.LostDeadline)
	deadline := ended.Add(time.Until(l.Deadline())) // as the last extension left it
	require.WithinRange(t, ended, deadline, deadline.Add(lateness))
	require.ErrorIs(t, l.Err(), redlock.ErrNoQuorum, "the loss names the extension that failed")
	require.ErrorIs(t, l.Err(), redlock.ErrTimeout)
}

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

// Field: a request abandoned at its timeout ran 2 s later with a full TTL.
func TestTrap17AcquireThatSleptPastItsTTLIsUndone(t *testing.T) {
	t.Parallel()
	const sleptTTL = 4 * serverTTL
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(sleptTTL))
	entered(t, q)
	s.freeze(0, 1)
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrTimeout)
	s.requireUnread(0, 1)
	<-time.After(sleptTTL + serverTTL/4)
	s.thaw(0, 1)
	s.requireGranted(0, 1)
	s.requireFree(patience, "nobody holds the key")
	for _, i := range s.all() {
		require.Equal(t, "0", s.info(i, "expired_keys"), "nobody could have it for a whole TTL")
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
