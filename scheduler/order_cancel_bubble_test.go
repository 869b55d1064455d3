package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

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

// cancelLate gives an order to cancel a run, at 11 s, whose task has returned and whose lease is
// about to be released.
func (c *cluster) cancelLate() *replica {
	r := c.named("a")
	r.add(c.t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.AfterJobRuns(func(uuid.UUID, string) { time.Sleep(3 * time.Second) })))
	r.Start()
	until(11 * time.Second)
	run, _ := c.book.run(0)
	r.order(c.t, bulletin.Order{ID: "late", Kind: bulletin.Cancel, Target: "job", Number: run.FencingToken()})
	return r
}

// A run whose task has returned, and whose lease is about to be released, ended as it did: an order
// to cancel it comes too late.
func TestRunThatHasReturnedIsNotCancelled(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.cancelLate()
		until(18 * time.Second)
		require.Equal(t, bulletin.OK, r.runsTold(t)[0].Outcome)
	})
}

// Such an order is refused: it ended nothing.
func TestCancelOfARunThatHasReturnedIsRefused(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.cancelLate()
		until(12 * time.Second)
		answers := r.answers(t, "late")
		require.Len(t, answers, 1)
		require.Equal(t, bulletin.Refused, answers[0].Result)
		require.Equal(t, "not_running", answers[0].Detail)
		require.Equal(t, "a", answers[0].By)
	})
}
