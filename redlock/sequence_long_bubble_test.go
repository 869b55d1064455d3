//go:build long

package redlock_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A holder's number is told to those who ask for one.
func TestOnceHeldErrorNamesTheSequence(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		sequence := func(opts ...redlock.LeaseOption) int64 {
			_, err := q.TryAcquire(t.Context(), "key", opts...)
			var held *redlock.HeldError
			require.ErrorAs(t, err, &held)
			return held.Sequence
		}
		l := acquire(t, q, atMostOnce(3))
		require.Equal(t, int64(3), sequence(atMostOnce(3)))
		require.Equal(t, int64(3), sequence(atMostOnce(4)))
		require.Zero(t, sequence(), "who does not ask is not told")
		finish(t, l.Release)
		acquire(t, q) // a holder without a number
		require.Zero(t, sequence(atMostOnce(4)))
	})
}

// Who asks for the holder is told its number, and not that of a holder before it.
func TestHolderTellsItsNumber(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		number := func() int64 {
			h, err := q.Holder(t.Context(), "key")
			require.NoError(t, err)
			return h.Sequence
		}
		l := acquire(t, q, atMostOnce(3))
		require.Equal(t, int64(3), number())
		finish(t, l.Complete)
		l = acquire(t, q)
		require.Zero(t, number(), "the record is there, of the lease before")
		finish(t, l.Release)
		l = acquire(t, q, atMostOnce(4))
		synctest.Wait() // until the node behind the quorum has the record too
		for i := range 3 {
			command(t, fleet.Node(i), "SET", recordKey, "no record")
		}
		require.Zero(t, number())
		for i := range 3 {
			command(t, fleet.Node(i), "DEL", recordKey)
			command(t, fleet.Node(i), "RPUSH", recordKey, "no text")
		}
		require.Zero(t, number())
		finish(t, l.Release)
	})
}

// Who has not begun to work can give its number back.
func TestForgoneSequenceIsGrantedAgain(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q, atMostOnce(3)).Complete)
		finish(t, acquire(t, q, atMostOnce(4)).Abandon)
		require.Equal(t, 1, acquire(t, q, atMostOnce(4)).Attempt())
	})
	t.Run("after an extension put it on another node", func(t *testing.T) {
		bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			finish(t, acquire(t, q, atMostOnce(3)).Complete)
			require.NoError(t, fleet.Node(2).Kill())
			l := acquire(t, q, atMostOnce(4))
			require.NoError(t, fleet.Node(2).Restart(true))
			time.Sleep(2*quarantine + ttl)
			finish(t, l.Abandon)
			for i := range 3 {
				record, _ := fleet.Node(i).Get(recordKey)
				require.Regexp(t, `^1 \S* 3 1 0 3 \d+ \d+ 3 1     $`, record, "node %d", i)
			}
		})
	})
}

// A process whose clock is wrong does not use up the ticks of the others.
func TestOnceTickAheadOfTheServersIsRefused(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithClockSkew(time.Second))
		at := func(ahead time.Duration) error {
			l, err := q.TryAcquire(t.Context(), "key", redlock.WithTick(time.Now().Add(ahead), redlock.AtMostOnce, time.Hour))
			if err == nil {
				require.Equal(t, time.Now().Add(ahead).UnixMilli(), l.Sequence())
				finish(t, l.Release)
			}
			return err
		}
		require.NoError(t, at(-time.Hour))
		require.NoError(t, at(time.Second))
		err := at(time.Hour)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "3600 s ahead of the server's clock")
		time.Sleep(time.Minute)
		require.NoError(t, at(0))
		require.NoError(t, acquire(t, q, atMostOnce(time.Now().Add(time.Hour).UnixMilli())).Release(t.Context()), "a number is not a time")
	})
	var oe *redlock.OptionError
	q, err := redlock.Open([]string{"valkey://127.0.0.1:1"}, redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer q.Close()
	require.ErrorAs(t, q.Validate("key", redlock.WithTick(time.Time{}, redlock.AtMostOnce, time.Hour)), &oe)
	require.Equal(t, "WithTick", oe.Option)
}

// The rollback of an attempt that was slow does not take back what another one has recorded since.
func TestOnceUndoIsTheOwners(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		begin(t, fleet, q, atMostOnce(2))
		l := acquire(t, q, atMostOnce(3), redlock.WithoutAutoExtend())
		synctest.Wait()
		<-l.Context().Done()
		time.Sleep(ttl)
		finish(t, acquire(t, q, atMostOnce(4)).Complete)
		require.ErrorIs(t, l.Abandon(t.Context()), redlock.ErrLost)
		synctest.Wait()
		requireDone(t, q, atMostOnce(4))
		for i := range 3 {
			record, _ := fleet.Node(i).Get(recordKey)
			require.Regexp(t, `^1 \S* 4 1 \d+ 4 \d+ \d+ 3 1 `, record)
		}
	})
}

