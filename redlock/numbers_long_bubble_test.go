//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// setRecord gives a node a record of the key "key" that its process knows, with the numbers from
// the largest granted to the attempts before it.
func setRecord(t *testing.T, fleet *redlocktest.Fleet, node int, numbers, identity string) {
	t.Helper()
	setOldRecord(t, fleet, node, runID(t, fleet.Node(node)), numbers, identity)
}

// setOldRecord gives a node a record of a server process.
func setOldRecord(t *testing.T, fleet *redlocktest.Fleet, node int, process, numbers, identity string) {
	t.Helper()
	set(t, fleet.Node(node), recordKey, "1 "+process+" "+numbers+"     "+identity+"/0123456789012345678901")
}

// knows reports whether the record of the key "key" on a node is complete for its process.
func knows(t *testing.T, fleet *redlocktest.Fleet, node int) bool {
	t.Helper()
	record, _ := fleet.Node(node).Get(recordKey)
	fields := strings.Split(record, " ")
	return len(fields) > 1 && fields[1] == runID(t, fleet.Node(node))
}

func TestOnceGrantsASequenceOnce(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		a, b := open(t, fleet, redlock.WithIdentity("a")), open(t, fleet, redlock.WithIdentity("b"))
		l := acquire(t, a, atMostOnce(7))
		require.Equal(t, int64(7), l.Sequence())
		require.Equal(t, 1, l.Attempt())
		_, err := b.TryAcquire(t.Context(), "key", atMostOnce(7))
		require.ErrorIs(t, err, redlock.ErrHeld, "as long as the key is held that is the reason")
		finish(t, l.Release)

		de := requireDone(t, b, atMostOnce(7))
		require.Equal(t, redlock.DoneError{Key: "key", Sequence: 7, Granted: 7, Identity: "a"}, *de)
		require.Equal(t, `redlock: sequence 7 of "key" was granted, and not known to be completed: the last was 7, by a`, de.Error())
		requireDone(t, a, atMostOnce(6))

		l = acquire(t, b, atMostOnce(8))
		finish(t, l.Complete)
		require.Equal(t, redlock.DoneError{Key: "key", Sequence: 7, Granted: 8, Completed: 8, Identity: "b"}, *requireDone(t, a, atMostOnce(7)))
		require.Contains(t, requireDone(t, a, atMostOnce(8)).Error(), "was completed: the last was 8, by b")

		l = acquire(t, a) // not of the sequence
		require.Zero(t, l.Sequence())
		finish(t, l.Release)
		requireDone(t, a, atMostOnce(8))
	})
}

func TestOnceIsForgottenAfterItsTime(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q, redlock.WithSequence(5, redlock.AtMostOnce, 2*ttl)).Release)
		time.Sleep(2*ttl - time.Second)
		requireDone(t, q, atMostOnce(5))
		time.Sleep(time.Second + time.Millisecond)
		finish(t, acquire(t, q, atMostOnce(5)).Release)
	})
}

// AtLeastOnce grants until somebody has completed.
func TestOnceIsRepeatedUntilCompleted(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q, atLeastOnce(3)).Release)
		l := acquire(t, q, atLeastOnce(3))
		require.Equal(t, 2, l.Attempt())
		l.StopExtending()
		<-l.Context().Done() // a holder that died
		synctest.Wait()
		l, err := q.Acquire(t.Context(), "key", atLeastOnce(3))
		require.NoError(t, err)
		require.Equal(t, 3, l.Attempt())
		requireMostOnce := func() { requireDone(t, q, atMostOnce(3)) }
		finish(t, l.Complete)
		requireMostOnce()
		require.Equal(t, int64(3), requireDone(t, q, atLeastOnce(3)).Completed)
		requireDone(t, q, atLeastOnce(2))
		require.Equal(t, 1, acquire(t, q, atLeastOnce(4)).Attempt())
	})
}

// A holder whose lease ran out while it worked has still done the work.
func TestCompleteAfterALossIsRecorded(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		l := acquire(t, q, atLeastOnce(3))
		l.StopExtending()
		<-l.Context().Done()
		time.Sleep(ttl)
		require.ErrorIs(t, l.Complete(t.Context()), redlock.ErrLost)
		synctest.Wait()
		requireDone(t, q, atLeastOnce(3))
	})
}

// What an attempt without a quorum recorded is taken back, also where the server had recorded
// another before.
func TestOnceFailedAttemptLeavesNothing(t *testing.T) {
	for name, patience := range map[string]time.Duration{"without a quorum": ttl, "cancelled": time.Millisecond} {
		t.Run(name, func(t *testing.T) { onceFails(t, patience) })
	}
}

