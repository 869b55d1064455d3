package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
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

// An order to run is carried out once, however often it is heard and by how many.
func TestOrderToRunIsCarriedOutOnce(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var replicas []*replica
				for _, name := range []string{"a", "b", "c"} {
					r := c.named(name, mode.opts...)
					r.add(t, never, func() { time.Sleep(100 * time.Millisecond) })
					r.Start()
					replicas = append(replicas, r)
					time.Sleep(time.Second)
				}
				until(10 * time.Second)
				for i := range 5 {
					replicas[i%3].order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				}
				until(20 * time.Second)
				require.Len(t, c.book.ticks(), 1)
				run, _ := c.book.run(0)
				require.True(t, run.Tick.IsZero())
				answers := replicas[0].answers(t, "one")
				require.NotEmpty(t, answers)
				require.Equal(t, bulletin.Done, answers[0].Result)
				require.Equal(t, run.FencingToken(), answers[0].Run.Token)
				require.Equal(t, run.Lease().Identity(), answers[0].Run.By)
				require.NotZero(t, answers[0].Run.Began)
				runs := replicas[0].runsTold(t)
				require.Len(t, runs, 1)
				require.Equal(t, "one", runs[0].Order)
				require.Zero(t, runs[0].Tick)
				if mode.opts != nil {
					require.Equal(t, "a", runs[0].By, "it leads")
				}
			})
		})
	}
}

// An order to run a job of which a run goes on is refused, and the answer names who runs it; a
// paused job is run.
func TestOrderToRunIsRefusedWhileARunGoesOn(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, never, func() { time.Sleep(5 * time.Second) })
		r.Start()
		until(5 * time.Second)
		_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{})
		require.NoError(t, err)
		began := len(c.book.ticks())
		r.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
		pass(time.Second)
		require.Len(t, c.book.ticks(), began+1)
		r.order(t, bulletin.Order{ID: "two", Kind: bulletin.RunNow, Target: "job"})
		pass(time.Second)
		answers := r.answers(t, "two")
		require.Len(t, answers, 1)
		require.Equal(t, bulletin.Refused, answers[0].Result)
		require.Equal(t, string(scheduler.SkipOverlap), answers[0].Detail)
		require.Equal(t, "a", answers[0].Run.By)
		require.Len(t, c.book.ticks(), began+1)
	})
}

// What a replica cannot carry out it does not claim.
func TestOrderForNobodyIsNotClaimed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		leader, follower := c.named("leader", scheduler.WithElection("jobs")), c.named("follower", scheduler.WithElection("jobs"))
		leader.Start()
		until(5 * time.Second)
		follower.add(t, never, func() {})
		follower.Start()
		until(10 * time.Second)
		leader.order(t, bulletin.Order{ID: "unknown", Kind: bulletin.RunNow, Target: "nothing"})
		leader.order(t, bulletin.Order{ID: "follower's", Kind: bulletin.RunNow, Target: "job"})
		until(20 * time.Second)
		require.Empty(t, c.book.ticks())
		for _, id := range []string{"unknown", "follower's"} {
			leader.unclaimed(t, id)
			require.Empty(t, leader.answers(t, id))
		}
	})
}

// An order that its giver has given up is carried out by nobody.
func TestOrderThatItsGiverClaimed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r, giver := c.named("a"), c.named("giver")
		r.add(t, never, func() {})
		r.Start()
		until(5 * time.Second)
		require.NoError(t, orders.Claim(t.Context(), giver.q, "one"))
		giver.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
		until(15 * time.Second)
		require.Empty(t, c.book.ticks())
		require.Empty(t, r.answers(t, "one"))
	})
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

