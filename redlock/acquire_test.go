package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// How a round without a quorum of grants is taken, see voted.
func TestRefusal(t *testing.T) {
	for want, rows := range map[string]string{
		"held": "aaaaa aaamm aa aaam aab aax aaaxx",
		// A failed node may be a's too, in aaxmm: then a stands. In aabbx none may get it.
		"split":     "aabmm aabbm abcdm aaxmm aa?mm abxmm axxmm aaxxm am aamm aamx aabbx abm amx",
		"no_quorum": "axxxm aaxxx mmxxx ax aaxx", "timeout": "mm???",
	} {
		for _, row := range strings.Fields(rows) {
			q := &Quorum{need: len(row)/2 + 1, cfg: &config{maxTTL: time.Hour}, nodes: testQuorum(len(row)).nodes}
			a := &acquisition{q: q, keys: wire.Keys{Name: "k"}, cfg: &leaseConfig{}}
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
	most := holderIn("", replies).Nodes
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
		"nothing is known":       {[]vote.Reply{silent, silent, silent}, false},
		"two know of nobody":     {[]vote.Reply{none, none, silent}, true},
		"two agree":              {[]vote.Reply{silent, has("a", 0), has("a", 0)}, true},
		"two agree on the owner": {[]vote.Reply{silent, has("a", 1), has("a", 2)}, true},
		"two failed, and the third cannot tell alone": {[]vote.Reply{failed, failed, silent}, true},
		"two failed, one names somebody":              {[]vote.Reply{failed, failed, has("a", 0)}, true},
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
	vacant := vacancy{by: FreedByRelease, since: now.Add(-time.Minute)}
	for name, test := range map[string]struct {
		vacant   vacancy
		identity string
		missed   clock.Instant
		goesOn   bool
	}{
		"an attempt of our own":                  {vacant, own, now, true},
		"somebody has it now":                    {vacant, other, now, false},
		"nobody knows that it was free":          {vacancy{}, own, now, false},
		"it was held, by another lease of ours":  {vacancy{by: FreedByExpiry, since: now.Add(time.Minute)}, own, now, false},
		"all nodes have answered":                {vacant, own, 0, false},
		"what they had not has been rolled back": {vacant, own, now.Add(-2 * time.Minute), false},
	} {
		a := &acquisition{q: q, cfg: &leaseConfig{identity: own, ttl: time.Minute}, freeIn: time.Hour, vacancy: test.vacant, missed: test.missed}
		a.occupied(test.identity)
		if require.Equal(t, test.goesOn, a.vacancy == vacant, name); !test.goesOn {
			require.Equal(t, FreedByExpiry, a.vacancy.by, name)
			require.InDelta(t, int64(now.Add(90*time.Minute)), int64(a.vacancy.since), float64(30*time.Minute), name)
		}
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

// ownerAt is an owner value whose random part is one character all along.
func ownerAt(identity, c string) string { return identity + "/" + strings.Repeat(c, 22) }

func TestRanking(t *testing.T) {
	reservation := "R " + wire.NewMember(1780000000000000, wire.NewProcess(), "z")
	want := []claim{
		{reservation, 1},
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

// held is a Quorum of nodes that do nothing, with leases that all of them have granted.
func held(t *testing.T, nodes, n int) (q *Quorum, leases []*Lease) {
	q = testQuorum(nodes)
	for i := range n {
		leases = append(leases, grant(t, q, fmt.Sprint(i), q.cfg.plain))
	}
	return q, leases
}

// grant is a lease that all nodes have granted.
func grant(t *testing.T, q *Quorum, key string, cfg *leaseConfig) *Lease {
	rd := q.newOperation(OpAcquire, q.need)
	for i := range q.nodes {
		rd.Answer(i, vote.Reply{Answer: wire.Answer{Verdict: wire.OK, Token: 1}})
	}
	at := &attempt{cfg: cfg, keys: &wire.Keys{Name: key, Lock: "key" + key}, owner: "owner" + key, lock: "1 owner" + key, since: q.clock.Now()}
	l := newLease(t.Context(), q, at, 1, at.since, rd)
	l.arm()
	t.Cleanup(func() { l.timer.Stop() })
	return l
}

// sweep has all leases due, and sends what may be sent.
func sweep(q *Quorum) {
	e := q.extender
	e.mu.Lock()
	for _, g := range e.groups {
		if g.period > 0 {
			g.due = e.q.clock.Now()
		}
	}
	e.mu.Unlock()
	e.sweep()
}

// digits is what a node answers of leases that are extended together.
func digits(text string) wire.Answer {
	return wire.Answer{Verdict: wire.OK, Extended: wire.InPlace}.With(wire.More{Each: text})
}

var none = wire.Answer{Verdict: wire.Failed}

// The deadline is the Q-th largest of what nodes prove, less the drift. What a node proves counts
// from when it was asked, however late it answers, and no longer than until it says otherwise.
func TestDeadlineIsWhatAQuorumProves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 5, 1)
		l, validity := leases[0], q.cfg.validity(q.cfg.lease.ttl)
		begun := q.clock.Now()
		hears := func(i int, said wire.Extended, sent time.Duration) {
			l.hears(i, said, begun.Add(sent), begun.Add(sent))
		}
		requireValid := func(want time.Duration) {
			t.Helper()
			require.NoError(t, l.Err())
			require.Equal(t, begun.Add(want+validity), clock.Instant(l.deadline.Load()))
		}
		requireValid(0)
		time.Sleep(4 * time.Second)
		hears(0, wire.InPlace, 3*time.Second)
		hears(1, wire.InPlace, 2*time.Second)
		requireValid(0)
		hears(2, wire.Refilled, time.Second)
		requireValid(time.Second)
		hears(3, wire.InPlace, 4*time.Second)
		requireValid(2 * time.Second)
		hears(3, wire.InPlace, time.Second) // which was answered late
		requireValid(2 * time.Second)
		hears(3, wire.Gone, 4*time.Second)
		requireValid(time.Second)
		hears(2, wire.ByOther, 4*time.Second)
		requireValid(0)
		hears(4, wire.Gone, 4*time.Second)
		require.ErrorIs(t, l.Err(), ErrLost)
		var lost *LostError
		require.ErrorAs(t, l.Err(), &lost)
		require.Equal(t, LostRefused, lost.Reason)
		for i := range 5 {
			hears(i, wire.InPlace, 4*time.Second)
		}
		require.ErrorIs(t, l.Err(), ErrLost, "ended is final")
	})
}

// A server that is found to be another one counts no more, also before a look has decided on it.
func TestAnotherServerDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		q, err := Open(fleet.URLs(), WithClientOption(fleet.ClientOption), WithPrefix("test"))
		require.NoError(t, err)
		defer func() { require.NoError(t, q.Close()) }()
		_, err = q.Acquire(t.Context(), "key")
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.True(t, q.roster.Counts(0))
		observer{q.nodes[0]}.Another()
		require.False(t, q.roster.Counts(0))
	})
}

