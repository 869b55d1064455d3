package redlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// In a bubble time passes only while everything waits, so durations here are exact and the tests
// say what the protocol says. The nodes are in-process ones behind the real client.

const ttl = 4 * time.Second

// validity is the TTL less the default allowance for drift.
const validity = ttl - ttl/100 - 2*time.Millisecond

// bubble runs a test with a fleet of n nodes, beside other tests.
func bubble(t *testing.T, n int, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	t.Helper()
	t.Parallel()
	alone(t, n, test)
}

// withQuorum is bubble with a Quorum on the fleet.
func withQuorum(t *testing.T, n int, test func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum)) {
	t.Helper()
	bubble(t, n, func(t *testing.T, fleet *redlocktest.Fleet) { test(t, fleet, open(t, fleet)) })
}

// alone is bubble while no other test runs, as those need that count goroutines or memory. After
// the test, what a relay still carries arrives.
func alone(t *testing.T, n int, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		test(t, redlocktest.StartPipes(t, n))
	})
}

// open makes a Quorum on the fleet that is closed with the test, connected to all its nodes.
func open(t *testing.T, fleet *redlocktest.Fleet, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q := dialOn(t, fleet, nil, opts...)
	q.Nodes(t.Context())
	redlock.Enter(q)
	return q
}

func acquire(t *testing.T, q *redlock.Quorum, opts ...redlock.LeaseOption) *redlock.Lease {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), "key", opts...)
	require.NoError(t, err)
	return l
}

// errorAs is the error of that type within err.
func errorAs[E error](t *testing.T, err error) (e E) {
	t.Helper()
	require.ErrorAs(t, err, &e)
	return e
}

func finish(t *testing.T, end func(context.Context) error) {
	t.Helper()
	require.NoError(t, end(t.Context()))
	synctest.Wait()
}

// ended waits for the end of a lease, with a bound so that one that never ends fails the test.
func ended(t *testing.T, l *redlock.Lease) {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(10 * ttl):
		t.Fatal("the lease did not end")
	}
}

// delay has every node answer so much later.
func delay(fleet *redlocktest.Fleet, d time.Duration) {
	for _, n := range fleet.Nodes() {
		n.SetDelay(d)
	}
}

func freeze(t *testing.T, fleet *redlocktest.Fleet, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		require.NoError(t, fleet.Node(i).Freeze())
	}
}

func thaw(t *testing.T, fleet *redlocktest.Fleet, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		require.NoError(t, fleet.Node(i).Thaw())
	}
}

func TestDeadlineCountsFromTheStartOfTheRound(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		delay(fleet, 100*time.Millisecond)
		start := time.Now()
		l := acquire(t, q)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		require.Equal(t, start.Add(validity), l.Deadline())
	})
}

func TestLeaseIsExtendedUntilReleased(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		time.Sleep(20 * ttl)
		require.NoError(t, l.Err())
		require.NoError(t, l.Context().Err())
		require.NoError(t, l.Release(t.Context()))
		require.ErrorIs(t, l.Err(), redlock.ErrReleased)
		require.ErrorIs(t, context.Cause(l.Context()), redlock.ErrReleased)
		require.Equal(t, time.Now(), l.Deadline(), "another may hold the key now")
		synctest.Wait() // a quorum has answered, the rest follows
		require.Zero(t, on(fleet, "key"))
	})
}

// Field: the call that extends hangs, and the signal waits for it.
func TestTrap01HolderHearsByTheDeadline(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		time.Sleep(3 * ttl)
		freeze(t, fleet, 0, 1, 2)
		deadline := l.Deadline()
		go l.Extend(t.Context())
		ended(t, l)
		require.Equal(t, deadline, time.Now(), "not a moment after the deadline, whatever hangs")
		require.True(t, time.Now().Before(deadline.Add(ttl-validity)), "keys are still there for others to see")
		lost := errorAs[*redlock.LostError](t, context.Cause(l.Context()))
		require.Equal(t, redlock.LostDeadline, lost.Reason)
		require.ErrorIs(t, lost, redlock.ErrNoQuorum, "the loss names the extension that failed")
		require.ErrorContains(t, lost, "its validity ran out")
	})
}