// A run is cancelled by its token alone. Its task hears by whom and why, and its tick is complete.
func TestOrderToCancel(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		log := new(journal)
		r := c.named("a", scheduler.WithLogger(log.logger()), scheduler.WithDelivery(redlock.AtLeastOnce), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))
		var cause error
		r.add(t, tenSecondly, func(ctx context.Context) error {
			if run, _ := scheduler.RunFromContext(ctx); !run.Tick.Equal(at(10)) {
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		r.Start()
		until(12 * time.Second)
		run, _ := c.book.run(0)
		token := run.FencingToken()
		for i, o := range []bulletin.Order{{Target: "job", Number: token + 1}, {Target: "job"}, {Target: "other", Number: token}} {
			o.ID, o.Kind = fmt.Sprint(i), bulletin.Cancel
			r.order(t, o)
		}
		until(15 * time.Second)
		require.NoError(t, cause)
		r.order(t, bulletin.Order{ID: "right", Kind: bulletin.Cancel, Target: "job", Number: token})
		until(18 * time.Second)
		var e *scheduler.CancelledError
		require.ErrorAs(t, cause, &e)
		require.ErrorIs(t, cause, scheduler.ErrCancelled)
		require.Equal(t, scheduler.CancelledError{Job: "job", By: "Ann", Why: "a test"}, *e)
		require.Equal(t, "cancelled", redlock.ErrorType(cause))
		require.Equal(t, bulletin.Done, r.answers(t, "right")[0].Result)
		for i := range 3 {
			require.Empty(t, r.answers(t, fmt.Sprint(i)))
		}
		require.Equal(t, bulletin.Cancelled, r.runsTold(t)[0].Outcome)
		lines := log.lines("cancels a run")
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], `level=INFO`)
		require.Contains(t, lines[0], `by=Ann why="a test"`)
		until(45 * time.Second)
		require.Equal(t, []int{10, 20, 30, 40}, c.book.tickSeconds(), "it is not run again")
	})
}

// A run whose task has returned, and whose lease is about to be released, ended as it did: an order
// to cancel it comes too late.
func TestRunThatHasReturnedIsNotCancelled(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.AfterJobRuns(func(uuid.UUID, string) { time.Sleep(3 * time.Second) })))
		r.Start()
		until(11 * time.Second)
		run, _ := c.book.run(0)
		r.order(t, bulletin.Order{ID: "late", Kind: bulletin.Cancel, Target: "job", Number: run.FencingToken()})
		until(18 * time.Second)
		require.Equal(t, bulletin.OK, r.runsTold(t)[0].Outcome)
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

// Orders that are none, and too many of them, take neither goroutines nor memory that stay.
func TestHostileOrders(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r, hostile := c.named("a"), c.named("hostile")
		r.add(t, never, func() { time.Sleep(100 * time.Millisecond) })
		r.Start()
		until(5 * time.Second)
		hostile.order(t, bulletin.Order{ID: "done", Kind: bulletin.RunNow, Target: "job"})
		until(10 * time.Second)
		require.Len(t, hostile.answers(t, "done"), 1)
		before, most := runtime.NumGoroutine(), 0
		for i := range 3000 {
			text := []string{"", "{", `{"v":1,"id":"x","kind":"run_now","target":"job","within":-1}`, `{"v":-1}`, "[[[[", `{"v":1,"id":"y","kind":"cancel","target":"job","number":1,"within":8000000000000}`}[i%6]
			entries := []redlock.Entry{{Journal: bulletin.Orders, Text: text + fmt.Sprintf("%*s", i%50, ""), Most: 400, Keep: time.Hour}}
			if e, ok := (bulletin.Order{ID: "done", Kind: bulletin.RunNow, Target: "job", By: "x", Within: time.Hour.Milliseconds()}).Entry(); ok {
				entries = append(entries, e)
			}
			_, err := hostile.q.Board().Post(t.Context(), nil, entries)
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
			most = max(most, runtime.NumGoroutine())
		}
		require.Less(t, most, before+200)
		pass(30 * time.Second)
		require.LessOrEqual(t, runtime.NumGoroutine(), before+20)
		require.Len(t, c.book.ticks(), 1)
	})
}
