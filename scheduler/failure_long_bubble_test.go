//go:build long

package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// obeys is a task of a time that ends with its context.
func obeys(d time.Duration, done *atomic.Int64) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			done.Add(1)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Acceptance 9, and the failover of a replica that is killed: at least once is that, whatever cuts
// the run short.
func TestAtLeastOnce(t *testing.T) {
	for _, how := range []string{"Shutdown", "killed", "leadership given up", "resigned", "Update", "nodes silent", "nodes silent, elected"} {
		t.Run(how, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var done atomic.Int64
				opts := []scheduler.Option{jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce))}
				if how != "nodes silent" && how != "Update" {
					opts = append(opts, scheduler.WithElection("jobs"))
				}
				until(day(1, 0, 9, 30))
				first := c.replica(opts...)
				j := first.add(t, gocron.CronJob("10 * * * *", false), obeys(20*time.Second, &done))
				first.Start()
				time.Sleep(time.Second)
				if how != "Update" {
					c.runs(gocron.CronJob("10 * * * *", false), obeys(20*time.Second, &done), opts...)
				}
				until(day(1, 0, 10, 5))
				run, _ := c.book.run(0)
				holder := c.holder(run)
				switch how {
				case "Shutdown":
					c.stop(holder)
				case "killed":
					c.kill(holder)
				case "leadership given up":
					require.NoError(t, holder.StopJobs())
				case "Update":
					_, err := first.Update(j.ID(), gocron.CronJob("10 * * * *", false), gocron.NewTask(obeys(20*time.Second, &done)), gocron.WithName("job"))
					require.NoError(t, err)
				case "resigned":
					require.NoError(t, c.operator().Resign(t.Context(), "jobs", "a test"))
				case "nodes silent", "nodes silent, elected":
					c.freeze()
					time.Sleep(8 * time.Second)
					c.thaw()
				}
				until(day(1, 0, 11, 30))
				require.Len(t, c.book.ticks(), 2)
				again, _ := c.book.run(1)
				require.Equal(t, 2, again.Attempt)
				require.Equal(t, "again", again.Why)
				require.EqualValues(t, 1, done.Load())
				if how != "Update" && how != "nodes silent" && how != "nodes silent, elected" {
					require.NotEqual(t, run.Lease().Identity(), again.Lease().Identity())
				}
			})
		})
	}
}

// Acceptance 11: a run that was killed is told once, and not repeated.
func TestKilledRunIsToldOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		until(day(1, 0, 9, 30))
		for range 3 {
			c.runs(gocron.CronJob("10 * * * *", false), obeys(20*time.Second, new(atomic.Int64)))
		}
		until(day(1, 0, 10, 5))
		run, _ := c.book.run(0)
		c.kill(c.holder(run))
		time.Sleep(3 * ttl)
		require.Equal(t, 1, c.book.reasons()[scheduler.SkipCutShort])
		until(day(1, 0, 15, 0))
		require.Equal(t, 1, c.book.reasons()[scheduler.SkipCutShort])
		require.Len(t, c.book.ticks(), 1)
		skips, err := c.operator().Skips(t.Context(), "job", 20)
		require.NoError(t, err)
		require.Empty(t, skips, "it is a run")
		runs, err := c.operator().Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, []any{admin.OutcomeCutShort, run.Lease().Identity(), run.FencingToken()}, []any{runs[0].Outcome, runs[0].Replica, runs[0].FencingToken})
		require.WithinDuration(t, run.Due, runs[0].Tick, 0)
	})
}

