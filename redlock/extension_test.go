package redlock

import (
	"context"
	"fmt"
	"strconv"
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

// Leases with one rhythm are renewed together, and those whose tokens are to be spread, once an
// hour. One with a minimum hold is extended alone.
func TestWhatIsExtendedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 1, 2)
		plain := leases[0].attempt.cfg
		hold, long, manual := *plain, *plain, *plain
		hold.minHold, long.ttl, manual.manual = time.Second, 2*plain.ttl, true
		long.ttlText = milliseconds(long.ttl)
		leases = append(leases, grant(t, q, "hold", &hold), grant(t, q, "long", &long), grant(t, q, "manual", &manual))
		stopped := grant(t, q, "stopped", plain)
		stopped.StopExtending()
		ended := grant(t, q, "ended", plain)
		ended.lose(LostClosed)
		many := func(spread bool, some ...*holding) *wire.Call {
			var want []wire.Held
			for _, l := range some {
				want = append(want, wire.Held{Keys: l.attempt.keys, Lock: l.attempt.lock})
			}
			return wire.NewExtendMany("", milliseconds(some[0].TTL()), want, spread)
		}
		swept := func() (calls []*wire.Call) {
			n := q.fake(0)
			n.sent = nil
			sweep(q)
			for i, r := range n.sent {
				if r.Call.Op == wire.ExtendMany {
					r.Call.Keys.Lock = ""
				}
				calls = append(calls, r.Call)
				n.answer(i, digits("11"[:r.Call.Leases()]), nil)
			}
			return calls
		}
		alone := leases[2].attempt.call(wire.Extend)
		alone.TTL, alone.Spread = q.cfg.plain.ttlText, "0" // always
		require.ElementsMatch(t, []*wire.Call{many(true, leases[:2]...), &alone, many(true, leases[3])}, swept())
		require.ElementsMatch(t, []*wire.Call{many(false, leases[:2]...), &alone, many(false, leases[3])}, swept())
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

// A node that has failed is asked again after a while, longer each time.
func TestExtensionThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 3, 2)
		sweep(q)
		n, ttl := q.fake(0), q.cfg.lease.ttl
		for i, pause := range []time.Duration{ttl / 20, ttl / 10, ttl / 5, ttl / 3, ttl / 3} {
			require.Len(t, n.sent, 1+i)
			n.answer(i, none, node.ErrTimeout)
			sweep(q)
			require.Len(t, n.sent, 1+i, "it is left in peace")
			require.Len(t, q.extender.lanes[0].waiting, 1, "and has nothing to catch up with")
			require.Len(t, q.fake(1).sent, 1)
			left := q.extender.lanes[0].until.Sub(q.clock.Now())
			require.InDelta(t, pause, left, float64(pause)*pauseJitter)
			time.Sleep(left)
			for _, l := range leases {
				for i := range 3 {
					l.hears(i, wire.InPlace, q.clock.Now(), 0)
				}
			}
			q.extender.sweep()
		}
		n.answer(5, digits("11"), nil)
		require.Zero(t, q.extender.lanes[0].pause)
	})
}

