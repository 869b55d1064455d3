package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// everywhere has a job run on every replica, without a lease.
var everywhere = gocron.WithDisabledDistributedJobLocker(true)

// However a task ends, it ends neither the process nor the job, and the log, tracers and listeners
// hear how.
func TestHowTasksEnd(t *testing.T) {
	failed := errors.New("no disk")
	for name, test := range map[string]struct {
		task  func(context.Context) error
		is    error
		text  string
		log   []string
		calls []string
	}{
		"well": {func(context.Context) error { return nil }, nil, "", nil, []string{"before", "after"}},
		"error": {func(context.Context) error { return failed }, failed, "no disk",
			[]string{`level=WARN msg="scheduler: the task failed" job=job tick=2000-01-01T00:00:10`, `error="no disk"`}, []string{"before", "error no disk"}},
		"panic": {func(context.Context) error { panic(failed) }, failed, `scheduler: job "job": panic: no disk`,
			[]string{`level=ERROR msg="scheduler: the task panicked" job=job tick=2000-01-01T00:00:10`, "error.type=panic", "TestHowTasksEnd"},
			[]string{"before", "panic", "error gocron: panic recovered from no disk"}},
		"Goexit": {func(context.Context) error { runtime.Goexit(); return nil }, nil, "runtime.Goexit", []string{"level=WARN", "the task failed"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				log := new(journal)
				var calls notes[string]
				r := c.replica(scheduler.WithLogger(log.logger()), scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait)))
				r.add(t, tenSecondly, func(ctx context.Context) error {
					if run, _ := scheduler.RunFromContext(ctx); run.Due.Equal(at(10)) {
						return test.task(ctx)
					}
					return nil
				}, gocron.WithEventListeners(
					gocron.BeforeJobRuns(func(uuid.UUID, string) { calls.add("before") }),
					gocron.AfterJobRuns(func(uuid.UUID, string) { calls.add("after") }),
					gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { calls.add("error " + err.Error()) }),
					gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) { calls.add("panic") }),
				))
				r.add(t, tenSecondly, func() {}, gocron.WithName("other"))
				r.Start()
				until(at(15))
				var end scheduler.RunEndTrace
				for _, e := range c.book.ends.read() {
					if e.Run.Job == "job" {
						end = e
					}
				}
				if test.text == "" {
					require.NoError(t, end.Err)
				} else {
					require.ErrorContains(t, end.Err, test.text)
				}
				if test.is != nil {
					require.ErrorIs(t, end.Err, test.is)
				}
				lines := slices.Concat(log.lines("level=WARN"), log.lines("level=ERROR"))
				require.Len(t, lines, min(len(test.log), 1))
				for _, part := range test.log {
					require.Contains(t, lines[0], part)
				}
				if test.calls != nil {
					require.Equal(t, test.calls, calls.read())
				}
				until(at(35))
				require.Equal(t, []int{10, 10, 20, 20, 30, 30}, c.book.seconds(), "both jobs go on")
				began := time.Now()
				require.NoError(t, r.Shutdown())
				require.Less(t, time.Since(began), time.Second)
			})
		})
	}
}

// The pause after a run that panicked is counted by the clock by which it ended, also where that of
// the nodes is ahead.
func TestPanicWhereTheClockIsBehind(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(minutely, func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Attempt < 50 {
				panic("ouch")
			}
		}, jobOptions(within(time.Minute, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)), quiet, ahead(-2*time.Second))
		until(at(70))
		require.Len(t, c.book.ticks(), 4)
	})
}

