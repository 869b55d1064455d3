package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// What nobody may run is claimed by nobody, and what is claimed by another is run by nobody.
func TestOrdersThatNobodyTakes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator(admin.WithOrderTimeout(3 * time.Second))
		r := c.named("a", scheduler.WithElection("jobs"))
		r.add(t, gocron.CronJob("0 0 1 1 *", false), func() {})
		deaf := c.named("b", scheduler.WithoutOrders())
		_, err := deaf.NewJob(gocron.CronJob("0 0 1 1 *", false), scheduler.NewTask(func() {}), gocron.WithName("deaf"))
		require.NoError(t, err)
		r.Start()
		deaf.Start()
		until(5 * time.Second)
		_, err = a.RunNow(t.Context(), "no such job", "")
		require.ErrorIs(t, err, admin.ErrNobody)
		require.Equal(t, "no_replica", redlock.ErrorType(err))
		_, err = a.RunNow(t.Context(), "deaf", "")
		require.ErrorIs(t, err, admin.ErrNobody)
		require.Equal(t, "no_orders", redlock.ErrorType(err))

		claimed := bulletin.Order{ID: orders.NewID(), Kind: bulletin.RunNow, Target: "job", By: "x", Within: 3000}
		require.NoError(t, orders.Claim(t.Context(), deaf.q, claimed.ID))
		e, _ := claimed.Entry()
		_, err = deaf.q.Board().Post(t.Context(), nil, []redlock.Entry{e})
		require.NoError(t, err)
		pass(10 * time.Second)
		require.Empty(t, c.book.ticks())

		// Its leader has gone.
		require.NoError(t, r.StopJobs())
		_, err = a.RunNow(t.Context(), "job", "")
		require.ErrorIs(t, err, admin.ErrNobody)
		require.Equal(t, "no_leader", redlock.ErrorType(err))
		time.Sleep(time.Second)
		r.Start()
		pass(10 * time.Second)
		require.Empty(t, c.book.ticks(), "it is nobody's any more")
	})
}

// A run that is cancelled ends, is told so, and is not repeated; no other is.
func TestCancelledRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		log := new(journal)
		r := c.named("a", scheduler.WithDelivery(redlock.AtLeastOnce), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll), scheduler.WithLogger(log.logger()))
		causes := make(chan error, 10)
		r.add(t, gocron.CronJob("0 * * * * *", true), func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				causes <- context.Cause(ctx)
				return ctx.Err()
			case <-time.After(20 * time.Second):
				return nil
			}
		})
		r.Start()
		until(65 * time.Second)
		run, err := a.Running(t.Context(), "job")
		require.NoError(t, err)
		other := run.ID()
		other.FencingToken--
		require.ErrorIs(t, a.Cancel(t.Context(), other, "wrong"), admin.ErrNotRunning)
		e, _ := bulletin.Order{ID: "x", Kind: bulletin.Cancel, Target: "job", Number: other.FencingToken, By: "x", Within: 1000}.Entry()
		_, err = r.q.Board().Post(t.Context(), nil, []redlock.Entry{e})
		require.NoError(t, err)
		pass(time.Second)
		require.Empty(t, causes)
		require.NoError(t, a.Cancel(t.Context(), run.ID(), "too slow"))
		require.NoError(t, a.Wait(t.Context(), "job"))
		require.Len(t, causes, 1)
		var cancelled *scheduler.CancelledError
		cause := <-causes
		require.ErrorAs(t, cause, &cancelled)
		require.ErrorIs(t, cause, scheduler.ErrCancelled)
		require.Equal(t, scheduler.CancelledError{Job: "job", By: "ann", Why: "too slow"}, *cancelled)
		require.EqualError(t, cancelled, `scheduler: the run of job "job" was cancelled by ann: too slow`)
		require.Equal(t, "cancelled", redlock.ErrorType(cancelled))
		require.Len(t, log.lines(`an operator cancels a run`), 1)
		require.ErrorIs(t, a.Cancel(t.Context(), run.ID(), "again"), admin.ErrNotRunning)
		until(170 * time.Second)
		runs, err := a.Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		require.Len(t, runs, 2, "it was not repeated")
		require.Equal(t, admin.OutcomeCancelled, runs[1].Outcome)
		require.Equal(t, admin.OutcomeOK, runs[0].Outcome)
	})
}
