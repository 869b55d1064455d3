package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// RunNow at once after Start is not refused because of leases under which nothing is run: each
// replica adopts the definitions of all jobs meanwhile.
func TestRunNowAtOnceAfterStart(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for _, n := range c.fleet.Nodes() {
					n.SetDelay(delay)
				}
				var jobs [3]gocron.Job
				var shared []gocron.Job
				for i := range jobs {
					r := c.replica(quiet)
					for n := range jobs {
						j := r.add(t, never, func() {}, gocron.WithName(fmt.Sprint("job ", n)))
						if n == i {
							jobs[i] = j
						}
					}
					shared = append(shared, r.add(t, never, func(ctx context.Context) { nap(ctx, time.Minute) }))
				}
				var began atomic.Int64
				var all sync.WaitGroup
				for i, r := range c.replicas {
					r.Start()
					all.Go(func() { require.NoError(t, jobs[i].RunNow()) })
					all.Go(func() {
						skip := new(scheduler.SkipError)
						if err := shared[i].RunNow(); err == nil {
							began.Add(1)
						} else if !errors.As(err, &skip) || skip.Reason != scheduler.SkipOverlap {
							t.Error(err)
						}
					})
				}
				all.Wait()
				require.EqualValues(t, 1, began.Load(), "of the job that all of them run")
				synctest.Wait()
				require.Len(t, c.book.ticks(), 4)
			})
		})
	}
}

// A tick that is asked for ahead in a pause is not left out if the pause ends before its time.
func TestResumeBeforeThePausedTick(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(tenSecondly, func() {}, quiet)
		until(at(5))
		c.setPause(jobKey, "ann")
		until(at(20).Add(-100 * time.Millisecond)) // it was asked for
		c.resume(jobKey)
		until(at(25))
		require.Equal(t, []int{20}, c.book.seconds())
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipPaused: 1}, c.book.reasons())
	})
}

// The wait of a tick for the lease ends with its window, and is not begun again in that instant.
func TestWaitEndsWithTheWindow(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var asked atomic.Int64
		r := c.replica(quiet, scheduler.WithTracer(&scheduler.Tracer{Skip: c.book.skip, Tick: func(ctx context.Context, _ scheduler.TickTrace) context.Context {
			if asked.Add(1) > 20 {
				time.Sleep(time.Second) // it would be asked for in this instant for ever
			}
			return ctx
		}}), jobOptions(within(8*time.Second, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
		r.add(t, minutely, func() {})
		r.Start()
		until(at(50))
		_, err := r.q.TryAcquire(t.Context(), jobKey, redlock.WithPayload("tick 1"))
		require.NoError(t, err)
		until(at(75))
		require.LessOrEqual(t, asked.Load(), int64(3))
		require.Empty(t, c.book.ticks())
	})
}

// A minimum hold of the Quorum keeps no tick from being run: neither after what replicas write when
// they begin, nor after a run, a pause or a backfill.
func TestMinHoldOfTheQuorum(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quorum = []redlock.Option{redlock.WithTTL(10 * time.Second), redlock.WithMinHold(9 * time.Second)}
		until(day(1, 0, 0, 8))
		for range 3 {
			c.runs(gocron.CronJob("*/5 * * * * *", true), func() {}, quiet)
		}
		until(day(1, 0, 0, 23))
		q := c.replicas[0].q
		c.backfill(q, day(1, 0, 0, 20), day(1, 0, 0, 20))
		for range 2 {
			_, _, err := pause.Set(t.Context(), q, jobKey, pause.Pause{Until: day(1, 0, 0, 24)})
			require.NoError(t, err)
		}
		require.True(t, time.Now().Before(day(1, 0, 0, 24)))
		until(day(1, 0, 0, 32))
		require.Equal(t, []string{"10", "15", "20", "20", "25", "30"}, slices.Sorted(slices.Values(c.book.texts("05"))))
	})
}

