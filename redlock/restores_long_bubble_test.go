//go:build long

package redlock_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// requireKnown has all nodes know the sequence of the key "key", soon: a node that answers when a
// quorum has granted is restored in the background.
func requireKnown(t *testing.T, fleet *redlocktest.Fleet) {
	t.Helper()
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	for i := range fleet.Nodes() {
		require.True(t, knows(t, fleet, i), "node %d", i)
	}
}

// begin has a key of which all nodes know that the number was granted and completed.
func begin(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum, opts ...redlock.LeaseOption) {
	t.Helper()
	l := acquire(t, q, opts...)
	synctest.Wait() // until the nodes behind the quorum have it too
	finish(t, l.Complete)
	requireKnown(t, fleet)
}

// restartsOneByOne empties the nodes one after the other, as an operator does who keeps to the
// documents: 20 s apart where the quarantine is 14 s.
func restartsOneByOne(t *testing.T, fleet *redlocktest.Fleet, between func()) {
	t.Helper()
	for i := range fleet.Nodes() {
		restart(t, fleet, i)
		time.Sleep(quarantine + 6*time.Second)
		if between != nil {
			between()
			synctest.Wait() // what goes on in the background takes milliseconds
		}
	}
}

// Reading is enough, and so is asking for a number: what was granted once is not granted again.
func TestSequenceIsRestoredByThoseWhoAsk(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*testing.T, *redlock.Quorum){
		"read": func(t *testing.T, q *redlock.Quorum) {
			s, err := q.Sequence(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, int64(5), s.Granted)
		},
		"refused": func(t *testing.T, q *redlock.Quorum) { requireDone(t, q, atMostOnce(5)) },
		"granted": func(t *testing.T, q *redlock.Quorum) { finish(t, acquire(t, q, atMostOnce(6)).Abandon) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				finish(t, acquire(t, q, atMostOnce(5)).Release)
				restartsOneByOne(t, fleet, func() { ask(t, q) })
				requireDone(t, q, atMostOnce(5))
			})
		})
	}
}

// One node that knows is not outvoted by those that have forgotten: they learn from it before it is
// asked.
func TestSequenceReadsOnlyNodesThatKnow(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(5))
		restart(t, fleet, 0, 1)
		time.Sleep(2 * quarantine)
		freeze(t, fleet, 2)
		time.AfterFunc(time.Millisecond, func() { thaw(t, fleet, 2) })
		s, err := q.Sequence(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, int64(5), s.Granted)
		requireKnown(t, fleet)
	})
}

// A node that does not know has no vote for a number, is asked to know first, and votes in the same
// attempt.
func TestAcquisitionRestoresWhatItNeeds(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(4))
		l := acquire(t, q, atMostOnce(5))
		synctest.Wait()
		finish(t, l.Release)
		restart(t, fleet, 1)
		time.Sleep(2 * quarantine)
		require.NoError(t, fleet.Node(2).Kill())
		requireDone(t, q, atMostOnce(5))
		require.True(t, knows(t, fleet, 1))
		finish(t, acquire(t, q, atMostOnce(6)).Release)
		require.NoError(t, fleet.Node(2).Restart(true))
		time.Sleep(2 * quarantine)
		require.False(t, knows(t, fleet, 2), "what it has is of an earlier process")
		l = acquire(t, q, atMostOnce(7))
		synctest.Wait() // a release would take back what was not sent to the node yet
		finish(t, l.Release)
		requireKnown(t, fleet)
	})
}

