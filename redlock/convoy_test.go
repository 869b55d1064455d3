package redlock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A convoy renews keys by the Quorum's TTL. What else an extension may have to do, it does by
// itself.
func TestWhoJoinsAConvoy(t *testing.T) {
	q := testNode().q
	q.texts = q.cfg.texts()
	start := q.clock.Now()
	lease := func() *Lease {
		l := &Lease{q: q, attempt: &attempt{cfg: q.cfg.lease}, spread: start}
		l.deadline.Store(int64(start.Add(2 * spreadEvery)))
		return l
	}
	require.Equal(t, extending, lease().company(start))
	require.Equal(t, extending, lease().company(start.Add(spreadEvery-1)))
	require.Equal(t, spreading, lease().company(start.Add(spreadEvery)))
	l := lease()
	l.attempt.cfg.once = &once{}
	require.Equal(t, extending, l.company(start))
	require.Equal(t, nobody, l.company(start.Add(spreadEvery)), "it has a record to spread")
	l = lease()
	l.attempt.cfg.minHold = time.Second
	require.Equal(t, nobody, l.company(start), "a late extension would undo the end of its minimum hold")
	l = lease()
	l.attempt.cfg.ttl = 2 * q.texts.ttl
	require.Equal(t, nobody, l.company(start), "another TTL")
	l = lease()
	l.deadline.Store(int64(start.Add(time.Millisecond)))
	require.Equal(t, nobody, l.company(start), "its end is near")
	q.cfg.tracers.node = silent{}
	require.Equal(t, extending, lease().company(start), "who traces changes nothing")
}

// A node that is slow gets no extension of a lease that was lost meanwhile.
func TestConvoyIsNotSentAfterALoss(t *testing.T) {
	n := testNode()
	n.q.texts = n.q.cfg.texts()
	now := n.q.clock.Now()
	var leases []*Lease
	for i, left := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		l := &Lease{q: n.q, attempt: &attempt{keys: &wire.Keys{Lock: fmt.Sprint("key", i)}, owner: fmt.Sprint("owner", i)}}
		l.deadline.Store(int64(now.Add(left)))
		leases = append(leases, l)
	}
	n.q.startConvoy(leases, extending, now)
	require.Len(t, n.queue, 1)
	require.Equal(t, now.Add(time.Hour), n.queue[0].expires)
	require.Equal(t, wire.NewExtendMany(n.queue[0].call.Keys.Lock, n.q.texts.ttlText, []wire.Held{
		{Keys: leases[0].attempt.keys, Owner: "owner0"}, {Keys: leases[1].attempt.keys, Owner: "owner1"}, {Keys: leases[2].attempt.keys, Owner: "owner2"},
	}, false), n.queue[0].call)
}

// A server that refuses the command does so because of one of the keys, perhaps: each lease is
// tried by itself, once. One that does not answer is not asked for each.
func TestConvoyThatIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		more int // requests
	}{
		"refused":   {wire.ErrUnexpected, 2},
		"no answer": {ErrTimeout, 0},
	} {
		n := testNode()
		q := n.q
		q.texts, q.extender, q.leases = q.cfg.texts(), newExtender(q), make(map[*Lease]struct{})
		now := q.clock.Now()
		var leases []*Lease
		for i := range 2 {
			l := newLease(t.Context(), q, &attempt{cfg: q.cfg.lease, keys: &wire.Keys{Lock: fmt.Sprint("key", i)}}, 1, now, now, grant{})
			defer l.timer.Stop()
			leases = append(leases, l)
		}
		c := q.startConvoy(leases, extending, now)
		require.Len(t, n.queue, 1, name)
		r := n.queue[0]
		c.settle(r, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(OpExtend, test.err)})
		require.Len(t, n.queue, 1+test.more, name)
		for i, alone := range n.queue[1:] {
			require.Nil(t, alone.convoy, name)
			require.Same(t, leases[i].attempt, alone.attempt, name)
		}
		c.settle(r, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(OpExtend, test.err)})
		require.Len(t, n.queue, 1+test.more, "the second answer of a node counts: %s", name)
	}
}

// manned is a Quorum of five nodes that do nothing, with leases.
func manned(t *testing.T, n int) (q *Quorum, leases []*Lease) {
	q = testNode().q
	for range 4 {
		other := testNode()
		other.q = q
		q.nodes = append(q.nodes, other)
	}
	q.need = 3
	q.texts, q.extender, q.leases = q.cfg.texts(), newExtender(q), make(map[*Lease]struct{})
	for i := range n {
		l := newLease(t.Context(), q, &attempt{cfg: q.cfg.lease, keys: &wire.Keys{Lock: fmt.Sprint("key", i)}}, 1, q.clock.Now(), q.clock.Now(), grant{})
		t.Cleanup(func() { l.timer.Stop() })
		leases = append(leases, l)
	}
	return q, leases
}

