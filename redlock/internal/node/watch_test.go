package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
)

// sampleAt is an answer that took rtt, from a server whose clock is ahead of ours by ahead.
func sampleAt(w *Watch, at, rtt, ahead time.Duration) time.Duration {
	sent := clock.Instant(at)
	return w.observe(sent, sent.Add(rtt), at+rtt/2+ahead, 0.01)
}

func TestClockWatch(t *testing.T) {
	const rtt = 2 * time.Millisecond
	type step struct{ at, rtt, ahead time.Duration }
	for _, test := range []struct {
		name  string
		steps []step // the last one decides
		want  int    // sign of the jump
	}{
		{"the first sample says nothing", []step{{0, rtt, time.Hour}}, 0},
		{"a steady offset", []step{{0, rtt, time.Hour}, {time.Second, rtt, time.Hour}, {time.Minute, rtt, time.Hour}}, 0},
		{"a jump forward", []step{{0, rtt, 0}, {time.Second, rtt, 50 * time.Millisecond}}, 1},
		{"a jump backward", []step{{0, rtt, 0}, {time.Second, rtt, -50 * time.Millisecond}}, -1},
		{"within the drift", []step{{0, rtt, 0}, {10 * time.Second, rtt, 95 * time.Millisecond}}, 0},
		{"beyond the drift", []step{{0, rtt, 0}, {10 * time.Second, rtt, 110 * time.Millisecond}}, 1},
		{"an hour out of reach", []step{{0, rtt, 0}, {time.Hour, rtt, 3600 * time.Millisecond}}, 0},
		{"an hour out of reach does not hide a jump", []step{{0, rtt, 0}, {time.Hour, rtt, 4 * time.Second}}, 1},
		{"nor one backward", []step{{0, rtt, 0}, {time.Hour, rtt, -4 * time.Second}}, -1},
		{"a slow answer proves nothing", []step{{0, rtt, 0}, {time.Second, time.Second, 300 * time.Millisecond}}, 0},
		{"a slow answer does not forget", []step{{0, rtt, 0}, {time.Second, time.Second, 0}, {2 * time.Second, rtt, 100 * time.Millisecond}}, 1},
		{"after a jump the new offset counts", []step{{0, rtt, 0}, {time.Second, rtt, time.Second}, {2 * time.Second, rtt, time.Second}}, 0},
		{"small steps within the drift do not add up unseen", []step{{0, rtt, 0},
			{100 * time.Millisecond, rtt, 8 * time.Millisecond}, {200 * time.Millisecond, rtt, 16 * time.Millisecond}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w Watch
			var jump time.Duration
			for _, s := range test.steps {
				jump = sampleAt(&w, s.at, s.rtt, s.ahead)
			}
			switch {
			case test.want > 0:
				require.Positive(t, jump)
			case test.want < 0:
				require.Negative(t, jump)
			default:
				require.Zero(t, jump)
			}
		})
	}
}

// Of two batches that were in flight together the one whose answers came first may be looked at
// second, and the other may have been slow on its way there or back.
func TestClockWatchOutOfOrder(t *testing.T) {
	at := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	for _, slow := range []float64{10.1, 609.9} { // on its way back, or there
		for _, other := range []float64{11.1, 18.9} {
			var w Watch
			require.Zero(t, w.observe(clock.Instant(at(0)), clock.Instant(at(1)), at(0.5), 0.01))
			require.Zero(t, w.observe(clock.Instant(at(10)), clock.Instant(at(610)), at(slow), 0.01))
			require.Zero(t, w.observe(clock.Instant(at(11)), clock.Instant(at(19)), at(other), 0.01), "after %v: %v", slow, other)
		}
	}
}

// Steps below the allowance must not add up with every look to more than the drift explains.
func TestClockWatchSeesACreepingClock(t *testing.T) {
	for _, test := range []struct {
		name        string
		every, step time.Duration
		seen        bool
	}{
		{"eight percent fast", 10 * time.Millisecond, 800 * time.Microsecond, true},
		{"steps below the floor", time.Millisecond, 1500 * time.Microsecond, true},
		{"within the drift", 10 * time.Millisecond, 90 * time.Microsecond, false},
		{"as slow as the drift allows", 10 * time.Millisecond, -90 * time.Microsecond, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w Watch
			var ahead time.Duration
			for i := range 1000 {
				if jump := sampleAt(&w, time.Duration(i)*test.every, 100*time.Microsecond, ahead); jump != 0 {
					require.True(t, test.seen, "after %v", time.Duration(i)*test.every)
					require.Less(t, ahead, 20*time.Millisecond)
					return
				}
				ahead += test.step
			}
			require.False(t, test.seen)
		})
	}
}

// Two clocks that time daemons adjust are nobody's jump, whatever allowance the user set.
func TestClockWatchToleratesSlewing(t *testing.T) {
	var w Watch
	for i := range 1000 {
		at := time.Duration(i) * time.Second
		sent := clock.Instant(at)
		require.Zero(t, w.observe(sent, sent.Add(time.Millisecond), at+at/1100, 0))
	}
}