// A run that panics is complete at most once, and run again at least once, on whatever replica,
// before the ticks that follow, and more slowly each time.
func TestPanic(t *testing.T) {
	for _, test := range []struct {
		name     string
		replicas int
		opts     []gocron.JobOption
		want     []int // attempts
	}{
		{"at most once", 2, []gocron.JobOption{within(time.Minute, scheduler.CatchUpAll)}, []int{1, 1}},
		{"at least once", 3, []gocron.JobOption{within(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce)}, []int{1, 2, 3, 4, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range test.replicas {
					c.runs(tenSecondly, func(ctx context.Context) {
						if run, _ := scheduler.RunFromContext(ctx); run.Due.Equal(at(10)) && run.Attempt < 4 {
							panic("ouch")
						}
					}, jobOptions(test.opts...))
				}
				until(at(29))
				var attempts []int
				for _, run := range c.book.runs {
					attempts = append(attempts, run.Attempt)
				}
				require.Equal(t, test.want, attempts)
				for i := 1; i < len(attempts)-1; i++ {
					_, before := c.book.run(i - 1)
					_, is := c.book.run(i)
					require.InDelta(t, time.Second<<(i-1), is.Sub(before), float64(500*time.Millisecond))
				}
			})
		})
	}
}

// A run whose lease was lost is complete at least once if its task returned nil and the nodes took
// that. It is run again if the task was told to end and returned an error.
func TestEndAfterTheLease(t *testing.T) {
	for _, test := range []struct {
		obeys bool
		want  []int
	}{{false, []int{10, 20}}, {true, []int{10, 10, 20}}} {
		t.Run(fmt.Sprint("obeys: ", test.obeys), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.runs(tenSecondly, func(ctx context.Context) error {
					if run, _ := scheduler.RunFromContext(ctx); run.Attempt > 1 || !run.Due.Equal(at(10)) {
						return nil
					}
					c.freeze()
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), redlock.ErrLost)
					c.thaw()
					if test.obeys {
						return context.Cause(ctx)
					}
					return nil
				}, jobOptions(within(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce)))
				until(at(29))
				require.ErrorIs(t, c.book.runs[0].Lease().Err(), redlock.ErrLost)
				require.Equal(t, test.want, c.book.seconds())
				require.Zero(t, c.book.reasons()[scheduler.SkipCutShort], "its end was written")
			})
		})
	}
}

// A context among the parameters gives its values and its end to the task, and tasks find their
// runs, also where several jobs have one function.
func TestTrap10And15ContextsOfTasks(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		own, cancel := context.WithCancelCause(context.WithValue(t.Context(), valueKey{}, "value"))
		r := c.replica()
		var seen notes[string]
		task := gocron.NewTask(func(ctx context.Context, text string) error {
			run, _ := scheduler.RunFromContext(ctx)
			require.WithinDuration(t, time.Now().Add(ttl), run.Deadline(), ttl/3) // the lease is taken ahead of the tick
			seen.add(run.Job + " " + ctx.Value(valueKey{}).(string) + " " + text)
			if run.Job == "a" {
				cancel(errors.New("enough"))
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}, own, "text")
		for _, name := range []string{"a", "b", "c"} {
			_, err := r.NewJob(tenSecondly, task, gocron.WithName(name))
			require.NoError(t, err)
		}
		r.Start()
		until(at(15))
		require.ElementsMatch(t, []string{"a value text", "b value text", "c value text"}, seen.read())
		for _, end := range c.book.ends.read() {
			if end.Run.Job == "a" {
				require.EqualError(t, end.Err, "enough")
			}
		}
	})
}

// The end of the context that a job was given ends the job on this replica, as with gocron. The
// replica takes no ticks and no orders that others can have.
func TestJobWhoseContextHasEnded(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		own, end := context.WithCancelCause(t.Context())
		ended := c.replica()
		j := ended.add(t, secondly, func() {}, gocron.WithContext(own))
		ended.Start()
		other := c.runs(secondly, func() {})
		until(at(5).Add(time.Millisecond))
		end(errors.New("enough"))
		until(at(60))
		for i, s := range c.book.seconds() {
			require.Equal(t, i+1, s)
			run, _ := c.book.run(i)
			require.True(t, s <= 5 || c.holder(run) == other, "%d s", s)
		}
		require.Len(t, c.book.seconds(), 60)
		var skip *scheduler.SkipError
		require.ErrorAs(t, j.RunNow(), &skip)
		require.Equal(t, scheduler.SkipStopped, skip.Reason)
		require.ErrorContains(t, skip, "enough")
	})
}