// What was granted is on a quorum, and any quorum of the others has it: one of them alone may not.
func TestRestoreReadsAQuorumOfOthers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(4))
		freeze(t, fleet, 2)
		finish(t, acquire(t, q, atMostOnce(5)).Release)
		thaw(t, fleet, 2)
		time.Sleep(ttl)
		setRecord(t, fleet, 2, "4 1 0 0 0 0 0 0", "a") // as if it had never heard of it
		restart(t, fleet, 0)
		time.Sleep(2 * quarantine)
		const late = 20 * time.Millisecond // node 1 answers last
		fleet.Node(1).SetDelay(late)
		l := acquire(t, q, atMostOnce(6), redlock.WithoutAutoExtend())
		time.Sleep(late + late/4)
		record, _ := fleet.Node(0).Get(recordKey)
		require.Regexp(t, `^1 \S+ 5 `, record)
		finish(t, l.Abandon)
	})
}

// A quorum that knows waits for nobody.
func TestQuorumThatKnowsDoesNotWait(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(5))
		fleet.Node(0).FlushAll()
		freeze(t, fleet, 1)
		start := time.Now()
		l := acquire(t, q, atMostOnce(6))
		require.Zero(t, time.Since(start))
		thaw(t, fleet, 1)
		finish(t, l.Release)
		requireKnown(t, fleet)
	})
}

// A node that lost its data while it ran is noticed at the next number.
func TestFlushedNodeIsRestored(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		for n := int64(1); n <= 10; n++ {
			finish(t, acquire(t, q, atMostOnce(n)).Release)
			for i := range 2 {
				fleet.Node((i + int(n)) % 5).FlushAll()
			}
			requireDone(t, q, atMostOnce(n))
		}
	})
}

// Votes are split, and nodes forget what they have recorded: one gets it all the same.
func TestOnceSplitVotesWithNodesThatForget(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		var quorums []*redlock.Quorum
		for range 4 {
			quorums = append(quorums, open(t, fleet))
			synctest.Wait()
		}
		random := rand.New(rand.NewPCG(1, 2))
		for n := int64(1); n <= 50; n++ {
			fleet.Node(random.IntN(5)).FlushAll()
			var mu sync.Mutex
			var granted []*redlock.Lease
			var work sync.WaitGroup
			for _, q := range quorums {
				work.Go(func() {
					if l, err := q.TryAcquire(t.Context(), "key", atMostOnce(n)); err == nil {
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
		requireKnown(t, fleet)
	})
}

// Leases without a number wait for nothing that nodes know of numbers.
func TestPlainLeaseDoesNotWaitForASequence(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q, atMostOnce(5)).Release)
		for _, n := range fleet.Nodes() {
			n.FlushAll()
			n.SetDelay(10 * time.Millisecond)
		}
		start := time.Now()
		l := acquire(t, q)
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		finish(t, l.Release)
		for i := range 3 {
			_, there := fleet.Node(i).Get(recordKey)
			require.False(t, there)
		}
	})
}

// On nodes that know, a number costs the round and the commands of a lease without one.
func TestNumberCostsNoFurtherCommand(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		defer q.KeepSequence("key")()
		begin(t, fleet, q, atMostOnce(1))
		time.Sleep(ttl / 2) // until it was looked at because it is kept
		for i, n := range fleet.Nodes() {
			before := n.Commands()
			l := acquire(t, q, atMostOnce(int64(2+i)))
			synctest.Wait()
			finish(t, l.Complete)
			require.Equal(t, 2, n.Commands()-before, "an acquisition and a release")
		}
	})
}

// A new job is nothing to report, with a node that is down too.
func TestNewSequenceIsNoNews(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprintf("down=%v", down), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))))
				if down {
					require.NoError(t, fleet.Node(2).Kill())
				}
				s, err := q.Sequence(t.Context(), "key")
				require.NoError(t, err)
				require.Zero(t, s)
				l := acquire(t, q, atMostOnce(1))
				require.Zero(t, l.Previous())
				finish(t, l.Release)
				requireDone(t, q, atMostOnce(1))
				require.Empty(t, log.String())
			})
		})
	}
}

