package vote

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

func all(int, *Reply) bool { return true }

// A round that is over expires no more, and one that has expired wakes who waits for it.
func TestExpiredRound(t *testing.T) {
	rd := newRound(1, 1)
	rd.Skip(0, wire.OK)
	rd.Expire()
	require.False(t, rd.Outcome().Expired)

	synctest.Test(t, func(t *testing.T) {
		rd := newRound(3, 2)
		time.AfterFunc(time.Second, rd.Expire)
		start := time.Now()
		require.NoError(t, rd.Wait(t.Context(), time.Hour, &Waits{}))
		require.Equal(t, time.Second, time.Since(start))
		rd.Expire()
		o := rd.Outcome()
		require.True(t, o.Expired)
		require.False(t, o.Success)
	})
}

// Who gives up leaves a round that is over, so that its late replies find the follower.
func TestRoundOfOneWhoGivesUp(t *testing.T) {
	rd := newRound(3, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, rd.Wait(ctx, time.Hour, &Waits{}), context.Canceled)
	require.True(t, rd.IsOver())
	late := 0
	require.Empty(t, rd.LeaveTo(followed{func(*Reply) { late++ }}, all), "nobody has answered")
	rd.Skip(1, wire.OK)
	require.Equal(t, 1, late)
}

// An outcome is what was known then. Later answers do not change it.
func TestOutcomeStays(t *testing.T) {
	rd := newRound(3, 1)
	rd.Skip(0, wire.OK)
	o := rd.Outcome()
	rd.Skip(1, wire.OK)
	require.Equal(t, wire.Pending, o.Replies[1].Verdict)
	require.Equal(t, 1, o.Agreed)
	require.Equal(t, 2, rd.Outcome().Agreed)
}

// A timer that is used again runs for the time of the second one.
func TestWaitsAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits Waits
		for _, d := range []time.Duration{time.Second, time.Minute, time.Millisecond} {
			for range 5 {
				start := time.Now()
				rd := newRound(3, 2)
				require.NoError(t, rd.Wait(t.Context(), d, &waits))
				require.Equal(t, d, time.Since(start))
				require.True(t, rd.Outcome().Expired)
			}
			short := newRound(1, 1) // its timer runs on, and fires while the next one waits
			time.AfterFunc(d/2, func() { short.Skip(0, wire.OK) })
			require.NoError(t, short.Wait(t.Context(), d, &waits))
			long, start := newRound(3, 2), time.Now()
			require.NoError(t, long.Wait(t.Context(), d, &waits))
			require.Equal(t, d, time.Since(start))
			rd := newRound(1, 1) // nobody waits for it
			rd.Skip(0, wire.OK)
			require.NoError(t, rd.Wait(t.Context(), d, &waits))
			require.False(t, rd.Outcome().Expired)
		}
	})
}

// A timer that is left to run does not expire the round that has been left, and whose memory may be
// another's by then.
func TestTimerLeavesARoundThatIsAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits Waits
		rd := newRound(3, 2)
		time.AfterFunc(time.Millisecond, func() { rd.Skip(0, wire.OK); rd.Skip(1, wire.OK) })
		require.NoError(t, rd.Wait(t.Context(), time.Second, &waits))
		synctest.Wait() // until who answered has done with it
		*rd = Round{}
		rd.Start(3, 2)
		time.Sleep(time.Minute)
		require.False(t, rd.IsOver())
	})
}

// A follower is told of each node once: at once, or when it answers.
func TestFollowerMissesNoReply(t *testing.T) {
	for range 200 {
		rd := newRound(9, 1)
		rd.Skip(0, wire.OK)
		var mu sync.Mutex
		told := make(map[uint64]int)
		tell := func(rep *Reply) {
			mu.Lock()
			defer mu.Unlock()
			told[rep.Token]++
		}
		var nodes sync.WaitGroup
		for slot := 1; slot < 9; slot++ {
			nodes.Go(func() { rd.Answer(slot, Reply{Answer: wire.Answer{Verdict: wire.OK, Token: uint64(slot)}}) })
		}
		nodes.Go(func() {
			for _, s := range rd.LeaveTo(followed{tell}, all) {
				tell(s.Reply)
			}
		})
		nodes.Wait()
		require.Len(t, told, 9)
		for slot, times := range told {
			require.Equal(t, 1, times, "node %d", slot)
		}
	}
}
