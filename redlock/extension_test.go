package redlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// held is a Quorum of nodes that do nothing, with leases that all of them have granted.
func held(t *testing.T, nodes, n int) (q *Quorum, leases []*holding) {
	q = testQuorum(nodes)
	for i := range n {
		leases = append(leases, grant(t, q, fmt.Sprint(i), &q.cfg.plain))
	}
	return q, leases
}

// grant is a lease that all nodes have granted.
func grant(t *testing.T, q *Quorum, key string, cfg *leaseConfig) *holding {
	rd := q.newOperation(OpAcquire, q.need)
	for i := range q.nodes {
		rd.Answer(i, vote.Reply{Answer: wire.Answer{Verdict: wire.OK, Token: 1}})
	}
	at := &attempt{cfg: cfg, keys: &wire.Keys{Name: key, Lock: "key" + key}, owner: "owner" + key, lock: "1 owner" + key}
	now := q.clock.Now()
	l := newLease(t.Context(), q, at, 1, now, now, rd)
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
		at := &attempt{cfg: &q.cfg.plain, keys: &wire.Keys{Name: "key", Lock: "key"}}
		l := newLease(t.Context(), q, at, 1, q.clock.Now(), q.clock.Now(), rd)
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
			l := grant(t, q, fmt.Sprint(i), &q.cfg.plain)
			in := l.group.due.Sub(q.clock.Now())
			require.LessOrEqual(t, in, interval)
			require.Greater(t, in, interval-interval/phases)
			due[l.group.due]++
			time.Sleep(interval / 100)
		}
		require.LessOrEqual(t, len(due), phases+1)
	})
}

// One with a minimum hold is extended alone. A node that is slow is asked for so many leases at a time,
// and for the others when it has answered.
func TestExtensionsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 1, maxUnderway+2*wire.MaxGroup)
		hold := *leases[0].attempt.cfg
		hold.minHold = time.Second
		grant(t, q, "hold", &hold)
		asked := func() (n int) {
			for _, r := range q.fake(0).sent {
				require.Equal(t, r.Call.Op == wire.Extend, r.Call.Leases() == 1)
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
		require.True(t, slices.ContainsFunc(q.fake(0).sent, func(r *node.Request) bool { return r.Call.Op == wire.Extend }))
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

func (n *fakeNode) Send(r *node.Request) error {
	n.sent, n.at = append(n.sent, r), append(n.at, n.clock.Now())
	return nil
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

// fake returns a node of a testQuorum.
func (q *Quorum) fake(i int) *fakeNode { return q.nodes[i].link.(*fakeNode) }

// Enter has a process say that it uses its nodes, as the first lease has it do.
func Enter(q *Quorum) { q.roster.Enter(context.Background()) }

// Entered has it do so, and reports whether it counts.
func Entered(q *Quorum) bool { Enter(q); return q.roster.Admitted() }

// refusing is a node that takes no requests.
type refusing struct{ fakeNode }

func (*refusing) Send(*node.Request) error { return node.ErrOverloaded }

// An operation is used again when its maker has dropped it and every node that was asked has
// answered, in whatever order that comes, and not before.
func TestOperationIsUsedAgainWhenAllHaveAnswered(t *testing.T) {
	for range 50 {
		q := testQuorum(5)
		q.nodes[4].link = &refusing{}
		at := &attempt{keys: &wire.Keys{Name: "key", Lock: "key"}, cfg: &q.cfg.plain}
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
