package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: an even number of nodes and a tied vote, and the call hangs for ever.
func TestTrap06TiedVoteReturns(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 4} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			t.Parallel()
			s := startServers(t, nodes)
			q := s.open(redlock.WithTTL(longTTL))
			taken := s.all()[:nodes/2]
			s.squat("key", longTTL, taken...)
			var err error
			require.Less(t, took(func() { _, err = q.TryAcquire(t.Context(), "key") }), longTTL/4)
			require.ErrorIs(t, err, redlock.ErrSplit, "nobody can have a quorum")
			for i := range nodes {
				require.Eventually(t, func() bool { return len(s.locks(i)) == 0 || i < nodes/2 }, longTTL/4, pollTick,
					"node %d keeps what the failed attempt was granted", i)
			}
			s.do([]string{"DEL", lockKey("key")}, taken...)
			l := s.hold(q, "key")
			require.NoError(t, l.Release(t.Context()))
			s.requireFree(longTTL/4, "released")
		})
	}
}

// lockedBuffer is a buffer that one goroutine fills while another looks at it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Field: Unlock was handed a context that had been cancelled to end the job, and did nothing.
func TestTrap03ReleaseWorksWithACancelledContext(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, l.Release(ctx))
	s.requireFree(longTTL/4, "the release died with its context")
}

func TestMinHoldKeepsTheKeyAfterRelease(t *testing.T) {
	t.Parallel()
	const hold, poll = longTTL / 2, time.Minute
	s := startServers(t, 3)
	q, other := s.open(redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL/4)), s.open(redlock.WithTTL(poll))
	began := time.Now()
	l := s.hold(q, "key", redlock.WithMinHold(hold))
	granted := s.wait(other, "key") // polls too seldom to find out by itself
	require.NoError(t, l.Release(t.Context()))
	require.ErrorIs(t, l.Err(), redlock.ErrReleased, "the lease itself ends at the release")
	for _, i := range s.all() {
		// A key whose life is not shortened ends a TTL after it was set, whenever that is looked
		// at.
		require.Eventually(t, func() bool { left := s.pttl(i, "key"); return left+time.Since(began) < longTTL }, patience, pollTick)
		require.Positive(t, s.pttl(i, "key"))
	}
	_, err := tryUntilAnswered(t, q, "key")
	require.ErrorIs(t, err, redlock.ErrHeld)

	g := receive(t, granted, poll/2, "the waiter did not hear when the minimum hold would be over")
	require.NoError(t, g.err)
	require.GreaterOrEqual(t, g.at.Sub(began), hold)
}

// A lock whose expiry something else has taken away is freed after the minimum hold like any other.
func TestMinHoldOfALockWithoutExpiry(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	const hold = 200 * time.Millisecond
	q := s.open(redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL/4))
	l := s.hold(q, "key", redlock.WithMinHold(hold))
	s.do([]string{"PERSIST", lockKey("key")})
	require.NoError(t, l.Release(t.Context()))
	s.requireFree(longTTL, "key")
}

// Field: the contender acquired 1.9 s before the holder's context ended, in 12 of 12 trials.
func TestTrap21PartitionedHolderEndsBeforeTheNextBegins(t *testing.T) {
	s := startServers(t, 3)
	network := newPartition()
	holder := s.open(redlock.WithTTL(2*serverTTL), redlock.WithClientOption(network.option))
	contender := s.open(redlock.WithTTL(2 * serverTTL))

	const trials = 12 // each key's extensions have a phase of their own
	var held, next [trials]*redlock.Lease
	var ended [trials]chan struct{}
	var granted [trials]<-chan grant
	for i := range trials {
		key := fmt.Sprint("key", i)
		held[i] = s.hold(holder, key)
		ended[i] = make(chan struct{}, 1)
		context.AfterFunc(held[i].Context(), func() { ended[i] <- struct{}{} })
		granted[i] = s.wait(contender, key)
	}
	s.staysHeld(held[0], serverTTL)
	network.cut.Store(true)
	for i := range trials {
		g := receive(t, granted[i], patience, "the key never became free")
		require.NoError(t, g.err)
		next[i] = g.lease
		require.ErrorIs(t, held[i].Err(), redlock.ErrLost, "two leases are live")
		require.Greater(t, g.at, held[i].Deadline(), "%s: the contender had it before the holder's time was over", held[i].Key())
		receive(t, ended[i], patience, "the context goes on")
		require.Greater(t, next[i].FencingToken(), held[i].FencingToken())
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

// Field: "held by another", "no quorum", "cancelled" and "expired" came back as one error.
func TestTrap08ErrorsTellWhatHappened(t *testing.T) {
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(2*serverTTL), redlock.WithNodeTimeout(serverTTL/2), redlock.WithIdentity("me"))
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
			held := errorAs[*redlock.HeldError](t, err)
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
			for timeout := serverTTL / 4; ; timeout *= 3 { // it has to be refused before
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				_, err := q.Acquire(ctx, "waited for")
				cancel()
				require.ErrorContains(t, err, `gave up on "waited for": context deadline exceeded`)
				if errors.Is(err, redlock.ErrHeld) || timeout > longTTL {
					return err
				}
			}
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
	qe := errorAs[*redlock.QuorumError](t, err)
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
