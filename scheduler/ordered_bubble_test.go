package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// An order that cannot be claimed is claimed again for as long as it is wanted, and no longer.
func TestOrderIsClaimedWhileItIsWanted(t *testing.T) {
	for name, test := range map[string]struct {
		within time.Duration
		runs   int
	}{"wanted": {time.Minute, 1}, "not wanted any more": {5 * time.Second, 0}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a")
				r.add(t, never, func() {})
				r.Start()
				until(5 * time.Second)
				r.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job", Within: test.within.Milliseconds()})
				c.freeze(0, 1, 2)
				until(20 * time.Second)
				require.Empty(t, c.book.ticks())
				c.thaw(0, 1, 2)
				until(60 * time.Second)
				require.Len(t, c.book.ticks(), test.runs)
				require.Len(t, r.answers(t, "one"), test.runs)
			})
		})
	}
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

// tell writes into the journal of orders, as anybody may.
func (r *replica) tell(t *testing.T, text string) {
	t.Helper()
	_, err := r.q.Board().Post(t.Context(), nil, []redlock.Entry{{Journal: bulletin.Orders, Text: text, Most: 400, Keep: time.Hour}})
	require.NoError(t, err)
}

// A job that runs everywhere is run by no order, nor one that was removed.
func TestOrderForAJobWithoutALease(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		var ran atomic.Int64
		_, err := r.NewJob(never, scheduler.NewTask(func() { ran.Add(1) }), gocron.WithName("everywhere"), gocron.WithDisabledDistributedJobLocker(true))
		require.NoError(t, err)
		gone := r.add(t, never, func() { ran.Add(1) })
		r.Start()
		until(3 * time.Second)
		require.NoError(t, r.RemoveJob(gone.ID()))
		until(5 * time.Second)
		r.order(t, bulletin.Order{ID: "everywhere", Kind: bulletin.RunNow, Target: "everywhere"})
		r.order(t, bulletin.Order{ID: "gone", Kind: bulletin.RunNow, Target: "job"})
		until(10 * time.Second)
		require.Zero(t, ran.Load())
		for _, id := range []string{"everywhere", "gone"} {
			r.unclaimed(t, id)
			require.Empty(t, r.answers(t, id))
		}
	})
}

// Whichever replica takes an order, its refusal names the one that runs the job.
func TestRefusalNamesWhoRunsTheJob(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.named("a")
		a.add(t, never, func() { time.Sleep(30 * time.Second) })
		a.Start()
		until(3 * time.Second)
		a.order(t, bulletin.Order{ID: "first", Kind: bulletin.RunNow, Target: "job"})
		until(5 * time.Second)
		require.Equal(t, bulletin.Done, a.answers(t, "first")[0].Result)
		for _, name := range []string{"b", "c"} {
			r := c.named(name)
			r.add(t, never, func() {})
			r.Start()
		}
		until(8 * time.Second)
		takers := make(map[string]bool)
		var answers []bulletin.Order
		for i := range 10 {
			id := fmt.Sprint(i)
			a.order(t, bulletin.Order{ID: id, Kind: bulletin.RunNow, Target: "job"})
			pass(time.Second)
			answers = append(answers, a.answers(t, id)...)
		}
		until(40 * time.Second) // the task returns
		require.Len(t, answers, 10)
		for _, answer := range answers {
			require.Equal(t, bulletin.Refused, answer.Result)
			require.Equal(t, "overlap", answer.Detail)
			require.NotNil(t, answer.Run)
			require.Equal(t, "a", answer.Run.By)
			takers[answer.By] = true
		}
		require.Greater(t, len(takers), 1, "they take turns")
		require.Len(t, c.book.ticks(), 1)
	})
}

