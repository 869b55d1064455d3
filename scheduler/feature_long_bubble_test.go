//go:build long

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A job that has not succeeded for too long is overdue, from when it was made or from its last
// success on. A replica that does not lead does not know.
func TestSucceedWithin(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var fails atomic.Bool
		var mu sync.Mutex
		logs := make(map[string]scheduler.JobTrace)
		replicas := make([]*replica, 2)
		for i := range replicas {
			name := fmt.Sprint("replica ", i)
			replicas[i] = c.named(name, quiet, scheduler.WithElection("jobs"), scheduler.WithTracer(&scheduler.Tracer{Job: func(_ context.Context, data scheduler.JobTrace) {
				mu.Lock()
				defer mu.Unlock()
				logs[name] = data
			}}))
			replicas[i].add(t, minutely, func() error {
				if fails.Load() {
					return errors.New("failed")
				}
				return nil
			}, scheduler.WithSucceedWithin(3*time.Minute))
			replicas[i].Start()
			time.Sleep(5 * time.Second)
		}
		leader, follower := replicas[0], replicas[1]
		log := func(name string) scheduler.JobTrace { mu.Lock(); defer mu.Unlock(); return logs[name] }
		until(day(1, 0, 1, 30))
		require.Empty(t, leader.Overdue())
		require.True(t, log("replica 0").Next.Equal(day(1, 0, 2, 0)))
		require.WithinDuration(t, day(1, 0, 1, 0), log("replica 0").Succeeded, time.Second)
		fails.Store(true)
		until(day(1, 0, 3, 59))
		require.Empty(t, leader.Overdue())
		until(day(1, 0, 5, 30))
		require.Equal(t, []string{"job"}, leader.Overdue())
		require.WithinDuration(t, day(1, 0, 4, 0), log("replica 0").OverdueAt, time.Second)
		require.Empty(t, follower.Overdue())
		require.Equal(t, scheduler.JobTrace{Job: "job", Election: "jobs"}, log("replica 1"))
		fails.Store(false)
		until(day(1, 0, 6, 30))
		require.Empty(t, leader.Overdue())
		require.WithinDuration(t, day(1, 0, 9, 0), log("replica 0").OverdueAt, time.Second)
		c.stop(leader)
		until(day(1, 0, 8, 30))
		require.Equal(t, scheduler.JobTrace{Job: "job", Election: "jobs"}, log("replica 0"), "who does not run the job knows nothing of it")
		require.False(t, log("replica 1").Next.IsZero())
		require.Empty(t, follower.Overdue())
	})
}

// distances are those between the beginnings of runs.
func (b *book) distances() (all []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.begun[1:] {
		all = append(all, b.begun[i+1].Sub(b.begun[i]))
	}
	return all
}

// Random jobs, and intervals from completion, have one sequence over all replicas, and need no
// election.
func TestSchedulesThatRunsDecide(t *testing.T) {
	for _, test := range []struct {
		name        string
		of          gocron.JobDefinition
		opts        []gocron.JobOption
		least, most time.Duration
	}{
		{"random", gocron.DurationRandomJob(5*time.Second, 15*time.Second), nil, 5 * time.Second, 15 * time.Second},
		{"from completion", gocron.DurationJob(10 * time.Second), []gocron.JobOption{gocron.WithIntervalFromCompletion()}, 13 * time.Second, 13 * time.Second},
		{"random, from completion", gocron.DurationRandomJob(5*time.Second, 15*time.Second), []gocron.JobOption{gocron.WithIntervalFromCompletion()}, 8 * time.Second, 18 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					c.replica(quiet).with(t, test.of, func() { time.Sleep(3 * time.Second) }, test.opts...)
				}
				until(day(1, 0, 2, 0))
				for n := len(c.book.ticks()); len(c.book.ticks()) == n; {
					time.Sleep(100 * time.Millisecond)
				}
				run, _ := c.book.run(len(c.book.ticks()) - 1)
				c.kill(c.holder(run))
				until(day(1, 0, 4, 0))
				distances := c.book.distances()
				t.Log(distances)
				require.GreaterOrEqual(t, len(distances), int(3*time.Minute/test.most))
				gaps := 0
				for _, d := range distances {
					require.GreaterOrEqual(t, d, test.least-100*time.Millisecond)
					if d > test.most+time.Second {
						gaps++ // a run may have been killed
						require.Less(t, d, test.most+15*time.Second)
					}
				}
				require.LessOrEqual(t, gaps, 1)
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

// A backfill runs ticks that are past, one after the other on any replica. What is due goes first.
func TestBackfill(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		until(day(1, 0, 0, 30))
		for range 2 {
			c.runs(gocron.CronJob("*/10 * * * *", false), obeys(20*time.Second, new(atomic.Int64)), jobOptions(within(time.Hour, scheduler.CatchUpAll)))
		}
		until(day(1, 0, 9, 0))
		q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption))
		c.backfill(q, day(0, 23, 0, 0), day(0, 23, 30, 0))
		until(day(1, 0, 12, 30))
		require.Len(t, c.book.ticks(), 5)
		due := slices.Index(c.book.texts("15:04"), "00:10")
		require.Equal(t, []string{"23:00", "23:10", "23:20", "23:30"}, slices.Delete(c.book.texts("15:04"), due, due+1))
		whys := make(map[string]int)
		for i := range c.book.ticks() {
			run, at := c.book.run(i)
			whys[run.Why]++
			if i == due {
				require.Less(t, at.Sub(run.Due), 25*time.Second, "it waits for a run of the backfill at most")
			}
		}
		require.Equal(t, 4, whys["backfill"])
		require.Equal(t, 1, c.book.most)

		// A run of it that is cancelled ends it.
		c.backfill(q, day(0, 1, 0, 0), day(0, 3, 30, 0))
		until(day(1, 0, 14, 0))
		last, _ := c.book.run(len(c.book.ticks()) - 1)
		require.NoError(t, c.operator().Cancel(t.Context(), admin.RunID{Job: "job", FencingToken: last.FencingToken()}, "a test"))
		n := len(c.book.ticks())
		until(day(1, 0, 19, 50))
		require.Len(t, c.book.ticks(), n)
		until(day(1, 0, 21, 0))
		require.Equal(t, "00:20", c.book.texts("15:04")[n])
	})
}

