//go:build long

package scheduler_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Random times mean nothing to other replicas: the leader's count, also in the moment of a
// failover.
func TestRandomDurationsAreTheLeaders(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var replicas []*replica
		for range 3 {
			r := c.replica(scheduler.WithElection("jobs"), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))
			r.add(t, gocron.DurationRandomJob(4*time.Second, 6*time.Second), func() {})
			r.Start()
			replicas = append(replicas, r)
		}
		until(2 * time.Minute)
		for _, r := range replicas {
			if r.Elector().IsLeader(t.Context()) == nil {
				require.NoError(t, r.Shutdown())
				break
			}
		}
		until(4 * time.Minute)
		require.InDelta(t, 48, len(c.book.runs), 8)
		for i := 1; i < len(c.book.runs); i++ {
			require.False(t, c.book.runs[i].CatchUp)
		}
		short := 0
		for i := 1; i < len(c.book.begun); i++ {
			if c.book.begun[i].Sub(c.book.begun[i-1]) < 4*time.Second {
				short++
			}
		}
		require.LessOrEqual(t, short, 1, "only the first after the hand-over may be early")
	})
}

// A machine's clock is set back after gocron has set its timer, so that the tick seems not to have
// come when it fires.
func TestClockThatIsSetBackLosesNoTick(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		clock := &settable{Clock: clockwork.NewRealClock()}
		r := c.replica(scheduler.WithClock(clock), scheduler.WithLogger(slog.New(slog.DiscardHandler)))
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(12 * time.Second)
		clock.set(-300 * time.Millisecond)
		until(45 * time.Second)
		require.Equal(t, []int{10, 20, 30, 40}, c.book.tickSeconds())
		require.Empty(t, c.book.skips)
	})
}

// The first interval of a duration job may begin at once, on one of the replicas.
func TestDurationJobThatStartsImmediately(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for range 3 {
			r := c.replica()
			r.add(t, gocron.DurationJob(time.Minute), func() {}, gocron.WithStartAt(gocron.WithStartImmediately()))
			r.Start()
		}
		until(50 * time.Second)
		require.Len(t, c.book.ticks(), 1)
		until(70 * time.Second)
		require.Len(t, c.book.ticks(), 2)
	})
}

// The second of two times was missed by all, and the third is not yet.
func TestOneTimeJobIsCaughtUp(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		log := new(journal)
		start := func() *replica {
			r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithLogger(log.logger()))
			r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(at(5), at(7), at(20))), func() {})
			r.Start()
			return r
		}
		r := start()
		until(6 * time.Second)
		require.NoError(t, r.Shutdown())
		until(10 * time.Second)
		start()
		until(30 * time.Second)
		require.Equal(t, []int{5, 7, 20}, c.book.tickSeconds())
		require.Empty(t, log.lines("level=WARN"))
	})
}

// Every second day is counted from the last run, also if the catch-up window has begun on an odd
// one.
func TestCatchUpKeepsTheDaysOfAnInterval(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const day = 24 * time.Hour
		start := func() *replica {
			r := c.replica(scheduler.WithCatchUp(2*day, scheduler.CatchUpAll))
			r.add(t, gocron.DailyJob(2, gocron.NewAtTimes(gocron.NewAtTime(12, 0, 0))), func() {},
				gocron.WithStartAt(gocron.WithStartDateTimePast(time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC))))
			r.Start()
			return r
		}
		until(11*time.Hour + 59*time.Minute) // a replica costs something for each second of its life
		r := start()
		until(12*time.Hour + time.Minute)
		require.NoError(t, r.Shutdown())
		require.NoError(t, r.q.Close())
		until(5*day + 13*time.Hour)
		start()
		time.Sleep(time.Minute)
		var got []int
		for _, tick := range c.book.ticks() {
			got = append(got, tick.Day())
		}
		require.Equal(t, []int{1, 5}, got, "days of January")
	})
}

func TestTrap04OneTimeJobRunsOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		times := []time.Time{at(5), at(7), at(20)}
		for i, d := range []time.Duration{-800 * time.Millisecond, 0, 700 * time.Millisecond} {
			r := c.replica(ahead(d), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
			r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(slices.Clone(times)...)), func() {})
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			r.Start()
		}
		until(30 * time.Second)
		require.Equal(t, []int{5, 7, 20}, c.book.tickSeconds())
	})
}

// An attempt takes longer than the interval of the job, because no node answers. gocron passes over
// the ticks that come meanwhile, and each of them is told of.
func TestTicksThatComeDuringALongAttempt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const every = 30 * time.Millisecond // a node has 100 ms
		r := c.replica()
		r.add(t, gocron.DurationJob(every), func() {})
		r.Start()
		until(2 * time.Second)
		c.freeze(0, 1, 2, 3, 4)
		until(4 * time.Second)
		c.thaw(0, 1, 2, 3, 4)
		until(6 * time.Second)
		told := make(map[int64]bool)
		for _, tick := range c.book.ticks() {
			told[tick.UnixMilli()/every.Milliseconds()] = true
		}
		c.book.mu.Lock()
		defer c.book.mu.Unlock()
		for _, skip := range c.book.skips {
			told[skip.Tick.UnixMilli()/every.Milliseconds()] = true
		}
		for n := at(1).UnixMilli() / every.Milliseconds(); n < at(5).UnixMilli()/every.Milliseconds(); n++ {
			require.True(t, told[n], "tick %v", time.UnixMilli(n*every.Milliseconds()).UTC())
		}
	})
}

// Replicas that were started at different moments count a duration from different moments; one of
// them runs in each interval.
func TestTrap04DurationJobRunsOncePerInterval(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for _, phase := range []time.Duration{0, 2300 * time.Millisecond, 3100 * time.Millisecond} {
					time.Sleep(phase)
					r := c.replica(mode.opts...)
					r.add(t, gocron.DurationJob(10*time.Second), func() {})
					r.Start()
				}
				until(205 * time.Second)
				perInterval := make(map[int]int)
				for _, s := range c.book.tickSeconds() {
					perInterval[s/10]++
				}
				for i := 1; i < 20; i++ {
					require.Equal(t, 1, perInterval[i], "runs in interval %d: %v", i, c.book.tickSeconds())
				}
			})
		})
	}
}
