package tenureotel_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// ofLease returns the acquisition of the lease name.
func ofLease(t *testing.T, tel *telemetry, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range tel.spans("tenure.lease.acquire") {
		if attributesOf(s)["tenure.lease.name"] == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "acquisitions of %s", name)
	return found[0]
}

// A tick is one trace, of its own: the acquisition of its lease, the run with what the task does,
// and the release.
func TestTickIsOneTrace(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		defer caller.End()
		var task trace.SpanContext
		report(t, newScheduler(t, tel, q), func(ctx context.Context) error {
			task = trace.SpanContextFromContext(ctx)
			l, err := q.TryAcquire(ctx, "inner")
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}, gocron.WithContext(ctx))
		pass(5 * time.Second)
		tel.forget() // the job's definition is written under its lease, once
		pass(10 * time.Second)
		tick := tel.span(t, "tenure.job.tick")
		require.False(t, tick.Parent().IsValid())
		require.NotEqual(t, caller.SpanContext().TraceID(), tick.SpanContext().TraceID(), "a root of its own")
		require.Equal(t, map[string]string{"tenure.job.name": "report", "tenure.job.why": "on_time", "tenure.job.due": "2000-01-01T00:00:10Z", "tenure.outcome": "success"}, attributesOf(tick))
		acquired := ofLease(t, tel, "job/*")
		childOf(t, acquired, tick.SpanContext())
		nodes := make(map[string]int)
		for _, n := range tel.spans("tenure.node.acquire") {
			if n.SpanContext().TraceID() == tick.SpanContext().TraceID() && n.Parent().SpanID() == acquired.SpanContext().SpanID() {
				nodes[attributesOf(n)["tenure.lease.attempt"]]++
				require.False(t, n.StartTime().Before(acquired.StartTime()))
			}
		}
		require.Equal(t, map[string]int{"1": 3}, nodes)
		run := tel.span(t, "tenure.job.run")
		childOf(t, run, tick.SpanContext())
		require.False(t, acquired.StartTime().Before(tick.StartTime()))
		require.Equal(t, trace.SpanKindInternal, run.SpanKind())
		linkedTo(t, run, ofLease(t, tel, "job/*"))
		require.Equal(t, run.SpanContext(), task, "the task's context has it")
		childOf(t, ofLease(t, tel, "inner"), run.SpanContext())
		require.Equal(t, sdktrace.Status{}, run.Status())
		attributes := attributesOf(run)
		require.Equal(t, attributesOf(ofLease(t, tel, "job/*"))["tenure.lease.fencing_token"], attributes["tenure.lease.fencing_token"])
		delete(attributes, "tenure.lease.fencing_token")
		require.Equal(t, map[string]string{"tenure.job.name": "report", "tenure.job.attempt": "1", "tenure.job.why": "on_time", "tenure.job.lateness": "0",
			"tenure.job.due": "2000-01-01T00:00:10Z", "tenure.outcome": "success"}, attributes)
		released := tel.spans("tenure.lease.release")
		require.Len(t, released, 2)
		childOf(t, released[0], run.SpanContext())
		childOf(t, released[1], tick.SpanContext())
		linkedTo(t, released[1], ofLease(t, tel, "job/*"))
		require.False(t, tick.EndTime().Before(released[1].EndTime()))
		require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended()))
	})
}

// Of the replicas that ask for a tick, the one that gets it makes a trace.
func TestLostTickMakesNoTrace(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		report(t, newScheduler(t, tel, q), func() {})
		pass(5 * time.Second)
		acquire(t, open(t, fleet), "job/report")
		settle()
		tel.forget()
		pass(6 * time.Second)
		require.NotZero(t, tel.total(t, "tenure.lease.acquire.duration", "tenure.lease.name", "job/*", "tenure.outcome", "held"), "it has asked")
		require.Empty(t, tel.spans())
	})
}

// A tick that waits for its lease, because it may come back, is one trace from its first question
// on. Of the wait nothing is open.
func TestTickThatWaitsForItsLease(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		report(t, newScheduler(t, tel, q), func() {}, scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest))
		pass(5 * time.Second)
		holder := acquire(t, open(t, fleet), "job/report")
		settle()
		tel.forget()
		pass(9 * time.Second)
		require.Empty(t, tel.recorder.Started())
		require.NoError(t, holder.Release(t.Context()))
		pass(3 * time.Second)
		tick, acquired := tel.span(t, "tenure.job.tick"), tel.span(t, "tenure.lease.acquire")
		childOf(t, acquired, tick.SpanContext())
		childOf(t, tel.span(t, "tenure.job.run"), tick.SpanContext())
		require.Equal(t, time.Date(2000, 1, 1, 0, 0, 10, 0, time.UTC), tick.StartTime().UTC(), "not ahead: that question was another one")
		require.Equal(t, "true", attributesOf(acquired)["tenure.lease.wait"])
		require.Equal(t, "4", attributesOf(tel.span(t, "tenure.job.run"))["tenure.job.lateness"])
		require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended()))
	})
}