// An interval from completion is that, although the replica's clock is ahead of the nodes', or
// behind, by more.
func TestIntervalFromTheEndByOneClock(t *testing.T) {
	for _, by := range []time.Duration{1500 * time.Millisecond, -1500 * time.Millisecond} {
		inCluster(t, func(t *testing.T, c *cluster) {
			task := func() { time.Sleep(500 * time.Millisecond) }
			c.runs(gocron.DurationJob(time.Second), task, quiet, ahead(by), jobOptions(gocron.WithIntervalFromCompletion()))
			until(at(10))
			for i := range 3 {
				_, before := c.book.run(i)
				_, is := c.book.run(i + 1)
				require.WithinDuration(t, before.Add(1500*time.Millisecond), is, 50*time.Millisecond)
			}
		})
	}
}

// How a run ended is written by the clock that its replica had when it began: an interval from
// completion counts from its end, although that clock was set ahead meanwhile.
func TestIntervalFromTheEndOfARun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var clock settable
		task := func() { time.Sleep(10 * time.Second) }
		first := c.replica(quiet, scheduler.WithWall(clock.now))
		every := gocron.DurationJob(20 * time.Second)
		first.add(t, every, task, gocron.WithIntervalFromCompletion())
		first.Start()
		until(at(22))
		require.Len(t, c.book.ticks(), 1)
		clock.set(10 * time.Minute)
		c.runs(every, task, quiet, jobOptions(gocron.WithIntervalFromCompletion()))
		until(at(55))
		require.Len(t, c.book.ticks(), 2)
		_, began := c.book.run(0)
		run, _ := c.book.run(1)
		require.WithinDuration(t, began.Add(30*time.Second), run.Due, time.Second)
	})
}

// Ticks that a run has overlapped are told as such, also if its replica's clock was set back
// meanwhile.
func TestOverlapWithAClockThatWasSetBack(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var clock settable
		task := func(ctx context.Context) { nap(ctx, 25*time.Second) }
		c.runs(tenSecondly, task, quiet, scheduler.WithWall(clock.now))
		until(at(15))
		require.Equal(t, []int{10}, c.book.seconds())
		clock.set(-20 * time.Second)
		c.runs(tenSecondly, task, quiet)
		until(at(45))
		require.Equal(t, []int{10, 40}, c.book.seconds())
		told := 0
		for _, skip := range c.book.skips.read() {
			if skip.Pending || skip.Reason == scheduler.SkipDone || skip.Reason == scheduler.SkipHeld {
				continue
			}
			require.Equal(t, scheduler.SkipOverlap, skip.Reason)
			told += skip.Count
		}
		require.Equal(t, 2, told)
	})
}

// Ticks that are left out for a run are told once, also if its task is not called and it comes
// again.
func TestRunThatIsGivenBackAgainAndAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		late := within(time.Hour, scheduler.CatchUpLatest)
		r := c.runs(minutely, func(ctx context.Context) { nap(ctx, time.Hour) }, quiet, jobOptions(late))
		until(day(1, 0, 1, 30))
		c.kill(r)
		until(day(1, 0, 4, 30))
		refuse := gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return errors.New("not here") })
		c.runs(minutely, func() {}, quiet, jobOptions(late, gocron.WithEventListeners(refuse)))
		until(day(1, 0, 4, 50))
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipCutShort: 1, scheduler.SkipSuperseded: 1}, c.book.reasons())
	})
}

// busy is a gocron.SchedulerMonitor that keeps gocron's loop busy while a job is unregistered.
type busy struct {
	gocronx.NoMonitor
	time.Duration
}

func (b busy) JobUnregistered(gocron.Job) { time.Sleep(b.Duration) }

