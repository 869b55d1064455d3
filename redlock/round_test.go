package redlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

func TestRoundEndsWhenItsOutcomeIsCertain(t *testing.T) {
	const y, n, x = wire.OK, wire.Refused, wire.Failed
	for _, test := range []struct {
		nodes, need int
		verdicts    []wire.Verdict // in the order of arrival
		ends        int            // after so many replies
		success     bool
	}{
		{1, 1, []wire.Verdict{y}, 1, true},
		{1, 1, []wire.Verdict{x}, 1, false},
		{3, 2, []wire.Verdict{y, y, y}, 2, true},
		{3, 2, []wire.Verdict{n, y, y}, 3, true},
		{3, 2, []wire.Verdict{n, x, y}, 2, false},
		{5, 3, []wire.Verdict{y, y, y, n, n}, 3, true},
		{5, 3, []wire.Verdict{x, n, y, y, y}, 5, true},
		{5, 3, []wire.Verdict{y, y, x, n, x}, 5, false},
		{5, 3, []wire.Verdict{x, x, x, y, y}, 3, false},
		// Trap 6: with an even number a tie is a failure, not a wait.
		{2, 2, []wire.Verdict{y, n}, 2, false},
		{2, 2, []wire.Verdict{n, y}, 1, false},
		{4, 3, []wire.Verdict{y, y, n, n}, 4, false},
		{4, 3, []wire.Verdict{n, y, n, y}, 3, false},
	} {
		t.Run(fmt.Sprint(test.nodes, test.verdicts), func(t *testing.T) {
			rd := newRound(OpAcquire, test.nodes, test.need)
			calls := 0
			rd.follow = &followed{end: func() { calls++ }}
			for i, v := range test.verdicts {
				require.Equal(t, i >= test.ends, isDone(rd), "after %d replies", i)
				rd.settle(i, reply{Answer: wire.Answer{Verdict: v}})
			}
			require.True(t, isDone(rd))
			require.Equal(t, 1, calls)
			require.Equal(t, test.success, rd.outcome().success)
		})
	}
}

func isDone(rd *round) bool {
	select {
	case <-rd.done:
		return true
	default:
		return false
	}
}

// Whatever the order of the replies, a round ends with the wire.Verdict of the complete tally, and
// not before that wire.Verdict is certain.
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
		rd := newRound(OpAcquire, nodes, need)
		got, missed := 0, 0
		for _, i := range order {
			undecided := got < need && got+(nodes-got-missed) >= need
			require.Equal(t, undecided, !isDone(rd))
			rd.settle(i, reply{Answer: wire.Answer{Verdict: verdicts[i]}})
			if verdicts[i] == wire.OK {
				got++
			} else {
				missed++
			}
		}
		require.Equal(t, total >= need, rd.outcome().success)
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
	rd := newRound(OpAcquire, 3, 2)
	rd.settle(0, reply{Answer: wire.Answer{Verdict: wire.OK}})
	rd.settle(0, reply{Answer: wire.Answer{Verdict: wire.OK}})
	require.False(t, isDone(rd))
	rd.settle(0, reply{Answer: wire.Answer{Verdict: wire.Failed}})
	rd.settle(1, reply{Answer: wire.Answer{Verdict: wire.OK}})
	require.True(t, rd.outcome().success)
}

func TestRoundPassesLateReplies(t *testing.T) {
	rd := newRound(OpExtend, 3, 2)
	var late []reply
	rd.follow = &followed{after: func(rep reply) { late = append(late, rep) }}
	rd.settle(0, reply{Answer: wire.Answer{Verdict: wire.OK}})
	rd.settle(1, reply{Answer: wire.Answer{Verdict: wire.OK}})
	require.Empty(t, late)
	rd.settle(2, reply{Answer: wire.Answer{Verdict: wire.Refused}})
	require.Len(t, late, 1)
	require.Equal(t, 2, rd.outcome().agreed)
}

func TestRoundWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd := newRound(OpAcquire, 3, 2)
		start := time.Now()
		require.NoError(t, rd.wait(t.Context(), time.Second, &timers{}))
		require.Equal(t, time.Second, time.Since(start))
		require.True(t, rd.outcome().expired)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, newRound(OpAcquire, 3, 2).wait(ctx, time.Second, &timers{}), context.Canceled)
	})
}

func TestQuorumErrorNamesSilentNodesOnlyAfterTheTimeout(t *testing.T) {
	q := &Quorum{need: 2, nodes: []*node{{addr: "a:1"}, {addr: "b:2"}, {addr: "c:3"}}}
	rd := newRound(OpAcquire, 3, 2)
	rd.settle(1, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: &NodeError{Node: "b:2", Op: OpAcquire, Err: errors.New("refused")}})
	rd.settle(2, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: &NodeError{Node: "c:3", Op: OpAcquire, Err: errors.New("refused")}})
	err := q.quorumError(OpAcquire, "k", rd.outcome())
	require.Equal(t, `redlock: no quorum to acquire "k": 0 of 3 nodes, 2 needed, 1 not waited for: node b:2: acquire: refused; node c:3: acquire: refused`, err.Error())
	require.Equal(t, "no_quorum", err.ErrorType())

	rd = newRound(OpAcquire, 3, 2)
	rd.settle(0, reply{Answer: wire.Answer{Verdict: wire.OK}})
	rd.expire()
	err = q.quorumError(OpAcquire, "k", rd.outcome())
	require.Len(t, err.Errs, 2)
	require.ErrorIs(t, err, ErrTimeout)
	require.Equal(t, "timeout", err.ErrorType())
}

// followed is a follower made of functions, which may be nil.
type followed struct {
	end   func()
	after func(reply)
}

func (f *followed) ended(*round) {
	if f.end != nil {
		f.end()
	}
}

func (f *followed) late(_ *round, _ int, rep reply) {
	if f.after != nil {
		f.after(rep)
	}
}