// Acceptance 12, and the catch-up after an outage: ticks that nobody could run are no overlap.
func TestNodesThatAreSilent(t *testing.T) {
	for _, silent := range []time.Duration{2500 * time.Millisecond, 20 * time.Second} {
		t.Run(silent.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 2 {
					c.runs(secondly, func() { time.Sleep(400 * time.Millisecond) }, quiet, jobOptions(within(time.Minute, scheduler.CatchUpAll)))
				}
				time.Sleep(3*time.Second + 700*time.Millisecond) // in a run
				c.freeze()
				time.Sleep(silent)
				c.thaw()
				time.Sleep(silent + 10*time.Second)
				synctest.Wait()
				got := c.book.ticks()
				for i, tick := range got {
					require.True(t, tick.Equal(got[0].Add(time.Duration(i)*time.Second)), "run %d is of %v", i, tick)
				}
				require.Greater(t, len(got), int(silent/time.Second)+9)
				require.Zero(t, c.book.reasons()[scheduler.SkipOverlap])
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

// Acceptance 13: asked ahead, runs spread over replicas, and do not go to the clock that is ahead.
func TestRunsSpreadOverReplicas(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const jobs = 160
		until(day(1, 0, 0, 30))
		for i := range 3 {
			r := c.named(fmt.Sprint("web-", i), quiet, ahead(time.Duration(i*5)*time.Millisecond))
			for n := range jobs {
				r.add(t, minutely, func() {}, gocron.WithName(fmt.Sprint("job ", n)))
			}
			r.Start()
		}
		until(day(1, 0, 1, 30))
		n := make(map[string]int)
		for i := range c.book.ticks() {
			run, at := c.book.run(i)
			n[run.Lease().Identity()]++
			require.InDelta(t, 0, at.Sub(run.Due), float64(20*time.Millisecond))
		}
		require.Len(t, c.book.ticks(), jobs)
		for replica, of := range n {
			require.LessOrEqual(t, of, jobs*45/100, "%s", replica)
		}
	})
}

// Acceptance 14.
func TestTwoSchedulersOfOneElection(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithElection("jobs"))
		var wrong *scheduler.OptionError
		_, err := scheduler.New(r.q, scheduler.WithElection("jobs"))
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "WithElection", wrong.Option)
		require.NoError(t, r.Shutdown())
		s, err := scheduler.New(r.q, scheduler.WithElection("jobs"), quiet, scheduler.WithLogger(silent))
		require.NoError(t, err)
		require.NoError(t, s.Shutdown())
	})
}

// Acceptance 16: nothing begins after Pause has returned, also where the tick was asked for before.
func TestNothingBeginsAfterPause(t *testing.T) {
	for _, key := range []string{"", scheduler.KeyPrefix + "job"} {
		for before := time.Duration(0); before <= 600*time.Millisecond; before += 100 * time.Millisecond {
			t.Run(fmt.Sprintf("%q, %v before the tick", key, before), func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *cluster) {
					for range 2 {
						c.runs(tenSecondly, func() {}, quiet, jobOptions(within(time.Hour, scheduler.CatchUpAll)))
					}
					q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption))
					until(day(1, 0, 0, 20).Add(-before))
					_, _, err := pause.Set(t.Context(), q, key, pause.Pause{By: "ann", Why: "a test"})
					require.NoError(t, err)
					n := len(c.book.ticks())
					until(day(1, 0, 1, 5))
					require.Len(t, c.book.ticks(), n)
					require.NotZero(t, c.book.reasons()[scheduler.SkipPaused])
					_, was, err := pause.Resume(t.Context(), q, key, "ann", "done")
					require.NoError(t, err)
					require.Equal(t, "ann", was.By)
					until(day(1, 0, 1, 25))
					require.Equal(t, []string{"01:10", "01:20"}, c.book.texts("04:05")[n:])
				})
			})
		}
	}
}

// Acceptance 17: nodes that are 40 ms away cost no lateness.
func TestNodesFarAway(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for _, n := range c.fleet.Nodes() {
			n.SetDelay(40 * time.Millisecond)
		}
		for range 3 {
			c.runs(tenSecondly, func() {}, quiet)
		}
		time.Sleep(10 * time.Minute)
		require.Len(t, c.book.ticks(), 60)
		for i := range 60 {
			run, at := c.book.run(i)
			require.InDelta(t, 0, at.Sub(run.Due), float64(5*time.Millisecond), "%v", run.Due)
		}
	})
}