// A replica that gives a tick back when it is due, because it resigns or a listener refuses it,
// leaves it to the others, which look for it while it is not too old.
func TestTickThatIsGivenBack(t *testing.T) {
	slow := gocron.BeforeJobRuns(func(uuid.UUID, string) { time.Sleep(100 * time.Millisecond) })
	t.Run("to a new leader that has read of the grant", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			for range 2 {
				c.replica(scheduler.WithElection("jobs")).with(t, secondly, func() {}, gocron.WithEventListeners(slow))
			}
			for s := 5; s < 30; s += 5 {
				until(at(s).Add(50 * time.Millisecond))
				require.NoError(t, c.operator().Resign(t.Context(), "jobs", ""))
			}
			until(at(31))
			for s := range c.book.seconds() {
				require.Equal(t, s+1, c.book.seconds()[s])
			}
			require.Zero(t, c.book.reasons()[scheduler.SkipSuperseded])
		})
	})
	t.Run("to one that was refused the lease", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			refuse := gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error {
				time.Sleep(100 * time.Millisecond)
				return errors.New("not here")
			})
			c.replica().with(t, secondly, func() {}, gocron.WithEventListeners(refuse))
			c.runs(secondly, func() {})
			until(at(60).Add(999 * time.Millisecond))
			require.Len(t, c.book.seconds(), 60)
			require.Zero(t, c.book.reasons()[scheduler.SkipSuperseded])
		})
	})
	t.Run("and is told of once by each that leaves it to another", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			for range 2 {
				c.runs(secondly, func() { time.Sleep(500 * time.Millisecond) })
			}
			until(at(60).Add(900 * time.Millisecond))
			require.LessOrEqual(t, c.book.reasons()[scheduler.SkipHeld]+c.book.reasons()[scheduler.SkipDone], len(c.book.ticks()))
		})
	})
	for name, test := range map[string]struct {
		behind time.Duration // the clock of the second replica
		opts   []scheduler.Option
	}{
		"at most once":                       {0, nil},
		"beside a clock that is behind":      {time.Hour, nil},
		"beside one that is a little behind": {4 * time.Second, nil},
		"at least once, with a limit": {0, []scheduler.Option{
			scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait)),
			jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)),
		}},
	} {
		t.Run("and costs little while a run goes on, "+name, func(t *testing.T) {
			cost := make(map[int]int) // by the number of replicas
			for n := range 2 {
				inCluster(t, func(t *testing.T, c *cluster) {
					for i := range n + 1 {
						c.replica(append(test.opts, quiet, ahead(-test.behind*time.Duration(i)))...).with(t, minutely, func() { time.Sleep(8 * time.Second) })
					}
					until(day(1, 0, 1, 0).Add(400 * time.Millisecond))
					before := c.fleet.Node(0).Commands()
					time.Sleep(scheduler.Grace)
					cost[n+1] = c.fleet.Node(0).Commands() - before
				})
			}
			require.LessOrEqual(t, cost[2], cost[1]+15, "%v: the other looks four times, and costs 6 without the job", cost)
		})
	}
}

// A run that was asked for ahead of its time waits in gocron's Lock, so at its time it needs
// nothing of gocron's loop; and no listener hears of it before that.
func TestGocronIsAskedAheadOfTheDueTime(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithSchedulerMonitor(busy{Duration: 400 * time.Millisecond})))
		heard := make(chan time.Time, 10)
		other := r.add(t, minutely, func() {}, gocron.WithName("other"))
		r.add(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { heard <- time.Now() })))
		r.Start()
		until(at(10).Add(-100 * time.Millisecond))
		require.Empty(t, heard)
		require.NoError(t, r.RemoveJob(other.ID()))
		until(at(12))
		require.Len(t, heard, 1)
		require.WithinDuration(t, at(10), <-heard, time.Millisecond, "gocron's loop was busy from before to after the due time")
		require.Equal(t, []int{10}, c.book.seconds())
	})
}

// A run that waits for its time and may not begin after all is given back. gocron hears of it once,
// and once more when the tick is left out for good.
func TestPauseWhileARunWaitsForItsTime(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const jobs = 600
		r := c.named("ann", quiet) // who asks 690 ms ahead
		for n := range jobs {
			r.add(t, never, func() {}, gocron.WithName(fmt.Sprint("job ", n)), gocron.WithDisabledDistributedJobLocker(true))
		}
		listener, skips := told()
		r.add(t, tenSecondly, func() {}, listener)
		r.Start()
		until(at(10).Add(-500 * time.Millisecond)) // it was asked for
		c.setPause(jobKey, "ann")
		until(at(12))
		require.Empty(t, c.book.ticks())
		var pending []bool
		for _, e := range skips() {
			require.Equal(t, scheduler.SkipPaused, e.Reason)
			require.True(t, e.Tick.Equal(at(10)))
			pending = append(pending, e.Pending)
		}
		require.Equal(t, []bool{true, false}, pending)
	})
}

