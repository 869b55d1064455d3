package scheduler_test

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// requireOnceAMinute waits until all have settled, and wants ten runs in ten minutes.
func (c *cluster) requireOnceAMinute(t *testing.T) {
	t.Helper()
	until(day(1, 0, 5, 10))
	n := len(c.book.ticks())
	until(day(1, 0, 15, 10))
	require.Len(t, c.book.ticks()[n:], 10, "%v", c.book.texts("04:05.000"))
}

// A rollout that was begun and taken back leaves replicas that have kept the old version beside
// those that got it again: all of them have the same ticks.
func TestIntervalAfterARolloutThatWasTakenBack(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func(every time.Duration) *replica {
			return c.runs(gocron.DurationJob(every), func() {}, quiet)
		}
		start(time.Minute)
		second := start(time.Minute)
		until(day(1, 0, 1, 10))
		c.stop(second)
		version2 := start(2 * time.Minute)
		until(day(1, 0, 1, 50))
		c.stop(version2)
		start(time.Minute)
		c.requireOnceAMinute(t)
	})
}

// A replica of another version that came and went ends no job of those that stay, nor of one that
// has replaced an earlier version itself.
func TestRandomJobDuringARollout(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.life(at(1), at(2), minutely)
		c.runs(gocron.DurationRandomJob(time.Minute, time.Minute+time.Second), func() {}, quiet)
		until(day(1, 0, 1, 30))
		canary := c.runs(gocron.CronJob("30 * * * *", false), func() {}, quiet)
		until(day(1, 0, 2, 30))
		c.stop(canary)
		until(day(1, 0, 20, 0))
		require.GreaterOrEqual(t, len(c.book.ticks()), 10)
	})
}

// A rollout that takes long leaves the new definition on the nodes, though replicas of the
// old version have written theirs back meanwhile.
func TestRolloutThatTakesLong(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		old := c.runs(minutely, func() {}, quiet)
		until(day(1, 0, 1, 30))
		c.runs(gocron.DurationRandomJob(time.Minute, time.Minute+time.Second), func() {}, quiet)
		until(day(1, 0, 7, 0))
		c.stop(old)
		until(day(1, 0, 12, 0))
		n := len(c.book.ticks())
		until(day(1, 0, 15, 0))
		require.GreaterOrEqual(t, len(c.book.ticks())-n, 2)
	})
}

// A random job that starts at once does so once for its definition, though that was replaced for a
// while.
func TestStartAtOnceDuringARollout(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.replica(quiet).with(t, gocron.DurationRandomJob(time.Hour, 2*time.Hour), func() {}, gocron.WithStartAt(gocron.WithStartImmediately()))
		until(at(20))
		canary := c.runs(gocron.CronJob("0 12 * * *", false), func() {}, quiet)
		until(day(1, 0, 6, 0))
		c.stop(canary)
		until(day(1, 0, 7, 0))
		require.Len(t, c.book.ticks(), 1)
	})
}

// Of two definitions that stay each is written back after a time that doubles.
func TestTwoDefinitionsThatStay(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(minutely, func() {}, quiet)
		until(at(30))
		c.runs(everyTwo, func() {}, quiet)
		until(at(35))
		require.Equal(t, 3, c.definitions(day(1, 0, 15, 30)), "after 4 minutes, and after 4 more")
	})
}

// definitions returns how many definitions of the job the nodes have until then, one after another.
func (c *cluster) definitions(then time.Time) int {
	var seen []string
	for ; time.Now().Before(then); time.Sleep(10 * time.Second) {
		is, _ := c.fleet.Nodes()[0].Get("tenure:{job/job}:register")
		_, words, _ := strings.Cut(is, `"def":`)
		words, _, _ = strings.Cut(words, ",")
		seen = append(seen, words)
	}
	return len(slices.Compact(seen))
}

// In a rollout a backfill is of the new schedule: replicas of the old one leave it alone.
func TestBackfillDuringARollout(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for i, every := range []string{"*/5 * * * *", "*/2 * * * *"} {
			c.runs(gocron.CronJob(every, false), func() {}, quiet)
			until(day(1, 0, 0, 5+25*i)) // the old one looks first
		}
		c.backfill(c.replicas[0].q, day(0, 23, 1, 0), day(0, 23, 6, 0))
		until(day(1, 0, 2, 30))
		require.Equal(t, []string{"00:02", "23:02", "23:04", "23:06"}, slices.Sorted(slices.Values(c.book.texts("15:04"))))
	})
}

