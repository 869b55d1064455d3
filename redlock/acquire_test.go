package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// A vote that nobody won must not be taken for a holder: who is told of one drops what it wanted to
// do.
func TestASplitVoteIsNotHeld(t *testing.T) {
	err := error(&SplitError{Key: "key", Rounds: 6, Rival: Holder{Identity: "b", Nodes: 1}})
	wrapped := fmt.Errorf("job: %w", err)
	require.ErrorIs(t, wrapped, ErrSplit)
	require.NotErrorIs(t, wrapped, ErrHeld)
	require.NotErrorIs(t, wrapped, ErrNoQuorum)
	require.Equal(t, "split", ErrorType(wrapped))
	var held *HeldError
	require.False(t, errors.As(wrapped, &held))
	require.EqualError(t, err, `redlock: split vote on "key": nobody got it in 6 round(s), the last rival was b on 1 node(s): try again`)
}

// ownerAt is an owner value whose random part is one character all along.
func ownerAt(identity, c string) string { return identity + "/" + strings.Repeat(c, 22) }

func TestRanking(t *testing.T) {
	member := wire.NewMember(1780000000000000, wire.NewProcess(), "z")
	want := []claim{
		{member, 1},
		{ownerAt("z", "x"), 3},
		{ownerAt("z", "A"), 2},
		{ownerAt("a", "B") + "?" + strings.Repeat("z", 30), 2}, // whatever the identity and the payload are
		{ownerAt("z", "a"), 2},
		{ownerAt("a", "0"), 1},
		{"something else", 1},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, claim.compare)
	require.Equal(t, want, got)
	for _, c := range want {
		require.Zero(t, c.compare(c))
	}
}

// voted is a round as a row: m is a grant, x a failure, ? a node that is silent, other letters are
// rivals.
func voted(row string) vote.Outcome {
	o := vote.Outcome{Tally: vote.Tally{Expired: true}}
	for _, c := range row {
		switch c {
		case 'm':
			o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.OK}})
			o.Agreed++
		case 'x':
			o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: errors.New("refused")})
		case '?':
			o.Replies = append(o.Replies, vote.Reply{})
		default:
			o.Replies = append(o.Replies, vote.Reply{Answer: wire.Answer{Verdict: wire.Refused}.With(wire.More{Owner: ownerAt("other", string(c))})})
		}
	}
	return o
}

// One of the rivals stays, and each of them knows which.
func TestTheFirstStays(t *testing.T) {
	for rounds, stays := range map[string]bool{ // as the one in the middle of the order has seen them
		"mxa": false, "mxz": true, "maabz": false, "mmzaa": false, "mmzzz": false,
		"mma?z":       true,                             // more votes
		"x?z":         false,                            // it has nothing to keep
		"mmaaz mmaab": false, "mmaaz mmaab mmaaz": true, // a does not go away, and z is behind
		"maz?x maz?x may?x": true, "maz?x maz?x mab?x": false, // but b is in the way
		"mma mma mma": true, "mxa mxa mxa": false, // there is nobody else for whom to stay
	} {
		c := contest{}
		var o vote.Outcome
		for _, row := range strings.Fields(rounds) {
			o = voted(row)
			c.note(o, 0)
		}
		require.Equal(t, stays, c.leads(ownerAt("me", "m"), o), "%q", rounds)
	}
}

// Each rival ranks itself too, so two that see the same do not both stay.
func TestRivalsRankAlike(t *testing.T) {
	for _, row := range []string{"aabbx", "abx", "aabbc", "abcxx", "aabb", "abbcc"} {
		stay := 0
		for _, me := range "abc" {
			if !strings.ContainsRune(row, me) {
				continue
			}
			o := voted(strings.ReplaceAll(row, string(me), "m"))
			c := contest{}
			c.note(o, 0)
			if c.leads(ownerAt("other", string(me)), o) {
				stay++
			}
		}
		require.Equal(t, 1, stay, row)
	}
}

// A rival that may have a quorum, with the nodes that did not answer, and does not go away is a
// holder.
func TestARivalThatStandsIsAHolder(t *testing.T) {
	for row, of := range map[string]string{"max": "a", "ma?": "a", "mabxx": "a", "mabbx": "b", "mmabb": "", "mmabx": ""} { // nobody can have three
		o := voted(row)
		silent := vote.Count(o.Replies, wire.Failed) + vote.Count(o.Replies, wire.Pending)
		c := contest{}
		for round := 1; round <= holderAfter; round++ {
			c.note(o, 0)
			holder, ok := c.stander(o, silent, len(row)/2+1)
			require.Equal(t, of != "" && round == holderAfter, ok, "%s after %d rounds", row, round)
			require.True(t, !ok || holder.owner == ownerAt("other", of), row)
		}
		c.note(voted("mmmmm"[:len(row)]), 0)
		require.Empty(t, c.standing, "it is counted on end")
	}
}

// What a round took is what its answers took. A node that times out says nothing of the way to
// others.
func TestPausesFollowTheRoundTrip(t *testing.T) {
	const began, trip = clock.Instant(time.Hour), 20 * time.Millisecond
	o := voted("mza?x")
	for i, after := range []time.Duration{-time.Second, trip, trip / 2, 0, 0} { // the first is of an earlier round
		if after != 0 {
			o.Replies[i].At = began.Add(after)
		}
	}
	o.Replies[4].Err = node.ErrTimeout
	var c contest
	c.note(o, began)
	require.Equal(t, trip, c.trip)
	require.Equal(t, []bool{false, false, false, true, true}, c.silent)
	var stays, pause []time.Duration
	for i := range maxRounds {
		stays = append(stays, c.beforeStaying(i+1))
		p := c.beforeReturning()
		most := min(2*trip<<i, 2*maxBackoff*trip)
		require.LessOrEqual(t, p, most)
		require.GreaterOrEqual(t, p, most/2)
		pause = append(pause, p)
	}
	require.Equal(t, []time.Duration{trip / 4, trip / 2, trip, 2 * trip, 4 * trip, 8 * trip, 8 * trip, 8 * trip}, stays)
	require.NotEqual(t, pause[6], pause[7], "pauses are random")

	c = contest{}
	c.note(voted("maz"), began)
	require.Equal(t, minTrip, c.trip)
}

// A node that was silent in the round before is not waited for; what it answers in time counts.
func TestSilentNodesAreNotWaitedForAgain(t *testing.T) {
	q := &Quorum{need: 3}
	c := contest{}
	c.note(voted("mmab?"), 0)
	certain := func(row string) bool {
		o := voted(row)
		return q.acquireCertain(o.Replies, &c)
	}
	require.False(t, certain("mm?b?"))
	require.True(t, certain("mmab?"))
	require.True(t, certain("mm?bm"))
	c.note(voted("mmabm"), 0)
	require.False(t, certain("mmab?"))
}