// How runs ended is written when all have begun that are due with them, or will not, and not much
// later.
func TestRunsBeginBeforeOthersAreWrittenDown(t *testing.T) {
	blocks := func(d time.Duration) gocron.EventListener {
		return gocron.BeforeJobRuns(func(uuid.UUID, string) { time.Sleep(d) })
	}
	for name, test := range map[string]struct {
		other gocron.EventListener
		free  time.Duration
	}{
		"soon":  {blocks(150 * time.Millisecond), 150 * time.Millisecond},
		"late":  {blocks(5 * time.Second), 200 * time.Millisecond},
		"never": {gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return errors.New("no") }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(quiet)
				r.add(t, tenSecondly, func() {}, gocron.WithName("other"), gocron.WithEventListeners(test.other))
				r.add(t, tenSecondly, func() {})
				r.Start()
				due := at(10)
				until(due.Add(test.free - time.Millisecond))
				_, err := r.q.TryAcquire(t.Context(), jobKey)
				require.ErrorIs(t, err, redlock.ErrHeld)
				until(due.Add(test.free + time.Millisecond))
				require.Contains(t, c.book.seconds(), 10)
				lease, err := r.q.TryAcquire(t.Context(), jobKey)
				require.NoError(t, err)
				require.NoError(t, lease.Release(t.Context()))
			})
		})
	}
}

// never is a job that only RunNow runs.
var never = gocron.CronJob("0 0 1 1 *", false)

// requireSkip requires a skip for these reasons, and that tracers and listeners are told of the
// same.
func (c *cluster) requireSkip(got *scheduler.SkipError, want scheduler.SkipError, cause error) {
	c.t.Helper()
	require.Equal(c.t, "job", got.Job)
	require.True(c.t, want.Tick.Equal(got.Tick), "tick %v", got.Tick)
	require.Equal(c.t, []any{want.Reason, want.By, want.Pending}, []any{got.Reason, got.By, got.Pending}, got.Error())
	if cause != nil {
		require.ErrorIs(c.t, got, cause)
	}
	require.Equal(c.t, string(want.Reason), redlock.ErrorType(got))
	require.Contains(c.t, c.book.skips.read(), got)
}

// Which replica runs a tick is told to the others, and that nothing is wrong.
func TestSkipsOfTicksThatAnotherReplicaHas(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		task := func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Due.Equal(at(20)) {
				time.Sleep(14 * time.Second)
			}
			time.Sleep(500 * time.Millisecond)
		}
		heard := make(map[string]func() []*scheduler.SkipError)
		for _, name := range []string{"a", "b"} {
			var listen gocron.JobOption
			listen, heard[name] = told()
			c.named(name).with(t, tenSecondly, task, listen)
		}
		listen, late := told()
		c.named("late", ahead(-900*time.Millisecond)).with(t, tenSecondly, func() {}, listen)
		who := func(i int) (by string, others []*scheduler.SkipError) {
			run, _ := c.book.run(i)
			by = run.Lease().Identity()
			return by, heard[map[string]string{"a": "b", "b": "a"}[by]]()
		}
		until(at(12))
		by, skips := who(0)
		require.Len(t, skips, 1)
		c.requireSkip(skips[0], scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipHeld, By: by}, nil)
		require.ErrorContains(t, skips[0], `scheduler: job "job", tick 2000-01-01T00:00:10Z is skipped: held by `+by)
		require.Len(t, late(), 1)
		c.requireSkip(late()[0], scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipDone, By: by}, nil)
		until(at(31))
		by, skips = who(1)
		c.requireSkip(skips[len(skips)-1], scheduler.SkipError{Tick: at(30), Reason: scheduler.SkipOverlap, By: by, Pending: true}, redlock.ErrHeld)
		for _, skip := range c.book.skips.read() {
			require.True(t, skip.Expected(), skip)
		}
	})
}

// A tick that may come back is pending for the others.
func TestSkipPending(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		listen, heard := told()
		for _, name := range []string{"a", "b"} {
			c.named(name, jobOptions(scheduler.WithOverlap(scheduler.OverlapQueue), scheduler.WithDelivery(scheduler.AtLeastOnce), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest))).with(t, tenSecondly, func(ctx context.Context) { nap(ctx, 25*time.Second) }, listen)
		}
		until(at(11))
		run, _ := c.book.run(0)
		require.Len(t, heard(), 1)
		c.requireSkip(heard()[0], scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipHeld, By: run.Lease().Identity(), Pending: true}, nil)
		require.ErrorContains(t, heard()[0], ", and may be run later")
		until(at(50))
		require.Equal(t, []int{10, 30}, c.book.seconds(), "30 s is queued, and takes the place of 20 s")
	})
}

