package clock

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// machine is a computer whose clocks are set by hand. time.Time values made with Add keep the
// monotonic reading, so a step of the wall clock is imitated by a gap that the witness sees.
type machine struct {
	start     time.Time
	mono      time.Duration
	suspended time.Duration
	asked     int
}

func (m *machine) clock() *Clock {
	c := newClock(func() time.Time { return m.start.Add(m.mono) }, func(mono, moved time.Duration) time.Duration {
		m.asked++
		return m.suspended
	})
	return c
}

func TestNowFollowsMonotonicTime(t *testing.T) {
	m := &machine{start: time.Now()}
	c := m.clock()
	require.Equal(t, Instant(0), c.Now())
	m.mono = 3 * time.Second
	require.Equal(t, Instant(3*time.Second), c.Now())
	require.Zero(t, m.asked, "the kernel is asked only when wall and monotonic clocks moved apart")
}

func TestSuspendCounts(t *testing.T) {
	m := &machine{start: time.Now()}
	c := m.clock()
	m.suspended = time.Hour
	c.examine(time.Hour)
	require.Equal(t, Instant(time.Hour), c.Now(), "an hour asleep is an hour of lease time")
}

func TestWallClockStepChangesNothing(t *testing.T) {
	m := &machine{start: time.Now()}
	c := m.clock()
	before := c.Now()
	c.examine(-24 * time.Hour)
	c.examine(24 * time.Hour)
	require.Equal(t, 2, m.asked)
	require.Equal(t, before, c.Now())
}

func TestSuspendedTimeNeverShrinks(t *testing.T) {
	m := &machine{start: time.Now(), suspended: time.Minute}
	c := m.clock()
	c.examine(time.Minute)
	m.suspended = time.Second
	c.examine(2 * time.Minute)
	require.Equal(t, Instant(time.Minute), c.Now())
}

func TestWitnessAgreesWithTheKernel(t *testing.T) {
	c := New()
	asleep := c.asleep(c.now().Sub(c.base), 0)
	require.Less(t, asleep.Abs(), 5*time.Second, "no suspend happened during this test")
}

func TestBubbleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		time.Sleep(time.Minute)
		require.Equal(t, Instant(time.Minute), c.Now())
	})
}

func TestNowDoesNotAllocate(t *testing.T) {
	c := New()
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Now() }))
}

// Whoever asks while the kernel is being asked for somebody else must not be told the time before
// the suspend.
func TestSuspendCountsForASecondAsker(t *testing.T) {
	start := time.Now()
	var c *Clock
	second := make(chan Instant, 1)
	first := true
	c = newClock(func() time.Time { return start }, func(_, _ time.Duration) time.Duration {
		if first {
			first = false
			go func() { second <- c.Now() }()
			for deadline := time.Now().Add(100 * time.Millisecond); len(second) == 0 && time.Now().Before(deadline); {
				runtime.Gosched() // it has to wait for the answer
			}
		}
		return time.Hour
	})
	c.gap.Store(-int64(time.Hour)) // as after an hour asleep
	require.Equal(t, Instant(time.Hour), c.Now())
	require.Equal(t, Instant(time.Hour), <-second)
}
