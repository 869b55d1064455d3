package clocks

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
)

func of(nodes int, skew time.Duration) *Clocks {
	return New(nodes, nodes/2+1, func() time.Duration { return skew })
}

// A slow answer leaves open what a server's clock shows, and is no wrong clock; nor is one that was
// asked long ago, which then says nothing of the median either.
func TestSlowAnswerIsNoWrongClock(t *testing.T) {
	const skew = 2 * time.Second
	c := of(3, skew)
	const start = clock.Instant(time.Hour)
	sample := func(i int, at clock.Instant, lo, hi time.Duration) {
		c.Sampled(i, node.Watch{Lo: lo, Hi: hi, At: at, Known: true})
	}
	wall := time.Unix(0, 0).Add(time.Hour)
	require.Zero(t, c.Hint(start, wall))
	sample(0, start, 0, 0)
	require.Zero(t, c.Hint(start, wall), "one of three is no quorum")
	sample(1, start, 0, 0)
	require.EqualValues(t, time.Hour.Microseconds(), c.Hint(start, wall))
	require.EqualValues(t, (time.Hour + skew).Microseconds(), c.Hint(start, wall.Add(time.Hour)))
	require.EqualValues(t, (time.Hour - skew).Microseconds(), c.Hint(start, wall.Add(-time.Hour)))
	require.EqualValues(t, (time.Hour - skew).Microseconds(), c.LeastToken(start))
	later := start
	for _, hi := range []time.Duration{2 * time.Second, time.Minute} {
		sample(2, later, 2*time.Second, hi)
		require.Nil(t, c.Wrong(2), "it may be right")
		later = later.Add(compareEvery)
	}
	sample(2, later, 2*time.Second+10*time.Millisecond, time.Minute)
	require.Contains(t, c.Wrong(2).Detail, "ahead of the median of 3 servers")
	require.Nil(t, c.Wrong(0))
	sample(2, later.Add(compareEvery), -time.Minute, -2*time.Second-10*time.Millisecond)
	require.Contains(t, c.Wrong(2).Detail, "behind the median of 3 servers")

	muchLater := later.Add(time.Hour)
	require.Zero(t, c.Hint(muchLater, wall))
	require.Zero(t, c.LeastToken(muchLater))
	sample(0, muchLater, 5*time.Minute, 5*time.Minute)
	require.Nil(t, c.Wrong(0), "there is nobody to compare it with")
	require.Zero(t, c.Hint(muchLater, wall))
}

// How high a counter may be goes by the latest of the clocks that are known: the server's, this
// process's, and the median. A server that is days behind has counters of the others' time.
func TestLeadIsThatOverTheLatestClock(t *testing.T) {
	c := of(3, 2*time.Second)
	const at, day = 100 * time.Hour, 24 * time.Hour
	wall := time.Unix(0, 0).Add(at)
	require.Equal(t, at, c.Latest(wall), "nothing else is known")
	for server, latest := range map[time.Duration]time.Duration{time.Hour: at, at + time.Hour: at + time.Hour} {
		require.Equal(t, day, c.Lead(uint64((latest+day).Microseconds()), server, wall))
		require.Equal(t, -day, c.Lead(uint64((latest-day).Microseconds()), server, wall))
		require.Greater(t, c.Lead(math.MaxUint64, server, wall), MostLead)
	}
	require.Equal(t, day, c.Lead(uint64((at+day).Microseconds()), 0, wall), "an answer without a time")
	require.Greater(t, MostLead, day)
	require.Equal(t, 5*time.Second, c.UsualLead())
	for i := range 2 {
		c.Sampled(i, node.Watch{Lo: 2 * at, Hi: 2 * at, Known: true})
	}
	require.Equal(t, 2*at, c.Latest(wall), "the servers'")
	require.Equal(t, 3*at, c.Latest(wall.Add(2*at)))
}

// After an outage in which all samples have become too old, the first two clocks, a right one and
// one that is an hour behind, are not believed until the third is known.
func TestClocksAreAwaitedAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const skew, asked, wait = 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond
		c := of(3, skew)
		sample := func(i int, at clock.Instant, ahead time.Duration) {
			c.Sampled(i, node.Watch{Lo: ahead, Hi: ahead, At: at, Known: true})
		}
		const start = clock.Instant(24 * time.Hour)
		for i := range 3 {
			sample(i, start, 0)
		}
		again := start.Add(3 * time.Minute)
		sample(0, again, 0)
		sample(1, again, -time.Hour)
		time.AfterFunc(asked, func() { sample(2, again.Add(asked), 0) })
		began := time.Now()
		c.Await(t.Context(), again, again.Add(wait))
		require.Equal(t, asked, time.Since(began))
		require.InDelta(t, time.Duration(again.Add(asked)).Microseconds(), c.LeastToken(again.Add(asked)), float64(2*skew.Microseconds()))
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