func TestSkipForWantOfNodes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		broken func(t *testing.T, c *cluster, r *replica)
		reason scheduler.Reason
		cause  error
	}{
		{"frozen", func(_ *testing.T, c *cluster, _ *replica) { c.freeze() }, scheduler.SkipTimeout, redlock.ErrTimeout},
		{"killed", func(t *testing.T, c *cluster, _ *replica) {
			for _, n := range c.fleet.Nodes()[:2] {
				require.NoError(t, n.Kill())
			}
		}, scheduler.SkipNoQuorum, redlock.ErrNoQuorum},
		{"closed", func(t *testing.T, _ *cluster, r *replica) { require.NoError(t, r.q.Close()) }, scheduler.SkipStopped, redlock.ErrClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a")
				listen, heard := told()
				r.add(t, tenSecondly, func() {}, listen)
				r.Start()
				until(at(5))
				tc.broken(t, c, r)
				until(at(18)) // and the grace is over
				require.Len(t, heard(), 1, "it is told once")
				c.requireSkip(heard()[0], scheduler.SkipError{Tick: at(10), Reason: tc.reason, Pending: true}, tc.cause)
				require.Equal(t, tc.reason == scheduler.SkipStopped, heard()[0].Expected())
			})
		})
	}
}

// Nodes that were restarted do not vote yet.
func TestSkipQuarantined(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		q, err := redlock.Open(c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(silent))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		s := made(t, q, scheduler.WithLocation(time.UTC), scheduler.WithTracer(c.book.tracer()))
		listen, heard := told()
		_, err = s.NewJob(tenSecondly, gocron.NewTask(func() {}), gocron.WithName("job"), listen)
		require.NoError(t, err)
		s.Start()
		until(at(59))
		before := len(heard())
		for _, n := range c.fleet.Nodes()[:2] {
			require.NoError(t, n.Restart(false))
		}
		until(at(62))
		require.Len(t, heard(), before+1)
		c.requireSkip(heard()[before], scheduler.SkipError{Tick: at(60), Reason: scheduler.SkipQuarantined, Pending: true}, redlock.ErrNoQuorum)
	})
}

// The page has every reason.
func TestSkipReasonsAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/scheduling.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| reason | means |")
	require.True(t, found)
	for _, r := range []scheduler.Reason{scheduler.SkipHeld, scheduler.SkipDone, scheduler.SkipOverlap, scheduler.SkipNotLeader, scheduler.SkipQuarantined,
		scheduler.SkipNoQuorum, scheduler.SkipTimeout, scheduler.SkipPaused, scheduler.SkipAhead, scheduler.SkipRefused, scheduler.SkipLimit, scheduler.SkipSplit,
		scheduler.SkipSuperseded, scheduler.SkipMissed, scheduler.SkipCutShort, scheduler.SkipStopped, scheduler.SkipOther} {
		require.Contains(t, table, "`"+string(r)+"`")
	}
}

// refusedRun requires that RunNow says why there is no run.
func refusedRun(t *testing.T, j gocron.Job, want scheduler.Reason, by string) *scheduler.SkipError {
	t.Helper()
	var skip *scheduler.SkipError
	require.ErrorAs(t, j.RunNow(), &skip)
	require.Equal(t, []any{want, by, "job"}, []any{skip.Reason, skip.By, skip.Job}, skip.Error())
	require.True(t, skip.Tick.IsZero())
	return skip
}

