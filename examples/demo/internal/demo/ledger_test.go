package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var begin = time.UnixMilli(1_800_000_000_000)

// at is a moment of a test, in milliseconds from its begin.
func at(ms int64) int64 { return begin.UnixMilli() + ms }

// granted is a lease in a ledger, valid for 3 s unless it is extended.
func granted(l *ledger, id int, replica, kind string, from int64) *span {
	return l.grant(&Item{ID: id, Kind: kind, Replica: replica, From: at(from), Until: at(from + 3000)})
}

func TestOverlap(t *testing.T) {
	for name, tc := range map[string]struct {
		tell func(l *ledger)
		want int
	}{
		"one after the other": {func(l *ledger) {
			granted(l, 1, "a", KindTerm, 0).end(at(500), "released")
			granted(l, 2, "b", KindTerm, 500)
		}, 0},
		"the end is told after the next grant": {func(l *ledger) {
			a := granted(l, 1, "a", KindTerm, 0)
			granted(l, 2, "b", KindTerm, 501)
			l.check(begin.Add(600 * time.Millisecond))
			a.end(at(500), "released")
		}, 0},
		"the first ends after the second has begun": {func(l *ledger) {
			granted(l, 1, "a", KindTerm, 0).end(at(501), "released")
			granted(l, 2, "b", KindTerm, 500)
		}, 1},
		"the first is frozen, and may rely on its lease until its deadline": {func(l *ledger) {
			granted(l, 1, "a", KindTerm, 0)
			granted(l, 2, "b", KindTerm, 2999)
		}, 1},
		"the second begins at the deadline of the first": {func(l *ledger) {
			granted(l, 1, "a", KindTerm, 0)
			granted(l, 2, "b", KindTerm, 3000)
		}, 0},
		"the first learns of its end long after its deadline": {func(l *ledger) {
			granted(l, 1, "a", KindRun, 0).end(at(9000), "lost: deadline")
			granted(l, 2, "b", KindRun, 3000)
		}, 0},
		"the first is extended while the second has it": {func(l *ledger) {
			a := granted(l, 1, "a", KindTerm, 0)
			granted(l, 2, "b", KindTerm, 1500)
			a.extend(at(1600), at(4600))
		}, 1},
		"leases of one replica": {func(l *ledger) {
			granted(l, 1, "a", KindRun, 0)
			granted(l, 2, "a", KindRun, 100)
		}, 0},
		"leases on different keys": {func(l *ledger) {
			granted(l, 1, "a", KindTerm, 0)
			granted(l, 2, "b", KindRun, 100)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			tc.tell(l)
			found, changed := l.check(begin.Add(time.Minute))
			require.Len(t, found, tc.want)
			require.Len(t, changed, 2*tc.want)
			require.Equal(t, tc.want, l.counters.Overlaps)
			again, _ := l.check(begin.Add(time.Minute))
			require.Empty(t, again, "a pair counts once")
		})
	}
}

func TestTicks(t *testing.T) {
	l := newLedger()
	require.True(t, l.begin(at(0), 1))
	require.True(t, l.begin(at(1000), 1))
	require.True(t, l.begin(at(1000), 2), "it was cut short, and is granted again")
	require.Equal(t, Counters{Ticks: 2}, l.counters)
	require.False(t, l.begin(at(0), 1))
	require.False(t, l.begin(at(0), 1))
	require.Equal(t, Counters{Ticks: 2, Twice: 1}, l.counters, "a tick counts once")
	l.forget(begin.Add(keepTicks + time.Minute))
	require.Empty(t, l.ticks)
	require.Empty(t, l.attempts)
}

func TestForget(t *testing.T) {
	l := newLedger()
	granted(l, 1, "a", KindTerm, 0).end(at(501), "released")
	granted(l, 2, "b", KindTerm, 500)
	l.check(begin.Add(time.Minute))
	l.forget(begin.Add(keepItems + time.Minute))
	require.Len(t, l.spans, 1, "the one that goes on")
	l.spans[0].end(at(700), "released")
	l.forget(begin.Add(keepItems + time.Minute))
	require.Empty(t, l.spans)
}
