//go:build long

package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

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
			clock := &settable{}
			r := c.replica(append(opts, scheduler.WithWall(clock.now))...)
			r.add(t, minutely, func() {})
			r.Start()
			until(day(1, 0, 1, 30))
			clock.set(10 * time.Minute)
			until(day(1, 0, 4, 30))
			require.Error(t, r.Healthy())
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

// Acceptance 2: a tick that the clock has passed by too far is not run, and is told as missed.
func TestTickThatTheClockPasses(t *testing.T) {
	for _, test := range []struct {
		by   time.Duration
		opt  gocron.JobOption
		runs int
	}{
		{20 * time.Second, within(0, scheduler.CatchUpNone), 0},
		{8 * time.Minute, within(0, scheduler.CatchUpNone), 0},
		{8 * time.Minute, within(time.Minute, scheduler.CatchUpLatest), 0},
		{20 * time.Second, within(time.Minute, scheduler.CatchUpLatest), 1},
		{3 * time.Second, within(0, scheduler.CatchUpNone), 1},
	} {
		t.Run(fmt.Sprint(test.by, " ", test.runs), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				clock := &settable{}
				until(day(1, 0, 57, 0))
				r := c.replica(quiet, scheduler.WithWall(clock.now), jobOptions(test.opt))
				r.add(t, gocron.CronJob("0 * * * *", false), func() {})
				r.Start()
				until(day(1, 0, 59, 30)) // this machine and the nodes are set together
				for _, n := range c.fleet.Nodes() {
					n.JumpClock(test.by)
				}
				until(day(1, 0, 59, 59))
				clock.set(test.by)
				time.Sleep(2 * time.Minute)
				require.Len(t, c.book.ticks(), test.runs)
				require.Equal(t, 1-test.runs, c.book.reasons()[scheduler.SkipMissed])
			})
		})
	}
}

// Acceptance 3: no replica was ever up at a tick.
func TestOffAtEachTick(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		noon, late := gocron.CronJob("0 12 * * *", false), within(time.Hour, scheduler.CatchUpLatest)
		c.life(day(1, 11, 0, 0), day(1, 11, 2, 0), noon, late)
		for d := 1; d <= 3; d++ {
			c.life(day(d, 12, 30, 0), day(d, 12, 32, 0), noon, late)
		}
		require.Equal(t, []string{"01 12:00", "02 12:00", "03 12:00"}, c.book.texts("02 15:04"))
	})
}

// Acceptance 4: deploys do not move the phase of an interval.
func TestIntervalOfAWeekWithDailyDeploys(t *testing.T) {
	for _, deploys := range []int{1, 2} { // the second is a rolling one
		t.Run(fmt.Sprint(deploys, " a day"), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var old *replica
				for d := 1; d <= 15; d++ {
					until(day(d, 10, 0, 0).Add(-time.Duration(d) * time.Second))
					for n := range deploys {
						r := c.replica(quiet)
						r.add(t, gocron.DurationJob(7*24*time.Hour), func() {})
						r.Start()
						time.Sleep(time.Second)
						if old != nil {
							c.stop(old)
						}
						time.Sleep(30 * time.Second)
						if old = r; n == deploys-1 { // a night costs CPU
							c.stop(r)
							old = nil
						}
					}
				}
				require.Equal(t, []string{"08 09:59", "15 09:59"}, c.book.texts("02 15:04"))
			})
		})
	}
}

// Acceptance 4: nor do failovers. Each interval is run, within Grace.
func TestIntervalOfAMinuteWithFailovers(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() *replica {
			r := c.replica(quiet, scheduler.WithElection("jobs"))
			r.add(t, gocron.DurationJob(time.Minute), func() {})
			r.Start()
			return r
		}
		replicas := []*replica{start(), start(), start()}
		for range 8 {
			time.Sleep(85 * time.Second)
			for i, r := range replicas {
				if r.Elector().IsLeader(t.Context()) == nil {
					c.kill(r)
					replicas[i] = start()
					break
				}
			}
		}
		ticks := c.book.ticks()
		require.Len(t, ticks, 11)
		for i, tick := range ticks {
			require.Equal(t, ticks[0].Add(time.Duration(i)*time.Minute), tick)
			at, _ := c.book.has(t, tick)
			require.LessOrEqual(t, at.Sub(tick), scheduler.Grace)
		}
	})
}

