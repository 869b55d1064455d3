//go:build long

package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/backfill"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Where two mechanisms meet.

// A tick grows older also while gocron is busy, or the nodes take their time with the grant.
func TestTickGrowsOldBehindAGrant(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithSchedulerMonitor(busy(20*time.Second))))
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
		q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption))
		until(day(1, 0, 0, 30))
		_, _, err := pause.Set(t.Context(), q, jobKey, pause.Pause{By: "ann"})
		require.NoError(t, err)
		require.NoError(t, j.RunNow())
		until(day(1, 0, 4, 30))
		require.Len(t, c.book.ended(), 2)
		for _, e := range c.book.ended() {
			require.NoError(t, e.Err, e.Run.Job)
		}
	})
}

// A run is ended for the next tick also if the nodes are out of reach just then.
func TestOverlapCancelInAnOutage(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quorum = []redlock.Option{redlock.WithTTL(time.Minute)}
		r := c.replica(quiet, jobOptions(scheduler.WithOverlap(scheduler.OverlapCancel)))
		r.add(t, minutely, func(ctx context.Context) { nap(ctx, time.Hour) })
		r.Start()
		until(day(1, 0, 1, 58))
		c.freeze()
		until(day(1, 0, 2, 15))
		require.Len(t, c.book.ticks(), 1)
		c.thaw()
		until(day(1, 0, 2, 45))
		require.Len(t, c.book.ticks(), 2)
	})
}

// Nodes that all came back with an older record know less than this replica remembers.
func TestNodesThatWereRestoredFromABackup(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet)
		r.add(t, tenSecondly, func() {}, within(time.Hour, scheduler.CatchUpAll))
		r.Start()
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
		r := c.replica(quiet)
		r.add(t, minutely, func() {}, gocron.WithStopAt(gocron.WithStopDateTime(day(1, 0, 3, 30))))
		r.Start()
		q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption))
		until(day(1, 0, 2, 30))
		_, _, err := pause.Set(t.Context(), q, jobKey, pause.Pause{By: "ann"})
		require.NoError(t, err)
		_, err = backfill.Set(t.Context(), q, jobKey, day(0, 22, 0, 0), day(0, 22, 1, 0))
		require.NoError(t, err)
		until(day(1, 0, 5, 0))
		require.Len(t, r.Jobs(), 1)
		_, _, err = pause.Resume(t.Context(), q, jobKey, "ann", "")
		require.NoError(t, err)
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
		r := c.replica(quiet)
		r.add(t, gocron.CronJob("0 * * * *", false), func() error { return errors.New("not yet") }, scheduler.WithRetry(2, 5*time.Minute))
		r.Start()
		until(day(1, 1, 30, 0))
		require.Equal(t, []time.Duration{5 * time.Minute, 5 * time.Minute}, c.book.distances())
	})
}

// How a run ended is written for as long as its lease lives.
func TestEndInAnOutage(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quorum = []redlock.Option{redlock.WithTTL(time.Minute)}
		r := c.replica(quiet, jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
		r.add(t, gocron.CronJob("1 * * * *", false), func() { time.Sleep(10 * time.Second) })
		r.Start()
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
		first := c.replica(quiet, queue)
		first.add(t, minutely, func(ctx context.Context) error { nap(ctx, 90*time.Second); return ctx.Err() })
		first.Start()
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
	busy
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
		r := c.replica(quiet, jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
		r.add(t, gocron.CronJob("0 * * * *", false), func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Due.Equal(day(0, 21, 0, 0)) {
				panic("always")
			}
		})
		r.Start()
		time.Sleep(time.Second)
		_, err := backfill.Set(t.Context(), r.q, jobKey, day(0, 20, 0, 0), day(0, 22, 0, 0))
		require.NoError(t, err)
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
		r := c.replica(quiet, scheduler.WithTracer(tracer), jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
		r.add(t, minutely, func() { ran.Add(1) })
		r.Start()
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
