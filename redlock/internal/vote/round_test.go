package vote

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Whatever the order of the replies, a round ends with the verdict of the complete tally, and
// not before that verdict is certain.
func TestRoundNeverDecidesTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 9).Draw(t, "nodes")
		need := nodes/2 + 1
		verdicts := rapid.SliceOfN(rapid.SampledFrom([]wire.Verdict{wire.OK, wire.Refused, wire.Failed}), nodes, nodes).Draw(t, "verdicts")
		order := rapid.Permutation(seq(nodes)).Draw(t, "order")
		total := 0
		for _, v := range verdicts {
			if v == wire.OK {
				total++
			}
		}
		rd := newRound(nodes, need)
		got, missed := 0, 0
		for _, i := range order {
			undecided := got < need && got+(nodes-got-missed) >= need
			require.Equal(t, undecided, !rd.IsOver())
			rd.Answer(i, Reply{Answer: wire.Answer{Verdict: verdicts[i]}})
			if verdicts[i] == wire.OK {
				got++
			} else {
				missed++
			}
		}
		require.Equal(t, total >= need, rd.Outcome().Success)
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestRoundCountsANodeOnce(t *testing.T) {
	rd := newRound(3, 2)
	rd.Answer(0, Reply{Answer: wire.Answer{Verdict: wire.OK}})
	rd.Answer(0, Reply{Answer: wire.Answer{Verdict: wire.OK}})
	require.False(t, rd.IsOver())
	rd.Answer(0, Reply{Answer: wire.Answer{Verdict: wire.Failed}})
	rd.Answer(1, Reply{Answer: wire.Answer{Verdict: wire.OK}})
	require.True(t, rd.Outcome().Success)
}

// followed is a follower made of a function.
type followed struct{ late func(*Reply) }

func (f followed) Late(_ int, rep *Reply) { f.late(rep) }

// newRound makes a round.
func newRound(nodes, need int) *Round {
	r := &Round{}
	r.Start(nodes, need)
	return r
}

// What has come before somebody follows is told at once, and what comes then, later.
func TestRoundIsLeftToOneFollower(t *testing.T) {
	for _, nodes := range []int{5, 9} {
		rd := newRound(nodes, 2)
		answer := func(slot int, v wire.Verdict) {
			rd.Answer(slot, Reply{Answer: wire.Answer{Verdict: v, Token: uint64(slot)}})
		}
		answer(0, wire.OK)
		answer(3, wire.Refused)
		answer(1, wire.OK)
		require.True(t, rd.IsOver())
		answer(4, wire.OK) // nobody follows
		var late []uint64
		came := rd.LeaveTo(followed{func(rep *Reply) { late = append(late, rep.Token) }}, func(_ int, rep *Reply) bool { return rep.Verdict == wire.OK })
		require.Len(t, came, 3)
		for i, slot := range []int{0, 1, 4} {
			require.Equal(t, slot, came[i].Slot)
			require.EqualValues(t, slot, came[i].Token)
		}
		answer(2, wire.Failed)
		answer(2, wire.OK)
		require.Equal(t, []uint64{2}, late)
	}
}

// A round with a rule of its own ends by that, or when all have answered.
func TestRoundWithARule(t *testing.T) {
	rd := newRound(3, 1)
	rd.Decided = func(replies []Reply) bool { return Count(replies, wire.Failed) == 2 }
	rd.Answer(0, Reply{Answer: wire.Answer{Verdict: wire.OK}})
	rd.Skip(1, wire.Failed)
	require.False(t, rd.IsOver())
	rd.Skip(2, wire.Failed)
	require.True(t, rd.IsOver())
	rd = newRound(2, 1)
	rd.Decided = func([]Reply) bool { return false }
	rd.Skip(0, wire.OK)
	require.False(t, rd.IsOver())
	rd.Skip(1, wire.OK)
	require.True(t, rd.IsOver())
}

// A round that needs nobody has succeeded, whoever refuses. Its outcome is what was known then:
// later answers do not change it.
func TestRoundThatNeedsNobody(t *testing.T) {
	rd := newRound(3, 0)
	rd.Skip(0, wire.Refused)
	require.True(t, rd.IsOver())
	o := rd.Outcome()
	require.True(t, o.Success)
	rd.Skip(1, wire.OK)
	require.Equal(t, wire.Pending, o.Replies[1].Verdict)
	require.Equal(t, 1, rd.Tally().Agreed)
}

// The tally counts verdicts, and the smallest token of those that agreed.
func TestTally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 9).Draw(t, "nodes")
		rd := newRound(nodes, nodes/2+1)
		want := Tally{}
		for i := range nodes {
			rep := Reply{Answer: wire.Answer{
				Verdict: rapid.SampledFrom([]wire.Verdict{wire.OK, wire.Refused, wire.Failed}).Draw(t, "verdict"),
				Token:   rapid.Uint64Range(0, 3).Draw(t, "token"),
			}}
			rd.Answer(i, rep)
		}
		o := rd.Outcome()
		want.Agreed, want.Refused, want.Failed = Count(o.Replies, wire.OK), Count(o.Replies, wire.Refused), Count(o.Replies, wire.Failed)
		want.Success = want.Agreed > nodes/2
		if want.Agreed > 0 {
			want.Token = math.MaxUint64
		}
		for _, rep := range o.Replies {
			if rep.Verdict == wire.OK {
				want.Token = min(want.Token, rep.Token)
			}
		}
		for _, rep := range o.Replies {
			if rep.Verdict == wire.OK && rep.Token == want.Token {
				want.Same++
			}
		}
		require.Equal(t, want, rd.Tally())
		require.Equal(t, want, o.Tally)
	})
}

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
		require.NoError(t, rd.Wait(t.Context(), time.Hour))
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
	require.ErrorIs(t, rd.Wait(ctx, time.Hour), context.Canceled)
	require.True(t, rd.IsOver())
	late := 0
	require.Empty(t, rd.LeaveTo(followed{func(*Reply) { late++ }}, all), "nobody has answered")
	rd.Skip(1, wire.OK)
	require.Equal(t, 1, late)
}

// A Memory that is used again has nothing of the round before: neither its end, nor its timer.
func TestMemoryIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd := &Round{}
		begin := func(nodes int) time.Time {
			synctest.Wait() // until nothing uses it
			*rd = Round{Memory: rd.Memory}
			rd.Start(nodes, nodes/2+1)
			return time.Now()
		}
		for _, d := range []time.Duration{time.Second, time.Minute, time.Millisecond} {
			for range 5 {
				start := begin(3)
				require.NoError(t, rd.Wait(t.Context(), d))
				require.Equal(t, d, time.Since(start))
				require.True(t, rd.Outcome().Expired)
				start = begin(1) // its timer has time left when it ends
				time.AfterFunc(d/2, func() { rd.Skip(0, wire.OK) })
				require.NoError(t, rd.Wait(t.Context(), d))
				require.Equal(t, d/2, time.Since(start))
			}
			begin(1)
			rd.Skip(0, wire.OK) // nobody waits for it
			begin(3)
			require.False(t, rd.IsOver())
		}
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