// Nothing but the timer can tell the holder of a lease that is never extended and asked for.
func TestContextEndsAtTheDeadlineByItself(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet), redlock.WithoutAutoExtend())
		deadline := l.Deadline()
		<-l.Context().Done()
		require.Equal(t, deadline, time.Now())
		require.ErrorIs(t, context.Cause(l.Context()), redlock.ErrLost)
	})
}

// Field: A lapsed, B held and released, A.Extend returned true.
func TestTrap02LapsedLeaseNeverComesBack(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		l := acquire(t, q)
		freeze(t, fleet, 0, 1)
		ended(t, l)
		thaw(t, fleet, 0, 1)
		time.Sleep(ttl)
		b := acquire(t, open(t, fleet))
		require.ErrorIs(t, l.Extend(t.Context()), redlock.ErrLost)
		require.NoError(t, b.Release(t.Context()))
		require.ErrorIs(t, l.Extend(t.Context()), redlock.ErrLost)
		require.ErrorIs(t, l.Err(), redlock.ErrLost)
		require.ErrorIs(t, l.Release(t.Context()), redlock.ErrLost)
		synctest.Wait() // a quorum has answered, the rest follows
		require.Zero(t, on(fleet, "key"), "a lapsed lease put its key back")
	})
}

// Field: one of three nodes stalled, Lock took 5.0 s and Unlock 5.0 s.
func TestTrap04SlowNodeStallsNobody(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 2)
		start := time.Now()
		l := acquire(t, q)
		require.NoError(t, l.Extend(t.Context()))
		require.NoError(t, l.Release(t.Context()))
		require.Zero(t, time.Since(start), "a round returns as soon as its outcome is certain")
	})
}

// Field: one error for everything that can go wrong.
func TestQuorumOutOfReach(t *testing.T) {
	withQuorum(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 0, 1, 2)
		start := time.Now()
		_, err := q.TryAcquire(t.Context(), "key")
		require.Equal(t, ttl/20, time.Since(start), "the node timeout, and not longer")
		qe := errorAs[*redlock.QuorumError](t, err)
		require.Equal(t, 2, qe.Succeeded)
		require.Len(t, qe.Errs, 3)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorIs(t, err, redlock.ErrTimeout)
		require.NotErrorIs(t, err, redlock.ErrHeld)
		require.Equal(t, "timeout", redlock.ErrorType(err))
	})
}

// Field: rollback used the caller's cancelled context, the key stayed for 7.6 s.
func TestTrap03CancelledAttemptLeavesNothing(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		delay(fleet, 100*time.Millisecond)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("the user went away")
		time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
		start := time.Now()
		_, err := q.TryAcquire(ctx, "key")
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, stop)
		require.Equal(t, "canceled", redlock.ErrorType(err))
		time.Sleep(200 * time.Millisecond)
		require.Zero(t, on(fleet, "key"), "the grant that came after the caller left was not released")
	})
}

// Field: a retry with a new owner value waits for the key of the attempt whose reply was lost; and
// a request abandoned at its timeout ran 2 s later with a full TTL.
func TestTrap11And17StaleWorkIsUndoneInOrder(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 0, 1)
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrTimeout)
		time.Sleep(2 * time.Second) // the connections are given up meanwhile
		thaw(t, fleet, 0, 1)
		time.Sleep(1500 * time.Millisecond)
		require.Zero(t, on(fleet, "key"), "an abandoned request left its key")
		acquire(t, q)
	})
}

func TestQuorumThatForgotEndsTheLeaseAtOnce(t *testing.T) {
	for name, opts := range map[string][]redlock.LeaseOption{"with others": nil, "alone": {redlock.WithTTL(ttl / 2)}} {
		t.Run(name, func(t *testing.T) { forget(t, opts...) })
	}
}

// forget has a quorum of servers lose a lease that is extended together with others, or alone.
func forget(t *testing.T, opts ...redlock.LeaseOption) {
	alone(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet), opts...)
		synctest.Wait()
		for i := range 3 {
			fleet.Node(i).FlushAll()
		}
		deadline := l.Deadline()
		ended(t, l)
		require.True(t, time.Now().Before(deadline.Add(-l.TTL()/2)), "the next extension tells, not the deadline")
		lost := errorAs[*redlock.LostError](t, l.Err())
		require.Equal(t, redlock.LostRefused, lost.Reason)
		require.Equal(t, time.Now(), l.Deadline(), "another may hold the key now")
	})
}

