package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/waitqueue"
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

// How Holder takes the replies of a round.
func (q *Quorum) holderKind(replies []vote.Reply) string {
	holder, _ := holderIn("", replies)
	most := holder.Nodes
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

// A key that was free stays free while an attempt of this process, which was given up a moment ago,
// is in the way; not while somebody else is, or a lease of this process, and not while nobody knows
// that it was free.
func TestVacancyGoesOnBesideAnOwnAttempt(t *testing.T) {
	q := testQuorum(1)
	const own, other = "me", "somebody"
	now := q.clock.Now()
	free := func(freeIn time.Duration, vacant vacancy, identity string, missed clock.Instant) vacancy {
		a := &acquisition{q: q, cfg: &leaseConfig{identity: own, ttl: time.Minute}, freeIn: freeIn, vacancy: vacant, missed: missed}
		a.occupied(identity)
		return a.vacancy
	}
	vacant := vacancy{by: FreedByRelease, since: now.Add(-time.Minute)}
	require.Equal(t, vacant, free(time.Hour, vacant, own, now))
	for name, v := range map[string]vacancy{
		"somebody has it now":                    free(time.Hour, vacant, other, now),
		"nobody knows that it was free":          free(time.Hour, vacancy{}, own, now),
		"it was held, by another lease of ours":  free(time.Hour, vacancy{by: FreedByExpiry, since: now.Add(time.Minute)}, own, now),
		"all nodes have answered":                free(time.Hour, vacant, own, 0),
		"what they had not has been rolled back": free(time.Hour, vacant, own, now.Add(-2*time.Minute)),
	} {
		require.Equal(t, FreedByExpiry, v.by, name)
		require.WithinRange(t, time.Unix(0, int64(v.since)), time.Unix(0, int64(now.Add(time.Hour))), time.Unix(0, int64(now.Add(2*time.Hour))), name)
	}
}

// Who is told to come later does not come at once, also if its poll is nearly due.
func TestCallForLaterIsNotForNow(t *testing.T) {
	const ttl, later = 10 * time.Second, 400 * time.Millisecond
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			notices := make(chan waitqueue.Notice, 1)
			w := &waitqueue.Ticket{Notices: notices}
			a := &acquisition{q: testQuorum(3), cfg: &leaseConfig{ttl: ttl}}
			const called = ttl + ttl/20
			start := time.Now()
			time.AfterFunc(called, func() { notices <- waitqueue.Notice{Released: true, FreeIn: later} })
			require.True(t, a.sleep(t.Context(), w, ttl+ttl/10, false))
			require.GreaterOrEqual(t, time.Since(start), called+later)
			require.LessOrEqual(t, time.Since(start), called+later+10*time.Millisecond)
		})
	}
}

// A call cuts no pause short that nodes are the reason for.
func TestCallDoesNotEndThePauseOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = 400 * time.Millisecond
		notices := make(chan waitqueue.Notice, 1)
		w := &waitqueue.Ticket{Notices: notices}
		a := &acquisition{q: testQuorum(3), cfg: &leaseConfig{ttl: 10 * time.Second}}
		start := time.Now()
		for _, at := range []time.Duration{0, pause / 4, pause / 2} {
			time.AfterFunc(at, func() { notices <- waitqueue.Notice{Released: true} })
		}
		require.True(t, a.sleep(t.Context(), w, pause, true))
		require.Equal(t, pause, time.Since(start))
		require.Equal(t, FreedByRelease, a.vacancy.by, "it is known all the same")
	})
}
