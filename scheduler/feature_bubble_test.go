package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/backfill"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// runs reads the history of a job, the newest first.
func (r *replica) runs(t *testing.T, job string) (runs []bulletin.Run) {
	t.Helper()
	entries, err := r.q.Board().Journal(t.Context(), bulletin.Runs+"/"+scheduler.KeyPrefix+job, 20)
	require.NoError(t, err)
	for _, e := range entries {
		run, ok := bulletin.ParseRun(e.Text)
		require.True(t, ok)
		runs = append(runs, run)
	}
	return runs
}

// A run that fails is called again within its lease. gocron hears of one run, a tracer of each
// attempt, and the history of the last.
func TestRetry(t *testing.T) {
	for _, test := range []struct {
		name     string
		fails    int64 // attempts that do
		attempts int
		outcome  string
	}{{"in the end it succeeds", 2, 3, bulletin.OK}, {"it never does", 9, 4, bulletin.Failed}} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var n, good, bad atomic.Int64
				r := c.replica()
				r.add(t, minutely, func(ctx context.Context) error {
					run, _ := scheduler.RunFromContext(ctx)
					require.Equal(t, n.Add(1), int64(run.Attempt))
					run.Report(fmt.Sprint("attempt ", run.Attempt))
					switch {
					case n.Load() > test.fails:
						return nil
					case n.Load() == 1:
						panic("at first")
					}
					return errors.New("not yet")
				}, scheduler.WithRetry(3, time.Second), gocron.WithEventListeners(
					gocron.AfterJobRuns(func(uuid.UUID, string) { good.Add(1) }), gocron.AfterJobRunsWithError(func(uuid.UUID, string, error) { bad.Add(1) })))
				r.Start()
				until(day(1, 0, 1, 30))
				require.Len(t, c.book.ticks(), test.attempts)
				for i, pause := range []time.Duration{0, 1, 3, 7}[:test.attempts] {
					_, began := c.book.run(i)
					require.WithinDuration(t, day(1, 0, 1, 0).Add(pause*time.Second), began, 50*time.Millisecond)
				}
				require.EqualValues(t, 1, good.Load()+bad.Load())
				require.Equal(t, test.outcome == bulletin.OK, good.Load() == 1)
				told := r.runs(t, "job")
				require.Len(t, told, 1)
				require.Equal(t, test.outcome, told[0].Outcome)
				require.Equal(t, test.attempts, told[0].Attempt)
				require.Equal(t, fmt.Sprint("attempt ", test.attempts), told[0].Report)
				require.Equal(t, "on_time", told[0].Why)
			})
		})
	}
}

// A replica that is killed does not begin the count of attempts anew.
func TestAttemptsOfAKilledReplicaCount(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		fails := func(ctx context.Context) error { return errors.New("always") }
		opts := []scheduler.Option{quiet, jobOptions(scheduler.WithRetry(5, 2*time.Second), within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce))}
		first := c.replica(opts...)
		first.add(t, minutely, fails)
		first.Start()
		until(day(1, 0, 1, 3)) // after two attempts
		require.Len(t, c.book.ticks(), 2)
		c.kill(first)
		second := c.replica(opts...)
		second.add(t, minutely, fails)
		second.Start()
		until(day(1, 0, 1, 12))
		run, _ := c.book.run(2)
		require.True(t, run.Due.Equal(day(1, 0, 1, 0)))
		require.Equal(t, 3, run.Attempt)
	})
}

