package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// order gives an order, which is taken for a minute unless it says otherwise.
func (r *replica) order(t *testing.T, o bulletin.Order) {
	t.Helper()
	o.By, o.Why = "Ann", "a test"
	if o.Within == 0 {
		o.Within = time.Minute.Milliseconds()
	}
	e, ok := o.Entry()
	require.True(t, ok)
	_, err := r.q.Board().Post(t.Context(), nil, []redlock.Entry{e})
	require.NoError(t, err)
}

// tell writes into the journal of orders, as anybody may.
func (r *replica) tell(t *testing.T, text string) {
	t.Helper()
	_, err := r.q.Board().Post(t.Context(), nil, []redlock.Entry{{Journal: bulletin.Orders, Text: text, Most: 400, Keep: time.Hour}})
	require.NoError(t, err)
}

// answers reads what came of an order, the newest first.
func (r *replica) answers(t *testing.T, id string) (found []bulletin.Order) {
	t.Helper()
	entries, err := r.q.Board().Journal(t.Context(), bulletin.Orders, redlock.MaxEntries)
	require.NoError(t, err)
	for _, e := range entries {
		if o, ok := bulletin.ParseOrder(e.Text); ok && o.ID == id && o.Result != "" && o.Result != bulletin.Taken {
			found = append(found, o)
		}
	}
	return found
}

// unclaimed requires that nobody has claimed an order.
func (r *replica) unclaimed(t *testing.T, id string) {
	t.Helper()
	s, err := r.q.Sequence(t.Context(), "order/"+id)
	require.NoError(t, err)
	require.Zero(t, s.Completed)
}

// A replica without orders hears none.
func TestWithoutOrders(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithoutOrders())
		r.add(t, never, func() {})
		r.Start()
		until(5 * time.Second)
		r.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
		until(15 * time.Second)
		require.Empty(t, c.book.ticks())
		r.unclaimed(t, "one")
		require.False(t, r.definitions(t)["job"].Orders)
	})
}

// An order that is wanted for no time is nobody's, neither to run nor to cancel.
func TestOrderForNoTimeIsNotTaken(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		ended := false
		r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(3))), func(ctx context.Context) {
			select {
			case <-ctx.Done():
				ended = true
			case <-time.After(10 * time.Second):
			}
		})
		_, err := r.NewJob(never, scheduler.NewTask(func() {}), gocron.WithName("idle"))
		require.NoError(t, err)
		r.Start()
		until(5 * time.Second)
		run, _ := c.book.run(0)
		for i, within := range []int64{0, -1} {
			r.tell(t, fmt.Sprintf(`{"v":1,"id":"run%d","kind":"run_now","target":"idle","by":"x","within":%d}`, i, within))
			r.tell(t, fmt.Sprintf(`{"v":1,"id":"cancel%d","kind":"cancel","target":"job","number":%d,"by":"x","within":%d}`, i, run.FencingToken(), within))
		}
		until(10 * time.Second)
		require.Len(t, c.book.ticks(), 1)
		require.False(t, ended)
		for i := range 2 {
			r.unclaimed(t, fmt.Sprintf("run%d", i))
			require.Empty(t, r.answers(t, fmt.Sprintf("run%d", i)))
			require.Empty(t, r.answers(t, fmt.Sprintf("cancel%d", i)))
		}
	})
}

// A Scheduler whose jobs are stopped takes no order, and takes them again when it is started.
func TestStoppedSchedulerTakesNoOrder(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, never, func() {})
		r.Start()
		until(3 * time.Second)
		require.NoError(t, r.StopJobs())
		r.order(t, bulletin.Order{ID: "stopped", Kind: bulletin.RunNow, Target: "job", Within: 1000})
		until(8 * time.Second)
		r.unclaimed(t, "stopped")
		require.Empty(t, c.book.ticks())
		r.Start()
		until(10 * time.Second)
		r.order(t, bulletin.Order{ID: "started", Kind: bulletin.RunNow, Target: "job"})
		until(12 * time.Second)
		require.Len(t, c.book.ticks(), 1)
	})
}

// A stop ends orders that are carried out, in bounded time, also where no quorum answers.
func TestStopWhileAnOrderIsCarriedOut(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithTryTimeout(20*time.Second))
		r.add(t, never, func() {})
		r.Start()
		until(5 * time.Second)
		r.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
		c.freeze(0, 1, 2)
		time.Sleep(2 * time.Second)
		began := time.Now()
		require.NoError(t, r.StopJobs())
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
		c.thaw(0, 1, 2)
	})
}

// A Scheduler that is shut down while orders come, and are carried out without a quorum, ends in
// bounded time, takes none after that, and leaves no goroutine behind.
func TestShutdownWhileOrdersCome(t *testing.T) {
	alone(t, func(t *testing.T, c *cluster) {
		r, giver := c.named("a", scheduler.WithTryTimeout(20*time.Second)), c.named("giver")
		r.add(t, never, func(ctx context.Context) { <-ctx.Done() })
		r.Start()
		until(5 * time.Second)
		giver.order(t, bulletin.Order{ID: "nobody's", Kind: bulletin.RunNow, Target: "nothing"})
		until(6 * time.Second)
		before := runtime.NumGoroutine()
		for i := range 100 {
			giver.order(t, bulletin.Order{ID: fmt.Sprint(i), Kind: bulletin.RunNow, Target: "job"})
			if i == 50 {
				c.freeze(0, 1, 2)
			}
		}
		began := time.Now()
		require.NoError(t, r.Shutdown())
		require.LessOrEqual(t, time.Since(began), 10*time.Second)
		c.thaw(0, 1, 2)
		pass(10 * time.Second)
		ran := len(c.book.ticks())
		giver.order(t, bulletin.Order{ID: "late", Kind: bulletin.RunNow, Target: "job"})
		pass(10 * time.Second)
		require.Len(t, c.book.ticks(), ran)
		giver.unclaimed(t, "late")
		require.LessOrEqual(t, runtime.NumGoroutine(), before)
	})
}