// Nodes that take longer than a pause is fresh are no reason to run nothing.
func TestNodesVeryFarAway(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quorum = []redlock.Option{redlock.WithTTL(12 * time.Second), redlock.WithNodeTimeout(time.Second)}
		c.runs(tenSecondly, func() {}, quiet)
		time.Sleep(5 * time.Second)
		for _, n := range c.fleet.Nodes() {
			n.SetDelay(450 * time.Millisecond)
		}
		until(day(1, 0, 1, 5))
		require.Len(t, c.book.ticks(), 6)
	})
}

// A run that is refused gives its tick back, and is offered again more and more rarely.
func TestRefusedRunIsOfferedAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var asked atomic.Int64
		c.replica(quiet, jobOptions(within(time.Hour, scheduler.CatchUpLatest))).with(t, minutely, func() {}, gocron.WithEventListeners(gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error {
			if asked.Add(1) < 8 {
				return errors.New("not now")
			}
			return nil
		})))
		until(day(1, 0, 1, 4)) // after 50, 100, 200 ... ms
		require.EqualValues(t, 7, asked.Load())
		require.Empty(t, c.book.ticks())
		until(day(1, 0, 1, 30))
		require.Equal(t, []string{"01:00"}, c.book.texts("04:05"))
	})
}

// A tick that was granted ahead of its time and given back is told of by its own time, not by that
// of the run before, to which the record is put back.
func TestTickGivenBackIsNamed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(minutely, func() {}, scheduler.WithElection("jobs"))
		until(day(1, 0, 1, 59).Add(900 * time.Millisecond))
		require.Equal(t, []string{"01:00"}, c.book.texts("04:05"))
		require.NoError(t, c.operator().Resign(t.Context(), "jobs", ""))
		synctest.Wait()
		require.Len(t, c.book.skips.read(), 1)
		require.Equal(t, day(1, 0, 2, 0), c.book.skips.read()[0].Tick, "%v", c.book.skips.read()[0])
	})
}

// RunNow says if there is no place.
func TestRunNowWithoutAPlace(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule)))
		j := r.add(t, minutely, func() { time.Sleep(5 * time.Second) })
		other := r.add(t, minutely, func() {}, gocron.WithName("other"))
		r.Start()
		require.NoError(t, j.RunNow())
		var skip *scheduler.SkipError
		require.ErrorAs(t, other.RunNow(), &skip)
		require.Equal(t, scheduler.SkipLimit, skip.Reason)
		time.Sleep(6 * time.Second)
		require.NoError(t, other.RunNow())
	})
}

// With OverlapCancel a tick that comes ends the run before it, and no tick that was there already.
func TestOverlapCancel(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		opts := jobOptions(within(time.Minute, scheduler.CatchUpAll), scheduler.WithOverlap(scheduler.OverlapCancel))
		c.life(day(1, 0, 0, 1), day(1, 0, 0, 2), tenSecondly) // it was made
		until(day(1, 0, 0, 32))
		r := c.replica(quiet, opts)
		var done atomic.Int64
		r.add(t, tenSecondly, func(ctx context.Context) error {
			if run, _ := scheduler.RunFromContext(ctx); run.Due.Equal(day(1, 0, 0, 10)) {
				return obeys(time.Second, &done)(ctx)
			}
			return obeys(time.Minute, &done)(ctx)
		})
		r.Start()
		until(day(1, 0, 0, 55))
		require.EqualValues(t, 1, done.Load())
		require.Equal(t, []string{"00:10", "00:20", "00:30", "00:40"}, c.book.texts("04:05")) // each for ten seconds
		require.ErrorIs(t, c.book.ends.read()[1].Err, scheduler.ErrCancelled)
		require.Equal(t, 1, c.book.most)
	})
}

// A pause that comes while gocron takes its time before the task is seen.
func TestPauseBeforeTheTaskIsCalled(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.replica(quiet).with(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { time.Sleep(2 * time.Second) })))
		until(day(1, 0, 0, 11))
		c.setPause(jobKey, "ann")
		until(day(1, 0, 0, 35))
		require.Empty(t, c.book.ticks())
		require.Equal(t, 3, c.book.reasons()[scheduler.SkipPaused])
	})
}

