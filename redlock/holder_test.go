package redlock

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// How Holder takes the replies of a round.
func (q *Quorum) holderKind(replies []vote.Reply) string {
	most := mostSeen(replies)
	switch {
	case most >= q.need:
		return "held"
	case most+len(replies)-vote.Count(replies, wire.OK) < q.need:
		return "not held"
	default:
		return "no quorum"
	}
}

// Whatever the order of the replies, a round of Holder ends with what all of them say, and as soon
// as that is certain.
func TestHolderNeverDecidesTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 7).Draw(t, "nodes")
		q := &Quorum{need: nodes/2 + 1}
		answers := []vote.Reply{{Answer: wire.Answer{Verdict: wire.Failed}}, {Answer: wire.Answer{Verdict: wire.OK}}, {Answer: wire.Answer{Verdict: wire.OK}.With(wire.More{Owner: "a"})}, {Answer: wire.Answer{Verdict: wire.OK}.With(wire.More{Owner: "b"})}}
		all := rapid.SliceOfN(rapid.SampledFrom(answers), nodes, nodes).Draw(t, "replies")
		replies := make([]vote.Reply, nodes)
		for _, i := range rapid.Permutation(slots(nodes)).Draw(t, "order") {
			if q.holderCertain(replies) {
				break
			}
			replies[i] = all[i]
		}
		require.Equal(t, q.holderKind(all), q.holderKind(replies))
	})
	for _, test := range []struct {
		name    string
		replies []vote.Reply
		certain bool
	}{
		{"a failed node may hide a holder, and so may one that is asked still", []vote.Reply{{Answer: wire.Answer{Verdict: wire.Failed}}, {Answer: wire.Answer{Verdict: wire.OK}.With(wire.More{Owner: "a"})}, {}}, false},
		{"nothing is known", []vote.Reply{{}, {}, {}}, false},
		{"two know of nobody", []vote.Reply{{Answer: wire.Answer{Verdict: wire.OK}}, {Answer: wire.Answer{Verdict: wire.OK}}, {}}, true},
		{"two agree", []vote.Reply{{}, {Answer: wire.Answer{Verdict: wire.OK}.With(wire.More{Owner: "a"})}, {Answer: wire.Answer{Verdict: wire.OK}.With(wire.More{Owner: "a"})}}, true},
		{"two agree on the owner, and the third knows which token is right", []vote.Reply{{}, {Answer: wire.Answer{Verdict: wire.OK, Token: 1}.With(wire.More{Owner: "a"})}, {Answer: wire.Answer{Verdict: wire.OK, Token: 2}.With(wire.More{Owner: "a"})}}, false},
		{"two agree on the owner, and nobody knows which token is right", []vote.Reply{{Answer: wire.Answer{Verdict: wire.Failed}}, {Answer: wire.Answer{Verdict: wire.OK, Token: 1}.With(wire.More{Owner: "a"})}, {Answer: wire.Answer{Verdict: wire.OK, Token: 2}.With(wire.More{Owner: "a"})}}, true},
		{"two failed, and the third cannot tell alone", []vote.Reply{{Answer: wire.Answer{Verdict: wire.Failed}}, {Answer: wire.Answer{Verdict: wire.Failed}}, {}}, true},
		{"two failed, one names somebody", []vote.Reply{{Answer: wire.Answer{Verdict: wire.Failed}}, {Answer: wire.Answer{Verdict: wire.Failed}}, {Answer: wire.Answer{Verdict: wire.OK}.With(wire.More{Owner: "a"})}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.certain, (&Quorum{need: 2}).holderCertain(test.replies))
		})
	}
}

// slots are the places of nodes in a round.
func slots(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}
