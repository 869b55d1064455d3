package scheduler_test

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// absurd are durations that somebody passes by mistake, and the bounds.
var absurd = []time.Duration{math.MinInt64, -time.Hour, -1, 0, 1, time.Second, scheduler.MaxTimeout, scheduler.MaxTimeout + 1,
	scheduler.MaxSpan, scheduler.MaxSpan + 1, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64}

// refusedOption demands that an error is of the option, and that it fits.
func refusedOption(t *testing.T, err error, option string, fits bool) bool {
	t.Helper()
	if fits {
		require.NoError(t, err, option)
		return false
	}
	var invalid *scheduler.OptionError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, option, invalid.Option)
	return true
}

// Each option of a duration, and each interval, works or is refused by name.
func TestAbsurdDurations(t *testing.T) {
	for _, d := range absurd {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl))
				silent := scheduler.WithLogger(slog.New(slog.DiscardHandler))
				secondly := gocron.CronJob("* * * * * *", true)
				works := func(s *scheduler.Scheduler, definition gocron.JobDefinition) {
					var ran atomic.Int64
					j, err := s.NewJob(definition, scheduler.NewTask(func() { ran.Add(1) }), gocron.WithName("job"))
					require.NoError(t, err)
					s.Start()
					require.Eventually(t, func() bool { return j.RunNow() == nil && ran.Load() > 0 }, 10*ttl, time.Second)
					require.NoError(t, s.Shutdown())
				}
				for _, o := range []struct {
					name string
					opt  scheduler.Option
					fits bool
				}{
					{"WithTTL", scheduler.WithTTL(d), d >= redlock.MinTTL && d <= ttl},
					{"WithTryTimeout", scheduler.WithTryTimeout(d), d >= scheduler.MinTryTimeout && d <= scheduler.MaxTimeout},
					{"WithStopTimeout", scheduler.WithStopTimeout(d), d > 0 && d <= scheduler.MaxTimeout},
					{"WithCatchUp", scheduler.WithCatchUp(d, scheduler.CatchUpNone), d >= 0 && d <= scheduler.MaxSpan},
					{"WithCatchUp", scheduler.WithCatchUp(d, scheduler.CatchUpAll), d > 0 && d <= scheduler.MaxSpan},
				} {
					s, err := scheduler.New(q, silent, o.opt)
					if !refusedOption(t, err, o.name, o.fits) {
						works(s, secondly)
					}
				}
				for _, o := range []struct {
					name       string
					definition gocron.JobDefinition
					least      time.Duration
				}{
					{"gocron.DurationJob", gocron.DurationJob(d), scheduler.MinInterval},
					{"gocron.DurationRandomJob", gocron.DurationRandomJob(time.Second, d), time.Second + 1},
				} {
					if d < o.least {
						continue // gocron's own
					}
					for _, window := range []time.Duration{1, scheduler.MaxSpan} {
						s, err := scheduler.New(q, silent, scheduler.WithElection("jobs"), scheduler.WithCatchUp(window, scheduler.CatchUpAll))
						require.NoError(t, err)
						if d <= scheduler.MaxSpan {
							works(s, o.definition)
							continue
						}
						_, err = s.NewJob(o.definition, scheduler.NewTask(func() {}), gocron.WithName("job"))
						refusedOption(t, err, o.name, false)
						require.NoError(t, s.Shutdown())
					}
				}
				for _, o := range []struct {
					name string
					opt  scheduler.LockerOption
					fits bool
				}{
					{"WithMinHold", scheduler.WithMinHold(d), d >= 0 && d < ttl},
					{"WithTTL", scheduler.WithTTL(d), d > scheduler.DefaultMinHold && d <= ttl},
					{"WithTryTimeout", scheduler.WithTryTimeout(d), d >= scheduler.MinTryTimeout && d <= scheduler.MaxTimeout},
				} {
					l, err := scheduler.NewLocker(q, silent, o.opt)
					if o.name == "WithTTL" && d >= redlock.MinTTL && d <= scheduler.DefaultMinHold {
						continue // below the minimum hold
					}
					if !refusedOption(t, err, o.name, o.fits) {
						lock, err := l.Lock(t.Context(), "report")
						require.NoError(t, err)
						require.NoError(t, lock.Unlock(t.Context()))
						time.Sleep(ttl)
					}
				}
			})
		})
	}
}

// A deferred Shutdown may stand before the check of the error.
func TestNoSchedulerIsHarmless(t *testing.T) {
	for _, s := range []*scheduler.Scheduler{nil, {}} {
		require.NoError(t, s.Shutdown())
		require.NoError(t, s.ShutdownWithContext(t.Context()))
		require.NoError(t, s.StopJobs())
		require.NoError(t, s.StopJobsWithContext(t.Context()))
	}
}