// Acceptance 10: a run that was cancelled is complete, whatever becomes of its replica.
func TestCancelOfADeafRun(t *testing.T) {
	for _, how := range []string{"returns", "shut down", "killed"} {
		t.Run(how, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				until(day(1, 0, 9, 30))
				for range 2 {
					c.runs(gocron.CronJob("10 * * * *", false), func() { time.Sleep(8 * time.Second) },
						jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
				}
				operator := c.operator()
				until(day(1, 0, 10, 2))
				run, err := operator.Running(t.Context(), "job")
				require.NoError(t, err)
				require.NoError(t, operator.Cancel(t.Context(), run.ID(), "a test"))
				switch begun, _ := c.book.run(0); how {
				case "shut down":
					c.stop(c.holder(begun))
				case "killed":
					c.kill(c.holder(begun))
				}
				until(day(1, 0, 12, 0))
				require.Len(t, c.book.ticks(), 1)
			})
		})
	}
}

// A replica that has no place leaves ticks to others, or has them wait, by the mode of the limit.
func TestLimitOfConcurrentJobs(t *testing.T) {
	for _, test := range []struct {
		mode     gocron.LimitMode
		replicas int
		late     time.Duration
	}{{gocron.LimitModeReschedule, 2, 10 * time.Millisecond}, {gocron.LimitModeWait, 1, 7 * time.Second}} {
		t.Run(fmt.Sprint(test.mode), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range test.replicas {
					r := c.replica(quiet, scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, test.mode)))
					for _, name := range []string{"one", "two"} {
						r.add(t, minutely, func() { time.Sleep(6 * time.Second) }, gocron.WithName(name))
					}
					r.Start()
				}
				until(day(1, 0, 3, 30))
				require.Len(t, c.book.ticks(), 6)
				require.Equal(t, test.replicas, c.book.most)
				for i := range 6 {
					run, at := c.book.run(i)
					require.LessOrEqual(t, at.Sub(run.Due), test.late)
				}
			})
		})
	}
}

// Where two mechanisms meet.

// A run overlaps what comes while it goes on, and not while its tick waited for a place.
func TestOverlapOfARunThatWaitedForAPlace(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait)))
		r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(55))), func() { time.Sleep(110 * time.Second) }, gocron.WithName("first"))
		r.add(t, minutely, func() { time.Sleep(30 * time.Second) }, scheduler.WithOverlap(scheduler.OverlapQueue))
		r.Start()
		until(at(230))
		require.Equal(t, []int{55, 60, 180}, c.book.seconds())
	})
}

// A tick grows older also while gocron is busy, or the nodes take their time with the grant.
func TestTickGrowsOldBehindAGrant(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithSchedulerMonitor(busy{Duration: 20 * time.Second})))
		r.add(t, minutely, func() {})
		other := r.add(t, minutely, func() {}, gocron.WithName("other"))
		r.Start()
		until(day(1, 0, 1, 59))
		go func() { _ = r.RemoveJob(other.ID()) }()
		until(day(1, 0, 3, 30))
		for i := range c.book.ticks() {
			run, began := c.book.run(i)
			require.LessOrEqual(t, began.Sub(run.Due), scheduler.Grace, "%v", run.Due)
		}
		require.Equal(t, 1, c.book.reasons()[scheduler.SkipMissed])
	})
}

// OverlapCancel ends no run for a tick that is not run: it is paused, or the runs are counted.
func TestOverlapCancelForATickThatIsNotRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		long := func(ctx context.Context) error { nap(ctx, 150*time.Second); return ctx.Err() }
		r := c.replica(quiet, jobOptions(scheduler.WithOverlap(scheduler.OverlapCancel)))
		j := r.add(t, minutely, long)
		r.add(t, minutely, long, gocron.WithName("limited"), gocron.WithLimitedRuns(1))
		r.Start()
		until(day(1, 0, 0, 30))
		c.setPause(jobKey, "ann")
		require.NoError(t, j.RunNow())
		until(day(1, 0, 4, 30))
		require.Len(t, c.book.ends.read(), 2)
		for _, e := range c.book.ends.read() {
			require.NoError(t, e.Err, e.Run.Job)
		}
	})
}