// A job that has not succeeded for too long is overdue, from when it was made or from its last
// success on. A replica that does not lead does not know.
func TestSucceedWithin(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var fails atomic.Bool
		var mu sync.Mutex
		logs := make(map[string]scheduler.LogTrace)
		replicas := make([]*replica, 2)
		for i := range replicas {
			name := fmt.Sprint("replica ", i)
			replicas[i] = c.named(name, quiet, scheduler.WithElection("jobs"), scheduler.WithTracer(&scheduler.Tracer{Log: func(_ context.Context, data scheduler.LogTrace) {
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
		log := func(name string) scheduler.LogTrace { mu.Lock(); defer mu.Unlock(); return logs[name] }
		until(day(1, 0, 1, 30))
		require.Empty(t, leader.Overdue())
		require.True(t, log("replica 0").Next.Equal(day(1, 0, 2, 0)))
		require.WithinDuration(t, day(1, 0, 1, 0), log("replica 0").Succeeded, time.Second)
		fails.Store(true)
		until(day(1, 0, 3, 59))
		require.Empty(t, leader.Overdue())
		until(day(1, 0, 5, 30))
		require.Equal(t, []string{"job"}, leader.Overdue())
		require.True(t, log("replica 0").OverdueAt.Before(time.Now()))
		require.Empty(t, follower.Overdue())
		require.Zero(t, log("replica 1"))
		fails.Store(false)
		until(day(1, 0, 6, 30))
		require.Empty(t, leader.Overdue())
		require.True(t, log("replica 0").OverdueAt.After(time.Now()))
		c.stop(leader)
		until(day(1, 0, 8, 30))
		require.Equal(t, scheduler.LogTrace{Job: "job"}, log("replica 0"), "who does not run the job knows nothing of it")
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
				var replicas []*replica
				for range 3 {
					r := c.replica(quiet)
					r.add(t, test.of, func() { time.Sleep(3 * time.Second) }, test.opts...)
					r.Start()
					replicas = append(replicas, r)
				}
				until(day(1, 0, 2, 0))
				for n := len(c.book.ticks()); len(c.book.ticks()) == n; {
					time.Sleep(100 * time.Millisecond)
				}
				run, _ := c.book.run(len(c.book.ticks()) - 1)
				for _, r := range replicas {
					if r.q.Identity() == run.Lease().Identity() {
						c.kill(r)
					}
				}
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
		var replicas []*replica
		until(day(1, 0, 0, 30))
		for range 2 {
			r := c.replica()
			r.add(t, gocron.CronJob("*/10 * * * *", false), func(ctx context.Context) error {
				select {
				case <-time.After(20 * time.Second):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}, within(time.Hour, scheduler.CatchUpAll))
			r.Start()
			replicas = append(replicas, r)
		}
		until(day(1, 0, 9, 0))
		q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption))
		_, err := backfill.Set(t.Context(), q, scheduler.KeyPrefix+"job", day(0, 23, 0, 0), day(0, 23, 30, 0))
		require.NoError(t, err)
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
		_, err = backfill.Set(t.Context(), q, scheduler.KeyPrefix+"job", day(0, 1, 0, 0), day(0, 3, 30, 0))
		require.NoError(t, err)
		until(day(1, 0, 14, 0))
		last, _ := c.book.run(len(c.book.ticks()) - 1)
		for _, r := range replicas {
			if r.q.Identity() == last.Lease().Identity() {
				require.True(t, r.order(t, bulletin.Order{Kind: bulletin.Cancel, Target: "job", Number: last.FencingToken()}).Result == bulletin.Done)
			}
		}
		n := len(c.book.ticks())
		until(day(1, 0, 19, 50))
		require.Len(t, c.book.ticks(), n)
		until(day(1, 0, 21, 0))
		require.Equal(t, "00:20", c.book.texts("15:04")[n])
	})
}

// order gives an order and returns its answer.
func (r *replica) order(t *testing.T, o bulletin.Order) bulletin.Order {
	t.Helper()
	o.ID, o.By, o.Within = fmt.Sprint("order-", o.Kind, time.Now().UnixNano()), "ann", 5000
	answered := make(chan bulletin.Order, 10)
	unhear, err := r.q.Board().Hear(bulletin.Orders, func(e redlock.Entry) {
		if a, ok := bulletin.ParseOrder(e.Text); ok && a.ID == o.ID && a.Result != "" && a.Result != bulletin.Taken {
			answered <- a
		}
	})
	require.NoError(t, err)
	defer unhear()
	time.Sleep(time.Second)
	e, ok := o.Entry()
	require.True(t, ok)
	_, err = r.q.Board().Post(t.Context(), nil, []redlock.Entry{e})
	require.NoError(t, err)
	select {
	case a := <-answered:
		return a
	case <-time.After(6 * time.Second):
		return bulletin.Order{}
	}
}

// An order is carried out by one replica, and answered; the history tells which order a run is of.
func TestOrders(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var replicas []*replica
		for range 3 {
			r := c.replica()
			r.add(t, gocron.CronJob("30 12 * * *", false), func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
			r.Start()
			replicas = append(replicas, r)
		}
		time.Sleep(10 * time.Second)
		a := replicas[0].order(t, bulletin.Order{Kind: bulletin.RunNow, Target: "job"})
		require.Equal(t, bulletin.Done, a.Result)
		require.Len(t, c.book.ticks(), 1)
		run, _ := c.book.run(0)
		require.Equal(t, "ordered", run.Why)
		require.Equal(t, run.FencingToken(), a.Run.Token)
		again := replicas[1].order(t, bulletin.Order{Kind: bulletin.RunNow, Target: "job"})
		require.Equal(t, bulletin.Refused, again.Result)
		require.Equal(t, string(scheduler.SkipOverlap), again.Detail)
		require.Equal(t, bulletin.Done, replicas[2].order(t, bulletin.Order{Kind: bulletin.Cancel, Target: "job", Number: a.Run.Token}).Result)
		time.Sleep(time.Second)
		require.ErrorIs(t, c.book.ends[0].Err, scheduler.ErrCancelled)
		require.Empty(t, replicas[0].order(t, bulletin.Order{Kind: bulletin.Cancel, Target: "job", Number: a.Run.Token}).Result, "nobody runs it")
		require.Len(t, c.book.ticks(), 1)
		told := replicas[0].runs(t, "job")
		require.Len(t, told, 1)
		require.Equal(t, a.ID, told[0].Order)
		require.Equal(t, bulletin.Cancelled, told[0].Outcome)
		require.Zero(t, told[0].Tick)
	})
}

// What admin reads of a job: its card, how its runs ended, and which ticks were not run.
func TestCardsAndHistory(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var fails atomic.Bool
		start := func() *replica {
			r := c.replica()
			r.add(t, minutely, func(ctx context.Context) error {
				run, _ := scheduler.RunFromContext(ctx)
				run.Report("12 invoices")
				if fails.Load() {
					return errors.New("secret")
				}
				<-time.After(10 * time.Second)
				return ctx.Err()
			})
			r.Start()
			return r
		}
		first := start()
		until(day(1, 0, 1, 30))
		cards, _, err := first.q.Board().Cards(t.Context(), bulletin.Jobs, "", 10)
		require.NoError(t, err)
		require.Len(t, cards, 1)
		card, ok := bulletin.ParseJob(cards[0].Text)
		require.True(t, ok)
		require.Equal(t, "job", card.Job)
		require.Equal(t, scheduler.KeyPrefix+"job", card.Key)
		require.Equal(t, "UTC", card.Zone)
		require.Equal(t, day(1, 0, 2, 0).UnixMilli(), card.Next)
		require.Equal(t, []string{"none", "skip", "at most once"}, []string{card.CatchUp, card.Overlap, card.Delivery})
		require.True(t, card.Orders)
		fails.Store(true)
		until(day(1, 0, 2, 30))
		told := first.runs(t, "job")
		require.Len(t, told, 2)
		require.Equal(t, []string{bulletin.Failed, bulletin.OK}, []string{told[0].Outcome, told[1].Outcome})
		require.Equal(t, "12 invoices", told[1].Report)
		require.Equal(t, "*errors.errorString", told[0].Error)
		require.Equal(t, (10 * time.Second).Microseconds(), told[1].Took)
		fails.Store(false)
		until(day(1, 0, 3, 5))
		c.kill(first)
		second := start()
		until(day(1, 0, 4, 30))
		entries, err := second.q.Board().Journal(t.Context(), bulletin.Skips+"/"+scheduler.KeyPrefix+"job", 20)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		skip, ok := bulletin.ParseSkip(entries[0].Text)
		require.True(t, ok)
		require.Equal(t, string(scheduler.SkipCutShort), skip.Reason)
		require.Equal(t, day(1, 0, 3, 0).UnixMilli(), skip.Tick)
		require.Equal(t, first.q.Identity(), skip.Holder)
	})
}

