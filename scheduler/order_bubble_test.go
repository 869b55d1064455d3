package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// operator is a Client of a process of its own.
func (c *cluster) operator(opts ...admin.Option) *admin.Client {
	c.t.Helper()
	q := open(c.t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithIdentity("operator"))
	a, err := admin.New(q, append([]admin.Option{admin.WithActor("ann"), admin.WithLogger(silent)}, opts...)...)
	require.NoError(c.t, err)
	return a
}

// backfill has past ticks of the job run, also if its replicas tell no operator of it.
func (c *cluster) backfill(q *redlock.Quorum, from, to time.Time) {
	c.t.Helper()
	card, ok := bulletin.Job{Job: "job", Key: jobKey, By: "a test"}.Card()
	require.True(c.t, ok)
	require.NoError(c.t, board.Of(q).Post(c.t.Context(), []bulletin.Card{card}))
	a, err := admin.New(q, admin.WithLogger(silent))
	require.NoError(c.t, err)
	_, err = a.Backfill(c.t.Context(), "job", from, to, "a test")
	require.NoError(c.t, err)
}

// give gives an order for a minute, unless it says otherwise, as an operator does.
func (r *replica) give(t *testing.T, o bulletin.Order) {
	t.Helper()
	o.By, o.Why = "ann", "a test"
	if o.Within == 0 {
		o.Within = time.Minute.Milliseconds()
	}
	e, ok := o.Entry()
	require.True(t, ok)
	require.NoError(t, board.Of(r.q).Post(t.Context(), nil, e))
}

// answers reads what came of an order.
func (r *replica) answers(t *testing.T, id string) (found []bulletin.Order) {
	t.Helper()
	entries, err := board.Of(r.q).Journal(t.Context(), bulletin.Orders, bulletin.MaxEntries)
	require.NoError(t, err)
	for _, e := range entries {
		if o, ok := bulletin.Parse[bulletin.Order](e.Text); ok && o.ID == id && o.Result != "" && o.Result != bulletin.Taken {
			found = append(found, o)
		}
	}
	return found
}

// An order to run is carried out once, however often it is heard and by how many, on the leader
// where there is one, also if the job is paused. While the run goes on another one is refused.
func TestOrderedRun(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.operator()
				for _, name := range []string{"a", "b", "c"} {
					c.named(name, mode.opts...).with(t, never, func() { time.Sleep(3 * time.Second) })
				}
				until(at(5))
				r := c.replicas[0]
				c.setPause(jobKey, "ann")
				stop := board.Of(r.q).Hear(bulletin.Orders, func(e bulletin.Entry) {
					if o, ok := bulletin.Parse[bulletin.Order](e.Text); ok && o.Result == "" {
						e.Journal, e.Most, e.Keep = bulletin.Orders, 100, time.Hour
						time.AfterFunc(4*time.Second, func() { _ = board.Of(r.q).Post(context.Background(), nil, e) })
					}
				})
				until(at(6))
				for i := range 3 {
					run, err := a.RunNow(t.Context(), "job", fmt.Sprint(i))
					require.NoError(t, err)
					_, err = a.RunNow(t.Context(), "job", "again")
					require.ErrorIs(t, err, admin.ErrRefused)
					require.Equal(t, "overlap", redlock.ErrorType(err))
					require.ErrorContains(t, err, "held by "+run.Replica)
					require.NoError(t, a.Wait(t.Context(), "job"))
					for _, of := range c.replicas {
						if mode.opts != nil && of.q.Identity() == run.Replica {
							require.NoError(t, of.Elector().IsLeader(t.Context()))
						}
					}
					runs, err := a.Runs(t.Context(), "job", 20)
					require.NoError(t, err)
					require.Len(t, runs, i+1)
					require.Equal(t, []any{run.Order, run.FencingToken, time.Time{}}, []any{runs[0].Order, runs[0].FencingToken, runs[0].Tick})
				}
				stop()
				time.Sleep(10 * time.Second)
				require.Len(t, c.book.ticks(), 3)
			})
		})
	}
}

// RunNow begins no run of a job whose last counted run has begun, on any replica, also before the
// job is removed. A counted run that is to be repeated is repeated.
func TestRunNowBeyondTheLimit(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		again := c.replica()
		again.add(t, tenSecondly, func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Attempt == 1 {
				panic("at first")
			}
		}, gocron.WithName("again"), gocron.WithLimitedRuns(1), within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce))
		again.Start()
		var jobs []gocron.Job
		for _, name := range []string{"a", "b"} {
			r := c.named(name)
			jobs = append(jobs, r.add(t, never, func() {}, gocron.WithLimitedRuns(2)))
			r.Start()
		}
		until(at(5))
		for _, j := range jobs {
			require.NoError(t, j.RunNow())
			time.Sleep(100 * time.Millisecond)
		}
		for _, j := range jobs {
			require.ErrorIs(t, j.RunNow(), gocron.ErrJobNotFound)
		}
		_, err := a.RunNow(t.Context(), "job", "once more")
		require.ErrorIs(t, err, admin.ErrRefused)
		require.Equal(t, "stopped", redlock.ErrorType(err))
		require.Len(t, c.book.ticks(), 2)
		until(at(25))
		require.Len(t, c.book.ticks(), 4)
	})
}