// onceFails has an attempt fail that part of the nodes granted, or that is given up before.
func onceFails(t *testing.T, patience time.Duration) {
	alone(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		l := acquire(t, q, atMostOnce(1))
		synctest.Wait() // until the nodes behind the quorum have it too
		finish(t, l.Complete)
		before := make([]string, 5)
		for i := range before {
			before[i], _ = fleet.Node(i).Get(recordKey)
			require.Regexp(t, `^1 \S* 1 1 \d+ 1 \d+ \d+ 0 0 `, before[i])
		}
		freeze(t, fleet, 2, 3, 4)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := q.TryAcquire(ctx, "key", atMostOnce(2))
		if patience == ttl {
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		thaw(t, fleet, 2, 3, 4)
		time.Sleep(ttl / 5) // releases that failed are repeated
		synctest.Wait()
		for i := range before {
			record, _ := fleet.Node(i).Get(recordKey)
			was := strings.Split(before[i], " ")
			require.Equal(t, strings.Join(was[:4], " ")+" 0 "+strings.Join(was[5:8], " ")+" 1 1     ", record, "node %d", i)
		}
		require.Equal(t, 1, acquire(t, q, atMostOnce(2)).Attempt())
	})
}

// A quorum that granted and the next quorum have a node in common, and that node is enough.
func TestOnceIsRememberedByOneNodeOfTheNextQuorum(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"released", "completed", "died"} {
		t.Run(end, func(t *testing.T) {
			bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				freeze(t, fleet, 3, 4)
				l := acquire(t, q, atMostOnce(2), redlock.WithoutAutoExtend())
				// What lies in the sockets of the other two is lost.
				require.NoError(t, fleet.Node(3).Kill())
				require.NoError(t, fleet.Node(4).Kill())
				switch end {
				case "released":
					finish(t, l.Release)
				case "completed":
					finish(t, l.Complete)
				case "died":
					l.StopExtending()
					<-l.Context().Done()
				}
				require.NoError(t, q.Close())
				freeze(t, fleet, 0, 1)
				require.NoError(t, fleet.Node(3).Restart(false))
				require.NoError(t, fleet.Node(4).Restart(false))
				time.Sleep(2 * quarantine)
				other := open(t, fleet)
				synctest.Wait()
				requireDone(t, other, atMostOnce(2))
				finish(t, acquire(t, other, atMostOnce(3)).Release)
			})
		})
	}
}

// One node that knows of the completion decides: nobody waits for the others.
func TestOnceCompletedOnOneNodeIsCompleted(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		setRecord(t, fleet, 2, "5 1 0 5 0 1 0 0", "somebody")
		freeze(t, fleet, 0, 1)
		began := time.Now()
		de := requireDone(t, q, atLeastOnce(5))
		require.Equal(t, "somebody", de.Identity)
		require.Zero(t, time.Since(began))
	})
}

// Numbers left behind by an attempt that died in the middle do not stop the others, as long as a
// quorum is free of them.
func TestOnceLeftoversOfAMinority(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		for i := range 2 {
			setRecord(t, fleet, i, "5 1 0 4 0 1 4 1", "dead")
		}
		for i := 2; i < 5; i++ {
			setRecord(t, fleet, i, "4 1 0 4 0 1 0 0", "a")
		}
		finish(t, acquire(t, q, atMostOnce(5)).Complete)
		for i := range 5 {
			record, _ := fleet.Node(i).Get(recordKey)
			require.Regexp(t, `^1 \S* 5 1 \d+ 5 `, record, "the completion is recorded everywhere")
		}
	})
}

// The answers of nodes that granted this attempt its number, in vain, are no news of who has it.
func TestOnceNamesTheOtherOne(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithIdentity("me"))
		for i := range 3 {
			setRecord(t, fleet, i, "7 1 0 0 0 0 0 0", "other")
		}
		freeze(t, fleet, 2) // so that the two that know nothing answer first
		time.AfterFunc(time.Millisecond, func() { thaw(t, fleet, 2) })
		de := requireDone(t, q, atMostOnce(7))
		require.Equal(t, redlock.DoneError{Key: "key", Sequence: 7, Granted: 7, Identity: "other"}, *de)
	})
}