// Options for all jobs are applied to each, and give way to the job's own; gocron's singleton mode
// means on all replicas what it means on one.
func TestJobOptionsAndSingletonMode(t *testing.T) {
	for mode, why := range map[gocron.LimitMode]string{gocron.LimitModeReschedule: "on_time", gocron.LimitModeWait: "queued"} {
		inCluster(t, func(t *testing.T, c *cluster) {
			for range 2 {
				var own, all atomic.Int64
				count := func(n *atomic.Int64) gocron.JobOption {
					return gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { n.Add(1) }))
				}
				r := c.replica(jobOptions(gocron.WithTags("all")), jobOptions(count(&all)))
				j := r.add(t, secondly, func() { time.Sleep(2500 * time.Millisecond) }, gocron.WithSingletonMode(mode), count(&own))
				require.Equal(t, []string{"all"}, j.Tags())
				r.Start()
				t.Cleanup(func() { require.Zero(t, all.Load(), "the job's own wins") })
			}
			until(at(5))
			require.Equal(t, 1, c.book.most)
			run, _ := c.book.run(1)
			require.Equal(t, why, run.Why)
		})
	}
}

// A job without a lease runs everywhere, follows no leader, knows of no run, is not paused, needs
// no nodes, and gocron keeps its runs from going on beside each other.
func TestUnlockedJobs(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var ran, running, most atomic.Int64
		for range 3 {
			r := c.replica(scheduler.WithElection("jobs"), quiet)
			j := r.add(t, tenSecondly, func(ctx context.Context) {
				_, ok := scheduler.RunFromContext(ctx)
				require.False(t, ok)
				ran.Add(1)
			}, everywhere)
			r.Start()
			require.NoError(t, j.RunNow(), "also on followers")
		}
		c.replicas[0].add(t, secondly, func() {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(3500 * time.Millisecond)
			running.Add(-1)
		}, everywhere, gocron.WithName("long"), gocron.WithSingletonMode(gocron.LimitModeReschedule))
		c.setPause("", "ann")
		until(at(15))
		c.freeze()
		until(at(25))
		c.thaw()
		require.EqualValues(t, 3+6, ran.Load())
		require.EqualValues(t, 1, most.Load())
	})
}

// What a job without a record has run is run, also after StopJobs and Start.
func TestUnlockedJobIsStartedAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, jobOptions(everywhere))
		r.add(t, tenSecondly, func() {}, gocron.WithLimitedRuns(3))
		r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(at(5), at(99))), func() {}, gocron.WithName("times"), within(time.Hour, scheduler.CatchUpAll))
		for range 3 {
			r.Start()
			until(time.Now().Add(25 * time.Second))
			require.NoError(t, r.StopJobs())
		}
		r.Start()
		until(at(150))
		require.Equal(t, []int{5, 10, 20, 30, 99}, c.book.seconds())
	})
}

// RunNow in a listener returns, also where no lease refuses the run: gocron begins no other before
// the listener has returned.
func TestRunNowOfAnUnlockedJobInAListener(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var j gocron.Job
		var err error
		j = c.replica(quiet).add(t, secondly, func() {}, everywhere, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { err = j.RunNow() })))
		c.replicas[0].Start()
		until(at(3))
		require.ErrorContains(t, err, "timeout")
		require.NotEmpty(t, c.book.ticks())
	})
}

// everyFifth is a gocron.Cron of one's own: at 5, 15, 25 s and so on.
type everyFifth struct{}

func (everyFifth) IsValid(string, *time.Location, time.Time) error { return nil }