// A run is ended for the next tick also if the nodes are out of reach just then, or were so already
// when the run was to be tried again, and that is being written.
func TestOverlapCancelInAnOutage(t *testing.T) {
	for _, length := range []time.Duration{time.Hour, 59 * time.Second} {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.quorum = []redlock.Option{redlock.WithTTL(time.Minute)}
			c.runs(minutely, func(ctx context.Context) error { nap(ctx, length); return errors.New("in vain") }, quiet,
				jobOptions(scheduler.WithOverlap(scheduler.OverlapCancel), scheduler.WithRetry(3, time.Minute)))
			until(day(1, 0, 1, 58))
			c.freeze()
			until(day(1, 0, 2, 15))
			require.Len(t, c.book.ticks(), 1)
			c.thaw()
			until(day(1, 0, 2, 45))
			require.Len(t, c.book.ticks(), 2)
		})
	}
}

// Nodes that all came back with an older record know less than this replica remembers.
func TestNodesThatWereRestoredFromABackup(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(tenSecondly, func() {}, quiet, jobOptions(within(time.Hour, scheduler.CatchUpAll)))
		until(at(15))
		key := redlock.DefaultPrefix + ":{" + jobKey + "}:register"
		backup, ok := c.fleet.Node(0).Get(key)
		require.True(t, ok)
		until(at(65))
		for _, n := range c.fleet.Nodes() {
			command(t, n, "SET", key, backup)
		}
		until(at(95))
		require.Equal(t, []int{10, 20, 30, 40, 50, 60, 70, 80, 90}, c.book.seconds())
	})
}

// A job whose ticks are over is not removed while a pause holds up its backfill.
func TestPausedBackfillOfAJobThatEnds(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.runs(minutely, func() {}, quiet, jobOptions(gocron.WithStopAt(gocron.WithStopDateTime(day(1, 0, 3, 30)))))
		until(day(1, 0, 2, 30))
		c.setPause(jobKey, "ann")
		c.backfill(r.q, day(0, 22, 0, 0), day(0, 22, 1, 0))
		until(day(1, 0, 5, 0))
		require.Len(t, r.Jobs(), 1)
		c.resume(jobKey)
		until(day(1, 0, 8, 0))
		require.Equal(t, []string{"00:01", "00:02", "22:00", "22:01"}, c.book.texts("15:04"))
		require.Empty(t, r.Jobs())
	})
}

// onLine is a handler of logs that does something once when it is told of a text.
type onLine struct {
	slog.Handler
	text string
	do   func()
	done *atomic.Bool
}

func (h onLine) Enabled(context.Context, slog.Level) bool { return true }
func (h onLine) Handle(_ context.Context, r slog.Record) error {
	if bytes.Contains([]byte(r.Message), []byte(h.text)) && !h.done.Swap(true) {
		h.do()
	}
	return nil
}

// An Update of a job that is over at that moment is not undone.
func TestUpdateOfAJobThatIsOver(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var r *replica
		var j gocron.Job
		again := func() {
			_, err := r.Update(j.ID(), gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(day(1, 0, 2, 0))), gocron.NewTask(func() {}), gocron.WithName("job"))
			require.NoError(t, err)
		}
		r = c.replica(quiet, scheduler.WithLogger(slog.New(onLine{slog.DiscardHandler, "a job is over", again, new(atomic.Bool)})))
		j = r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(day(1, 0, 1, 0))), func() {})
		r.Start()
		until(day(1, 0, 3, 0))
		require.Equal(t, []string{"00:01", "00:02"}, c.book.texts("15:04"))
	})
}

