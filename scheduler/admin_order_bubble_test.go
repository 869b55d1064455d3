package scheduler_test

import (
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
