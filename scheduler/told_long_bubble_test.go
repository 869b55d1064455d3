//go:build long

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// typedError is an error with a type of its own for operators.
type typedError struct{}

func (typedError) Error() string     { return "password=secret" }
func (typedError) ErrorType() string { return "full" }

// brokenError panics when it is asked for its text, as a nil pointer in an error does.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

//go:noinline
func outOfRange(of []error, i int) error { return of[i] }

// How a run ended is told in the outcome, and an error by its type, or by its text where somebody
// wants that.
func TestOutcomesOfRunsAreTold(t *testing.T) {
	secret := errors.New("password=secret" + strings.Repeat("x", 1000))
	type task = func(ctx context.Context, c *cluster) error
	for _, test := range []struct {
		name  string
		texts bool
		admin.Outcome
		err  string
		task task
	}{
		{"ok", false, admin.OutcomeOK, "", func(context.Context, *cluster) error { return nil }},
		{"failed", false, admin.OutcomeFailed, "*errors.errorString", func(context.Context, *cluster) error { return secret }},
		{"text", true, admin.OutcomeFailed, secret.Error()[:256], func(context.Context, *cluster) error { return secret }},
		{"wrapped", false, admin.OutcomeFailed, "*errors.errorString", func(context.Context, *cluster) error { return fmt.Errorf("it: %w", secret) }},
		{"typed", false, admin.OutcomeFailed, "full", func(context.Context, *cluster) error { return typedError{} }},
		{"broken", true, admin.OutcomeFailed, "*scheduler_test.brokenError", func(context.Context, *cluster) error { return (*brokenError)(nil) }},
		{"panicked", false, admin.OutcomePanicked, "panic", func(context.Context, *cluster) error { panic(secret) }},
		{"panicked, with its place", true, admin.OutcomePanicked, `scheduler: job "job": panic: runtime error: index out of range [3] with length 2, in scheduler_test.outOfRange (told_long_bubble_test.go:`,
			func(context.Context, *cluster) error { return outOfRange([]error{nil, nil}, 3) }},
		{"lost", false, admin.OutcomeLost, "lost_deadline", func(ctx context.Context, c *cluster) error {
			c.freeze()
			<-ctx.Done()
			c.thaw()
			return context.Cause(ctx)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				type traceKey struct{}
				tracer := c.book.tracer()
				start := tracer.RunStart
				tracer.RunStart = func(ctx context.Context, data scheduler.RunStartTrace) context.Context {
					return context.WithValue(start(ctx, data), traceKey{}, "the trace")
				}
				tracer.TraceID = func(ctx context.Context) string { return ctx.Value(traceKey{}).(string) }
				r := c.named("a", scheduler.WithTelling(scheduler.Telling{ErrorTexts: test.texts}), scheduler.WithTracer(tracer))
				r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(10))), func(ctx context.Context) error {
					time.Sleep(1500 * time.Millisecond)
					return test.task(ctx, c)
				})
				r.Start()
				until(at(20))
				runs, err := c.operator().Runs(t.Context(), "job", 20)
				require.NoError(t, err)
				require.Len(t, runs, 1)
				got := runs[0]
				require.Equal(t, test.Outcome, got.Outcome)
				if test.texts && test.Outcome == admin.OutcomePanicked {
					require.Contains(t, got.Error, test.err)
					require.Regexp(t, `\(told_long_bubble_test\.go:\d+\), in scheduler_test\..*\(told_long_bubble_test\.go:\d+\)`, got.Error)
				} else {
					require.Equal(t, test.err, got.Error)
				}
				run, _ := c.book.run(0)
				require.Equal(t, []any{"a", 1, "on_time", run.FencingToken(), "the trace", ""}, []any{got.Replica, got.Attempt, got.Why, got.FencingToken, got.TraceID, got.Order})
				require.WithinDuration(t, at(10), got.Tick, 0)
				require.WithinDuration(t, at(10), got.Began, 50*time.Millisecond)
				if test.Outcome != admin.OutcomeLost {
					require.InDelta(t, 1500*time.Millisecond, got.Took, float64(time.Millisecond))
				}
				_, err = r.q.Holder(t.Context(), scheduler.KeyPrefix+"job")
				require.ErrorIs(t, err, redlock.ErrNotHeld)
			})
		})
	}
}