// Acceptance 5: a schedule that becomes one of a longer interval starts.
func TestLongerIntervalThatStartsAtOnce(t *testing.T) {
	for _, test := range []struct {
		every     time.Duration
		how, when string
	}{
		{15 * time.Minute, "Update", "at once"}, {15 * time.Minute, "deploy", "soon"}, {24 * time.Hour, "Update", "soon"}, {24 * time.Hour, "deploy", "at once"},
	} {
		t.Run(fmt.Sprint(test.every, " by ", test.how, ", ", test.when), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				atOnce := gocron.WithStartAt(gocron.WithStartImmediately())
				if test.when == "soon" {
					atOnce = gocron.WithStartAt(gocron.WithStartDateTime(day(1, 10, 1, 31)))
				}
				until(day(1, 9, 58, 30))
				r := c.replica(quiet)
				j := r.add(t, minutely, func() {})
				r.Start()
				until(day(1, 10, 1, 30))
				require.Len(t, c.book.ticks(), 3)
				if test.how == "Update" {
					_, err := r.Update(j.ID(), gocron.DurationJob(test.every), gocron.NewTask(func() {}), gocron.WithName("job"), atOnce)
					require.NoError(t, err)
				} else {
					c.stop(r)
					r = c.replica(quiet)
					r.add(t, gocron.DurationJob(test.every), func() {}, atOnce)
					r.Start()
				}
				time.Sleep(2 * time.Second)
				require.Len(t, c.book.ticks(), 4)
				time.Sleep(5 * time.Minute)
				require.Len(t, c.book.ticks(), 4)
			})
		})
	}
}

// Acceptance 7: an interval above one counts from its start, whoever asks, and when.
func TestPhaseOfAnIntervalAfterADeploy(t *testing.T) {
	past := gocron.WithStartAt(gocron.WithStartDateTimePast(day(1, 0, 0, 0)))
	daily := func(hour uint) gocron.JobDefinition {
		return gocron.DailyJob(2, gocron.NewAtTimes(gocron.NewAtTime(hour, 0, 0)))
	}
	weekly := func(hour uint) gocron.JobDefinition { // 3 January is a Monday
		return gocron.WeeklyJob(2, gocron.NewWeekdays(time.Monday), gocron.NewAtTimes(gocron.NewAtTime(hour, 0, 0)))
	}
	monthly := func(hour uint) gocron.JobDefinition {
		return gocron.MonthlyJob(2, gocron.NewDaysOfTheMonth(5), gocron.NewAtTimes(gocron.NewAtTime(hour, 0, 0)))
	}
	for _, test := range []struct {
		name    string
		of      func(uint) gocron.JobDefinition
		on, off int // days
		catchUp scheduler.CatchUp
	}{
		{"days, all", daily, 1, 2, scheduler.CatchUpAll},
		{"weeks, all", weekly, 10, 17, scheduler.CatchUpAll},  // the first of January is in the week before
		{"months, all", monthly, 5, 36, scheduler.CatchUpAll}, // 5 February
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				late := within(36*time.Hour, test.catchUp)
				c.life(day(test.on, 5, 59, 0), day(test.on, 6, 1, 0), test.of(6), past, late)
				require.Equal(t, []string{fmt.Sprintf("%02d 06:00", test.on)}, c.book.texts("02 15:04"))
				until(day(test.off, 4, 58, 0))
				var replicas []*replica
				for range 2 {
					r := c.replica(quiet, scheduler.WithElection("jobs"), jobOptions(late))
					r.add(t, test.of(5), func() {}, past)
					r.Start()
					time.Sleep(time.Second)
					replicas = append(replicas, r)
				}
				until(day(test.off, 5, 2, 0))
				c.stop(replicas[0])
				time.Sleep(2 * time.Minute)
				require.Len(t, c.book.ticks(), 1, "%v", c.book.texts("02 15:04"))
			})
		})
	}
}

// Acceptance 8: what a new schedule owes is owed, also if nobody was up at its first tick.
func TestFirstTickOfANewSchedule(t *testing.T) {
	once := func(at time.Time) gocron.JobDefinition { return gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at)) }
	for _, test := range []struct {
		name        string
		before, now gocron.JobDefinition
		window      time.Duration
	}{
		{"crontab", gocron.CronJob("30 9 * * *", false), gocron.CronJob("0 2 * * *", false), 24 * time.Hour},
		{"one-time job under a used name", once(day(1, 9, 30, 0)), once(day(2, 2, 0, 0)), 2 * time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				late := within(test.window, scheduler.CatchUpLatest)
				c.life(day(1, 9, 29, 0), day(1, 9, 31, 0), test.before, late)
				c.life(day(1, 10, 0, 0), day(1, 10, 2, 0), test.now, late)
				c.life(day(2, 3, 0, 0), day(2, 3, 2, 0), test.now, late)
				require.Equal(t, []string{"01 09:30", "02 02:00"}, c.book.texts("02 15:04"))
			})
		})
	}
}

// Acceptance 20: runs are counted over replicas and restarts.
func TestLimitedRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() *replica {
			r := c.replica(quiet)
			r.add(t, gocron.CronJob("*/10 * * * * *", true), func() {}, gocron.WithLimitedRuns(3))
			r.Start()
			return r
		}
		replicas := []*replica{start(), start(), start()}
		for i := range 2 {
			until(day(1, 0, 0, 12+10*i))
			c.stop(replicas[i])
			replicas[i] = start()
		}
		until(day(1, 0, 3, 0))
		require.Len(t, c.book.ticks(), 3)
		for _, r := range replicas {
			require.Empty(t, r.Jobs())
		}
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