// A waiter for the same number gets it if the holder dies, and hears that it is done if the holder
// completes.
func TestOnceWaiters(t *testing.T) {
	t.Parallel()
	for _, completes := range []bool{true, false} {
		t.Run(fmt.Sprintf("completes=%v", completes), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				a, b := open(t, fleet), open(t, fleet)
				l := acquire(t, a, atLeastOnce(3))
				type result struct {
					lease *redlock.Lease
					err   error
				}
				got := make(chan result, 1)
				go func() {
					l, err := b.Acquire(t.Context(), "key", atLeastOnce(3))
					got <- result{l, err}
				}()
				time.Sleep(ttl)
				began := time.Now()
				if completes {
					finish(t, l.Complete)
					require.ErrorIs(t, (<-got).err, redlock.ErrDone)
					require.Less(t, time.Since(began), ttl/10, "the waiter was not woken")
					return
				}
				l.StopExtending()
				r := <-got
				require.NoError(t, r.err)
				require.Equal(t, 2, r.lease.Attempt())
				require.Less(t, time.Since(began), ttl+ttl/10)
			})
		})
	}
}

func TestSequenceTellsHowFarAKeyHasCome(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithIdentity("a"))
		read := func() redlock.SequenceState {
			s, err := q.Sequence(t.Context(), "key")
			require.NoError(t, err)
			return s
		}
		require.Zero(t, read())
		l := acquire(t, q, atLeastOnce(3))
		require.Equal(t, redlock.SequenceState{Granted: 3, Attempts: 1, Identity: "a"}, read())
		finish(t, l.Release)
		start := time.Now()
		l = acquire(t, q, atLeastOnce(3))
		time.Sleep(3 * time.Second)
		finish(t, l.Complete)
		began, done := start.Truncate(time.Millisecond), time.Now().Truncate(time.Millisecond)
		require.Equal(t, redlock.SequenceState{Granted: 3, Attempts: 2, Completed: 3, BeganAt: began, CompletedAt: done, Identity: "a"}, read())
		time.Sleep(ttl)
		l = acquire(t, q, atLeastOnce(5))
		require.Equal(t, redlock.SequenceState{Granted: 3, Completed: 3, BeganAt: began, CompletedAt: done}, l.Previous())
		finish(t, l.Release)
		l = acquire(t, q, atLeastOnce(6))
		require.Equal(t, int64(5), l.Previous().Granted)
		require.Equal(t, int64(3), l.Previous().Completed)
		finish(t, l.Abandon)
		require.Equal(t, int64(5), read().Granted)
		require.Zero(t, acquire(t, q).Previous(), "not of the sequence")

		freeze(t, fleet, 0, 1)
		_, err := q.Sequence(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		thaw(t, fleet, 0, 1)
		_, err = q.Sequence(t.Context(), "")
		require.Equal(t, "invalid", redlock.ErrorType(err))
		require.NoError(t, q.Close())
		_, err = q.Sequence(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrClosed)
	})
}

// All at the very same moment, again and again: votes are split, failed attempts are taken back,
// and one gets it.
func TestOnceSplitVotes(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		var quorums []*redlock.Quorum
		for range 4 {
			q := open(t, fleet)
			synctest.Wait()
			quorums = append(quorums, q)
		}
		for n := int64(1); n <= 50; n++ {
			var mu sync.Mutex
			var granted []*redlock.Lease
			var work sync.WaitGroup
			for _, q := range quorums {
				work.Go(func() {
					l, err := q.TryAcquire(t.Context(), "key", atMostOnce(n))
					if err == nil {
						mu.Lock()
						granted = append(granted, l)
						mu.Unlock()
					}
				})
			}
			work.Wait()
			require.Len(t, granted, 1, "number %d", n)
			finish(t, granted[0].Release)
		}
	})
}

func TestOnceOptions(t *testing.T) {
	q, err := redlock.Open([]string{"valkey://127.0.0.1:1"}, redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer q.Close()
	for _, test := range []struct {
		opt  redlock.LeaseOption
		text string
	}{
		{redlock.WithSequence(0, redlock.AtMostOnce, time.Hour), "sequence 0 is not between 1 and MaxSequence"},
		{redlock.WithSequence(redlock.MaxSequence+1, redlock.AtMostOnce, time.Hour), "is not between"},
		{redlock.WithSequence(1, redlock.Delivery(7), time.Hour), "Delivery(7) is neither"},
		{redlock.WithSequence(1, redlock.AtLeastOnce, 0), "kept for 0s"},
		{redlock.WithSequence(1, redlock.AtLeastOnce, time.Second), "below the TTL of 10s"},
	} {
		var oe *redlock.OptionError
		require.ErrorAs(t, q.Validate("key", test.opt), &oe)
		require.Equal(t, "WithSequence", oe.Option)
		require.Contains(t, oe.Error(), test.text)
	}
	require.NoError(t, q.Validate("key", redlock.WithSequence(redlock.MaxSequence, redlock.AtLeastOnce, redlock.DefaultTTL)))
	require.Equal(t, "at most once", redlock.AtMostOnce.String())
	require.Equal(t, "at least once", redlock.AtLeastOnce.String())
}