// What a replica cannot carry out, or must not, it does not claim.
func TestOrdersThatAreNotTaken(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r, deaf := c.named("a"), c.named("deaf", scheduler.WithTelling(scheduler.Telling{NoOrders: true}))
		r.add(t, never, func() {})
		r.add(t, never, func() {}, everywhere, gocron.WithName("everywhere"))
		gone := r.add(t, never, func() {}, gocron.WithName("gone"))
		deaf.add(t, never, func() {}, gocron.WithName("deaf"))
		leader, follower := c.named("leader", scheduler.WithElection("jobs")), c.named("follower", scheduler.WithElection("jobs"))
		leader.Start()
		until(at(3))
		follower.add(t, never, func() {}, gocron.WithName("follower's"))
		for _, of := range []*replica{r, deaf, follower} {
			of.Start()
		}
		require.NoError(t, r.RemoveJob(gone.ID()))
		until(at(6))
		require.NoError(t, orders.Claim(t.Context(), deaf.q, "given up"), "as the giver does")
		for id, o := range map[string]bulletin.Order{
			"given up": {Target: "job"}, "nothing": {Target: "nothing"}, "everywhere": {Target: "everywhere"}, "gone": {Target: "gone"}, "deaf": {Target: "deaf"},
			"follower's": {Target: "follower's"}, "cancel": {Target: "job", Kind: bulletin.Cancel, Number: 7}, "late": {Target: "job", Within: -1},
		} {
			if o.ID = id; o.Kind == "" {
				o.Kind = bulletin.RunNow
			}
			if o.Within < 0 { // as anybody may tell
				require.NoError(t, board.Of(r.q).Post(t.Context(), nil, bulletin.Entry{Journal: bulletin.Orders, Most: 400, Keep: time.Hour,
					Text: `{"v":1,"id":"late","kind":"run_now","target":"job","by":"x","within":-1}`}))
				continue
			}
			r.give(t, o)
		}
		until(at(9))
		require.NoError(t, r.StopJobs())
		r.give(t, bulletin.Order{ID: "stopped", Kind: bulletin.RunNow, Target: "job", Within: 1000})
		until(at(15))
		require.Empty(t, c.book.ticks())
		for _, id := range []string{"given up", "nothing", "everywhere", "gone", "deaf", "follower's", "cancel", "late", "stopped"} {
			require.Empty(t, r.answers(t, id), id)
			if id != "given up" {
				require.NoError(t, orders.Claim(t.Context(), deaf.q, id), id)
			}
		}
		r.Start()
		until(at(18))
		r.give(t, bulletin.Order{ID: "started", Kind: bulletin.RunNow, Target: "job"})
		until(at(20))
		require.Len(t, c.book.ticks(), 1)
	})
}

// An order that cannot be claimed is claimed again for as long as it is wanted, and no longer.
func TestOrderIsClaimedWhileItIsWanted(t *testing.T) {
	for name, test := range map[string]struct {
		within time.Duration
		runs   int
	}{"wanted": {time.Minute, 1}, "not wanted any more": {5 * time.Second, 0}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a").with(t, never, func() {})
				until(at(5))
				r.give(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job", Within: test.within.Milliseconds()})
				c.freeze()
				until(at(20))
				require.Empty(t, c.book.ticks())
				c.thaw()
				until(at(40))
				require.Len(t, c.book.ticks(), test.runs)
				require.Len(t, r.answers(t, "one"), test.runs)
			})
		})
	}
}

