package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// How a round without a quorum of grants is taken. In the table g is a grant, x a failure, ? no
// answer at the node's timeout, and other letters are owners that hold the key.
func TestRefusal(t *testing.T) {
	for _, test := range []struct {
		replies string
		want    string
	}{
		{"aaaaa", "held"},
		{"aaagg", "held"},
		{"aabgg", "split"},
		{"aabbg", "split"},
		{"abcdg", "split"},
		{"aaxgg", "split"}, // the failed node may be a's too: if so, a stands
		{"aa?gg", "split"},
		{"abxgg", "split"},
		{"axxgg", "split"},
		{"aaxxg", "split"},
		{"axxxg", "no quorum"},
		{"aaxxx", "no quorum"},
		{"ggxxx", "no quorum"},
		{"gg???", "no quorum"},
		{"aa", "held"},
		{"ag", "split"},
		{"ax", "no quorum"},
		{"aagg", "split"},
		{"aaag", "held"},
		{"aagx", "split"},
		{"aab", "held"},
		{"aabbx", "split"}, // none of them may get it
		{"abg", "split"},
		{"agx", "split"},
		{"aax", "held"},
		{"aaxx", "no quorum"},
		{"aaaxx", "held"},
	} {
		q := &Quorum{need: len(test.replies)/2 + 1, cfg: &config{maxTTL: time.Hour}}
		for range test.replies {
			q.nodes = append(q.nodes, &member{q: q})
		}
		a := &acquisition{q: q, keys: &wire.Keys{Name: "k"}, cfg: &leaseConfig{}}
		o := vote.Outcome{Tally: vote.Tally{Expired: true}}
		for _, c := range test.replies {
			switch c {
			case 'g':
				o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.OK}})
				o.Agreed++
			case 'x':
				o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: node.ErrTimeout})
			case '?':
				o.Replies = append(o.Replies, vote.Reply{})
			default:
				o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.Refused}.With(wire.More{Owner: string(c), PTTL: time.Second})})
			}
		}
		err, split := a.refusal(o, 0)
		got := "held"
		if split {
			got = "split"
		}
		switch ErrorType(err) {
		case "held", "split":
			require.Equal(t, got, ErrorType(err), test.replies)
		default:
			got = "no quorum"
		}
		require.Equal(t, test.want, got, test.replies)
	}
}

// The first answers may leave open whether somebody holds the key or the vote was split; the round
// then goes on.
func TestAcquireRoundGoesOnUntilItIsClear(t *testing.T) {
	for _, test := range []struct {
		owners string // in the order of arrival, g for a grant, x for a failure
		nodes  int
		ends   int
	}{
		{"aaa", 5, 3},
		{"aba", 5, 5}, // the last two may both be a's
		{"abc", 5, 5},
		{"abcab", 5, 5},
		{"ggg", 5, 3},
		{"aag", 5, 5},
		{"xxx", 5, 3},
		{"aa", 2, 2},
		{"aaa", 4, 3},
		{"aa", 3, 2},
		{"ab", 3, 3},
	} {
		q := &Quorum{need: test.nodes/2 + 1}
		rd := &vote.Round{}
		rd.Start(test.nodes, q.need)
		rd.Decided = func(replies []vote.Reply) bool { return q.acquireCertain(replies, &contest{}) }
		for i, c := range test.owners {
			require.False(t, rd.IsOver(), "%s of %d after %d", test.owners, test.nodes, i)
			switch c {
			case 'g':
				rd.Answer(i, vote.Reply{Answer: wire.Answer{Verdict: wire.OK}})
			case 'x':
				rd.Answer(i, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}})
			default:
				rd.Answer(i, vote.Reply{Answer: wire.Answer{Verdict: wire.Refused}.With(wire.More{Owner: string(c)})})
			}
		}
		require.Equal(t, test.ends <= len(test.owners), rd.IsOver(), "%s of %d", test.owners, test.nodes)
	}
}

func TestUntilFree(t *testing.T) {
	q := &Quorum{need: 3}
	a := &acquisition{q: q, cfg: &leaseConfig{}}
	o := vote.Outcome{Tally: vote.Tally{Agreed: 1}}
	for _, ms := range []int{400, 100, 300, 200} {
		o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.Refused}.With(wire.More{PTTL: time.Duration(ms) * time.Millisecond})})
	}
	o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.OK}})
	require.Equal(t, 200*time.Millisecond, a.untilFree(o), "two more nodes are needed")
}