func (everyFifth) Next(after time.Time) time.Time {
	return after.Add(5 * time.Second).Truncate(10 * time.Second).Add(5 * time.Second)
}

// Each kind of schedule is run at its times, within its start and its stop.
func TestSchedules(t *testing.T) {
	start, stop := gocron.WithStartAt(gocron.WithStartDateTime(at(13))), gocron.WithStopAt(gocron.WithStopDateTime(at(35)))
	for name, test := range map[string]struct {
		d    gocron.JobDefinition
		opts []gocron.JobOption
		want []int
	}{
		"crontab":     {tenSecondly, []gocron.JobOption{start, stop}, []int{13, 20, 30}},
		"interval":    {gocron.DurationJob(10 * time.Second), []gocron.JobOption{start, stop}, []int{13, 23, 33}},
		"own crontab": {gocron.CronJob("whatever", false), []gocron.JobOption{gocron.WithCronImplementation(everyFifth{})}, []int{5, 15, 25, 35}},
		"times":       {gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(at(7), at(23))), nil, []int{7, 23}},
		"limited":     {tenSecondly, []gocron.JobOption{gocron.WithLimitedRuns(2)}, []int{10, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 2 {
					c.replica(quiet).with(t, test.d, func() {}, test.opts...)
				}
				until(at(42))
				require.Equal(t, test.want, c.book.seconds())
				require.Equal(t, name != "own crontab", len(c.replicas[0].Jobs()) == 0, "others are over")
			})
		})
	}
}

// statuses is a gocron.MonitorStatus.
type statuses struct{ notes[gocron.JobStatus] }

func (s *statuses) IncrementJob(_ uuid.UUID, _ string, _ []string, status gocron.JobStatus) {
	s.add(status)
}
func (*statuses) RecordJobTiming(_, _ time.Time, _ uuid.UUID, _ string, _ []string) {}
func (*statuses) RecordJobTimingWithStatus(_, _ time.Time, _ uuid.UUID, _ string, _ []string, _ gocron.JobStatus, _ error) {
}

// gocron's monitors count runs and skips.
func TestTrap06MonitorsCountRunsAndSkips(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		monitor := new(statuses)
		for range 2 {
			c.runs(tenSecondly, func() { time.Sleep(time.Second) }, scheduler.WithGocron(gocron.WithMonitor(monitor), gocron.WithMonitorStatus(monitor)))
		}
		until(at(25))
		require.ElementsMatch(t, []gocron.JobStatus{gocron.Skip, gocron.Success, gocron.Skip, gocron.Success}, monitor.read())
	})
}

// Whatever a name has in it, the job is run: see TestSchedulerRefusesJobs for those that are none.
func TestNamesOfJobs(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		names := []string{"a b", "a\nb", "a\x00b", "{a}", "}", "a}b{", "pause/job/a", "ü/☃", "%s", "job/job", "*"}
		for _, name := range names {
			r.add(t, secondly, func() {}, gocron.WithName(name))
		}
		r.Start()
		time.Sleep(3 * time.Second)
		require.Len(t, c.book.ticks(), 3*len(names))
	})
}

// A listener that blocks before a run that was ordered does not keep Shutdown from returning in
// time.
func TestListenerThatBlocksAnOrderedRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithStopTimeout(2*time.Second))
		free := make(chan struct{})
		j := r.add(t, minutely, func() {}, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { <-free })))
		r.Start()
		time.Sleep(time.Second)
		came := make(chan error, 1)
		go func() { came <- j.RunNow() }()
		time.Sleep(time.Second)
		began := time.Now()
		require.ErrorIs(t, r.Shutdown(), gocron.ErrStopJobsTimedOut)
		require.Less(t, time.Since(began), 10*time.Second)
		var skip *scheduler.SkipError
		require.ErrorAs(t, <-came, &skip)
		require.Equal(t, scheduler.SkipStopped, skip.Reason)
		close(free)
		time.Sleep(5 * time.Second)
		require.Empty(t, c.book.ticks(), "what was refused is not run")
	})
}