// A replica's card says which jobs it has and what it runs; a job's says what it is and when it is
// due, and is told again before it expires.
func TestJobsAndRunsAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		r := c.named("a", scheduler.WithElection("jobs"), jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithOverlap(scheduler.OverlapQueue)))
		r.add(t, gocron.CronJob("*/2 * * * *", false), func() { time.Sleep(20 * time.Second) })
		r.add(t, gocron.DurationJob(7*time.Minute), func() {}, gocron.WithName("every"))
		r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(20))), func() {}, gocron.WithName("once"))
		r.add(t, minutely, func() {}, everywhere, gocron.WithName("everywhere"))
		replicas := func() []admin.Replica {
			all, err := a.Replicas(t.Context())
			require.NoError(t, err)
			return slices.DeleteFunc(all, func(r admin.Replica) bool { return r.Identity == "operator" })
		}
		require.Empty(t, replicas(), "before Start")
		r.Start()
		is := func(name string) admin.JobStatus {
			t.Helper()
			j, err := a.Job(t.Context(), name)
			require.NoError(t, err, name)
			return j
		}
		until(at(2))
		job := is("job")
		require.Equal(t, []string{"UTC", "jobs", "at most once", "latest", "queue"}, []string{job.Zone, job.Election, job.Delivery, job.CatchUp, job.Overlap})
		require.Contains(t, job.Schedule, "*/2 * * * *")
		require.True(t, job.Orders)
		require.WithinDuration(t, at(120), job.Next, 0)
		require.Contains(t, is("every").Schedule, "7m")
		require.WithinDuration(t, at(420), is("every").Next, 5*time.Second)
		require.WithinDuration(t, at(20), is("once").Next, 0)
		_, err := a.Job(t.Context(), "everywhere")
		require.ErrorIs(t, err, admin.ErrNoJob)
		until(at(135))
		require.Len(t, replicas(), 1)
		require.Equal(t, []string{"every", "everywhere", "job"}, replicas()[0].Jobs, "once is over")
		require.Len(t, replicas()[0].Running, 1)
		run, err := a.Running(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, run.ID(), replicas()[0].Running[0].ID())
		require.WithinDuration(t, at(120), replicas()[0].Running[0].Tick, 0)
		require.WithinDuration(t, at(240), is("job").Next, 0, "told again with its run")
		until(at(165))
		require.Empty(t, replicas()[0].Running)
		require.NoError(t, r.StopJobs())
		until(at(166))
		require.Empty(t, replicas())
	})
}

// What is switched off is not told or taken, by the jobs and by the election, and all else is.
func TestTelling(t *testing.T) {
	type is struct{ replica, job, runs, skips, terms, order bool }
	for name, test := range map[string]struct {
		telling scheduler.Telling
		want    is
	}{
		"all":        {scheduler.Telling{}, is{true, true, true, true, true, true}},
		"no card":    {scheduler.Telling{NoCard: true}, is{runs: true, terms: true, order: true}},
		"no history": {scheduler.Telling{NoHistory: true}, is{replica: true, job: true, order: true}},
		"no orders":  {scheduler.Telling{NoOrders: true}, is{true, true, true, true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.operator(admin.WithOrderTimeout(2 * time.Second))
				r := c.named("a", scheduler.WithElection("jobs"), scheduler.WithTelling(test.telling))
				r.add(t, tenSecondly, func() {})
				r.Start()
				until(at(15))
				_, err := a.RunNow(t.Context(), "job", "")
				got := is{order: err == nil}
				_, _, err = pause.Set(t.Context(), r.q, scheduler.KeyPrefix+"job", pause.Pause{By: "ann"})
				require.NoError(t, err)
				until(at(45))
				replicas, err := a.Replicas(t.Context())
				require.NoError(t, err)
				for _, of := range replicas {
					got.replica = got.replica || of.Identity == "a" && len(of.Jobs) > 0
				}
				_, err = a.Job(t.Context(), "job")
				got.job = err == nil
				runs, err := a.Runs(t.Context(), "job", 20)
				require.NoError(t, err)
				got.runs = len(runs) > 0
				skips, err := a.Skips(t.Context(), "job", 20)
				require.NoError(t, err)
				if got.skips = len(skips) > 0; got.skips {
					require.Equal(t, []any{"paused", "a", "ann"}, []any{skips[0].Reason, skips[0].Replica, skips[0].By})
					require.Contains(t, []int{2, 3}, skips[0].Count)
				}
				e, err := a.Election(t.Context(), "jobs")
				require.NoError(t, err)
				got.terms = len(e.Terms) > 0
				require.Equal(t, test.want, got)
			})
		})
	}
}

// To tell the end of a run costs each node one command.
func TestEndOfARunCostsOneCommand(t *testing.T) {
	commands := make(map[bool]int)
	for _, silent := range []bool{false, true} {
		inCluster(t, func(t *testing.T, c *cluster) {
			r := c.named("a", scheduler.WithTelling(scheduler.Telling{NoCard: true, NoOrders: true, NoHistory: silent}))
			r.add(t, tenSecondly, func() { time.Sleep(20 * time.Millisecond) }) // all nodes have answered by then
			r.Start()
			sum := func() (sum int) {
				for _, n := range c.fleet.Nodes() {
					sum += n.Commands()
				}
				return sum
			}
			least := math.MaxInt
			for tick := 20; tick <= 60; tick += 10 { // something else may fall into some of them
				until(at(tick).Add(-500 * time.Millisecond))
				before := sum()
				until(at(tick).Add(100 * time.Millisecond))
				least = min(least, sum()-before)
			}
			commands[silent] = least
		})
	}
	require.Equal(t, commands[true]+3, commands[false])
	require.LessOrEqual(t, commands[false], 3*6)
}