// answered settles the convoy that a node was sent last.
func answered(c *convoy, node int, digits string) {
	n := c.q.nodes[node]
	c.settle(n.queue[slices.IndexFunc(n.queue, func(r *request) bool { return r.convoy == c })], reply{Answer: wire.Answer{Verdict: wire.OK, Extended: wire.InPlace, Each: digits}})
}

// However many nodes miss its key, a lease has one round besides its convoy: several at a time
// would each see some of the keys that are gone.
func TestConvoyTriesALeaseAloneOnce(t *testing.T) {
	q, leases := manned(t, 2)
	c := q.startConvoy(leases, extending, q.clock.Now())
	answered(c, 0, "01")
	for _, n := range q.nodes {
		require.Len(t, n.queue, 2)
		require.Same(t, leases[0].attempt, n.queue[1].attempt)
	}
	answered(c, 1, "01")
	for _, n := range q.nodes {
		require.Len(t, n.queue, 2)
	}
	require.NoError(t, leases[0].Err())
	answered(c, 2, "01")
	require.ErrorIs(t, leases[0].Err(), ErrLost, "a quorum does not have its key")
	require.NoError(t, leases[1].Err())
}

// Nor has it one after StopExtending.
func TestConvoyTriesNoLeaseThatIsNotExtended(t *testing.T) {
	q, leases := manned(t, 2)
	c := q.startConvoy(leases, extending, q.clock.Now())
	leases[0].StopExtending()
	answered(c, 0, "00")
	for _, n := range q.nodes {
		require.Len(t, n.queue, 2)
		require.Same(t, leases[1].attempt, n.queue[1].attempt)
	}
}

// An extension is traced once, and its round besides a convoy only if that put a key back.
func TestRoundBesideAConvoyIsTracedIfItMatters(t *testing.T) {
	own := reply{Answer: wire.Answer{Verdict: wire.OK, Extended: wire.InPlace}}
	for name, test := range map[string]struct {
		answers [5]reply
		beside  bool
		traces  int
	}{
		"by itself":         {[5]reply{own, own, own}, false, 1},
		"besides":           {[5]reply{own, own, own}, true, 0},
		"besides, put back": {[5]reply{{Answer: wire.Answer{Verdict: wire.OK, Extended: wire.Refilled}}, own, own}, true, 1},
	} {
		q, leases := manned(t, 1)
		traced := &extensions{}
		q.cfg.tracers.extend = traced
		result := make(chan error, 1)
		x := leases[0].startExtend(result, test.beside)
		for i, rep := range test.answers {
			if rep.Verdict == wire.OK {
				x.settle(i, rep)
			}
		}
		require.NoError(t, <-result, name)
		require.Equal(t, test.traces, traced.n, name)
	}
}

// extensions counts what it is told.
type extensions struct {
	ExtendTracer
	n int
}

func (e *extensions) TraceExtend(context.Context, TraceExtendData) { e.n++ }

// A convoy works as long as its leases take the server, which makes no node far.
func TestRoundTripOfAConvoy(t *testing.T) {
	for leases, flights := range map[int]int{0: 3, wire.MaxGroup: 1} {
		var trip roundTrip
		f := &flight{sent: 1, received: clock.Instant(1).Add(nearTrip + tripWork*wire.MaxGroup), batch: []*request{{convoy: &convoy{leases: make([]*Lease, leases)}}}}
		trip.observe(f)
		require.Equal(t, flights, trip.flights(), "%d leases", leases)
	}
}

// A convoy that spreads tokens has them and their counters too, and its leases need not do so again
// for an hour.
func TestConvoySpreadsTokens(t *testing.T) {
	n := testNode()
	q := n.q
	q.texts = q.cfg.texts()
	start := q.clock.Now()
	l := &Lease{q: q, spread: start.Add(-spreadEvery),
		attempt: &attempt{cfg: q.cfg.lease, keys: &wire.Keys{Lock: "key", Fence: "fence"}, owner: "owner", token: 7}}
	l.deadline.Store(int64(start.Add(2 * spreadEvery)))
	require.Equal(t, spreading, l.company(start))
	q.startConvoy([]*Lease{l}, spreading, start)
	call := n.queue[0].call
	require.Equal(t, wire.NewExtendMany(call.Keys.Lock, q.texts.ttlText, []wire.Held{{Keys: l.attempt.keys, Owner: "owner", Token: 7}}, true), call)
	require.Equal(t, extending, l.company(start.Add(spreadEvery-1)))
	require.Equal(t, spreading, l.company(start.Add(spreadEvery)))
}

// silent is a NodeTracer.
type silent struct{ NodeTracer }