// Nodes that were all emptied do not have replicas that go on and those that begin part.
func TestIntervalOnNodesThatWereEmptied(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() {
			c.runs(gocron.DurationJob(time.Minute), func() {}, quiet)
		}
		start()
		until(day(1, 0, 1, 10))
		for _, n := range c.fleet.Nodes() {
			n.FlushAll()
		}
		until(day(1, 0, 1, 20))
		start()
		c.requireOnceAMinute(t)
	})
}

// A clock that is set right during a rollout does not make it a conflict.
func TestClockThatIsSetRightDuringARollout(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		clock := &settable{}
		clock.set(-10 * time.Minute)
		old := c.runs(minutely, func() {}, quiet, scheduler.WithWall(clock.now))
		until(day(1, 0, 1, 30))
		r := c.runs(everyTwo, func() {}, quiet)
		until(day(1, 0, 3, 10))
		clock.set(0)
		until(day(1, 0, 4, 10))
		require.Empty(t, old.Conflicts())
		c.stop(old)
		until(day(1, 0, 12, 10))
		require.Empty(t, r.Conflicts())
	})
}

// The leader is killed: no tick is lost that is to be caught up, and none is run twice. A follower
// keeps no ticks, and its first run as leader is not late.
func TestTrap05And14Failover(t *testing.T) {
	for _, policy := range []scheduler.CatchUp{scheduler.CatchUpNone, scheduler.CatchUpAll} {
		t.Run(policy.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					c.runs(secondly, func() {}, scheduler.WithElection("jobs"), quiet, jobOptions(within(time.Minute, policy)))
				}
				until(at(5).Add(time.Second / 2))
				for _, r := range c.replicas {
					if r.Elector().IsLeader(t.Context()) == nil {
						c.kill(r)
						break
					}
				}
				until(at(14).Add(time.Second / 2))
				got := c.book.seconds()
				require.Equal(t, 14, got[len(got)-1])
				require.IsIncreasing(t, got)
				if policy == scheduler.CatchUpAll {
					require.Len(t, got, 14)
				}
				require.Greater(t, len(got), 8)
			})
		})
	}
}

// A replica that does not lead tells the next tick of an interval as the leader does.
func TestNextTickOfAFollower(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for _, n := range c.fleet.Nodes() {
			n.SetDelay(5 * time.Millisecond)
		}
		for range 2 {
			r := c.replica(scheduler.WithElection("jobs"))
			r.add(t, gocron.DurationJob(time.Hour), func() {})
			r.Start()
			time.Sleep(11 * time.Second)
		}
		for _, r := range c.replicas {
			next, err := r.Jobs()[0].NextRun()
			require.NoError(t, err)
			require.WithinDuration(t, day(1, 1, 0, 0), next, time.Second)
		}
		is, err := c.operator().Job(t.Context(), "job")
		require.NoError(t, err)
		require.WithinDuration(t, day(1, 1, 0, 0), is.Next, time.Second)
	})
}

// What people read of the next runs is right before the job has begun, and while it runs.
func TestNextRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet)
		cron := r.add(t, tenSecondly, func() {})
		every := r.add(t, gocron.DurationJob(7*time.Second), func() {}, gocron.WithName("every"))
		limited := r.add(t, tenSecondly, func() {}, gocron.WithName("limited"), gocron.WithLimitedRuns(3))
		r.Start()
		until(at(21))
		next, err := cron.NextRuns(2)
		require.NoError(t, err)
		require.Equal(t, []time.Time{at(30), at(40)}, next)
		next, err = limited.NextRuns(2)
		require.NoError(t, err)
		require.Equal(t, []time.Time{at(30)}, next, "the third is the last")
		last, err := cron.LastRunStartedAt()
		require.NoError(t, err)
		require.WithinDuration(t, at(20), last, time.Second)
		run, err := every.NextRun()
		require.NoError(t, err)
		require.WithinDuration(t, at(21).Add(time.Second/2), run, 100*time.Millisecond, "it counts from when it was made")
		require.Equal(t, gocron.CronJobSchedule{Crontab: "*/10 * * * * *"}, cron.Schedule())
		require.NoError(t, r.Shutdown())
		_, err = cron.NextRun()
		require.ErrorIs(t, err, gocron.ErrSchedulerBusy)
	})
}