// Nor does a late answer revive a lease whose end nobody has noticed yet.
func TestAnswerAfterTheDeadlineRevivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 1, 1)
		l, half := leases[0], q.cfg.lease.ttl/2
		l.timer.Stop() // it is late
		begun := q.clock.Now()
		time.Sleep(2 * half)
		l.hears(0, wire.InPlace, begun.Add(half), begun)
		require.ErrorIs(t, l.Err(), ErrLost)
	})
}

// A deadline that is nearer than it was ends the context then. One that was moved away does so
// without another timer.
func TestContextFollowsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 3, 2)
		validity, begun := q.cfg.validity(q.cfg.lease.ttl), time.Now()
		time.Sleep(4 * time.Second)
		for _, l := range leases {
			for i := range 2 {
				l.hears(i, wire.InPlace, q.clock.Now(), q.clock.Now())
			}
		}
		leases[0].timer.Reset(leases[0].remaining()) // as it does when it fires
		leases[0].hears(0, wire.Gone, q.clock.Now(), q.clock.Now())
		<-leases[0].Context().Done()
		require.Equal(t, validity, time.Since(begun))
		<-leases[1].Context().Done()
		require.Equal(t, validity+4*time.Second, time.Since(begun))
	})
}

// A node that has granted the key after the others proves that it has it; one that has not does
// not.
func TestLateGrantIsAProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQuorum(3)
		rd := q.newOperation(OpAcquire, q.need)
		granted := vote.Reply{Answer: wire.Answer{Verdict: wire.OK, Token: 1}}
		rd.Answer(0, granted)
		rd.Answer(1, granted)
		at := &attempt{cfg: q.cfg.plain, keys: &wire.Keys{Name: "key", Lock: "key"}, since: q.clock.Now()}
		l := newLease(t.Context(), q, at, 1, q.clock.Now(), rd)
		rd.Answer(2, granted)
		l.hears(0, wire.Gone, q.clock.Now(), q.clock.Now())
		require.NoError(t, l.Err(), "two nodes have it")
		l.hears(1, wire.Gone, q.clock.Now(), q.clock.Now())
		require.ErrorIs(t, l.Err(), ErrLost)
	})
}