func TestFailedExtensionIsRetriedUntilTheDeadline(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		time.Sleep(ttl / 4) // before the first extension
		freeze(t, fleet, 0, 1)
		time.Sleep(ttl / 2) // two attempts fail
		require.NoError(t, l.Err())
		thaw(t, fleet, 0, 1)
		time.Sleep(ttl)
		require.NoError(t, l.Err(), "an attempt before the deadline succeeded")
	})
}

// Field: server expiry events come late or never; a waiter wakes on the holder's PTTL.
func TestTrap12SuccessorWakesAtExpiry(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		for range 3 { // it may poll at that moment once
			dead := acquire(t, open(t, fleet))
			dead.StopExtending()
			expiry := time.Now().Add(ttl)
			next, err := open(t, fleet).Acquire(t.Context(), "key")
			require.NoError(t, err)
			late := time.Since(expiry)
			require.GreaterOrEqual(t, late, time.Duration(0))
			require.LessOrEqual(t, late, 20*time.Millisecond)
			require.Greater(t, next.FencingToken(), dead.FencingToken())
			finish(t, next.Release)
		}
	})
}

func TestWaiterWakesOnRelease(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		granted := acquiring(t.Context(), open(t, fleet), "key")
		time.Sleep(10 * ttl)
		released := time.Now()
		require.NoError(t, l.Release(t.Context()))
		g := <-granted
		require.NoError(t, g.err)
		require.Zero(t, g.at.Sub(released), "woken by the message, not by a poll")
	})
}

func TestHolderReadsAQuorum(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithIdentity("me"))
		set(t, fleet.Node(0), "tenure:{key}", "somebody's own format")
		_, err := q.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNotHeld, "what a minority has is nobody's")
		l := acquire(t, q)
		time.Sleep(time.Second)
		h := mustHolder(t, q)
		require.Equal(t, []any{"me", l.FencingToken(), ttl - time.Second}, []any{h.Identity, h.FencingToken, h.TTL})
		freeze(t, fleet, 0, 1, 2)
		_, err = q.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = q.Holder(ctx, "key")
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestCloseLosesLeasesAndLetsKeysLapse(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		l := acquire(t, q)
		synctest.Wait() // a quorum has granted, the rest follows
		require.NoError(t, q.Close())
		<-q.Closed()
		require.ErrorIs(t, l.Err(), redlock.ErrClosed)
		require.ErrorIs(t, l.Err(), redlock.ErrLost)
		require.ErrorIs(t, context.Cause(l.Context()), redlock.ErrClosed)
		require.Equal(t, 3, on(fleet, "key"), "work may still be running under it")
		start := time.Now()
		require.Equal(t, "closed", redlock.ErrorType(q.Nodes(t.Context())[0].Err))
		require.Zero(t, time.Since(start))
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrClosed)
		_, err = q.Acquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrClosed)
		_, err = q.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrClosed)
		require.ErrorIs(t, l.Release(t.Context()), redlock.ErrLost)
		require.NoError(t, q.Close())
	})
}

// Traffic must not put off the releases that are owed.
func TestOwedReleasesAreSentUnderTraffic(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		l := acquire(t, q)
		synctest.Wait()
		require.NoError(t, fleet.Node(0).Kill())
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, fleet.Node(0).Restart(true))
		start := time.Now()
		for {
			if _, held := fleet.Node(0).Get("tenure:{key}"); !held {
				break
			}
			require.Less(t, time.Since(start), ttl/4)
			_, _ = q.Holder(t.Context(), "other")
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// A free key with one of three nodes dead: contenders that take a node each must not take each
// other for holders.
func TestFreeKeyIsNotWaitedForWithANodeDown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		require.NoError(t, fleet.Node(2).Kill())
		var waiting sync.WaitGroup
		for range 4 {
			q := open(t, fleet)
			waiting.Go(func() {
				for range 10 {
					start := time.Now()
					l, err := q.Acquire(t.Context(), "key")
					assert.NoError(t, err)
					assert.Less(t, time.Since(start), ttl)
					assert.NoError(t, l.Release(t.Context()))
				}
			})
		}
		waiting.Wait()
	})
}

// An acquisition that Close interrupts is rolled back like any other.
func TestCloseDuringAnAcquisitionLeavesNothing(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		delay(fleet, 50*time.Millisecond)
		tried := trying(t.Context(), q, "key")
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, q.Close())
		require.ErrorIs(t, (<-tried).err, redlock.ErrClosed)
		require.Zero(t, on(fleet, "key"))
	})
}