func TestExtensionSpreadsTheSequence(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		require.NoError(t, fleet.Node(2).Kill())
		l := acquire(t, q, atMostOnce(9))
		require.NoError(t, fleet.Node(2).Restart(false))
		time.Sleep(2*quarantine + ttl)
		require.NoError(t, l.Err())
		record, _ := fleet.Node(2).Get(recordKey)
		require.Regexp(t, `^1 \S* 9 1 0 0 0 0 0 0 `, record)
	})
}

// A node that granted the number to an earlier holder, and not to the one that completed it, does
// not know when that began.
func TestCompletionIsNotSaidToHaveBegunWithAnEarlierHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		first := acquire(t, q, atLeastOnce(3))
		synctest.Wait() // until the node behind the quorum has it too
		require.NoError(t, fleet.Node(2).Kill())
		first.StopExtending()
		<-first.Context().Done() // a holder that died
		time.Sleep(ttl)
		second := acquire(t, q, atLeastOnce(3))
		began := time.Now().Truncate(time.Millisecond)
		require.NoError(t, fleet.Node(2).Restart(true))
		time.Sleep(3 * time.Second)
		finish(t, second.Complete)
		record, _ := fleet.Node(2).Get(recordKey)
		require.Regexp(t, `^1 \S* 3 1 \d+ 3 0 \d+ `, record, "it says when the first holder began")
		s, err := q.Sequence(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, began, s.BeganAt)
		require.Equal(t, time.Now().Truncate(time.Millisecond), s.CompletedAt)
	})
}

// How long a run took is what one server says, not the beginning by one clock and the end by
// another.
func TestSequenceTakesBeginningAndEndFromOneNode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		records    [2]string
		began, end int64
	}{
		{"the earliest end", [2]string{"3 1 0 3 50 210 0 0", "3 1 0 3 60 190 0 0"}, 60, 190},
		{"of the one that knows both", [2]string{"3 1 0 3 0 150 0 0", "3 1 0 3 50 210 0 0"}, 50, 210},
		{"of the largest number", [2]string{"3 1 0 2 10 20 0 0", "3 1 0 3 50 210 0 0"}, 50, 210},
		{"no node knows both", [2]string{"3 1 0 3 0 150 0 0", "3 1 0 3 0 160 0 0"}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				freeze(t, fleet, 2)
				var began, end time.Time
				if test.end != 0 {
					began, end = time.UnixMilli(test.began), time.UnixMilli(test.end)
				}
				for i, numbers := range test.records {
					setRecord(t, fleet, i, numbers, "a")
				}
				s, err := q.Sequence(t.Context(), "key")
				require.NoError(t, err)
				require.Equal(t, [2]time.Time{began, end}, [2]time.Time{s.BeganAt, s.CompletedAt})
				previous := acquire(t, q, atLeastOnce(4)).Previous()
				require.Equal(t, [2]time.Time{began, end}, [2]time.Time{previous.BeganAt, previous.CompletedAt})
			})
		})
	}
}

// The label of the last grant is told to those who read, to those who are granted the next number,
// and to those who are refused.
func TestLabelIsThatOfTheLastGrant(t *testing.T) {
	const odd = "0 3 * * * Europe/Berlin é %2B +  x"
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		read := func() string {
			s, err := q.Sequence(t.Context(), "key")
			require.NoError(t, err)
			return s.Label
		}
		begin(t, fleet, q, redlock.WithLabel(odd), atMostOnce(3))
		require.Equal(t, odd, read())
		require.Equal(t, odd, requireDone(t, q, atMostOnce(3)).Label)
		l := acquire(t, q, atMostOnce(4), redlock.WithLabel("other"))
		require.Equal(t, odd, l.Previous().Label)
		require.Equal(t, "other", read())
		finish(t, l.Abandon)
		require.Equal(t, odd, read(), "a grant that was taken back has taken its label with it")
		finish(t, acquire(t, q, atMostOnce(5)).Complete)
		require.Empty(t, read())
		require.Empty(t, requireDone(t, q, atMostOnce(5)).Label)

		var oe *redlock.OptionError
		require.ErrorAs(t, q.Validate("key", redlock.WithLabel(strings.Repeat("x", redlock.MaxLabelLength+1))), &oe)
		require.ErrorAs(t, q.Validate("key", redlock.WithLabel("\xff")), &oe)
		require.NoError(t, q.Validate("key", redlock.WithLabel(strings.Repeat("x", redlock.MaxLabelLength))))
	})
}