// A lease that is given back before the task was called ends its tick.
func TestTickThatIsNotBegunEnds(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		ctx := tel.Scheduler().Tick(t.Context(), scheduler.TickTrace{Job: "report", Key: "job/report", Why: "ordered"})
		l, err := q.TryAcquire(ctx, "job/report")
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
		settle()
		tick := tel.span(t, "tenure.job.tick")
		require.Equal(t, "not_begun", attributesOf(tick)["tenure.outcome"])
		require.NotContains(t, attributesOf(tick), "tenure.job.due")
		childOf(t, tel.span(t, "tenure.lease.release"), tick.SpanContext())
	})
}

// The history of runs has the trace of the run's own span, sampled or not, and of no other.
func TestTraceOfARunIsTold(t *testing.T) {
	for name, provider := range map[string]trace.TracerProvider{
		"recorded": nil, "not sampled": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())), "no spans": noop.NewTracerProvider(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var opts []tenureotel.Option
				if provider != nil {
					opts = append(opts, tenureotel.WithTracerProvider(provider))
				}
				tel := newTelemetry(t, opts...)
				q := open(t, fleet, redlock.WithTracer(tel))
				ctx, caller := tel.tracer().Start(t.Context(), "caller")
				defer caller.End()
				var task trace.SpanContext
				report(t, newScheduler(t, tel, q), func(ctx context.Context) { task = trace.SpanContextFromContext(ctx) }, gocron.WithContext(ctx))
				pass(15 * time.Second)
				entries, err := board.Of(q).Journal(t.Context(), bulletin.Runs+"/job/report", 1)
				require.NoError(t, err)
				require.Len(t, entries, 1)
				run, ok := bulletin.Parse[bulletin.Run](entries[0].Text)
				require.True(t, ok)
				require.NotEqual(t, caller.SpanContext().TraceID().String(), run.Trace)
				if name == "no spans" {
					require.Empty(t, run.Trace)
					return
				}
				require.Equal(t, task.TraceID().String(), run.Trace)
				require.Equal(t, name == "recorded", task.IsSampled())
			})
		})
	}
}

func TestRunOfALeaderIsLinkedToItsTermToo(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		report(t, newScheduler(t, tel, q, scheduler.WithElection("jobs")), func() {})
		pass(15 * time.Second)
		acquired := tel.spans("tenure.lease.acquire") // for the election, for the definition, and for the tick
		require.Len(t, acquired, 3)
		linkedTo(t, tel.span(t, "tenure.job.run"), acquired[2], ofLease(t, tel, "election/jobs"))
		rootOf(t, ofLease(t, tel, "election/jobs"), tel.span(t, "tenure.election.campaign"))
		require.EqualValues(t, 1, tel.value(t, "tenure.election.leader", "tenure.election.name", "jobs"))
	})
}

// A run that RunNow asked for has no tick, and so no lateness.
func TestRunNowHasNoTick(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		j := report(t, newScheduler(t, tel, q), func() {})
		pass(time.Second) // its definition is written
		tel.forget()
		require.NoError(t, j.RunNow())
		pass(time.Second)
		run, tick := tel.span(t, "tenure.job.run"), tel.span(t, "tenure.job.tick")
		childOf(t, run, tick.SpanContext())
		for _, span := range []sdktrace.ReadOnlySpan{run, tick} {
			attributes := attributesOf(span)
			require.Equal(t, "ordered", attributes["tenure.job.why"])
			require.NotContains(t, attributes, "tenure.job.due")
			require.NotContains(t, attributes, "tenure.job.lateness")
		}
		require.Zero(t, tel.total(t, "tenure.job.lateness"))
		require.Equal(t, 1, tel.total(t, "tenure.job.duration"))
	})
}

func TestRunsByHowTheyEnd(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		jobs(t, tel, fleet, q)
		runs := tel.spans("tenure.job.run")
		require.Len(t, runs, 4)
		for i, want := range []struct {
			outcome, errorType, status string
		}{
			{"success", "", ""},
			{"error", "_OTHER", "the task's own"},
			{"panic", "panic", `scheduler: job "report": panic: the task's own`},
			{"lost", "lost_refused", "redlock: lease on \"job/report\" lost"},
		} {
			attributes := attributesOf(runs[i])
			assert.Equal(t, want.outcome, attributes["tenure.outcome"])
			assert.Equal(t, want.errorType, attributes["error.type"])
			assert.True(t, strings.HasPrefix(runs[i].Status().Description, want.status), runs[i].Status().Description)
			assert.Equal(t, want.status != "", runs[i].Status().Code == codes.Error)
			assert.EqualValues(t, 1, tel.value(t, "tenure.job.runs", "tenure.job.name", "report", "tenure.outcome", want.outcome), want.outcome)
		}
		assert.Equal(t, 4, tel.total(t, "tenure.job.lateness", "tenure.job.name", "report"))
		assert.Equal(t, 4, tel.total(t, "tenure.job.duration", "tenure.job.name", "report"))
	})
}