// Of two jobs whose runs go on, on two replicas, an order ends the run that it names by its job and
// its token, and no other.
func TestCancelEndsTheRunThatItNames(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		ended := make(map[string]string)  // guarded by mu
		tokens := make(map[string]uint64) // guarded by mu
		var first *replica
		for _, name := range []string{"one", "two", "three", "four"} {
			r := first
			if name == "one" || name == "four" {
				r = c.named("replica of " + name)
			}
			if first == nil {
				first = r
			}
			_, err := r.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(3))), scheduler.NewTask(func(ctx context.Context) {
				run, _ := scheduler.RunFromContext(ctx)
				mu.Lock()
				tokens[name] = run.FencingToken()
				mu.Unlock()
				select {
				case <-ctx.Done():
					mu.Lock()
					defer mu.Unlock()
					ended[name] = context.Cause(ctx).Error()
				case <-time.After(20 * time.Second):
				}
			}), gocron.WithName(name))
			require.NoError(t, err)
			r.Start()
		}
		until(5 * time.Second)
		require.Len(t, tokens, 4)
		r := first
		for i, o := range []bulletin.Order{
			{Target: "one", Number: tokens["one"] + 1}, {Target: "one"}, {Target: "four", Number: tokens["four"] - 1},
			{Target: "", Number: tokens["two"]},
		} {
			o.ID, o.Kind = fmt.Sprint(i), bulletin.Cancel
			r.order(t, o)
		}
		if tokens["one"] != tokens["two"] {
			r.order(t, bulletin.Order{ID: "crossed", Kind: bulletin.Cancel, Target: "two", Number: tokens["one"]})
		}
		until(8 * time.Second)
		require.Empty(t, ended)
		r.order(t, bulletin.Order{ID: "right", Kind: bulletin.Cancel, Target: "four", Number: tokens["four"]})
		until(10 * time.Second)
		require.Equal(t, map[string]string{"four": `scheduler: the run of job "four" was cancelled by Ann: a test`}, ended)
		require.Equal(t, "replica of four", r.answers(t, "right")[0].By)
		r.order(t, bulletin.Order{ID: "two", Kind: bulletin.Cancel, Target: "two", Number: tokens["two"]})
		until(12 * time.Second)
		require.Len(t, ended, 2)
		require.Contains(t, ended["two"], `"two"`)
	})
}

// An order to cancel a run whose task has returned is refused: it ended nothing.
func TestCancelOfARunThatHasReturnedIsRefused(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.AfterJobRuns(func(uuid.UUID, string) { time.Sleep(3 * time.Second) })))
		r.Start()
		until(11 * time.Second)
		run, _ := c.book.run(0)
		r.order(t, bulletin.Order{ID: "late", Kind: bulletin.Cancel, Target: "job", Number: run.FencingToken()})
		until(12 * time.Second)
		answers := r.answers(t, "late")
		require.Len(t, answers, 1)
		require.Equal(t, bulletin.Refused, answers[0].Result)
		require.Equal(t, "not_running", answers[0].Detail)
		require.Equal(t, "a", answers[0].By)
	})
}

// A run that is cancelled, and whose task returns without an error, is told as cancelled.
func TestCancelledRunIsTold(t *testing.T) {
	for name, err := range map[string]error{"nil": nil, "an error": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a")
				r.add(t, tenSecondly, func(ctx context.Context) error { <-ctx.Done(); return err })
				r.Start()
				until(12 * time.Second)
				run, _ := c.book.run(0)
				r.order(t, bulletin.Order{ID: "one", Kind: bulletin.Cancel, Target: "job", Number: run.FencingToken()})
				until(14 * time.Second)
				told := r.runsTold(t)
				require.Len(t, told, 1)
				require.Equal(t, bulletin.Cancelled, told[0].Outcome)
				require.Equal(t, err == nil, told[0].Error == "")
				require.Equal(t, run.FencingToken(), told[0].Token)
			})
		})
	}
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

// A Scheduler that is shut down while orders come, and are carried out without a quorum, ends in
// bounded time, takes none after that, and leaves no goroutine behind.
func TestShutdownWhileOrdersCome(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
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