// pauseBook records what a tracer is told of pauses: by whom each is, whether it is of all jobs,
// and "" for an end.
type pauseBook struct{ notes[string] }

func (b *pauseBook) option() scheduler.Option {
	return scheduler.WithTracer(&scheduler.Tracer{Job: func(_ context.Context, data scheduler.JobTrace) {
		by := data.Pause.By
		if data.Pause.All {
			by += ", of all"
		}
		if told := append([]string{""}, b.read()...); told[len(told)-1] != by {
			b.add(by)
		}
	}})
}

// Ticks of a paused job are left out on all replicas, and for good; RunNow is not a tick. Tracer
// and log hear of a pause that is new, and of its end, and not of each tick.
func TestPausedJob(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				book, log := new(pauseBook), new(journal)
				c.replica() // of an operator
				r := c.replica(append(mode.opts, book.option(), scheduler.WithLogger(log.logger()), jobOptions(within(10*time.Minute, scheduler.CatchUpAll)))...)
				var ran notes[int]
				j := r.add(t, tenSecondly, func(ctx context.Context) {
					run, _ := scheduler.RunFromContext(ctx)
					ran.add(max(0, int(run.Due.Sub(at(0))/time.Second)))
				})
				r.Start()
				until(at(15))
				c.setPause(jobKey, "bob")
				until(at(22))
				c.setPause("", "ann")
				until(at(32))
				require.Equal(t, []string{"bob"}, book.read(), "the job's own pause goes before that of all")
				require.NoError(t, j.RunNow())
				c.resume(jobKey)
				until(at(42))
				c.resume("")
				until(at(55))
				require.Equal(t, []int{10, 0, 50}, ran.read(), "what was paused is not caught up")
				require.Equal(t, []string{"bob", "ann, of all", ""}, book.read())
				require.Len(t, log.lines(`level=WARN msg="scheduler: a job is paused`), 2)
				require.Contains(t, log.lines("a job is paused")[0], `by=bob why="a test"`)
				require.Len(t, log.lines("not paused any more"), 1)
			})
		})
	}
}

// A replica knows of a pause from the beginning, also where the next tick is far away: when it
// starts, when it is elected and when the job is changed. One that runs the job no more knows of
// none.
func TestPauseOfBeforeIsKnown(t *testing.T) {
	for key, by := range map[string]string{jobKey: "ann", "": "ann, of all"} {
		t.Run("key "+key, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				operator := c.operator()
				c.replica()
				c.setPause(key, "ann")
				begin := func(opts ...scheduler.Option) (*replica, gocron.Job, *pauseBook) {
					b := new(pauseBook)
					r := c.replica(append(opts, b.option())...)
					j := r.add(t, gocron.CronJob("0 12 * * *", false), func() {})
					r.Start()
					time.Sleep(time.Second)
					return r, j, b
				}
				r, j, b := begin()
				require.Equal(t, []string{by}, b.read(), "it has started")
				_, err := r.Update(j.ID(), gocron.CronJob("0 13 * * *", false), gocron.NewTask(func() {}), gocron.WithName("job"))
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.Equal(t, []string{by, "", by}, b.read(), "the job was changed")
				require.NoError(t, r.RemoveJob(j.ID()))
				require.Equal(t, []string{by, "", by, ""}, b.read(), "the job is gone")
				require.NoError(t, r.Shutdown())
				r, _, b = begin()
				require.NoError(t, r.StopJobs())
				require.Equal(t, []string{by, ""}, b.read(), "it is stopped")
				_, _, b = begin(scheduler.WithElection("jobs"))
				require.Equal(t, []string{by}, b.read())
				_, _, follower := begin(scheduler.WithElection("jobs"))
				require.Empty(t, follower.read())
				require.NoError(t, operator.Resign(t.Context(), "jobs", ""))
				time.Sleep(time.Second)
				require.Equal(t, []string{by, ""}, b.read(), "it has resigned")
				require.Equal(t, []string{by}, follower.read(), "it was elected")
				c.freeze()
				time.Sleep(4 * ttl)
				require.Equal(t, []string{by, ""}, follower.read(), "it leads no more")
				c.thaw()
			})
		})
	}
}

// A replica has no job of the old name any more after an update that gives it another.
func TestRenamedJobIsNotPausedUnderItsOldName(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		b := new(pauseBook)
		r := c.replica(b.option(), scheduler.WithLeaseOptions(redlock.WithIdentity("a")))
		var renamed []string
		j := r.add(t, tenSecondly, func() {})
		r.Start()
		c.setPause(jobKey, "ann")
		until(at(15))
		_, err := r.Update(j.ID(), tenSecondly, gocron.NewTask(func() { renamed = append(renamed, "ran") }), gocron.WithName("renamed"))
		require.NoError(t, err)
		until(at(25))
		require.Equal(t, []string{"ann", ""}, b.read())
		require.Len(t, renamed, 1)
	})
}