// A task that is told to end and returns an error has not failed.
func TestRunThatIsStopped(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		s := newScheduler(t, tel, q)
		report(t, s, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		pass(11 * time.Second)
		require.NoError(t, s.StopJobs())
		settle()
		require.Equal(t, "stopped", attributesOf(tel.span(t, "tenure.job.run"))["tenure.outcome"])
		require.EqualValues(t, 1, tel.value(t, "tenure.job.runs", "tenure.outcome", "stopped"))
		require.Zero(t, tel.value(t, "tenure.job.runs", "tenure.outcome", "error"))
	})
}

// Each call of a task that is retried is a span and a run, and the tick is late once.
func TestRetriesAreSpansOfTheirOwn(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		calls := 0
		report(t, newScheduler(t, tel, q), func() error {
			if calls++; calls == 1 {
				return (*fs.PathError)(nil) // an error, whose methods panic
			}
			return nil
		}, scheduler.WithRetry(1, time.Second))
		pass(15 * time.Second)
		runs := tel.spans("tenure.job.run")
		require.Len(t, runs, 2)
		for i, run := range runs {
			childOf(t, run, tel.span(t, "tenure.job.tick").SpanContext())
			require.Equal(t, strconv.Itoa(i+1), attributesOf(run)["tenure.job.attempt"])
		}
		require.Equal(t, "_OTHER", attributesOf(runs[0])["error.type"])
		require.Equal(t, "success", attributesOf(tel.span(t, "tenure.job.tick"))["tenure.outcome"])
		require.Equal(t, 1, tel.total(t, "tenure.job.lateness"))
		require.Equal(t, 2, tel.total(t, "tenure.job.duration"))
	})
}

// Of the replicas that share a job, exactly one counts a tick that none ran, and none one that
// another one ran or that is still owed.
func TestSkipsAreCountedOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t) // of all
		for range 3 {
			report(t, newScheduler(t, tel, open(t, fleet)), func() { time.Sleep(15 * time.Second) })
		}
		pass(46 * time.Second) // runs of 10 s and 30 s are over, which overlapped 20 s and 40 s
		require.Equal(t, 2, tel.count(t, "tenure.job.skipped"))
		require.EqualValues(t, 2, tel.value(t, "tenure.job.skipped", "tenure.reason", "overlap"))
		pass(20 * time.Second) // and that of 50 s
		freeze(t, fleet, 0, 1, 2)
		pass(22 * time.Second) // 70 s and 80 s are missed
		require.Equal(t, 3, tel.count(t, "tenure.job.skipped"), "the nodes know nothing so far")
		thaw(t, fleet, 0, 1, 2)
		pass(15 * time.Second)
		require.EqualValues(t, 3, tel.value(t, "tenure.job.skipped", "tenure.reason", "overlap"))
		require.Equal(t, 5, tel.count(t, "tenure.job.skipped"))
	})
}

// A job that another replica defines in another way is counted as long as it does, from zero.
func TestConflictsOfJobs(t *testing.T) {
	tel := newTelemetry(t)
	jobs := tel.Scheduler()
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "report"})
	require.EqualValues(t, 0, tel.value(t, "tenure.job.conflict", "tenure.job.name", "report"))
	for range 2 {
		data := scheduler.JobTrace{Job: "report", Conflict: &scheduler.Conflict{Job: "report", Other: "another"}}
		jobs.Job(t.Context(), data)
		data.Next = time.Unix(3000, 0) // something else has changed
		jobs.Job(t.Context(), data)
	}
	require.EqualValues(t, 2, tel.value(t, "tenure.job.conflict", "tenure.job.name", "report"))
}

// Whether a job is paused is told from the beginning, as its ticks find it.
func TestPausedJobs(t *testing.T) {
	tel := newTelemetry(t)
	jobs := tel.Scheduler()
	is := func() float64 { return tel.value(t, "tenure.job.paused", "tenure.job.name", "report") }
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "report"})
	require.Zero(t, is())
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "report", Pause: scheduler.PauseTrace{Paused: true}})
	require.EqualValues(t, 1, is())
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "report"})
	require.Zero(t, is())
}

