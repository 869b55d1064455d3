package redlock

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/waitqueue"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// How a round without a quorum of grants is taken, see voted.
func TestRefusal(t *testing.T) {
	for want, rows := range map[string]string{
		"held": "aaaaa aaamm aa aaam aab aax aaaxx",
		// A failed node may be a's too, in aaxmm: if so, a stands. In aabbx none of them may get it.
		"split":     "aabmm aabbm abcdm aaxmm aa?mm abxmm axxmm aaxxm am aamm aamx aabbx abm amx",
		"no_quorum": "axxxm aaxxx mmxxx ax aaxx", "timeout": "mm???",
	} {
		for _, row := range strings.Fields(rows) {
			q := &Quorum{need: len(row)/2 + 1, cfg: &config{maxTTL: time.Hour}, nodes: testQuorum(len(row)).nodes}
			a := &acquisition{q: q, keys: &wire.Keys{Name: "k"}, cfg: &leaseConfig{}}
			err, split := a.refusal(voted(row), 0)
			require.Equal(t, want, ErrorType(err), row)
			require.Equal(t, want == "split", split, row)
		}
	}
}

// The first answers may leave open whether somebody holds the key or the vote was split; the round
// then goes on.
func TestAcquireRoundGoesOnUntilItIsClear(t *testing.T) {
	for _, test := range []struct {
		row         string // in the order of arrival
		nodes, ends int
	}{ // the last two of aba, of five, may both be a's
		{"aaa", 5, 3}, {"aba", 5, 5}, {"abc", 5, 5}, {"abcab", 5, 5}, {"mmm", 5, 3}, {"aam", 5, 5}, {"xxx", 5, 3},
		{"aa", 2, 2}, {"aaa", 4, 3}, {"aa", 3, 2}, {"ab", 3, 3},
	} {
		q := &Quorum{need: test.nodes/2 + 1}
		rd := &vote.Round{}
		rd.Start(test.nodes, q.need)
		rd.Decided = func(replies []vote.Reply) bool { return q.acquireCertain(replies, &contest{}) }
		for i, reply := range voted(test.row).Replies {
			require.False(t, rd.IsOver(), "%s of %d after %d", test.row, test.nodes, i)
			rd.Answer(i, reply)
		}
		require.Equal(t, test.ends <= len(test.row), rd.IsOver(), "%s of %d", test.row, test.nodes)
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
	silent, failed := vote.Reply{}, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}}
	has := func(owner string, token uint64) vote.Reply {
		return vote.Reply{Answer: wire.Answer{Verdict: wire.OK, Token: token}.With(wire.More{Owner: owner})}
	}
	none := vote.Reply{Answer: wire.Answer{Verdict: wire.OK}}
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 7).Draw(t, "nodes")
		q := &Quorum{need: nodes/2 + 1}
		all := rapid.SliceOfN(rapid.SampledFrom([]vote.Reply{failed, none, has("a", 0), has("b", 0)}), nodes, nodes).Draw(t, "replies")
		replies, order := make([]vote.Reply, nodes), make([]int, nodes)
		for i := range order {
			order[i] = i
		}
		for _, i := range rapid.Permutation(order).Draw(t, "order") {
			if q.holderCertain(replies) {
				break
			}
			replies[i] = all[i]
		}
		require.Equal(t, q.holderKind(all), q.holderKind(replies))
	})
	for name, test := range map[string]struct {
		replies []vote.Reply
		certain bool
	}{
		"a failed node may hide a holder, and so may one that is asked still": {[]vote.Reply{failed, has("a", 0), silent}, false},
		"nothing is known":   {[]vote.Reply{silent, silent, silent}, false},
		"two know of nobody": {[]vote.Reply{none, none, silent}, true},
		"two agree":          {[]vote.Reply{silent, has("a", 0), has("a", 0)}, true},
		"two agree on the owner, and the third knows which token is right": {[]vote.Reply{silent, has("a", 1), has("a", 2)}, false},
		"two agree on the owner, and nobody knows which token is right":    {[]vote.Reply{failed, has("a", 1), has("a", 2)}, true},
		"two failed, and the third cannot tell alone":                      {[]vote.Reply{failed, failed, silent}, true},
		"two failed, one names somebody":                                   {[]vote.Reply{failed, failed, has("a", 0)}, true},
	} {
		require.Equal(t, test.certain, (&Quorum{need: 2}).holderCertain(test.replies), name)
	}
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
