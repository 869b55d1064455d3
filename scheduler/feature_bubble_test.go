package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// runs reads the history of a job, the newest first.
func (r *replica) runs(t *testing.T, job string) (runs []bulletin.Run) {
	t.Helper()
	entries, err := board.Of(r.q).Journal(t.Context(), bulletin.Runs+"/"+scheduler.KeyPrefix+job, 20)
	require.NoError(t, err)
	for _, e := range entries {
		run, ok := bulletin.Parse[bulletin.Run](e.Text)
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
				r := c.replica().with(t, minutely, func(ctx context.Context) error {
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
				require.Len(t, told[0].Attempts, test.attempts)
				for i, a := range told[0].Attempts {
					_, began := c.book.run(i)
					require.Equal(t, began.UnixMilli(), a.Began)
				}
				require.Equal(t, "panic", told[0].Attempts[0].Error)
				require.Equal(t, test.outcome == bulletin.OK, told[0].Attempts[1].Error == "*errors.errorString", "else the run has it")
			})
		})
	}
}

// A replica that is killed does not begin the count of attempts anew.
func TestAttemptsOfAKilledReplicaCount(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		fails := func(ctx context.Context) error { return errors.New("always") }
		opts := []scheduler.Option{quiet, jobOptions(scheduler.WithRetry(5, 2*time.Second), within(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce))}
		first := c.runs(minutely, fails, opts...)
		until(day(1, 0, 1, 3)) // after two attempts
		require.Len(t, c.book.ticks(), 2)
		c.kill(first)
		c.runs(minutely, fails, opts...)
		until(day(1, 0, 1, 55))
		for i := range 6 {
			run, _ := c.book.run(i)
			require.True(t, run.Due.Equal(day(1, 0, 1, 0)))
			require.Equal(t, i+1, run.Attempt)
		}
		require.Len(t, c.book.ticks(), 6)
	})
}

// Who sees that a run is over, because its lease is free, finds how it ended.
func TestRunIsToldBeforeItsLeaseIsReleased(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(minutely, func() { time.Sleep(time.Second) })
		until(day(1, 0, 1, 0).Add(500 * time.Millisecond))
		for _, n := range c.fleet.Nodes() {
			n.SetDelay(20 * time.Millisecond)
		}
		node, lock := c.fleet.Node(0), redlock.DefaultPrefix+":{"+scheduler.KeyPrefix+"job}"
		require.Contains(t, node.Keys(), lock)
		for slices.Contains(node.Keys(), lock) {
			time.Sleep(time.Millisecond)
		}
		require.Contains(t, node.Keys(), redlock.DefaultPrefix+":{}:journal:"+bulletin.Runs+"/"+scheduler.KeyPrefix+"job")
	})
}
