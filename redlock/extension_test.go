package redlock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Leases with one TTL are renewed together. What else an extension may have to do, it does alone.
func TestWhatIsExtendedTogether(t *testing.T) {
	q := testQuorum(1)
	start := q.clock.Now()
	lease := func() *holding {
		cfg := q.cfg.plain
		l := &holding{q: q, attempt: &attempt{cfg: &cfg}, spread: start}
		l.deadline.Store(int64(start.Add(2 * spreadEvery)))
		return l
	}
	requireGroup := func(want group, l *holding, at clock.Instant) {
		t.Helper()
		g, ok := l.group(at)
		require.True(t, ok)
		require.Equal(t, want, g)
	}
	requireAlone := func(l *holding, at clock.Instant, why string) {
		t.Helper()
		_, ok := l.group(at)
		require.False(t, ok, why)
	}
	renewed, spread := group{ttl: q.texts.ttl}, group{ttl: q.texts.ttl, spread: true}
	requireGroup(renewed, lease(), start)
	requireGroup(renewed, lease(), start.Add(spreadEvery-1))
	requireGroup(spread, lease(), start.Add(spreadEvery))
	l := lease()
	l.heals.Store(true)
	requireAlone(l, start, "it has a counter to heal")
	l = lease()
	l.attempt.cfg.minHold = time.Second
	requireAlone(l, start, "a late extension would undo the end of its minimum hold")
	l = lease()
	l.attempt.cfg.ttl = 2 * q.texts.ttl
	requireGroup(group{ttl: 2 * q.texts.ttl}, l, start)
	l = lease()
	l.deadline.Store(int64(start.Add(time.Millisecond)))
	requireAlone(l, start, "its end is near")
	l = lease()
	l.lacking.Store(true)
	requireAlone(l, start, "its key is not there on some node")
	q.cfg.tracers.node = silent{}
	requireGroup(renewed, lease(), start)
}

// A node that is slow gets no extension of a lease that was lost meanwhile.
func TestExtensionIsNotSentAfterALoss(t *testing.T) {
	q, leases := held(t, 1, 3)
	now := q.clock.Now()
	want := make([]wire.Held, len(leases))
	for i, left := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		leases[i].deadline.Store(int64(now.Add(left)))
		want[i] = wire.Held{Keys: leases[i].attempt.keys, Lock: leases[i].attempt.lock}
	}
	q.startTogether(leases, group{ttl: q.texts.ttl}, now)
	sent := q.fake(0).sent
	require.Len(t, sent, 1)
	require.Equal(t, now.Add(time.Hour), sent[0].Expires)
	require.Equal(t, wire.NewExtendMany(sent[0].Call.Keys.Lock, q.texts.ttlText, want, false), sent[0].Call)
}

// A lease that has ended is not extended with others.
func TestEndedLeaseIsNotExtended(t *testing.T) {
	q, leases := held(t, 1, 2)
	leases[0].lose(LostClosed)
	x := q.startTogether(slices.Clone(leases), group{ttl: q.texts.ttl}, q.clock.Now())
	require.Equal(t, leases[1:], x.leases)
	leases[1].lose(LostClosed)
	require.Nil(t, q.startTogether(leases, group{ttl: q.texts.ttl}, q.clock.Now()))
}

// A server that refuses the command does so because of one of the keys, perhaps: each lease is
// extended alone, once. One that does not answer is not asked for each.
func TestExtensionThatIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		more int // requests
	}{
		"refused":   {wire.ErrUnexpected, 2},
		"no answer": {node.ErrTimeout, 0},
	} {
		q, leases := held(t, 1, 2)
		q.startTogether(leases, group{ttl: q.texts.ttl}, q.clock.Now())
		n := q.fake(0)
		require.Len(t, n.sent, 1, name)
		for range 2 { // the first answer of a node counts
			n.answer(0, wire.Answer{Verdict: wire.Failed}, test.err)
			require.Len(t, n.sent, 1+test.more, name)
		}
		for i, alone := range n.sent[1:] {
			require.Equal(t, wire.Extend, alone.Call.Op, name)
			require.Same(t, leases[i].attempt.keys, alone.Call.Keys, name)
		}
	}
}

// held is a Quorum of nodes that do nothing, with leases.
func held(t *testing.T, nodes, n int) (q *Quorum, leases []*holding) {
	q = testQuorum(nodes)
	for i := range n {
		at := &attempt{cfg: &q.cfg.plain, keys: &wire.Keys{Name: fmt.Sprint(i), Lock: fmt.Sprint("key", i)}, owner: fmt.Sprint("owner", i)}
		l := newLease(t.Context(), q, at, 1, q.clock.Now(), q.clock.Now())
		l.arm()
		t.Cleanup(func() { l.timer.Stop() })
		leases = append(leases, l)
	}
	return q, leases
}

// digits is what a node answers of leases that are extended together.
func digits(text string) wire.Answer {
	return wire.Answer{Verdict: wire.OK, Extended: wire.InPlace}.With(wire.More{Each: text})
}

