//go:build long

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
				second := first
				if how != "Update" {
					second = c.replica(opts...)
					second.add(t, gocron.CronJob("10 * * * *", false), obeys(20*time.Second, &done))
					second.Start()
				}
				until(day(1, 0, 10, 5))
				run, _ := c.book.run(0)
				holder := first
				if run.Lease().Identity() == second.q.Identity() {
					holder = second
				}
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
					for _, n := range c.fleet.Nodes() {
						require.NoError(t, n.Freeze())
					}
					time.Sleep(8 * time.Second)
					for _, n := range c.fleet.Nodes() {
						require.NoError(t, n.Thaw())
					}
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
		var replicas []*replica
		for range 3 {
			r := c.replica()
			r.add(t, gocron.CronJob("10 * * * *", false), obeys(20*time.Second, new(atomic.Int64)))
			r.Start()
			replicas = append(replicas, r)
		}
		until(day(1, 0, 10, 5))
		run, _ := c.book.run(0)
		for _, r := range replicas {
			if r.q.Identity() == run.Lease().Identity() {
				c.kill(r)
			}
		}
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
					r := c.replica(quiet, jobOptions(within(time.Minute, scheduler.CatchUpAll)))
					r.add(t, secondly, func() { time.Sleep(400 * time.Millisecond) })
					r.Start()
				}
				time.Sleep(3*time.Second + 700*time.Millisecond) // in a run
				for _, n := range c.fleet.Nodes() {
					require.NoError(t, n.Freeze())
				}
				time.Sleep(silent)
				for _, n := range c.fleet.Nodes() {
					require.NoError(t, n.Thaw())
				}
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

// Acceptance 15: replicas in two zones both say so.
func TestReplicasInTwoZones(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		berlin, err := time.LoadLocation("Europe/Berlin")
		require.NoError(t, err)
		var replicas []*replica
		for _, zone := range []*time.Location{berlin, time.UTC} {
			r := c.replica(quiet, scheduler.WithLocation(zone))
			j := r.add(t, gocron.CronJob("0 3 * * *", false), func() {})
			r.Start()
			next, err := j.NextRun()
			require.NoError(t, err)
			require.Equal(t, "03:00", next.Format("15:04"))
			time.Sleep(10 * time.Second)
			replicas = append(replicas, r)
		}
		require.Empty(t, slices.Concat(replicas[0].Conflicts(), replicas[1].Conflicts()))
		time.Sleep(6*time.Minute + 10*time.Second)
		require.Len(t, replicas[0].Conflicts(), 1)
		require.Len(t, replicas[1].Conflicts(), 1)
	})
}

// Acceptance 16: nothing begins after Pause has returned, also where the tick was asked for before.
func TestNothingBeginsAfterPause(t *testing.T) {
	for _, key := range []string{"", scheduler.KeyPrefix + "job"} {
		for before := time.Duration(0); before <= 600*time.Millisecond; before += 100 * time.Millisecond {
			t.Run(fmt.Sprintf("%q, %v before the tick", key, before), func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *cluster) {
					for range 2 {
						r := c.replica(quiet, jobOptions(within(time.Hour, scheduler.CatchUpAll)))
						r.add(t, tenSecondly, func() {})
						r.Start()
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
			r := c.replica(quiet)
			r.add(t, tenSecondly, func() {})
			r.Start()
		}
		time.Sleep(10 * time.Minute)
		require.Len(t, c.book.ticks(), 60)
		for i := range 60 {
			run, at := c.book.run(i)
			require.InDelta(t, 0, at.Sub(run.Due), float64(5*time.Millisecond), "%v", run.Due)
		}
	})
}

// A run that is refused gives its tick back, and is offered again more and more rarely.
func TestRefusedRunIsOfferedAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var asked atomic.Int64
		r := c.replica(quiet, jobOptions(within(time.Hour, scheduler.CatchUpLatest)))
		r.add(t, minutely, func() {}, gocron.WithEventListeners(gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error {
			if asked.Add(1) < 8 {
				return errors.New("not now")
			}
			return nil
		})))
		r.Start()
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
		r := c.replica(scheduler.WithElection("jobs"))
		r.add(t, minutely, func() {})
		r.Start()
		until(day(1, 0, 1, 59).Add(900 * time.Millisecond))
		require.Equal(t, []string{"01:00"}, c.book.texts("04:05"))
		require.NoError(t, c.operator().Resign(t.Context(), "jobs", ""))
		synctest.Wait()
		require.Len(t, c.book.skips, 1)
		require.Equal(t, day(1, 0, 2, 0), c.book.skips[0].Tick, "%v", c.book.skips[0])
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
		require.ErrorIs(t, c.book.ended()[1].Err, scheduler.ErrCancelled)
		require.Equal(t, 1, c.book.most)
	})
}

// A pause that comes while gocron takes its time before the task is seen.
func TestPauseBeforeTheTaskIsCalled(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet)
		r.add(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { time.Sleep(2 * time.Second) })))
		r.Start()
		q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption))
		until(day(1, 0, 0, 11))
		_, _, err := pause.Set(t.Context(), q, scheduler.KeyPrefix+"job", pause.Pause{By: "ann"})
		require.NoError(t, err)
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
				var replicas []*replica
				for range 2 {
					r := c.replica(jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
					r.add(t, gocron.CronJob("10 * * * *", false), func() { time.Sleep(8 * time.Second) })
					r.Start()
					replicas = append(replicas, r)
				}
				q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption))
				operator, err := admin.New(q, admin.WithActor("ann"), admin.WithLogger(silent))
				require.NoError(t, err)
				until(day(1, 0, 10, 2))
				run, err := operator.Running(t.Context(), "job")
				require.NoError(t, err)
				require.NoError(t, operator.Cancel(t.Context(), run.ID(), "a test"))
				for _, r := range replicas {
					switch {
					case r.q.Identity() != run.Replica:
					case how == "shut down":
						c.stop(r)
					case how == "killed":
						c.kill(r)
					}
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