// Of ticks that nobody could ask for, those within the grace are run late, or those that the policy
// says.
func TestCatchUp(t *testing.T) {
	for _, test := range []struct {
		name   string
		back   int // when the nodes are
		window time.Duration
		policy scheduler.CatchUp
		late   []int
	}{
		{"none", 57, 0, scheduler.CatchUpNone, nil},
		{"none, within the grace", 52, 0, scheduler.CatchUpNone, []int{50}},
		{"latest", 57, time.Minute, scheduler.CatchUpLatest, []int{50}},
		{"all", 57, time.Minute, scheduler.CatchUpAll, []int{30, 40, 50}},
		{"all, window passed", 57, 12 * time.Second, scheduler.CatchUpAll, []int{50}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 2 {
					c.runs(tenSecondly, func() { time.Sleep(100 * time.Millisecond) }, quiet, jobOptions(within(test.window, test.policy)))
				}
				until(at(25))
				c.freeze()
				until(at(test.back))
				c.thaw()
				until(at(71))
				require.Equal(t, append(append([]int{10, 20}, test.late...), 60, 70), c.book.seconds())
				require.Equal(t, 1, c.book.most)
				require.Equal(t, len(test.late) < 3, c.book.reasons()[scheduler.SkipMissed]+c.book.reasons()[scheduler.SkipSuperseded] > 0)
			})
		})
	}
}

// Jobs sleep by the monotonic clock. When the wall clock parts from it, at once or bit by bit,
// every job thinks again, so that its next tick is run in time.
func TestStepOfTheClockWakesEveryJob(t *testing.T) {
	for name, test := range map[string]struct {
		behind, bit time.Duration
	}{"at once": {time.Hour, time.Hour}, "bit by bit": {900 * time.Millisecond, 30 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var clock settable
				clock.set(-test.behind)
				r := c.replica(quiet, scheduler.WithWall(clock.now))
				const jobs = 3
				for i := range jobs {
					r.add(t, gocron.CronJob("45 0 0 * * *", true), func() {}, gocron.WithName(fmt.Sprint("job ", i)))
				}
				r.Start()
				until(at(5).Add(time.Second / 2))
				for is := test.behind - test.bit; is >= 0; is -= test.bit {
					clock.set(-is)
					time.Sleep(time.Second)
				}
				until(at(50))
				require.Len(t, c.book.ticks(), jobs)
				for i := range jobs {
					_, began := c.book.run(i)
					require.WithinDuration(t, at(45), began, 100*time.Millisecond)
				}
			})
		})
	}
}

// A clock that is set back while a replica waits for the lease does not have it wait for the tick's
// time again, with the lease.
func TestClockSetBackDuringTheWaitForTheLease(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var clock settable
		r := c.replica(scheduler.WithWall(clock.now), jobOptions(within(time.Minute, scheduler.CatchUpLatest)))
		r.add(t, tenSecondly, func() {})
		q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl))
		r.Start()
		until(at(5))
		lease, err := q.TryAcquire(t.Context(), jobKey)
		require.NoError(t, err)
		until(at(12))
		clock.set(-10 * time.Minute)
		require.NoError(t, lease.Release(t.Context()))
		until(at(15))
		require.Equal(t, []int{10}, c.book.seconds())
	})
}

// A clock that is set during a run has the run end at the next tick that it shows.
func TestOverlapCancelWithAClockThatIsSet(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		clock := &settable{}
		clock.set(-8 * time.Minute)
		r := c.replica(quiet, scheduler.WithWall(clock.now))
		var ended atomic.Pointer[time.Time]
		r.add(t, gocron.CronJob("*/10 * * * *", false), func(ctx context.Context) {
			<-ctx.Done()
			now := time.Now().UTC()
			ended.CompareAndSwap(nil, &now)
		}, scheduler.WithOverlap(scheduler.OverlapCancel))
		r.Start()
		until(day(1, 0, 19, 0)) // the clock shows 0:11
		require.Len(t, c.book.ticks(), 1)
		clock.set(0)
		until(day(1, 0, 21, 0))
		require.Equal(t, []string{"00:10", "00:20"}, c.book.texts("15:04"))
		require.WithinRange(t, *ended.Load(), day(1, 0, 20, 0), day(1, 0, 20, 1))
	})
}

// A clock that is wrong for a while shows ticks that have not come: they end no run.
func TestOverlapCancelWithAClockThatIsAhead(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		clock := &settable{}
		var ended atomic.Bool
		c.replica(quiet, scheduler.WithWall(clock.now)).with(t, minutely, func(ctx context.Context) {
			nap(ctx, 40*time.Second)
			ended.Store(ctx.Err() != nil)
		}, scheduler.WithOverlap(scheduler.OverlapCancel))
		until(day(1, 0, 1, 10))
		clock.set(2 * time.Hour)
		until(day(1, 0, 1, 15))
		clock.set(0)
		until(day(1, 0, 1, 55))
		require.Equal(t, []string{"00:01"}, c.book.texts("15:04"))
		require.False(t, ended.Load())
	})
}