// The next tick is told also when it has passed, but not while a run goes on here, which decides or
// outlasts it: then nobody is late.
func TestNextTickWhileARunGoesOn(t *testing.T) {
	tel := newTelemetry(t)
	jobs, run := tel.Scheduler(), scheduler.Run{Job: "report"}
	told := func() int { return len(tel.points(t, "tenure.job.next_timestamp")) }
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "report", Next: time.Unix(3000, 0)})
	require.Equal(t, 1, told())
	ctx := jobs.RunStart(t.Context(), scheduler.RunStartTrace{Run: run})
	require.Zero(t, told())
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "report", Next: time.Now().Add(time.Hour)})
	require.Equal(t, 1, told())
	jobs.Job(t.Context(), scheduler.JobTrace{Job: "report", Next: time.Unix(3000, 0)})
	jobs.RunEnd(ctx, scheduler.RunEndTrace{Run: run})
	require.Equal(t, 1, told())
}

// How far a job has come is told by each replica that runs its ticks, not only by the one that ran
// the last. A run that fails is no success, and a job that has none for too long is overdue,
// whether or not nodes answer. Of a job that was removed nothing is told.
func TestHowFarAJobHasCome(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		replicas := []*telemetry{newTelemetry(t), newTelemetry(t)}
		var fails atomic.Bool
		var remove []func() error
		for _, tel := range replicas {
			s := newScheduler(t, tel, open(t, fleet))
			j := report(t, s, func() error {
				if fails.Load() {
					return errors.New("a failure")
				}
				return nil
			}, scheduler.WithSucceedWithin(25*time.Second))
			remove = append(remove, func() error { return s.RemoveJob(j.ID()) })
		}
		are := func(name string, want float64) {
			t.Helper()
			for _, tel := range replicas {
				require.InDelta(t, want, tel.value(t, name, "tenure.job.name", "report"), 0.1, name)
			}
		}
		at := func(second int) float64 { return float64(time.Date(2000, 1, 1, 0, 0, second, 0, time.UTC).Unix()) }
		pass(25 * time.Second)
		fails.Store(true)
		are("tenure.job.next_timestamp", at(30))
		are("tenure.job.success_timestamp", at(20))
		are("tenure.job.overdue", 0)
		pass(10 * time.Second)
		are("tenure.job.success_timestamp", at(20))
		freeze(t, fleet, 0, 1, 2)
		pass(9 * time.Second)
		are("tenure.job.overdue", 0)
		pass(2 * time.Second)
		are("tenure.job.overdue", 1)
		thaw(t, fleet, 0, 1, 2)
		fails.Store(false)
		pass(19 * time.Second)
		for i, tel := range replicas {
			require.Zero(t, tel.value(t, "tenure.job.overdue"))
			require.NoError(t, remove[i]())
			settle()
			for _, name := range []string{"tenure.job.next_timestamp", "tenure.job.success_timestamp", "tenure.job.overdue"} {
				require.Empty(t, tel.points(t, name), name)
			}
		}
	})
}

// An order is a span with who gave it and why, and the lease under which it was written is below
// it.
func TestOrderSpans(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		c, err := admin.New(q, admin.WithTracer(tel), admin.WithActor("ann"), admin.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		_, err = c.Pause(t.Context(), admin.Job("report"), admin.PauseOptions{Reason: "it moves", Force: true})
		require.NoError(t, err)
		require.Error(t, c.Resign(t.Context(), "nobody", "why"))
		var done, failed bool
		for _, s := range tel.spans("tenure.order") {
			text := fmt.Sprint(s.Attributes())
			require.Contains(t, text, "ann")
			switch s.Status().Code {
			case codes.Unset:
				done = true
				require.Contains(t, text, "report")
				require.NotEmpty(t, s.ChildSpanCount())
			case codes.Error:
				failed = true
				require.Contains(t, text, "why")
			}
		}
		require.True(t, done)
		require.True(t, failed)
	})
}

// What came of orders is counted, and known to be nothing before.
func TestOrdersAreCounted(t *testing.T) {
	tel := newTelemetry(t)
	for err, outcome := range map[error]string{
		nil: "done", &admin.OrderError{Err: admin.ErrRefused}: "refused", &admin.OrderError{Err: admin.ErrNobody}: "nobody",
		&admin.OrderError{Err: admin.ErrUnknown}: "unknown", redlock.ErrNoQuorum: "error",
	} {
		tel.TraceOrderEnd(t.Context(), admin.TraceOrderEndData{Kind: admin.OrderRunNow, Err: err})
		require.Len(t, tel.matching(t, "tenure.orders", "tenure.operation", "run_now"), 5)
		require.EqualValues(t, 1, tel.value(t, "tenure.orders", "tenure.operation", "run_now", "tenure.outcome", outcome))
	}
}