// What is due in the same eighth of an interval is extended together, and no lease later than its
// interval.
func TestLeasesAreExtendedWithinTheirInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQuorum(1)
		interval := q.cfg.plain.interval
		due := make(map[clock.Instant]int)
		for i := range 100 {
			l := grant(t, q, fmt.Sprint(i), q.cfg.plain)
			in := l.group.due.Sub(q.clock.Now())
			require.LessOrEqual(t, in, interval)
			require.Greater(t, in, interval-interval/phases)
			due[l.group.due]++
			time.Sleep(interval / 100)
		}
		require.LessOrEqual(t, len(due), phases+1)
	})
}

// One with a minimum hold is extended alone. A node that is slow is asked for so many leases at a
// time, and for the others when it has answered.
func TestExtensionsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 1, maxUnderway+2*wire.MaxGroup)
		hold := *leases[0].attempt.cfg
		hold.minHold = time.Second
		grant(t, q, "hold", &hold)
		asked := func() (n int) {
			for _, r := range q.fake(0).sent {
				n += r.Call.Leases()
			}
			return n
		}
		sweep(q)
		before := asked()
		require.Less(t, before, maxUnderway+wire.MaxGroup)
		for i := 0; i < len(q.fake(0).sent); i++ {
			q.fake(0).answer(i, digits(strings.Repeat("1", q.fake(0).sent[i].Call.Leases())), nil)
		}
		require.Equal(t, len(leases)+1, asked())
		require.True(t, slices.ContainsFunc(q.fake(0).sent, func(r *node.Request) bool { return r.Call.Leases() == 1 }))
	})
}

// A node that is slow gets no extension of a lease that was lost meanwhile.
func TestExtensionIsNotSentAfterALoss(t *testing.T) {
	q, leases := held(t, 1, 3)
	now := q.clock.Now()
	for i, left := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		leases[i].deadline.Store(int64(now.Add(left)))
	}
	sweep(q)
	sent := q.fake(0).sent
	require.Len(t, sent, 1)
	require.Equal(t, now.Add(time.Hour), sent[0].Expires)
	leases[1].lose(LostDeadline)
	sent[0].Expires, q.fake(0).unsent = now-1, true
	q.fake(0).answer(0, none, node.ErrTimeout)
	require.Len(t, q.fake(0).sent, 2, "it was taken back, which is nobody's failure: the others are sent again at once")
	require.Equal(t, 2, q.fake(0).sent[1].Call.Leases())
	q.fake(0).answer(1, none, node.ErrTimeout)
	require.Len(t, q.fake(0).sent, 2, "it could not be sent in its time: that is one")
}

// extensions keeps what it is told.
type extensions struct {
	ExtendTracer
	seen []TraceExtendData
}

func (e *extensions) TraceExtend(_ context.Context, data TraceExtendData) {
	e.seen = append(e.seen, data)
}

// A tracer is told once when the deadline has moved, and once when it cannot move any more.
func TestExtensionIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 5, 2)
		traced := &extensions{}
		q.cfg.tracers.extend = traced
		round := func(pass time.Duration, answer func(i int) (wire.Answer, error), events ...int) {
			t.Helper()
			time.Sleep(pass)
			traced.seen = nil
			sweep(q)
			for i, n := range events {
				a, err := answer(i)
				q.fake(i).answer(len(q.fake(i).sent)-1, a, err)
				require.Len(t, traced.seen, n, "%d nodes have answered", i+1)
			}
		}
		round(time.Second, func(i int) (wire.Answer, error) { return digits([]string{"11", "10", "11", "11", "11"}[i]), nil }, 0, 0, 1, 2, 2)
		for i, l := range leases {
			require.Equal(t, l.Key(), traced.seen[i].Key)
			require.Equal(t, 3, traced.seen[i].Extended)
			require.Len(t, traced.seen[i].Answers, 3+i)
		}
		require.Equal(t, q.cfg.validity(q.cfg.lease.ttl)-time.Second, traced.seen[0].Margin)
		round(time.Second, func(int) (wire.Answer, error) { return none, node.ErrTimeout }, 0, 0, 2, 2, 2)
		require.ErrorIs(t, traced.seen[0].Err, ErrNoQuorum)
		round(q.cfg.lease.ttl/10, func(int) (wire.Answer, error) { return digits("11"), nil }, 0, 0, 2, 2, 2)
		require.NoError(t, traced.seen[0].Err)
		require.Equal(t, []bool{false, true}, []bool{traced.seen[0].Shared, traced.seen[1].Shared})
	})
}