// The pauses between attempts grow no shorter.
func TestRetryAfterLongPauses(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(gocron.CronJob("0 * * * *", false), func() error { return errors.New("not yet") }, quiet, jobOptions(scheduler.WithRetry(2, 5*time.Minute)))
		until(day(1, 1, 30, 0))
		require.Equal(t, []time.Duration{5 * time.Minute, 5 * time.Minute}, c.book.distances())
	})
}

// How a run ended is written for as long as its lease lives.
func TestEndInAnOutage(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quorum = []redlock.Option{redlock.WithTTL(time.Minute)}
		c.replica(quiet, jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce))).with(t, gocron.CronJob("1 * * * *", false), func() { time.Sleep(10 * time.Second) })
		until(day(1, 0, 1, 5))
		for _, n := range c.fleet.Nodes() {
			require.NoError(t, n.Kill())
		}
		until(day(1, 0, 1, 30))
		for _, n := range c.fleet.Nodes() {
			require.NoError(t, n.Restart(true))
		}
		until(day(1, 0, 10, 0))
		require.Len(t, c.book.ticks(), 1)
		require.Empty(t, c.book.reasons())
	})
}

// A second job with the identifier of another would take gocron's place of it.
func TestIdentifierOfAnotherJob(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		id := uuid.New()
		r := c.replica(quiet)
		first := r.add(t, secondly, func() {}, gocron.WithIdentifier(id))
		r.Start()
		_, err := r.NewJob(secondly, gocron.NewTask(func() {}), gocron.WithName("other"), gocron.WithIdentifier(id))
		var wrong *scheduler.OptionError
		require.ErrorAs(t, err, &wrong)
		time.Sleep(3 * time.Second)
		require.Len(t, c.book.ticks(), 3)
		_, err = r.Update(first.ID(), secondly, gocron.NewTask(func() {}), gocron.WithName("job"), gocron.WithIdentifier(id))
		require.NoError(t, err)
		require.NoError(t, r.RemoveJob(id))
		r.add(t, secondly, func() {}, gocron.WithIdentifier(id))
	})
}

// A run that was asked for to settle what was left out has a place too.
func TestLimitOfARunThatWasNotAskedFor(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		queue := jobOptions(scheduler.WithOverlap(scheduler.OverlapQueue))
		first := c.runs(minutely, func(ctx context.Context) error { nap(ctx, 90*time.Second); return ctx.Err() }, quiet, queue)
		until(day(1, 0, 1, 30))
		second := c.replica(quiet, queue, scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule)))
		var running, most atomic.Int64
		count := func(d time.Duration) func() {
			return func() { most.Store(max(most.Load(), running.Add(1))); time.Sleep(d); running.Add(-1) }
		}
		second.add(t, minutely, count(time.Second))
		long := second.add(t, gocron.CronJob("0 0 1 1 *", false), count(40*time.Second), gocron.WithName("long"))
		second.Start()
		until(day(1, 0, 2, 8))
		require.NoError(t, long.RunNow())
		until(day(1, 0, 2, 20))
		c.stop(first)
		until(day(1, 0, 3, 30))
		require.EqualValues(t, 1, most.Load())
		require.Contains(t, c.book.texts("15:04"), "00:02")
	})
}

// counting is a gocron.SchedulerMonitor that counts ticks without a place.
type counting struct {
	gocronx.NoMonitor
	full *atomic.Int64
}

func (c counting) ConcurrencyLimitReached(kind string, j gocron.Job) {
	if kind == "limit" && j.Name() == "two" {
		c.full.Add(1)
	}
}

// gocron's monitor hears that the limit is reached, as from gocron.
func TestMonitorHearsOfTheLimit(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var full atomic.Int64
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule), gocron.WithSchedulerMonitor(counting{full: &full})))
		r.add(t, gocron.CronJob("59 * * * * *", true), func() { time.Sleep(3 * time.Second) }, gocron.WithName("one"))
		r.add(t, minutely, func() {}, gocron.WithName("two"))
		r.Start()
		until(day(1, 0, 1, 30))
		require.EqualValues(t, 1, full.Load())
	})
}