// However many nodes miss its key, a lease is extended alone once: several at a time would each see
// some of the keys that are gone.
func TestLeaseIsExtendedAloneOnce(t *testing.T) {
	q, leases := held(t, 5, 2)
	q.startTogether(leases, group{ttl: q.texts.ttl}, q.clock.Now())
	q.fake(0).answer(0, digits("01"), nil)
	for i := range q.nodes {
		require.Len(t, q.fake(i).sent, 2)
		require.Same(t, leases[0].attempt.keys, q.fake(i).sent[1].Call.Keys)
	}
	q.fake(1).answer(0, digits("01"), nil)
	for i := range q.nodes {
		require.Len(t, q.fake(i).sent, 2)
	}
	require.NoError(t, leases[0].Err())
	q.fake(2).answer(0, digits("01"), nil)
	require.ErrorIs(t, leases[0].Err(), ErrLost, "a quorum does not have its key")
	require.NoError(t, leases[1].Err())
}

// Nor is it after StopExtending.
func TestStoppedLeaseIsNotExtendedAlone(t *testing.T) {
	q, leases := held(t, 5, 2)
	q.startTogether(leases, group{ttl: q.texts.ttl}, q.clock.Now())
	leases[0].StopExtending()
	q.fake(0).answer(0, digits("00"), nil)
	for i := range q.nodes {
		require.Len(t, q.fake(i).sent, 2)
		require.Same(t, leases[1].attempt.keys, q.fake(i).sent[1].Call.Keys)
	}
}

// An answer that comes after the outcome may still show that a quorum does not have the key.
func TestLateAnswersEndALease(t *testing.T) {
	q, leases := held(t, 3, 1)
	x := leases[0].startExtend(nil, false)
	require.NotNil(t, x)
	own := wire.Answer{Verdict: wire.OK, Extended: wire.InPlace}
	refilled := wire.Answer{Verdict: wire.OK, Extended: wire.Refilled}
	q.fake(0).answer(0, own, nil)
	q.fake(1).answer(0, refilled, nil)
	require.NoError(t, leases[0].Err())
	q.fake(2).answer(0, refilled, nil)
	require.ErrorIs(t, leases[0].Err(), ErrLost)
}

// An extension is traced once, and the one of a lease alone besides only if that put a key back.
func TestExtensionBesideAnotherIsTracedIfItMatters(t *testing.T) {
	own := wire.Answer{Verdict: wire.OK, Extended: wire.InPlace}
	for name, test := range map[string]struct {
		first  wire.Answer
		beside bool
		traces int
	}{
		"by itself":         {own, false, 1},
		"besides":           {own, true, 0},
		"besides, put back": {wire.Answer{Verdict: wire.OK, Extended: wire.Refilled}, true, 1},
	} {
		q, leases := held(t, 5, 1)
		traced := &extensions{}
		q.cfg.tracers.extend = traced
		result := make(chan error, 1)
		leases[0].startExtend(result, test.beside)
		for i, a := range []wire.Answer{test.first, own, own} {
			q.fake(i).answer(0, a, nil)
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

// What spreads tokens has them and their counters too, and the leases need not do so again for an
// hour.
func TestExtensionSpreadsTokens(t *testing.T) {
	q, leases := held(t, 1, 1)
	l, start := leases[0], q.clock.Now()
	l.deadline.Store(int64(start.Add(2 * spreadEvery)))
	l.hasSpread(start.Add(-spreadEvery))
	g, ok := l.group(start)
	require.True(t, ok)
	require.True(t, g.spread)
	q.startTogether(leases, g, start)
	call := q.fake(0).sent[0].Call
	require.Equal(t, wire.NewExtendMany(call.Keys.Lock, q.texts.ttlText, []wire.Held{{Keys: l.attempt.keys, Lock: l.attempt.lock}}, true), call)
	require.False(t, l.spreads(start.Add(spreadEvery-1)))
	require.True(t, l.spreads(start.Add(spreadEvery)))
}

// Damaged counters are healed by leases that others have granted while they were, once and with the
// latest time that is known; any other lease raises counters, and heals none.
func TestWhoHealsCounters(t *testing.T) {
	q, leases := held(t, 1, 1)
	l := leases[0]
	spread := func() string {
		l.hasSpread(q.clock.Now().Add(-spreadEvery))
		require.NotNil(t, l.startExtend(nil, false))
		sent := q.fake(0).sent
		return sent[len(sent)-1].Call.Spread
	}
	require.Equal(t, "0", spread())
	for verdict, err := range map[wire.Verdict]error{wire.OK: nil, wire.Failed: &wire.Fault{Condition: wire.OutOfMemory}, wire.Refused: nil} {
		l.Late(0, &vote.Reply{Answer: wire.Answer{Verdict: verdict}, Err: err})
	}
	require.Equal(t, "0", spread())
	l.Late(0, &vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: wire.DamagedCounter("x")})
	latest, err := strconv.ParseInt(spread(), 10, 64)
	require.NoError(t, err)
	require.InDelta(t, time.Now().UnixMicro(), latest, float64(time.Minute.Microseconds()))
	require.Equal(t, "0", spread(), "it is older from now on than what others may be granted")
}

// silent is a NodeTracer.
type silent struct{ NodeTracer }

// A lease that has ended meanwhile has an outcome of its own, which stands for no other lease.
func TestEndedLeaseSpeaksForNoOther(t *testing.T) {
	s, began := &standing{}, time.Now()
	_, before := s.told(began, true)
	require.False(t, before)
	_, before = s.told(began, false)
	require.False(t, before, "the first that has the outcome of the extension")
	_, before = s.told(began, true)
	require.False(t, before)
	_, before = s.told(began, false)
	require.True(t, before)
}