// After a power cut of all nodes what was on disk is taken, and said.
func TestOldRecordsAreTakenWhereNobodyKnows(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))))
		setOldRecord(t, fleet, 0, "abc", "4 1 0 4 10 20 0 0", "a")
		setOldRecord(t, fleet, 1, "", "5 1 0 3 10 20 4 1", "b")
		s, err := q.Sequence(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, redlock.SequenceState{Granted: 5, Completed: 4, Attempts: 1, Identity: "b",
			BeganAt: time.UnixMilli(10), CompletedAt: time.UnixMilli(20)}, s)
		require.Contains(t, log.String(), "too few nodes know how far a sequence has come")
		require.Contains(t, log.String(), "key=key granted=5 completed=4")
		require.Equal(t, 1, strings.Count(log.String(), "\n"), "%s", &log)
		requireDone(t, q, atMostOnce(5))
	})
}

// One node has nobody else to ask.
func TestOneNodeRestoresItself(t *testing.T) {
	bubble(t, 1, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q, atMostOnce(5)).Release)
		require.NoError(t, fleet.Node(0).Restart(true))
		time.Sleep(2 * quarantine)
		s, err := q.Sequence(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, int64(5), s.Granted)
		requireDone(t, q, atMostOnce(5))
	})
}

// What is written to a node that does not know stays, and does not make it known.
func TestWritingDoesNotMakeANodeKnow(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atLeastOnce(3))
		l := acquire(t, q, atLeastOnce(4))
		synctest.Wait()
		fleet.Node(2).FlushAll()
		require.NoError(t, l.Extend(t.Context())) // which spreads the number
		synctest.Wait()
		record, _ := fleet.Node(2).Get(recordKey)
		require.Regexp(t, `^1  4 1 0 0 0 0 0 0 `, record)
		finish(t, l.Complete)
		record, _ = fleet.Node(2).Get(recordKey)
		require.Regexp(t, `^1  4 1 0 4 0 \d+ 0 0 `, record)
		require.False(t, knows(t, fleet, 2))
		l = acquire(t, q, atLeastOnce(5))
		synctest.Wait() // what was not sent to the node yet would be taken back
		finish(t, l.Abandon)
		requireKnown(t, fleet)
	})
}

// The number that an attempt recorded before it failed for want of nodes that know is not copied to
// them.
func TestOwnFailedAttemptIsNotRestored(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(1))
		fleet.Node(1).FlushAll()
		require.NoError(t, fleet.Node(2).Kill())
		l := acquire(t, q, atMostOnce(2))
		require.Equal(t, 1, l.Attempt())
		require.Equal(t, int64(1), l.Previous().Completed)
		record, _ := fleet.Node(1).Get(recordKey)
		require.Regexp(t, `^1 \S+ 2 1 \d+ 1 \d+ \d+ 1 1 `, record)
	})
}

// A holder that gives its number back gives it back everywhere: what it has restored is without it.
func TestForgoneNumberIsNotRestored(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(4))
		fleet.Node(2).FlushAll()
		l := acquire(t, q, atMostOnce(5))
		requireKnown(t, fleet)
		finish(t, l.Abandon)
		for i := range 3 {
			record, _ := fleet.Node(i).Get(recordKey)
			require.Regexp(t, `^1 \S+ 4 `, record, "node %d", i)
		}
	})
}

// Kept sequences are restored in a few round trips, however many there are.
func TestKeptSequencesAreRestoredTogether(t *testing.T) {
	const keys = 300
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		for i := range keys {
			key := fmt.Sprintf("key%d", i)
			defer q.KeepSequence(key)()
			l, err := q.TryAcquire(t.Context(), key, atMostOnce(7))
			require.NoError(t, err)
			finish(t, l.Release)
		}
		for _, n := range fleet.Nodes() {
			n.SetDelay(10 * time.Millisecond)
		}
		restart(t, fleet, 1)
		began, came := time.Time{}, 0
		for deadline := time.Now().Add(3 * quarantine); time.Now().Before(deadline) && came < keys; time.Sleep(time.Millisecond) {
			came = 0
			for i := range keys {
				if _, there := fleet.Node(1).Get(fmt.Sprintf("tenure:{key%d}:once", i)); there {
					came++
				}
			}
			if came > 0 && began.IsZero() {
				began = time.Now()
			}
		}
		require.Equal(t, keys, came)
		require.Less(t, time.Since(began), 50*time.Millisecond, "one after the other takes seconds")
	})
}