// What counts from the first day of a definition goes on after a rest that is longer than the time
// between its next two ticks.
func TestPhaseAfterALongRest(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		d := gocron.DailyJob(4, gocron.NewAtTimes(gocron.NewAtTime(8, 0, 0), gocron.NewAtTime(8, 1, 0)))
		c.life(day(1, 7, 59, 0), day(1, 8, 1, 30), d)
		c.life(day(3, 12, 0, 0), day(3, 12, 1, 0), d)
		c.life(day(5, 7, 59, 0), day(5, 8, 1, 30), d)
		require.Equal(t, []string{"01 08:00", "01 08:01", "05 08:00", "05 08:01"}, c.book.texts("02 15:04"))
	})
}

// A tick of a backfill that panics does not keep the others waiting for ever.
func TestBackfillThatPanics(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		until(day(1, 0, 0, 30))
		r := c.runs(gocron.CronJob("0 * * * *", false), func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Due.Equal(day(0, 21, 0, 0)) {
				panic("always")
			}
		}, quiet, jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
		time.Sleep(time.Second)
		c.backfill(r.q, day(0, 20, 0, 0), day(0, 22, 0, 0))
		until(day(1, 0, 30, 0))
		require.Equal(t, []string{"20:00", "21:00", "22:00"}, c.book.texts("15:04"))
	})
}

// A run that a tracer keeps from its task by a panic has not succeeded.
func TestPanicOfATracerIsNoSuccess(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var started, ran atomic.Int64
		tracer := &scheduler.Tracer{RunStart: func(ctx context.Context, _ scheduler.RunStartTrace) context.Context {
			if started.Add(1) == 1 {
				panic("a defect")
			}
			return ctx
		}}
		c.replica(quiet, scheduler.WithTracer(tracer), jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce))).with(t, minutely, func() { ran.Add(1) })
		until(day(1, 0, 1, 30))
		require.EqualValues(t, 1, ran.Load())
	})
}

// A job that is replaced while a tracer is told of it is at an end, and none with which the other
// conflicts.
func TestUpdateInATracer(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var r *replica
		var once atomic.Bool
		r = c.replica(quiet, scheduler.WithTracer(&scheduler.Tracer{Job: func(_ context.Context, data scheduler.JobTrace) {
			if data.Job == "updated" && once.CompareAndSwap(false, true) {
				_, err := r.Update(r.Jobs()[0].ID(), gocron.DurationJob(time.Hour), gocron.NewTask(func() {}), gocron.WithName("updated"))
				require.NoError(t, err)
			}
		}}))
		r.Start()
		_, err := r.NewJob(minutely, gocron.NewTask(func() {}), gocron.WithName("updated"))
		require.NoError(t, err)
		until(day(1, 0, 5, 30))
		require.Empty(t, r.Conflicts())
	})
}

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
				first = c.runs(minutely, func() {}, opts...)
				time.Sleep(time.Second)
			}
			clock, log, by := &settable{}, new(journal), 10*time.Minute
			if p == scheduler.CatchUpLatest {
				by = 5 * time.Second
			}
			r := c.runs(minutely, func() {}, append(opts, scheduler.WithWall(clock.now), scheduler.WithLogger(log.logger()))...)
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

// Many jobs are asked for so early that their pauses have to be read again: that is done before
// they are due.
func TestManyJobsWithNodesFarAway(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const jobs = 500
		r := c.replica(quiet)
		for n := range jobs {
			r.add(t, minutely, func() {}, gocron.WithName(fmt.Sprint("job ", n)))
		}
		r.Start()
		until(day(1, 0, 0, 30))
		for _, n := range c.fleet.Nodes() {
			n.SetDelay(40 * time.Millisecond)
		}
		until(day(1, 0, 1, 30))
		require.Len(t, c.book.ticks(), jobs)
		for i := range jobs {
			run, at := c.book.run(i)
			require.InDelta(t, 0, at.Sub(run.Due), float64(5*time.Millisecond))
		}
	})
}