// Three replicas whose clocks are up to two seconds apart, a job that takes no time, thirty
// ticks: thirty runs.
func TestTrap03InstantJobRunsOncePerTick(t *testing.T) {
	for _, test := range modes {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for _, d := range []time.Duration{-900 * time.Millisecond, 0, 800 * time.Millisecond} {
					r := c.replica(append(slices.Clone(test.opts), ahead(d))...)
					r.add(t, secondly, func() {})
				}
				for _, r := range c.replicas {
					r.Start()
				}
				time.Sleep(32 * time.Second)
				synctest.Wait()
				got := c.book.ticks()
				require.GreaterOrEqual(t, len(got), 30)
				for i, tick := range got {
					require.True(t, tick.Equal(got[0].Add(time.Duration(i)*time.Second)), "run %d is of %v", i, tick)
				}
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

type valueKey struct{}

// A run that takes longer than the interval is overlapped by no other, on any replica.
func TestTrap08RunsDoNotOverlap(t *testing.T) {
	for _, test := range []struct {
		overlap scheduler.Overlap
		runs    int
	}{
		{scheduler.OverlapSkip, 10},  // at 0, 3, 6, ... of 30 s
		{scheduler.OverlapQueue, 12}, // one after the other
	} {
		t.Run(test.overlap.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					c.runs(secondly, func() { time.Sleep(2500 * time.Millisecond) }, jobOptions(scheduler.WithOverlap(test.overlap)))
				}
				time.Sleep(30*time.Second + 100*time.Millisecond)
				synctest.Wait()
				require.Equal(t, 1, c.book.most)
				require.InDelta(t, test.runs, len(c.book.runs), 1)
				require.True(t, slices.IsSortedFunc(c.book.ticks(), time.Time.Compare))
				require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
			})
		})
	}
}

// What blocks in gocron has no more time than the runs before it have left.
func TestListenerThatBlocksShutdown(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		free, r := make(chan struct{}), c.replica(quiet, scheduler.WithStopTimeout(2*time.Second))
		defer close(free)
		r.add(t, secondly, func(ctx context.Context) { <-ctx.Done(); time.Sleep(1900 * time.Millisecond) })
		r.add(t, minutely, func() {}, gocron.WithName("other"), gocron.WithEventListeners(gocron.AfterLockError(func(uuid.UUID, string, error) { <-free })))
		r.Start()
		until(at(60).Add(-100 * time.Millisecond)) // gocron has the tick
		began := time.Now()
		require.ErrorIs(t, r.Shutdown(), gocron.ErrStopJobsTimedOut)
		require.Less(t, time.Since(began), 2200*time.Millisecond)
	})
}

// A user's Cron may ask its own job, and is asked under no lock.
func TestCronThatAsksItsJob(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		cron := &asking{}
		r := c.replica(quiet)
		j := r.add(t, gocron.CronJob("own", false), func() {}, gocron.WithCronImplementation(cron))
		cron.job.Store(&j)
		r.Start()
		time.Sleep(5 * time.Second)
		require.GreaterOrEqual(t, len(c.book.ticks()), 4)
	})
}

// asking is a gocron.Cron of each second that looks when its job ran last, and when it runs next.
type asking struct {
	job   atomic.Pointer[gocron.Job]
	depth atomic.Int64
}

func (a *asking) IsValid(string, *time.Location, time.Time) error { return nil }

func (a *asking) Next(after time.Time) time.Time {
	if j := a.job.Load(); j != nil && a.depth.Add(1) == 1 {
		_, _ = (*j).NextRun()
		_ = (*j).Tags()
	}
	defer a.depth.Store(0)
	return after.Truncate(time.Second).Add(time.Second)
}