func TestAcquireReturnsItsContextsError(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 0, 1)
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), ttl/20) // ends with the round
			_, err := q.Acquire(ctx, "key")
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

// A context that ends in the middle of an attempt hides nothing of what the one before has found.
func TestEndedContextTellsOfTheAttemptBefore(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet, redlock.WithIdentity("holder")))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := open(t, fleet, told(func(data redlock.TraceAttemptStartData) {
			if data.Attempt == 2 {
				cancel()
			}
		})).Acquire(ctx, "key")
		require.ErrorIs(t, err, context.Canceled)
		held := errorAs[*redlock.HeldError](t, err)
		require.Equal(t, "holder", held.Holder.Identity)
		require.Equal(t, "canceled", redlock.ErrorType(err))
	})
}

// A lease of which nobody asks anything is lost at its deadline all the same, and the tracer hears
// of it then.
func TestLossThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*redlock.Lease){"extended in vain": func(*redlock.Lease) {}, "not extended any more": (*redlock.Lease).StopExtending} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				lost := make(chan time.Time, 1)
				l, err := open(t, fleet, redlock.WithTracer(events(func(ctx context.Context, kind string, _ any) context.Context {
					if kind == "Lost" && ctx.Value(parentKey{}) == "kept" {
						lost <- time.Now()
					}
					return ctx
				}))).TryAcquire(context.WithValue(t.Context(), parentKey{}, "kept"), "key")
				require.NoError(t, err)
				deadline := l.Deadline()
				do(l)
				freeze(t, fleet, 0, 1, 2)
				select {
				case at := <-lost:
					require.Equal(t, deadline, at)
				case <-time.After(3 * ttl):
					require.Fail(t, "nobody heard of the loss")
				}
			})
		})
	}
}

// Field: a second Unlock panicked. However many release a lease at once, and whoever is first, all
// return when the first one does.
func TestTrap23EveryReleaseReturnsTheSame(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		freeze(t, fleet, 0, 1, 2)
		began, took := time.Now(), make(chan time.Duration, 5)
		var said [5]error
		for i := range said {
			go func() {
				said[i] = l.Release(t.Context())
				took <- time.Since(began)
			}()
		}
		first := <-took
		require.Positive(t, first)
		for range 4 {
			require.Equal(t, first, <-took)
		}
		require.Error(t, said[0])
		for _, err := range said {
			require.Equal(t, said[0], err)
		}
		require.Equal(t, said[0], l.Release(t.Context()))
	})
}

// How long Close waits for nodes that do not answer, as its doc comment says.
func TestCloseIsBounded(t *testing.T) {
	const ttl = 20 * time.Second
	for timeout, given := range map[time.Duration]time.Duration{ // after which a connection is given up
		ttl / 20: 2 * time.Second, 100 * time.Millisecond: 2 * time.Second, 1500 * time.Millisecond: 3 * time.Second, 5 * time.Second: 7 * time.Second,
	} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet, redlock.WithTTL(ttl), redlock.WithNodeTimeout(timeout), redlock.WithExtendInterval(ttl/8))
			l := acquire(t, q)
			freeze(t, fleet, 0)
			_, err := q.TryAcquire(t.Context(), "key") // and it is taken back
			require.ErrorIs(t, err, redlock.ErrHeld)
			freeze(t, fleet, 1, 2)
			go func() { _ = l.Release(t.Context()) }()
			synctest.Wait()
			start := time.Now()
			require.NoError(t, q.Close())
			require.LessOrEqual(t, time.Since(start), 2*given+2*max(timeout, 500*time.Millisecond))
		})
	}
}

// The first waiter of a Quorum starts what Close waits for.
func TestCloseWhileTheFirstWaiterComes(t *testing.T) {
	for range 50 {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			acquire(t, open(t, fleet))
			q := open(t, fleet)
			granted := acquiring(t.Context(), q, "key")
			require.NoError(t, q.Close())
			require.ErrorIs(t, (<-granted).err, redlock.ErrClosed)
		})
	}
}

// before has something done before each request of one kind is sent.
func before(op redlock.Op, do func()) redlock.Option {
	return told(func(data redlock.TraceNodeStartData) {
		if data.Op == op {
			do()
		}
	})
}

