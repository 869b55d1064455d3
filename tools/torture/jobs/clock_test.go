package jobs_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// A leap changes what the clock shows, at its time; and timers take as long as ever.
func TestClockLeaps(t *testing.T) {
	fake := clockwork.NewFakeClock()
	start := fake.Now()
	clock := jobs.Clock{Clock: fake, Ahead: time.Second, Start: start, Leaps: []plan.Leap{
		{At: 10 * time.Second, By: 2 * time.Second}, {At: 20 * time.Second, By: -3 * time.Second},
	}}
	for _, step := range []struct{ at, shown time.Duration }{{9, 10}, {10, 13}, {19, 22}, {20, 20}, {30, 30}} {
		fake.Advance(start.Add(step.at * time.Second).Sub(fake.Now()))
		require.Equal(t, step.shown*time.Second, clock.Now().Sub(start), "after %d s", step.at)
	}
	timer := clock.NewTimer(time.Second)
	fake.Advance(time.Second)
	<-timer.Chan()
}

func TestClockIsAhead(t *testing.T) {
	fake := clockwork.NewFakeClock()
	clock := jobs.Clock{Clock: fake, Ahead: time.Second}
	require.Equal(t, fake.Now().Add(time.Second), clock.Now())
	require.Equal(t, time.Second, clock.Since(fake.Now()))
	require.Equal(t, -time.Second, clock.Until(fake.Now()))
}