// A key is kept until the last of those who keep it stops.
func TestKeepSequenceIsCounted(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(7))
		first, second := q.KeepSequence("key"), q.KeepSequence("key")
		q.KeepSequence("")()
		first()
		first()
		restart(t, fleet, 0)
		time.Sleep(3 * quarantine)
		require.True(t, knows(t, fleet, 0))
		second()
		restart(t, fleet, 0)
		time.Sleep(3 * quarantine)
		require.False(t, knows(t, fleet, 0))
		defer q.KeepSequence("key")()
		time.Sleep(ttl)
		require.True(t, knows(t, fleet, 0), "a node that votes already is looked at too")
		require.NoError(t, q.Close())
		q.KeepSequence("key")()
	})
}

// A node that cannot be restored at once, because too few others answer, is restored when they do.
func TestKeptSequenceIsRestoredWhenOthersAnswer(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(7))
		defer q.KeepSequence("key")()
		restart(t, fleet, 0)
		freeze(t, fleet, 1, 2)
		time.Sleep(3 * quarantine)
		require.False(t, knows(t, fleet, 0))
		thaw(t, fleet, 1, 2)
		time.Sleep(2 * ttl)
		require.True(t, knows(t, fleet, 0))
		requireDone(t, q, atMostOnce(7))
	})
}

// Whoever writes a number of the far future into the record of a job, on whatever nodes, stops no
// tick: what is more than a day ahead counts as no record, is restored from the others, spreads to
// none, and is told.
func TestTicksOfTheFutureStopNobody(t *testing.T) {
	t.Parallel()
	const nodes = 5
	for damaged := 1; damaged <= nodes; damaged++ {
		for _, field := range []int{2, 5} {
			t.Run(fmt.Sprint(damaged, " of ", nodes, ", field ", field), func(t *testing.T) {
				bubble(t, nodes, func(t *testing.T, fleet *redlocktest.Fleet) {
					var log lockedBuffer
					q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
					defer q.KeepSequence("key")()
					begin(t, fleet, q, tick())
					ran, err := q.Sequence(t.Context(), "key")
					require.NoError(t, err)
					for i := range damaged {
						record, _ := fleet.Node(i).Get(recordKey)
						fields := strings.SplitN(record, " ", 15)
						fields[field] = fmt.Sprint(time.Now().Add(365 * 24 * time.Hour).UnixMilli())
						set(t, fleet.Node(i), recordKey, strings.Join(fields, " "))
					}
					s, err := q.Sequence(t.Context(), "key")
					require.NoError(t, err)
					require.LessOrEqual(t, s.Granted, ran.Granted)
					if damaged < nodes {
						require.Equal(t, ran.Granted, s.Granted)
						require.Equal(t, ran.Completed, s.Completed)
						requireDone(t, q, redlock.WithTick(time.UnixMilli(ran.Granted), redlock.AtMostOnce, time.Hour))
					}
					begin(t, fleet, q, tick())
					restart(t, fleet, nodes-1)
					time.Sleep(quarantine + 6*time.Second)
					requireKnown(t, fleet)
					s, err = q.Sequence(t.Context(), "key")
					require.NoError(t, err)
					require.Less(t, s.Granted, time.Now().UnixMilli())
					told := strings.Count(log.String(), "something else in the place of a record")
					require.LessOrEqual(t, told, damaged)
					require.GreaterOrEqual(t, told, min(damaged, 1), "%s", &log)
				})
			})
		}
	}
}