// A run is cancelled by its job and its token. Its task hears by whom and why, and it is complete,
// whatever becomes of it.
func TestCancelledRun(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *cluster, ctx context.Context) error{
		"returns its context's error": func(_ *testing.T, _ *cluster, ctx context.Context) error { return ctx.Err() },
		"returns nil":                 func(*testing.T, *cluster, context.Context) error { return nil },
		"panics":                      func(_ *testing.T, _ *cluster, ctx context.Context) error { panic(context.Cause(ctx)) },
		"loses its lease": func(_ *testing.T, c *cluster, ctx context.Context) error {
			c.freeze()
			time.Sleep(2 * ttl)
			c.thaw()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				log, a := new(journal), c.operator()
				r := c.named("a", scheduler.WithLogger(log.logger()), jobOptions(within(time.Hour, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce)))
				causes := make(chan error, 10)
				r.add(t, tenSecondly, func(ctx context.Context) error {
					if run, _ := scheduler.RunFromContext(ctx); !run.Due.Equal(at(10)) {
						return nil
					}
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return end(t, c, ctx)
				})
				r.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, 9*time.Second) }, gocron.WithName("other"))
				r.Start()
				until(at(11))
				run, err := a.Running(t.Context(), "job")
				require.NoError(t, err)
				for i, o := range []bulletin.Order{{Target: "job", Number: run.FencingToken + 100}, {Target: "job"}, {Target: "other", Number: run.FencingToken + 100}} {
					o.ID, o.Kind = fmt.Sprint(i), bulletin.Cancel
					r.give(t, o)
				}
				until(at(13))
				require.Empty(t, causes)
				require.NoError(t, a.Cancel(t.Context(), run.ID(), "too slow"))
				cause := <-causes
				var cancelled *scheduler.CancelledError
				require.ErrorAs(t, cause, &cancelled)
				require.ErrorIs(t, cause, scheduler.ErrCancelled)
				require.Equal(t, scheduler.CancelledError{Job: "job", By: "ann", Why: "too slow"}, *cancelled)
				require.EqualError(t, cause, `scheduler: the run of job "job" was cancelled by ann: too slow`)
				require.Equal(t, "cancelled", redlock.ErrorType(cause))
				require.Len(t, log.lines("an operator cancels a run"), 1)
				until(at(35))
				require.ErrorIs(t, a.Cancel(t.Context(), run.ID(), "again"), admin.ErrNotRunning)
				for i := range c.book.ticks() {
					run, _ := c.book.run(i)
					require.True(t, run.Attempt == 1 || run.Job == "other", "it is not repeated")
				}
				require.Empty(t, causes)
				if name == "loses its lease" {
					return
				}
				runs, err := a.Runs(t.Context(), "job", 20)
				require.NoError(t, err)
				require.Len(t, runs, 3)
				require.Equal(t, []admin.Outcome{admin.OutcomeOK, admin.OutcomeCancelled}, []admin.Outcome{runs[1].Outcome, runs[2].Outcome})
			})
		})
	}
}

// A run whose task has returned, and whose lease is about to be released, ended as it did: an order
// to cancel it is refused.
func TestCancelOfARunThatHasReturned(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.named("a").with(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.AfterJobRuns(func(uuid.UUID, string) { time.Sleep(3 * time.Second) })))
		until(at(11))
		run, _ := c.book.run(0)
		err := c.operator().Cancel(t.Context(), admin.RunID{Job: "job", FencingToken: run.FencingToken()}, "")
		require.ErrorIs(t, err, admin.ErrNotRunning)
		var refused *admin.OrderError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "a", refused.By, "its lease goes on for a moment")
		until(at(18))
		runs, err := c.operator().Runs(t.Context(), "job", 1)
		require.NoError(t, err)
		require.Equal(t, admin.OutcomeOK, runs[0].Outcome)
	})
}

// A replica whose clock is ahead leaves orders to others.
func TestReplicaWhoseClockIsAheadTakesNoOrder(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		for name, by := range map[string]time.Duration{"ahead": time.Minute, "right": 0} {
			c.named(name, ahead(by)).with(t, never, func() {})
		}
		until(at(5))
		for range 10 {
			run, err := a.RunNow(t.Context(), "job", "a test")
			require.NoError(t, err)
			require.Equal(t, "right", run.Replica)
			time.Sleep(time.Second)
		}
	})
}

// A replica without a place leaves orders to one that has.
func TestReplicaWithoutAPlaceTakesNoOrder(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		for range 2 {
			r := c.replica(scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait)))
			r.add(t, never, func() {})
			r.add(t, minutely, func(ctx context.Context) { nap(ctx, time.Minute) }, gocron.WithName("long"))
			r.Start()
		}
		until(at(61))
		for range 10 {
			_, err := a.RunNow(t.Context(), "job", "a test")
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
	})
}

// A replica that takes the lease to write something, and finds a tick due, runs it under a lease
// that says so: operators see the run.
func TestRunAfterAWriteIsSeen(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() *replica {
			return c.runs(gocron.DurationJob(time.Second/2), func() { time.Sleep(2 * time.Second) }, quiet, jobOptions(gocron.WithIntervalFromCompletion()))
		}
		first := start()
		until(at(2))
		start()
		until(at(3).Add(time.Second / 4))
		c.stop(first)
		until(at(6))
		_, err := c.operator().Running(t.Context(), "job")
		require.NoError(t, err)
	})
}