// A server that another client trusts already, by a rule of its own, is not one that this client
// vouched for.
func TestGateAnotherClientsTrustIsNotTaken(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		restart(t, fleet, 1)
		time.Sleep(7 * ttl / 8) // less than it takes q to look at its servers
		for _, n := range fleet.Nodes() {
			ask(t, n, "DEL", rosterKey) // as if q had not said how long its TTL is
		}
		credulous := open(t, fleet, redlock.WithTTL(time.Second), redlock.WithClockSkew(time.Millisecond))
		require.True(t, credulous.Nodes(t.Context())[1].Votes, "nobody trusts it, so this tests nothing")
		freeze(t, fleet, 2)
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		requireConditionOf(t, err, nodeAddr(fleet.Node(1)), redlock.ConditionQuarantined)
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
	qe := errorAs[*redlock.QuorumError](t, err)
	require.Equal(t, redlock.OpAgree, qe.Op)
}

// A server that was restarted between the two rounds does not agree, although it has its data.
func TestGateCoversTheSecondRound(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var q *redlock.Quorum
		q = open(t, fleet, before(redlock.OpAgree, func() {
			require.NoError(t, fleet.Node(1).Restart(true))
			_, err := q.Holder(t.Context(), "key") // which makes another connection
			require.NoError(t, err)
		}))
		disagree(t, fleet)
		requireNoAgreement(t, q)
	})
}

// A node that lost the key between the two rounds may have granted it to another meanwhile.
func TestAgreementNeedsTheKey(t *testing.T) {
	for _, another := range []bool{false, true} { // has it now
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet, before(redlock.OpAgree, func() {
				if fleet.Node(1).FlushAll(); another {
					set(t, fleet.Node(1), "tenure:{key}", "1 another/AAAAAAAAAAAAAAAAAAAAAA")
				}
			}))
			disagree(t, fleet)
			requireNoAgreement(t, q)
		})
	}
}

// The release of a round that failed may get through much later, and must not hit what a later
// round was granted.
func TestEachRoundIsAnotherOwner(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 1, 2)
		granted := acquiring(t.Context(), q, "key")
		var seen []string
		for len(seen) < 4 {
			time.Sleep(time.Millisecond)
			lock, _ := fleet.Node(0).Get("tenure:{key}")
			if _, owner, _ := strings.Cut(lock, " "); owner != "" && (len(seen) == 0 || owner != seen[len(seen)-1]) {
				require.NotContains(t, seen, owner, "a later round has an owner value of an earlier one")
				seen = append(seen, owner)
			}
		}
		thaw(t, fleet, 1, 2)
		require.NoError(t, (<-granted).err)
	})
}

func TestStopExtendingDuringAnExtension(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var l atomic.Pointer[redlock.Lease]
		q := open(t, fleet, before(redlock.OpExtend, func() { l.Load().StopExtending() }))
		l.Store(acquire(t, q))
		ended(t, l.Load())
	})
}

func TestReleaseCancelsTheContextFirst(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var l *redlock.Lease
		asked := 0
		l = acquire(t, open(t, fleet, before(redlock.OpRelease, func() {
			asked++
			assert.ErrorIs(t, l.Err(), redlock.ErrReleased)
			assert.ErrorIs(t, context.Cause(l.Context()), redlock.ErrReleased)
		})))
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
		require.Equal(t, len(fleet.Nodes()), on(fleet, "key"))
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

// A lease is on two nodes, of which one does not answer. The two that do must not pass for a proof
// that nobody holds it.
func TestHolderBehindASilentNodeIsNotDenied(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		first, second := open(t, fleet), open(t, fleet)
		freeze(t, fleet, 2)
		held := acquire(t, first, redlock.WithoutAutoExtend())
		thaw(t, fleet, 2)
		synctest.Wait()
		fleet.Node(2).FlushAll()
		freeze(t, fleet, 1)
		_, err := second.Holder(t.Context(), "key")
		require.NoError(t, held.Err())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrNotHeld)
		require.Equal(t, "timeout", redlock.ErrorType(err))
		qe := errorAs[*redlock.QuorumError](t, err)
		require.Equal(t, 1, qe.Succeeded, "one node names the holder")
		require.Len(t, qe.Errs, 1)

		start := time.Now()
		_, err = second.Holder(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrNotHeld, "one silent node alone cannot hide a holder")
		require.Zero(t, time.Since(start), "nor is it waited for")
	})
}

