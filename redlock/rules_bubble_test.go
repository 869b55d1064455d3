package redlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The tests here are of rules that no other test would see broken.

// before is a tracer that does something before each request of one kind is sent.
type before struct {
	recorder
	op redlock.Op
	do func()
}

func (b *before) TraceNodeStart(ctx context.Context, data redlock.TraceNodeStartData) context.Context {
	if data.Op == b.op {
		b.do()
	}
	return ctx
}

// A server that another client trusts already, by a rule of its own, is not one that this client
// vouched for.
func TestGateAnotherClientsTrustIsNotTaken(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		restart(t, fleet, 1)
		time.Sleep(7 * ttl / 8) // less than it takes q to look at its servers
		for _, n := range fleet.Nodes() {
			command(t, n, "DEL", rosterKey) // as if q had not said how long its TTL is
		}
		credulous := open(t, fleet, redlock.WithTTL(time.Second), redlock.WithClockSkew(time.Millisecond))
		require.True(t, credulous.Nodes(t.Context())[1].Votes, "nobody trusts it, so this tests nothing")
		freeze(t, fleet, 2)
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.Equal(t, redlock.ConditionQuarantined, conditionOf(t, err, nodeAddr(fleet.Node(1))))
	})
}

// disagree makes the second of three nodes need a second round and the third one silent.
func disagree(t *testing.T, fleet *redlocktest.Fleet) {
	t.Helper()
	freeze(t, fleet, 2)
	setFence(t, fleet.Node(0), uint64(time.Now().Add(time.Hour).UnixMicro()))
}

// requireNoAgreement acquires in vain.
func requireNoAgreement(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	_, err := q.TryAcquire(t.Context(), "key")
	var qe *redlock.QuorumError
	require.ErrorAs(t, err, &qe)
	require.Equal(t, redlock.OpAgree, qe.Op)
}

// A server that was restarted between the two rounds does not agree, although it has its data.
func TestGateCoversTheSecondRound(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var q *redlock.Quorum
		q = open(t, fleet, redlock.WithTracer(&before{op: redlock.OpAgree, do: func() {
			require.NoError(t, fleet.Node(1).Restart(true))
			_, err := q.Holder(t.Context(), "key") // which makes another connection
			require.NoError(t, err)
		}}))
		disagree(t, fleet)
		requireNoAgreement(t, q)
	})
}

// A node that lost the key between the two rounds may have granted it to another meanwhile.
func TestAgreementNeedsTheKey(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithTracer(&before{op: redlock.OpAgree, do: func() { fleet.Node(1).FlushAll() }}))
		disagree(t, fleet)
		requireNoAgreement(t, q)
	})
	t.Run("which another has now", func(t *testing.T) {
		bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet, redlock.WithTracer(&before{op: redlock.OpAgree, do: func() {
				set(t, fleet.Node(1), "tenure:{key}", "1 another/AAAAAAAAAAAAAAAAAAAAAA")
			}}))
			disagree(t, fleet)
			requireNoAgreement(t, q)
		})
	})
}

// The release of a round that failed may get through much later, and must not hit what a later
// round was granted.
func TestEachRoundIsAnotherOwner(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		freeze(t, fleet, 1, 2)
		granted := make(chan error)
		go func() {
			_, err := q.Acquire(t.Context(), "key")
			granted <- err
		}()
		seen := make(map[string]int)
		last := ""
		for len(seen) < 4 {
			time.Sleep(time.Millisecond)
			lock, _ := fleet.Node(0).Get("tenure:{key}")
			_, owner, _ := strings.Cut(lock, " ")
			if owner != "" && owner != last {
				seen[owner]++
			}
			last = owner
			for _, times := range seen {
				require.Equal(t, 1, times, "a later round has an owner value of an earlier one")
			}
		}
		thaw(t, fleet, 1, 2)
		require.NoError(t, <-granted)
	})
}

func TestStopExtendingDuringAnExtension(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var l atomic.Pointer[redlock.Lease]
		q := open(t, fleet, redlock.WithTracer(&before{op: redlock.OpExtend, do: func() { l.Load().StopExtending() }}))
		l.Store(acquire(t, q))
		ended(t, l.Load())
	})
}

func TestReleaseCancelsTheContextFirst(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var l *redlock.Lease
		asked := 0
		l = acquire(t, open(t, fleet, redlock.WithTracer(&before{op: redlock.OpRelease, do: func() {
			asked++
			assert.ErrorIs(t, l.Err(), redlock.ErrReleased)
			assert.ErrorIs(t, context.Cause(l.Context()), redlock.ErrReleased)
		}})))
		require.NoError(t, l.Release(t.Context()))
		require.Equal(t, 3, asked)
	})
}

func TestReleaseOfALostLeaseLeavesTheNextOwnersKey(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet), redlock.WithoutAutoExtend())
		ended(t, l)
		time.Sleep(ttl)
		acquire(t, open(t, fleet))
		synctest.Wait()
		require.ErrorIs(t, l.Release(t.Context()), redlock.ErrLost)
		synctest.Wait()
		for _, n := range fleet.Nodes() {
			_, held := n.Get("tenure:{key}")
			require.True(t, held)
		}
	})
}

// The timer that ends a lease may be late: here it is due at the very moment of the question.
func TestErrDoesNotWaitForTheTimer(t *testing.T) {
	for range 100 {
		alone(t, 1, func(t *testing.T, fleet *redlocktest.Fleet) {
			l := acquire(t, open(t, fleet), redlock.WithoutAutoExtend())
			time.Sleep(validity)
			require.ErrorIs(t, l.Err(), redlock.ErrLost)
		})
	}
}
