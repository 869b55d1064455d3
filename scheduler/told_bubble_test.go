package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// runsTold reads how the runs of the job "job" ended, the newest first.
func (r *replica) runsTold(t *testing.T) (runs []bulletin.Run) {
	t.Helper()
	entries, err := r.q.Board().Journal(t.Context(), bulletin.Runs+"/job/job", redlock.MaxEntries)
	require.NoError(t, err)
	for _, e := range entries {
		run, ok := bulletin.ParseRun(e.Text)
		require.True(t, ok, e.Text)
		runs = append(runs, run)
	}
	return runs
}

// skipsTold reads which ticks of the job "job" were skipped: how often for each reason.
func (r *replica) skipsTold(t *testing.T) (counts map[string]int, last map[string]bulletin.Skip) {
	t.Helper()
	entries, err := r.q.Board().Journal(t.Context(), bulletin.Skips+"/job/job", redlock.MaxEntries)
	require.NoError(t, err)
	counts, last = make(map[string]int), make(map[string]bulletin.Skip)
	for _, e := range entries {
		skip, ok := bulletin.ParseSkip(e.Text)
		require.True(t, ok, e.Text)
		counts[skip.Reason] += e.Count
		if _, newer := last[skip.Reason]; !newer {
			last[skip.Reason] = skip
		}
	}
	return counts, last
}

// processes reads the cards of processes.
func (r *replica) processes(t *testing.T) (found []bulletin.Process) {
	t.Helper()
	cards, _, err := r.q.Board().Cards(t.Context(), redlock.ProcessKind, "", redlock.MaxCards)
	require.NoError(t, err)
	for _, c := range cards {
		p, ok := bulletin.ParseProcess(c.Text)
		require.True(t, ok, c.Text)
		found = append(found, p)
	}
	return found
}

// definitions reads the cards of jobs, by their names.
func (r *replica) definitions(t *testing.T) map[string]bulletin.Job {
	t.Helper()
	cards, _, err := r.q.Board().Cards(t.Context(), bulletin.Jobs, "", redlock.MaxCards)
	require.NoError(t, err)
	found := make(map[string]bulletin.Job)
	for _, c := range cards {
		j, ok := bulletin.ParseJob(c.Text)
		require.True(t, ok, c.Text)
		found[j.Job] = j
	}
	return found
}

// typedError is an error with a type of its own for operators.
type typedError struct{}

func (typedError) Error() string     { return "password=secret" }
func (typedError) ErrorType() string { return "full" }

// brokenError is an error that panics when it is asked for its text, as a nil pointer in an error
// does.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// How a run ended is told in the outcome, and an error by its type.
func TestOutcomesOfRunsAreTold(t *testing.T) {
	plain := errors.New("password=secret")
	for _, test := range []struct {
		name, outcome, kind string
		task                func(ctx context.Context, c *cluster) error
	}{
		{"ok", bulletin.OK, "", func(context.Context, *cluster) error { time.Sleep(1500 * time.Millisecond); return nil }},
		{"failed", bulletin.Failed, "*errors.errorString", func(context.Context, *cluster) error { return plain }},
		{"failed, wrapped", bulletin.Failed, "*errors.errorString", func(context.Context, *cluster) error { return fmt.Errorf("it: %w", plain) }},
		{"failed with a type", bulletin.Failed, "full", func(context.Context, *cluster) error { return typedError{} }},
		{"panicked", bulletin.Panicked, "panic", func(context.Context, *cluster) error { time.Sleep(1500 * time.Millisecond); panic("password=secret") }},
		{"lost", bulletin.Lost, "lost_deadline", func(ctx context.Context, c *cluster) error {
			c.freeze(0, 1, 2)
			<-ctx.Done()
			c.thaw(0, 1, 2)
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a")
				r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(10))), func(ctx context.Context) error { return test.task(ctx, c) })
				r.Start()
				until(50 * time.Second)
				runs := r.runsTold(t)
				require.Len(t, runs, 1)
				got := runs[0]
				require.Equal(t, test.outcome, got.Outcome)
				require.Equal(t, test.kind, got.Error)
				require.Equal(t, at(10).UnixMilli(), got.Tick)
				require.Equal(t, "a", got.By)
				require.Equal(t, 1, got.Attempt)
				require.False(t, got.Late)
				run, _ := c.book.run(0)
				require.Equal(t, run.FencingToken(), got.Token)
				require.InDelta(t, at(10).UnixMilli(), got.Began, 1000)
				if test.outcome == bulletin.OK || test.outcome == bulletin.Panicked {
					require.InDelta(t, (1500 * time.Millisecond).Microseconds(), got.Took, 1000)
				}
			})
		})
	}
}