// fakeNode is a node that keeps what is sent to it, and votes.
type fakeNode struct {
	link

	clock  *clock.Clock
	sent   []*node.Request
	at     []clock.Instant
	unsent bool         // what it answers from now on has not been sent
	status *node.Status // nil for one that votes
}

func (n *fakeNode) Send(r *node.Request) {
	n.sent, n.at = append(n.sent, r), append(n.at, n.clock.Now())
}

func (n *fakeNode) Status() *node.Status {
	if n.status != nil {
		return n.status
	}
	return &node.Status{}
}

func (n *fakeNode) Server() string { return "" }

// answer answers the request that was sent as the n-th, from 0.
func (n *fakeNode) answer(i int, a wire.Answer, err error) {
	r := n.sent[i]
	r.To.Answered(r, node.Answer{Answer: a, Err: err, Sent: n.at[i], Unsent: n.unsent})
}

// testQuorum is a Quorum of nodes that do nothing.
func testQuorum(nodes int) *Quorum {
	cfg, err := newConfig(nil)
	if err != nil {
		panic(err)
	}
	q := newQuorum(cfg, nodes)
	for i := range nodes {
		q.nodes = append(q.nodes, &member{q: q, index: i, addr: fmt.Sprintf("%c:1", 'a'+i), name: fmt.Sprintf("%c:1", 'a'+i), link: &fakeNode{clock: q.clock}})
	}
	q.roster = q.newRoster()
	return q
}

// Tokens rise that a process draws. One that leads the clocks by far is of one key and leads no
// other.
func TestDrawnTokensRise(t *testing.T) {
	q := testQuorum(3)
	day, usual := uint64((24 * time.Hour).Microseconds()), uint64(q.clocks.UsualLead().Microseconds())
	for range 2 {
		last := uint64(0)
		for range 3 {
			token := q.draw(0)
			require.Greater(t, token, last)
			require.Less(t, token, usual)
			last = token
			require.Equal(t, day, q.draw(day))
		}
		q.saw(day)
	}
}

// fake returns a node of a testQuorum.
func (q *Quorum) fake(i int) *fakeNode { return q.nodes[i].link.(*fakeNode) }

// Enter has a process say that it uses its nodes, as the first lease has it do.
func Enter(q *Quorum) { q.roster.Enter(context.Background()) }

// refusing is a node that takes no requests.
type refusing struct{ fakeNode }

func (*refusing) Send(r *node.Request) {
	r.To.Answered(r, node.Answer{Answer: none, Err: node.ErrOverloaded, Unsent: true})
}

// cutting is a node whose connection breaks with each request.
type cutting struct{ fakeNode }

func (*cutting) Send(r *node.Request) { go r.To.Answered(r, node.Answer{Answer: none, Err: io.EOF}) }

// Field: 14 dials a second for each node. Connections may have broken while they were idle: that is
// worth another round at once, and not again while a waiter finds no quorum.
func TestBrokenConnectionsAreWorthOneRound(t *testing.T) {
	q := testQuorum(3)
	for _, m := range q.nodes {
		m.link = &cutting{}
	}
	now := q.clock.Now()
	for missed, rounds := range map[clock.Instant]int{0: 2, now: 1, now.Add(-q.cfg.lease.ttl): 2} {
		a, err := q.newAcquisition("key", nil)
		require.NoError(t, err)
		a.missed = missed
		_, err = a.try(t.Context())
		require.ErrorIs(t, err, ErrNoQuorum)
		require.Equal(t, rounds, a.attempts)
	}
}

// An operation is used again when its maker has dropped it and every node that was asked has
// answered, in whatever order that comes, and not before.
func TestOperationIsUsedAgainWhenAllHaveAnswered(t *testing.T) {
	for range 50 {
		q := testQuorum(5)
		q.nodes[4].link = &refusing{}
		at := &attempt{keys: &wire.Keys{Name: "key", Lock: "key"}, cfg: q.cfg.plain}
		o := q.newOperation(OpRelease, q.need)
		o.send(t.Context(), at, at.call(wire.Release), clock.Instant(1), nil)
		steps := []func(){o.drop}
		for i := range 4 {
			steps = append(steps, func() { q.fake(i).answer(0, wire.Answer{Verdict: wire.OK}, nil) })
		}
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			require.NotNil(t, o.q)
			step()
		}
		require.Nil(t, o.q, "it has nothing of its last user")
		o = q.newOperation(OpAcquire, 1)
		require.Equal(t, 0, o.Tally().Agreed)
		require.False(t, o.IsOver())
	}
	(*operation)(nil).drop()
}