const payload = "https://10.0.0.1:8080/jobs?of=web 1&key=%20\n"

// Others read a holder's payload, in the answer to a question and in the error of an attempt, as
// long as it holds the key. A lease has its own, or none.
func TestPayloadIsThatOfTheHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		first, second := open(t, fleet, redlock.WithIdentity("first")), open(t, fleet, redlock.WithIdentity("second"))
		seen := func(identity, payload string) {
			t.Helper()
			synctest.Wait()
			h := mustHolder(t, second)
			require.Equal(t, []any{identity, payload}, []any{h.Identity, h.Payload})
			_, err := second.TryAcquire(t.Context(), "key", redlock.WithPayload("of another attempt"))
			held := errorAs[*redlock.HeldError](t, err)
			require.Equal(t, []any{identity, payload}, []any{held.Holder.Identity, held.Holder.Payload})
			require.Contains(t, err.Error(), " "+identity+" on ")
			require.Equal(t, identity == "second", held.Self)
			require.Equal(t, held.Self, strings.Contains(err.Error(), "the caller's own identity"))
		}
		l := acquire(t, first, redlock.WithPayload(payload))
		seen("first", payload)
		fleet.Node(0).FlushAll()
		time.Sleep(3 * ttl) // is extended, and put back
		seen("first", payload)
		value, _ := fleet.Node(0).Get("tenure:{key}")
		another, _ := fleet.Node(1).Get("tenure:{key}")
		require.Equal(t, another, value, "it was put back")
		finish(t, l.Release)
		for _, payload := range []string{"", strings.Repeat("\xff", redlock.MaxPayloadLength)} {
			l = acquire(t, second, redlock.WithPayload("given"), redlock.WithPayload(payload))
			seen("second", payload)
			finish(t, l.Release)
		}
		var invalid *redlock.OptionError
		_, err := first.TryAcquire(t.Context(), "key", redlock.WithPayload(strings.Repeat("x", redlock.MaxPayloadLength+1)))
		require.ErrorAs(t, err, &invalid)
		require.EqualError(t, err, "redlock: WithPayload: must be at most 1024 bytes, not 1025")
		synctest.Wait()
		_, err = second.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNotHeld)
	})
}

// A payload is in no error and no line of the log, whatever it is and whoever wrote it.
func TestPayloadIsNotShown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		for _, written := range []string{"sesame", "sesame%zz", "sesame\n", "sesame" + strings.Repeat("x", redlock.MaxPayloadLength)} {
			for i := range 3 {
				ask(t, fleet.Node(i), "SET", "tenure:{key}", "web-1/AAAAAAAAAAAAAAAAAAAAAA?"+written, "PX", "60000")
			}
			_, err := q.TryAcquire(t.Context(), "key")
			require.ErrorContains(t, err, "held by another owner: web-1 on ")
			require.NotContains(t, err.Error(), "sesame")
		}
		for i, random := range []string{"A", "B"} {
			ask(t, fleet.Node(i), "SET", "tenure:{key}", "web-1/"+strings.Repeat(random, 22)+"?sesame", "PX", "60000")
		}
		ask(t, fleet.Node(2), "SET", "tenure:{key}", "web-1/"+strings.Repeat("C", 22)+"?sesame", "PX", "60000")
		_, err := q.TryAcquire(t.Context(), "key")
		split := errorAs[*redlock.SplitError](t, err)
		require.Equal(t, "sesame", split.Rival.Payload)
		require.NotContains(t, err.Error(), "sesame")
		require.Contains(t, log.String(), "holder=web-1 ", "the lease has a longer TTL than is known")
		require.NotContains(t, log.String(), "sesame")
	})
}

// Of a lease that is live most nodes have forgotten it. That they have nothing tells nobody that it
// is not held: not before they vote again. That they have something does.
func TestHolderOnNodesThatMayHaveForgotten(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, reader := open(t, fleet), open(t, fleet)
		held := acquire(t, q)
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Restart(false))
		}
		for began := time.Now(); time.Since(began) < quarantine-time.Second; time.Sleep(ttl / 8) {
			_, err := reader.Holder(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NotErrorIs(t, err, redlock.ErrNotHeld, "the lease: %v", held.Err())
		}
	})
	bubbleOfYoung(t, func(t *testing.T, q *redlock.Quorum) {
		_, err := q.Holder(t.Context(), "key")
		require.ErrorContains(t, err, "quarantined until ")
		time.Sleep(quarantine + ttl/2)
		_, err = q.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNotHeld)
	})
}