// heard is what gocron's monitors hear.
type heard struct {
	gocron.SchedulerMonitor
	mu     sync.Mutex
	events []string
}

func (h *heard) add(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, what)
}

func (h *heard) IncrementJob(_ uuid.UUID, name string, _ []string, s gocron.JobStatus) {
	h.add(fmt.Sprint(name, " ", s))
}

func (h *heard) RecordJobTimingWithStatus(began, ended time.Time, _ uuid.UUID, _ string, _ []string, s gocron.JobStatus, err error) {
	h.add(fmt.Sprint("took ", ended.Sub(began), " ", s, " ", err))
}
func (h *heard) RecordJobTiming(time.Time, time.Time, uuid.UUID, string, []string) {}

func (h *heard) SchedulerStarted()                 { h.add("started") }
func (h *heard) SchedulerStopped()                 { h.add("stopped") }
func (h *heard) SchedulerShutdown()                {}
func (h *heard) JobRegistered(j gocron.Job)        { h.add("registered " + j.Name()) }
func (h *heard) JobUnregistered(j gocron.Job)      { h.add("unregistered " + j.Name()) }
func (h *heard) JobStarted(gocron.Job)             { h.add("begun") }
func (h *heard) JobRunning(gocron.Job)             {}
func (h *heard) JobFailed(_ gocron.Job, err error) { h.add(fmt.Sprint("failed ", err)) }
func (h *heard) JobCompleted(gocron.Job)           { h.add("completed") }
func (h *heard) JobExecutionTime(_ gocron.Job, took time.Duration) {
	h.add(fmt.Sprint("within ", took))
}
func (h *heard) JobSchedulingDelay(_ gocron.Job, due, _ time.Time) {
	h.add("due " + due.Format("04:05"))
}
func (h *heard) ConcurrencyLimitReached(string, gocron.Job) {}

// gocron's monitors hear of runs as they do of gocron's own.
func TestMonitorsHearRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var of, all heard
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithMonitor(&of), gocron.WithMonitorStatus(&of), gocron.WithSchedulerMonitor(&all)))
		n := 0
		j := r.add(t, minutely, func() error {
			time.Sleep(2 * time.Second)
			if n++; n == 2 {
				return errors.New("second")
			}
			return nil
		})
		r.Start()
		until(day(1, 0, 2, 30))
		require.Equal(t, []string{"job success", "took 2s success <nil>", "job fail", "took 2s fail second"}, of.events)
		require.NoError(t, r.RemoveJob(j.ID()))
		require.NoError(t, r.StopJobs())
		synctest.Wait()
		require.Subset(t, all.events, []string{"registered job", "started", "begun", "due 01:00", "within 2s", "completed", "due 02:00", "failed second", "unregistered job", "stopped"})
	})
}
