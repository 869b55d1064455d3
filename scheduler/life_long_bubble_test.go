//go:build long

package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// policies are all that there are.
var policies = []scheduler.CatchUp{scheduler.CatchUpNone, scheduler.CatchUpLatest, scheduler.CatchUpAll}

// Acceptance 1: a clock that is ten minutes ahead for three minutes costs the ticks of that time at
// most, and the replica says so only in that time.
func TestClockAheadThatIsSetRight(t *testing.T) {
	for mode, policies := range map[string][]scheduler.CatchUp{
		"alone": policies, "elected": {scheduler.CatchUpAll}, "a standby that leads later": {scheduler.CatchUpNone},
	} {
		for _, p := range policies {
			clockAheadThatIsSetRight(t, mode, p)
		}
	}
}

func clockAheadThatIsSetRight(t *testing.T, mode string, p scheduler.CatchUp) {
	t.Run(mode+", "+p.String(), func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			opts := []scheduler.Option{quiet, jobOptions(within(2*time.Hour, p))}
			if mode != "alone" {
				opts = append(opts, scheduler.WithElection("jobs"))
			}
			var first *replica
			if mode == "a standby that leads later" {
				first = c.replica(opts...)
				first.add(t, minutely, func() {})
				first.Start()
				time.Sleep(time.Second)
			}
			clock, log, by := &settable{}, new(journal), 10*time.Minute
			if p == scheduler.CatchUpLatest {
				by = 5 * time.Second
			}
			r := c.replica(append(opts, scheduler.WithWall(clock.now), scheduler.WithLogger(log.logger()))...)
			r.add(t, minutely, func() {})
			r.Start()
			until(day(1, 0, 1, 30))
			clock.set(by)
			until(day(1, 0, 4, 30))
			require.Equal(t, "clock_ahead", redlock.ErrorType(r.Healthy()))
			require.Len(t, log.lines("clock is ahead of the nodes'"), 1)
			clock.set(0)
			time.Sleep(2 * time.Second)
			require.NoError(t, r.Healthy())
			if first != nil {
				c.stop(first)
			}
			until(day(1, 0, 6, 30))
			for _, tick := range []time.Time{day(1, 0, 1, 0), day(1, 0, 5, 0), day(1, 0, 6, 0)} {
				at, ok := c.book.has(t, tick)
				require.True(t, ok, "%v: %v", tick, c.book.texts("15:04"))
				require.Less(t, at.Sub(tick), time.Second)
			}
			for _, tick := range c.book.ticks() {
				require.False(t, tick.After(day(1, 0, 6, 0)), "%v is in the future", tick)
			}
		})
	})
}

// Acceptance 6: a clock that was 60 days behind holds up no other job, and what was away for 30
// days begins with its first late run at once. What a verdict costs package joblog bounds.
func TestClockFarBehindThatIsSetRight(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.life(day(1, 0, 0, 1), day(1, 0, 0, 3), secondly, within(365*24*time.Hour, scheduler.CatchUpAll))
		ran := len(c.book.ticks())
		for _, n := range c.fleet.Nodes() {
			n.JumpClock(30 * 24 * time.Hour)
		}
		clock := &settable{}
		clock.set(-30 * 24 * time.Hour) // 60 days behind the nodes
		var asked, began []time.Time
		r := c.replica(quiet, scheduler.WithWall(clock.now), scheduler.WithTracer(&scheduler.Tracer{
			Tick: func(ctx context.Context, _ scheduler.TickTrace) context.Context {
				asked = append(asked, time.Now())
				return ctx
			},
			RunStart: func(ctx context.Context, data scheduler.RunStartTrace) context.Context {
				if data.Run.Job == "job" {
					began = append(began, time.Now())
				}
				return c.book.start(ctx, data)
			},
			RunEnd: c.book.end,
		}))
		var other []time.Time
		r.add(t, gocron.DurationJob(200*time.Millisecond), func() { other = append(other, time.Now()) }, gocron.WithName("other"), gocron.WithDisabledDistributedJobLocker(true))
		r.add(t, secondly, func() { time.Sleep(100 * time.Millisecond) }, within(365*24*time.Hour, scheduler.CatchUpAll))
		r.Start()
		time.Sleep(10 * time.Second)
		clock.set(30 * 24 * time.Hour)
		time.Sleep(3 * time.Second)
		require.Greater(t, len(other), 5*12)
		for i := range other[1:] {
			require.Less(t, other[i+1].Sub(other[i]), 300*time.Millisecond, "%v", other[i])
		}
		require.Less(t, began[0].Sub(asked[0]), 100*time.Millisecond)
		require.Greater(t, len(c.book.ticks()), ran+65)
		first := 0
		for i := range c.book.ticks() {
			if run, _ := c.book.run(i); run.Job == "job" && i >= ran && first == 0 {
				first = i
				require.Equal(t, "late", run.Why)
				require.True(t, run.Due.Before(day(1, 0, 0, 30)), "%v", run.Due)
			}
		}
		require.NotZero(t, first)
	})
}
