package redlock_test

import (
	"log/slog"
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

// Who has not begun to work can give its number back.
func TestForgoneSequenceIsGrantedAgain(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		finish(t, acquire(t, q, atMostOnce(3)).Complete)
		finish(t, acquire(t, q, atMostOnce(4)).Forgo)
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
			finish(t, l.Forgo)
			for i := range 3 {
				record, _ := fleet.Node(i).Get(recordKey)
				require.Regexp(t, `^3 1 0 3 \d+ \d+ 3 1 $`, record, "node %d", i)
			}
		})
	})
}

// A process whose clock is wrong does not use up the ticks of the others.
func TestOnceTickAheadOfTheServersIsRefused(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithClockSkew(time.Second))
		at := func(ahead time.Duration) error {
			l, err := q.TryAcquire(t.Context(), "key", redlock.WithOnceAt(time.Now().Add(ahead), redlock.AtMostOnce, time.Hour))
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
	require.ErrorAs(t, q.Validate("key", redlock.WithOnceAt(time.Time{}, redlock.AtMostOnce, time.Hour)), &oe)
	require.Equal(t, "WithOnceAt", oe.Option)
}

// The rollback of an attempt that was slow does not take back what another one has recorded since.
func TestOnceUndoIsTheOwners(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		l := acquire(t, q, atMostOnce(3), redlock.WithoutAutoExtend())
		synctest.Wait()
		<-l.Context().Done()
		time.Sleep(ttl)
		finish(t, acquire(t, q, atMostOnce(4)).Complete)
		require.ErrorIs(t, l.Forgo(t.Context()), redlock.ErrLost)
		synctest.Wait()
		requireDone(t, q, atMostOnce(4))
		for i := range 3 {
			record, _ := fleet.Node(i).Get(recordKey)
			require.Regexp(t, `^4 1 \d+ 4 \d+ \d+ 3 1 `, record)
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
		require.Regexp(t, `^9 1 0 0 0 0 0 0 `, record)
	})
}