// A node that does not have a key is asked for it alone, a while later, and puts it back. If
// another has it there, it is asked after twice the time, and so on; and not at all while it does
// not vote, or when the lease is not extended any more.
func TestNodeThatLacksAKeyIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, leases := held(t, 3, 2)
		wait := func(d time.Duration) {
			q.extender.remove(&holding{}) // takes a lock, as those do who send then: what was read before comes before that
			time.Sleep(d)
			synctest.Wait()
		}
		sweep(q)
		n := q.fake(0)
		n.answer(0, digits("01"), nil)
		n.answer(0, digits("01"), nil)
		for i, pause := range []time.Duration{50, 100, 200} {
			wait(pause * 85 / 100 * time.Millisecond)
			require.Len(t, n.sent, 1+i)
			wait(pause * 30 / 100 * time.Millisecond)
			require.Len(t, n.sent, 2+i)
			r := n.sent[1+i]
			require.Equal(t, wire.Extend, r.Call.Op)
			require.True(t, r.Call.Refill)
			require.Same(t, leases[0].attempt.keys, r.Call.Keys)
			n.answer(1+i, wire.Answer{Verdict: wire.Refused, Extended: wire.ByOther}, nil)
		}
		wait(500 * time.Millisecond)
		n.answer(4, wire.Answer{Verdict: wire.OK, Extended: wire.Refilled}, nil)
		wait(time.Second)
		require.Len(t, n.sent, 5)
		require.Positive(t, leases[0].proofs[0].until)

		n.status = &node.Status{Fault: &wire.Fault{Condition: wire.Quarantined}}
		leases[0].hears(0, wire.Gone, q.clock.Now(), 0)
		wait(time.Second)
		require.Len(t, n.sent, 5)
		n.status = nil
		leases[1].StopExtending()
		leases[1].hears(0, wire.Gone, q.clock.Now(), 0)
		wait(time.Second)
		require.Len(t, n.sent, 5)
		require.Len(t, q.fake(1).sent, 1, "it is the others' business no more")
	})
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
		time.Sleep(time.Second)
		sweep(q)
		for i, events := range []int{0, 0, 1, 2, 2} {
			q.fake(i).answer(0, digits([]string{"11", "10", "11", "11", "11"}[i]), nil)
			require.Len(t, traced.seen, events, "%d nodes have answered", i+1)
		}
		require.Equal(t, leases[0].Key(), traced.seen[0].Key)
		require.Equal(t, 3, traced.seen[0].Extended)
		require.Equal(t, q.cfg.validity(q.cfg.lease.ttl)-time.Second, traced.seen[0].Margin)
		require.Equal(t, leases[1].Key(), traced.seen[1].Key)
		require.Equal(t, 3, traced.seen[1].Extended)
		require.Len(t, traced.seen[1].Answers, 4)

		time.Sleep(time.Second)
		traced.seen = nil
		sweep(q)
		for i, events := range []int{0, 0, 2, 2, 2} {
			q.fake(i).answer(len(q.fake(i).sent)-1, none, node.ErrTimeout)
			require.Len(t, traced.seen, events, "%d nodes have failed", i+1)
		}
		for _, data := range traced.seen {
			require.ErrorIs(t, data.Err, ErrNoQuorum)
		}
		time.Sleep(q.cfg.lease.ttl / 10)
		traced.seen = nil
		q.extender.sweep()
		for i, events := range []int{0, 0, 2, 2, 2} {
			q.fake(i).answer(len(q.fake(i).sent)-1, digits("11"), nil)
			require.Len(t, traced.seen, events, "%d nodes have answered at last", i+1)
		}
		require.NoError(t, traced.seen[0].Err)
		require.False(t, traced.seen[0].Shared)
		require.True(t, traced.seen[1].Shared)
	})
}

// Damaged counters are healed by leases that others have granted while they were, until that is
// done and with the latest time that is known; any other lease raises counters, and heals none.
func TestWhoHealsCounters(t *testing.T) {
	_, leases := held(t, 1, 1)
	l := leases[0]
	spread := func() string { return l.extendCall(0).Spread }
	require.Equal(t, "0", spread())
	for verdict, err := range map[wire.Verdict]error{wire.OK: nil, wire.Failed: &wire.Fault{Condition: wire.OutOfMemory}, wire.Refused: nil} {
		l.Late(0, &vote.Reply{Answer: wire.Answer{Verdict: verdict, Extended: wire.InPlace}, Err: err})
	}
	require.Equal(t, "0", spread())
	l.Late(0, &vote.Reply{Answer: none, Err: wire.DamagedCounter("x")})
	call := l.extendCall(0)
	latest, err := strconv.ParseInt(call.Spread, 10, 64)
	require.NoError(t, err)
	require.InDelta(t, time.Now().UnixMicro(), latest, float64(time.Minute.Microseconds()))
	l.healed(0, call, &vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}})
	require.NotEqual(t, "0", spread(), "it has not been done")
	l.healed(0, call, &vote.Reply{Answer: wire.Answer{Verdict: wire.OK}})
	require.Equal(t, "0", spread())
}