// A replica whose clock is wrong tells people the next tick, the pauses that stand and overdue jobs
// by the clocks of the nodes. A job that runs everywhere goes by the replica's clock.
func TestReplicaWhoseClockIsWrongTells(t *testing.T) {
	for _, by := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				fails := func() error { return context.DeadlineExceeded }
				c.runs(everyTwo, fails)
				until(day(1, 0, 2, 20))
				var paused atomic.Bool
				r := c.replica(ahead(by), scheduler.WithTracer(&scheduler.Tracer{Job: func(_ context.Context, data scheduler.JobTrace) {
					paused.Store(data.Pause.Paused)
				}}))
				own := r.add(t, everyTwo, func() {}, gocron.WithName("own"), gocron.WithDisabledDistributedJobLocker(true),
					scheduler.WithSucceedWithin(3*time.Minute))
				r.with(t, everyTwo, fails, scheduler.WithSucceedWithin(time.Minute))
				_, _, err := pause.Set(t.Context(), c.replicas[0].q, jobKey, pause.Pause{Until: day(1, 0, 2, 50)})
				require.NoError(t, err)
				until(day(1, 0, 2, 58))
				is, err := c.operator().Job(t.Context(), "job")
				require.NoError(t, err)
				require.Equal(t, day(1, 0, 4, 0), is.Next.UTC())
				require.False(t, is.Late)
				next, err := own.NextRun()
				require.NoError(t, err)
				require.Equal(t, day(1, 0, 4, 0).Add(by), next)
				until(day(1, 0, 3, 30))
				require.False(t, paused.Load())
				var late []string // one that is ahead knows nothing
				if by < 0 {
					late = append(late, "job")
				}
				require.Equal(t, late, r.Overdue())
			})
		})
	}
}

// command has a node carry one out, as somebody else's client would.
func command(t *testing.T, n *redlocktest.Node, words ...string) {
	t.Helper()
	conn, err := n.Dial(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	_, err = conn.Write([]byte(text))
	require.NoError(t, err)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.NotContains(t, answer, "-")
}

// What something else has written on most nodes stops a job, and the log says where that is and
// what to do. When it was done the job goes on.
func TestWhatIsDamagedIsSaid(t *testing.T) {
	const lock, record, pause, pauseAll = "tenure:{job/job}", "tenure:{job/job}:register", "tenure:{pause/job/job}:register", "tenure:{pause}:register"
	written := func(value string) func(string) string {
		return func(string) string { return "1 - 5 5 1 " + value }
	}
	for _, test := range []struct {
		name, key string
		damage    func(was string) string
	}{
		{"a record that is cut off", record, func(was string) string { return was[:len(was)-9] }},
		{"a record of another version", record, func(was string) string { return strings.Replace(was, " 1{", " 2{", 1) }},
		{"a register of another version", record, func(was string) string { return "2" + was[1:] }},
		{"ticks settled ahead", record, func(was string) string { return strings.Replace(was, `"cursor":"2000`, `"cursor":"2001`, 1) }},
		{"a pause that is cut off", pause, written(`1{"since":`)},
		{"a pause of all jobs of another version", pauseAll, written(`2{}`)},
		{"a lock that something else wrote", lock, func(string) string { return "mine" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var log journal
				c.runs(secondly, func() {}, quiet, scheduler.WithLogger(log.logger()))
				until(at(2).Add(500 * time.Millisecond))
				require.Equal(t, []int{1, 2}, c.book.seconds())
				for i, n := range c.fleet.Nodes() {
					if was, _ := n.Get(test.key); i < 2 {
						command(t, n, "SET", test.key, test.damage(was))
					}
				}
				until(at(9).Add(500 * time.Millisecond))
				require.Equal(t, []int{1, 2}, c.book.seconds())
				said := log.lines("level=WARN")
				require.NotEmpty(t, said)
				for _, line := range said {
					require.Contains(t, line, test.key[len("tenure:{"):strings.Index(test.key, "}")])
					require.Regexp(t, "remove the key|until it is deleted|use the same version", line)
				}
				for _, n := range c.fleet.Nodes() {
					command(t, n, "DEL", test.key)
				}
				until(at(20).Add(500 * time.Millisecond))
				require.Contains(t, c.book.seconds(), 20)
			})
		})
	}
}