// bubbleOfYoung is a new fleet.
func bubbleOfYoung(t *testing.T, test func(t *testing.T, q *redlock.Quorum)) {
	t.Helper()
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Restart(false))
		}
		test(t, dialOn(t, fleet, []int{0, 1, 2}))
	})
}

// requireFreed demands that nobody has the key any more.
func requireFreed(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
}

func TestDoHoldsTheKeyWhileItWorks(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		type key struct{}
		var kept context.Context
		err := q.Do(context.WithValue(t.Context(), key{}, "value"), "key", func(ctx context.Context, l *redlock.Lease) error {
			kept = ctx
			time.Sleep(3 * ttl)
			require.NoError(t, ctx.Err())
			require.NoError(t, l.Err())
			require.Equal(t, "value", ctx.Value(key{}))
			require.Equal(t, "payload", mustHolder(t, q).Payload)
			return nil
		}, redlock.WithPayload("payload"))
		require.NoError(t, err)
		require.ErrorIs(t, context.Cause(kept), redlock.ErrReleased)
		requireFreed(t, q)
	})
}

func mustHolder(t *testing.T, q *redlock.Quorum) redlock.Holder {
	t.Helper()
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	return h
}

func TestDoEndsWithTheCaller(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(ttl, func() { cancel(stopped) })
		err := q.Do(ctx, "key", func(ctx context.Context, l *redlock.Lease) error {
			<-ctx.Done()
			require.NoError(t, l.Err(), "until it returns")
			return context.Cause(ctx)
		})
		require.Equal(t, stopped, err)
		requireFreed(t, q)
	})
}

func TestDoEndsWithTheLease(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		var lost *redlock.LostError
		for _, told := range []bool{false, true} {
			err := q.Do(t.Context(), "key", func(ctx context.Context, _ *redlock.Lease) error {
				freeze(t, fleet, 0, 1, 2)
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				require.ErrorAs(t, context.Cause(ctx), &lost, "its context goes on")
				thaw(t, fleet, 0, 1, 2)
				if told {
					return context.Cause(ctx)
				}
				return nil
			})
			require.Equal(t, error(lost), err, "once, and whatever it returned")
			time.Sleep(time.Minute)
			requireFreed(t, q)
		}
	})
}

func TestDoReleasesWhateverHappens(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		failed := errors.New("failed")
		require.Equal(t, failed, q.Do(t.Context(), "key", func(context.Context, *redlock.Lease) error { return failed }))
		requireFreed(t, q)

		require.PanicsWithValue(t, "boom", func() {
			_ = q.Do(t.Context(), "key", func(context.Context, *redlock.Lease) error { panic("boom") })
		})
		requireFreed(t, q)

		require.NoError(t, q.Do(t.Context(), "key", func(ctx context.Context, l *redlock.Lease) error { return l.Release(ctx) }), "it may release it itself")
		requireFreed(t, q)

		for _, own := range []error{nil, failed} {
			err := q.Do(t.Context(), "key", func(context.Context, *redlock.Lease) error {
				require.NoError(t, fleet.Node(0).Kill())
				require.NoError(t, fleet.Node(1).Kill())
				return own
			})
			unsure := errorAs[*redlock.QuorumError](t, err)
			require.Equal(t, redlock.OpRelease, unsure.Op)
			if own != nil {
				require.ErrorIs(t, err, own)
			}
			require.NoError(t, fleet.Node(0).Restart(true))
			require.NoError(t, fleet.Node(1).Restart(true))
			time.Sleep(time.Minute)
			synctest.Wait()
			requireFreed(t, q)
		}
	})
}

func TestDoWithoutALeaseCallsNothing(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		acquire(t, open(t, fleet))
		none := func(context.Context, *redlock.Lease) error { panic("called") }
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		require.ErrorIs(t, q.Do(ctx, "key", none), context.DeadlineExceeded)
		var wrong *redlock.OptionError
		require.ErrorAs(t, q.Do(t.Context(), "", none), &wrong)
		_, err := q.Holder(t.Context(), "")
		require.ErrorAs(t, err, &wrong)
	})
}