// RunNow is a run of its own: it excludes others, is excluded by them, and is no tick. It says why
// there is no run, to its caller alone.
func TestRunNowExcludesRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b := c.named("a"), c.named("b")
		listen, heard := told()
		task := func() { time.Sleep(3 * time.Second) }
		ja, jb := a.add(t, tenSecondly, task, listen), b.add(t, tenSecondly, task, listen)
		early := refusedRun(t, ja, scheduler.SkipStopped, "")
		require.ErrorIs(t, early, gocron.ErrJobRunNowFailed)
		require.ErrorIs(t, early, scheduler.ErrNotRunning)
		a.Start()
		time.Sleep(300 * time.Millisecond)
		require.NoError(t, ja.RunNow())
		b.Start()
		until(at(1))
		require.ErrorContains(t, refusedRun(t, jb, scheduler.SkipOverlap, "a"), `scheduler: job "job" is skipped: overlap by a: `)
		refusedRun(t, ja, scheduler.SkipOverlap, "a")
		require.Empty(t, heard())
		until(at(9))
		require.NoError(t, jb.RunNow())
		until(at(25))
		require.Equal(t, 1, c.book.most)
		run, _ := c.book.run(1)
		require.Equal(t, "ordered", run.Why)
		require.Equal(t, []time.Time{{}, {}, at(20)}, c.book.ticks(), "10 s was overlapped")
		c.freeze()
		began := time.Now()
		refusedRun(t, ja, scheduler.SkipTimeout, "")
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		answer := make(chan error, 1)
		go func() { answer <- ja.RunNow() }()
		until(at(29))
		require.NoError(t, a.StopJobs())
		require.Error(t, <-answer)
		c.thaw()
		require.NoError(t, b.RemoveJob(jb.ID()))
		require.ErrorIs(t, jb.RunNow(), gocron.ErrJobNotFound)
	})
}

// RunNow on a follower says that it does nothing.
func TestTrap12RunNowOnAFollower(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var jobs []gocron.Job
		for range 2 {
			r := c.replica(scheduler.WithElection("jobs"))
			jobs = append(jobs, r.add(t, never, func() {}))
			r.Start()
		}
		until(at(5))
		for i, r := range c.replicas {
			if r.Elector().IsLeader(t.Context()) == nil {
				require.NoError(t, jobs[i].RunNow())
				continue
			}
			err := refusedRun(t, jobs[i], scheduler.SkipNotLeader, "")
			require.ErrorIs(t, err, elector.ErrNotLeader)
			require.EqualError(t, err, `scheduler: job "job" is skipped: not_leader: elector: not the leader`)
		}
		until(at(6))
		require.Len(t, c.book.ticks(), 1)
		require.Empty(t, c.book.skips.read())
	})
}

// With CatchUpAll a late run has as long as a run on time before OverlapCancel ends it: the tick
// that comes is not the next one to be run. Other runs end when a tick comes, if one does.
func TestOverlapCancelOfALateRun(t *testing.T) {
	for _, test := range []struct {
		policy scheduler.CatchUp
		last   int
		want   string
	}{ // 20 panics and is run again, 70 hangs
		{scheduler.CatchUpAll, 120, "9s 0s 9s 9s 9s 9s 9s 10s 9s 9s 9s 9s 9s"},
		{scheduler.CatchUpAll, 40, "9s 0s 9s 9s 9s"},
		{scheduler.CatchUpLatest, 120, "3s 9s 10s 9s 9s 9s 9s 9s"},
	} {
		inCluster(t, func(t *testing.T, c *cluster) {
			until := func(second int) gocron.JobOption { return gocron.WithStopAt(gocron.WithStopDateTime(at(second + 5))) }
			first := gocron.WithStartAt(gocron.WithStartDateTimePast(at(0)))
			c.life(at(1), at(2), tenSecondly, first, until(test.last)) // it was made
			time.Sleep(55 * time.Second)
			r := c.replica(quiet, jobOptions(first, within(time.Hour, test.policy), scheduler.WithDelivery(scheduler.AtLeastOnce), scheduler.WithOverlap(scheduler.OverlapCancel)))
			r.add(t, tenSecondly, func(ctx context.Context) {
				switch run, _ := scheduler.RunFromContext(ctx); {
				case run.Due.Equal(at(20)) && run.Attempt == 1:
					panic("at first")
				case run.Due.Equal(at(70)):
					<-ctx.Done()
				}
				nap(ctx, 9*time.Second)
			}, until(test.last))
			ordered := r.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, time.Hour) }, gocron.WithName("ordered"), until(60))
			r.Start()
			require.NoError(t, ordered.RunNow())
			time.Sleep(2 * time.Minute)
			took := make(map[string][]string)
			for _, e := range c.book.ends.read() {
				took[e.Run.Job] = append(took[e.Run.Job], e.Duration.Round(time.Second).String())
			}
			require.Equal(t, test.want, strings.Join(took["job"], " "))
			require.Equal(t, "3s", strings.Join(took["ordered"], " "))
		})
	}
}