// The text of an error is told where the program wants that.
func TestErrorTextsAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithErrorTexts())
		r.add(t, tenSecondly, func() error { return errors.New("no disk") })
		r.Start()
		until(15 * time.Second)
		require.Equal(t, "no disk", r.runsTold(t)[0].Error)
	})
}

// An error that panics when it is asked for its text keeps no lease.
func TestErrorThatPanicsKeepsNoLease(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithErrorTexts())
		r.add(t, tenSecondly, func() error { return (*brokenError)(nil) })
		r.Start()
		until(15 * time.Second)
		_, err := r.q.Holder(t.Context(), "job/job")
		require.ErrorIs(t, err, redlock.ErrNotHeld)
		until(35 * time.Second)
		require.Equal(t, []int{10, 20, 30}, c.book.tickSeconds())
	})
}

// A run that was not called is told only where an order asked for it.
func TestRunThatWasNotCalledIsNotTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, tenSecondly, func() {}, gocron.WithEventListeners(
			gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return errors.New("not here") })))
		r.Start()
		until(25 * time.Second)
		require.Empty(t, r.runsTold(t))
		r.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
		until(29 * time.Second)
		runs := r.runsTold(t)
		require.Len(t, runs, 1)
		require.Equal(t, bulletin.NotBegun, runs[0].Outcome)
		require.Equal(t, "one", runs[0].Order)
	})
}

// tracedBook is a tracer that knows the trace of a run.
type tracedBook struct{ *book }

type traceKey struct{}

func (b tracedBook) TraceRunStart(ctx context.Context, data scheduler.TraceRunStartData) context.Context {
	return context.WithValue(b.book.TraceRunStart(ctx, data), traceKey{}, "the trace")
}

func (tracedBook) TraceID(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

// The trace of a run is told, by the context that TraceRunStart returned.
func TestTraceOfARunIsTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithTracer(tracedBook{c.book}))
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(15 * time.Second)
		require.Equal(t, "the trace", r.runsTold(t)[0].Trace)
	})
}

// The end of a run is told with its release, for which each node gets no command more.
func TestEndOfARunIsToldWithItsRelease(t *testing.T) {
	commands := make(map[string]int)
	for name, opts := range map[string][]scheduler.Option{
		"history": {}, "no history": {scheduler.WithoutHistory()},
	} {
		alone(t, func(t *testing.T, c *cluster) {
			r := c.named("a", append(opts, scheduler.WithoutCard(), scheduler.WithoutOrders())...)
			r.add(t, tenSecondly, func() { time.Sleep(20 * time.Millisecond) }) // all nodes have answered by then
			r.Start()
			sum := func() (sum int) {
				for _, n := range c.fleet.Nodes() {
					sum += n.Commands()
				}
				return sum
			}
			least := math.MaxInt
			for tick := 10; tick <= 200; tick += 10 { // something else may fall into some of them
				until(time.Duration(tick)*time.Second - 50*time.Millisecond)
				before := sum()
				until(time.Duration(tick)*time.Second + 50*time.Millisecond)
				least = min(least, sum()-before)
			}
			commands[name] = least
			if name == "history" {
				require.Len(t, r.runsTold(t), 20)
			} else {
				require.Empty(t, r.runsTold(t))
			}
		})
	}
	require.Equal(t, 2*5, commands["history"], "the grant and the release")
	require.Equal(t, commands["no history"], commands["history"])
}

// What is skipped for now, and what followers skip, is not told.
func TestPendingSkipIsNotTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b := c.named("a", scheduler.WithElection("jobs"), scheduler.WithOverlap(scheduler.OverlapQueue)),
			c.named("b", scheduler.WithElection("jobs"), scheduler.WithOverlap(scheduler.OverlapQueue))
		for _, r := range []*replica{a, b} {
			r.add(t, tenSecondly, func() { time.Sleep(12 * time.Second) })
			r.Start()
			time.Sleep(time.Second)
		}
		until(65 * time.Second)
		require.NotZero(t, c.book.reasons()[scheduler.SkipNotLeader])
		require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
		counts, _ := a.skipsTold(t)
		require.Empty(t, counts)
	})
}

// A replica without a card tells nothing regularly, also where it tells how its runs ended.
func TestWithoutCard(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithoutCard())
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(35 * time.Second)
		require.Empty(t, r.processes(t))
		require.Empty(t, r.definitions(t))
		require.Len(t, r.runsTold(t), 3)
	})
}

// A replica without history tells neither runs nor skips.
func TestWithoutHistory(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithoutHistory())
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(15 * time.Second)
		_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{By: "Ann"})
		require.NoError(t, err)
		until(55 * time.Second)
		require.NotZero(t, c.book.reasons()[scheduler.SkipPaused])
		require.Empty(t, r.runsTold(t))
		counts, _ := r.skipsTold(t)
		require.Empty(t, counts)
		require.Len(t, r.processes(t), 1)
	})
}
