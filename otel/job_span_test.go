package tenureotel_test

import (
	"context"
	"errors"
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
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

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
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		defer caller.End()
		s := newScheduler(t, tel, q, scheduler.WithContext(ctx))
		var task trace.SpanContext
		_, err := s.NewJob(everyTen, scheduler.NewTask(func(ctx context.Context) error {
			task = trace.SpanContextFromContext(ctx)
			l, err := q.TryAcquire(ctx, "inner")
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		pass(15 * time.Second)
		tick := tel.span(t, "tenure.job.tick")
		require.False(t, tick.Parent().IsValid())
		require.NotEqual(t, caller.SpanContext().TraceID(), tick.SpanContext().TraceID(), "a root of its own")
		require.Equal(t, map[string]string{"tenure.job.name": "report", "tenure.job.catch_up": "false", "tenure.job.tick": "2000-01-01T00:00:10Z", "tenure.outcome": "success"}, attributesOf(tick))
		acquired := ofLease(t, tel, "job/report")
		childOf(t, acquired, tick.SpanContext())
		nodes := make(map[string]int) // of the round that finds that the nodes do not know the sequence, and of the one that wins
		for _, n := range tel.spans("tenure.node.acquire") {
			if n.SpanContext().TraceID() == tick.SpanContext().TraceID() && n.Parent().SpanID() == acquired.SpanContext().SpanID() {
				nodes[attributesOf(n)["tenure.lease.attempt"]]++
				require.False(t, n.StartTime().Before(acquired.StartTime()))
			}
		}
		require.Equal(t, map[string]int{"1": 5, "2": 5}, nodes)
		require.Equal(t, "2", attributesOf(acquired)["tenure.lease.attempts"])
		run := tel.span(t, "tenure.job.run")
		childOf(t, run, tick.SpanContext())
		require.False(t, acquired.StartTime().Before(tick.StartTime()))
		require.Equal(t, trace.SpanKindInternal, run.SpanKind())
		linkedTo(t, run, ofLease(t, tel, "job/report"))
		require.Equal(t, run.SpanContext(), task, "the task's context has it")
		childOf(t, ofLease(t, tel, "inner"), run.SpanContext())
		require.Equal(t, sdktrace.Status{}, run.Status())
		attributes := attributesOf(run)
		require.Equal(t, attributesOf(ofLease(t, tel, "job/report"))["tenure.lease.fencing_token"], attributes["tenure.lease.fencing_token"])
		delete(attributes, "tenure.lease.fencing_token")
		require.Equal(t, map[string]string{"tenure.job.name": "report", "tenure.job.attempt": "1", "tenure.job.catch_up": "false", "tenure.job.delay": "0",
			"tenure.job.tick": "2000-01-01T00:00:10Z", "tenure.outcome": "success"}, attributes)
		released := tel.spans("tenure.lease.release")
		require.Len(t, released, 2)
		childOf(t, released[0], run.SpanContext())
		childOf(t, released[1], tick.SpanContext())
		linkedTo(t, released[1], ofLease(t, tel, "job/report"))
		require.False(t, tick.EndTime().Before(released[1].EndTime()))
		require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended())+1, "but for the caller, all have ended")
	})
}

// Of the replicas that ask for a tick, the one that gets it makes a trace. An option has the others
// make one too.
func TestLostTickMakesNoTrace(t *testing.T) {
	for _, test := range []struct {
		outcome string
		prepare func(t *testing.T, q *redlock.Quorum)
	}{
		{"held", func(t *testing.T, q *redlock.Quorum) { acquire(t, q, "job/report") }},
		{"done", func(t *testing.T, q *redlock.Quorum) {
			tick := time.Date(2000, 1, 1, 0, 0, 10, 0, time.UTC)
			require.NoError(t, acquire(t, q, "job/report", redlock.WithSequence(tick.UnixMilli(), redlock.AtMostOnce, time.Hour)).Complete(t.Context()))
		}},
		{"failed", func(t *testing.T, q *redlock.Quorum) { // with paused
			_, err := q.Pause(t.Context(), "job/report", redlock.PauseOptions{})
			require.NoError(t, err)
		}},
	} {
		for _, opts := range [][]tenureotel.Option{nil, {tenureotel.WithLostTickSpans()}} {
			t.Run(test.outcome+strconv.Itoa(len(opts)), func(t *testing.T) {
				bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
					tel := newTelemetry(t, opts...)
					other := open(t, fleet, redlock.WithClockSkew(time.Minute), redlock.WithMaxTTL(time.Minute))
					q := open(t, fleet, redlock.WithTracer(tel), redlock.WithClockSkew(time.Minute), redlock.WithMaxTTL(time.Minute))
					test.prepare(t, other)
					settle()
					s := newScheduler(t, tel, q)
					_, err := s.NewJob(everyTen, scheduler.NewTask(func() {}), gocron.WithName("report"))
					require.NoError(t, err)
					s.Start()
					pass(11 * time.Second)
					require.EqualValues(t, 1, tel.total(t, "tenure.lease.acquire.duration", "tenure.lease.name", "job/report", "tenure.outcome", test.outcome), "it has asked")
					if opts == nil {
						require.Empty(t, tel.spans())
						return
					}
					tick := tel.span(t, "tenure.job.tick")
					require.Equal(t, test.outcome, attributesOf(tick)["tenure.outcome"])
					childOf(t, tel.span(t, "tenure.lease.acquire"), tick.SpanContext())
					require.Len(t, tel.spans("tenure.node.acquire"), 5)
					require.Empty(t, tel.spans("tenure.job.run"))
				})
			})
		}
	}
}

// A tick that no replica can get is a failure, and a trace says so.
func TestTickWithoutAQuorumMakesATrace(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet, redlock.WithTracer(tel)))
		_, err := s.NewJob(everyTen, scheduler.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		for i := range 3 {
			require.NoError(t, fleet.Node(i).Kill())
		}
		pass(11 * time.Second)
		tick := tel.spans("tenure.job.tick")[0]
		require.Equal(t, codes.Error, tick.Status().Code)
		require.Equal(t, "failed", attributesOf(tick)["tenure.outcome"])
		require.Equal(t, "no_quorum", attributesOf(tick)["error.type"])
		acquired := tel.spans("tenure.lease.acquire")[0]
		childOf(t, acquired, tick.SpanContext())
		require.Equal(t, codes.Error, acquired.Status().Code)
	})
}

// So is a tick that is run late: of the time for which it waits there is no trace that is open.
func TestLateTickIsOneTrace(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet, redlock.WithTracer(tel)), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest))
		_, err := s.NewJob(gocron.CronJob("10 * * * * *", true), scheduler.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		pass(5 * time.Second)
		freeze(t, fleet, 0, 1, 2)
		pass(15 * time.Second)
		require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended()))
		require.Empty(t, tel.spans("tenure.job.run"))
		tel.forget()
		thaw(t, fleet, 0, 1, 2)
		pass(30 * time.Second)
		run := tel.span(t, "tenure.job.run")
		require.Equal(t, "true", attributesOf(run)["tenure.job.catch_up"])
		tick := tel.span(t, "tenure.job.tick")
		require.Equal(t, "true", attributesOf(tick)["tenure.job.catch_up"])
		require.Equal(t, "2000-01-01T00:00:10Z", attributesOf(tick)["tenure.job.tick"])
		childOf(t, run, tick.SpanContext())
		childOf(t, tel.span(t, "tenure.lease.acquire"), tick.SpanContext())
		childOf(t, tel.span(t, "tenure.lease.release"), tick.SpanContext())
	})
}

// A lease that is given back before the task was called ends its tick.
func TestTickThatIsNotBegunEnds(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		ctx := tel.TraceTick(t.Context(), scheduler.TraceTickData{Job: "report", Key: "job/report"})
		l, err := open(t, fleet, redlock.WithTracer(tel)).TryAcquire(ctx, "job/report", redlock.WithSequence(1, redlock.AtMostOnce, time.Hour))
		require.NoError(t, err)
		require.NoError(t, l.Abandon(t.Context()))
		settle()
		tick := tel.span(t, "tenure.job.tick")
		require.Equal(t, "not_begun", attributesOf(tick)["tenure.outcome"])
		require.NotContains(t, attributesOf(tick), "tenure.job.tick")
		childOf(t, tel.span(t, "tenure.lease.release"), tick.SpanContext())
	})
}

// Of a tick that is not sampled there is nothing, and its run is not sampled either.
func TestTickThatIsNotSampled(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		recorder := tracetest.NewSpanRecorder()
		tel := newTelemetry(t, tenureotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))))
		q := open(t, fleet, redlock.WithTracer(tel))
		s := newScheduler(t, tel, q)
		var task trace.SpanContext
		_, err := s.NewJob(everyTen, scheduler.NewTask(func(ctx context.Context) { task = trace.SpanContextFromContext(ctx) }), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		pass(15 * time.Second)
		require.Empty(t, recorder.Started())
		require.True(t, task.HasTraceID())
		require.False(t, task.IsSampled())
		require.Equal(t, 1, tel.total(t, "tenure.job.duration"))
	})
}

// The history of runs has the trace of the run's own span, sampled or not, and of no other.
func TestTraceOfARunIsTold(t *testing.T) {
	for name, provider := range map[string]trace.TracerProvider{
		"recorded": nil, "not sampled": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())), "no spans": noop.NewTracerProvider(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				var opts []tenureotel.Option
				if provider != nil {
					opts = append(opts, tenureotel.WithTracerProvider(provider))
				}
				tel := newTelemetry(t, opts...)
				q := open(t, fleet, redlock.WithTracer(tel))
				ctx, caller := tel.tracer().Start(t.Context(), "caller")
				defer caller.End()
				s := newScheduler(t, tel, q, scheduler.WithContext(ctx))
				var task trace.SpanContext
				_, err := s.NewJob(everyTen, scheduler.NewTask(func(ctx context.Context) { task = trace.SpanContextFromContext(ctx) }), gocron.WithName("report"))
				require.NoError(t, err)
				s.Start()
				pass(15 * time.Second)
				entries, err := q.Board().Journal(t.Context(), bulletin.Runs+"/job/report", 1)
				require.NoError(t, err)
				require.Len(t, entries, 1)
				run, ok := bulletin.ParseRun(entries[0].Text)
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
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet, redlock.WithTracer(tel)), scheduler.WithElection("jobs"))
		_, err := s.NewJob(everyTen, scheduler.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		pass(15 * time.Second)
		linkedTo(t, tel.span(t, "tenure.job.run"), ofLease(t, tel, "job/report"), ofLease(t, tel, "election/jobs"))
		rootOf(t, ofLease(t, tel, "election/jobs"), tel.span(t, "tenure.election.campaign"))
		require.EqualValues(t, 1, tel.value(t, "tenure.election.leader", "tenure.election.name", "jobs"))
	})
}

// A run that RunNow asked for has no tick, and so no delay.
func TestRunNowHasNoTick(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet, redlock.WithTracer(tel)))
		j, err := s.NewJob(everyTen, scheduler.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		require.NoError(t, j.RunNow())
		pass(time.Second)
		attributes := attributesOf(tel.span(t, "tenure.job.run"))
		childOf(t, tel.span(t, "tenure.job.run"), tel.span(t, "tenure.job.tick").SpanContext())
		require.NotContains(t, attributesOf(tel.span(t, "tenure.job.tick")), "tenure.job.tick")
		require.NotContains(t, attributes, "tenure.job.tick")
		require.NotContains(t, attributes, "tenure.job.delay")
		require.Zero(t, tel.total(t, "tenure.job.start.delay"))
		require.Equal(t, 1, tel.total(t, "tenure.job.duration"))
	})
}

func TestRunsByHowTheyEnd(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		jobs(t, tel, fleet, open(t, fleet, redlock.WithTracer(tel)))
		runs := tel.spans("tenure.job.run")
		require.Len(t, runs, 4)
		for i, want := range []struct {
			outcome, errorType, status string
		}{
			{"success", "", ""},
			{"error", "_OTHER", "the task's own"},
			{"panic", "panic", "the task panicked"},
			{"lost", "lost_refused", "redlock: lease on \"job/report\" lost"},
		} {
			attributes := attributesOf(runs[i])
			assert.Equal(t, want.outcome, attributes["tenure.outcome"])
			assert.Equal(t, want.errorType, attributes["error.type"])
			assert.True(t, strings.HasPrefix(runs[i].Status().Description, want.status), runs[i].Status().Description)
			assert.Equal(t, want.status != "", runs[i].Status().Code == codes.Error)
			assert.Equal(t, 1, tel.total(t, "tenure.job.duration", "tenure.job.name", "report", "tenure.outcome", want.outcome), want.outcome)
		}
		assert.Equal(t, 4, tel.total(t, "tenure.job.start.delay", "tenure.job.name", "report"))
		assert.EqualValues(t, 1, tel.value(t, "tenure.job.skipped", "tenure.job.name", "report", "tenure.reason", "held")+
			tel.value(t, "tenure.job.skipped", "tenure.job.name", "report", "tenure.reason", "overlap"))
	})
}

// A follower's ticks count as skipped once each; ticks that are still pursued count when they are
// given up.
func TestSkipsAreCountedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		leader := newScheduler(t, newTelemetry(t), open(t, fleet), scheduler.WithElection("jobs"))
		follower := newScheduler(t, tel, open(t, fleet), scheduler.WithElection("jobs"))
		for _, s := range []*scheduler.Scheduler{leader, follower} {
			_, err := s.NewJob(everyTen, scheduler.NewTask(func() {}), gocron.WithName("report"))
			require.NoError(t, err)
			s.Start()
			pass(time.Second)
		}
		pass(51 * time.Second)
		require.EqualValues(t, 5, tel.value(t, "tenure.job.skipped", "tenure.job.name", "report", "tenure.reason", "not_leader"))
	})
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet), scheduler.WithCatchUp(15*time.Second, scheduler.CatchUpLatest))
		_, err := s.NewJob(everyTen, scheduler.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		pass(5 * time.Second)
		for i := range 3 {
			require.NoError(t, fleet.Node(i).Kill())
		}
		pass(10 * time.Second)
		sum := 0.0
		for _, p := range tel.points(t, "tenure.job.skipped") {
			sum += p.value
		}
		require.Zero(t, sum, "the tick of 10 s is pursued")
		pass(10 * time.Second)
		require.EqualValues(t, 1, tel.value(t, "tenure.job.skipped", "tenure.reason", "superseded"))
	})
}

// A job that another replica runs in another way is counted as long as it does, from zero.
func TestConflictsOfJobs(t *testing.T) {
	tel := newTelemetry(t)
	tel.TraceJob(t.Context(), scheduler.TraceJobData{Job: "report"})
	require.EqualValues(t, 0, tel.value(t, "tenure.job.conflict", "tenure.job.name", "report"))
	for range 2 {
		tel.TraceConflict(t.Context(), scheduler.TraceConflictData{Conflict: scheduler.Conflict{Job: "report", Other: "another"}})
	}
	require.EqualValues(t, 2, tel.value(t, "tenure.job.conflict", "tenure.job.name", "report"))
}

// Whether a job is paused is told from the beginning, as its ticks find it.
func TestPausedJobs(t *testing.T) {
	tel := newTelemetry(t)
	is := func() float64 { return tel.value(t, "tenure.job.paused", "tenure.job.name", "report") }
	tel.TraceJob(t.Context(), scheduler.TraceJobData{Job: "report"})
	require.Zero(t, is())
	tel.TracePause(t.Context(), scheduler.TracePauseData{Job: "report", Pause: redlock.Pause{Version: 7}})
	require.EqualValues(t, 1, is())
	tel.TracePause(t.Context(), scheduler.TracePauseData{Job: "report"})
	require.Zero(t, is())
}

// When a job succeeded last is told, and a run that fails does not change it.
func TestLastSuccess(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet))
		var fails atomic.Bool
		_, err := s.NewJob(everyTen, scheduler.NewTask(func() error {
			if fails.Load() {
				return errors.New("a failure")
			}
			return nil
		}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		pass(11 * time.Second)
		first := tel.value(t, "tenure.job.last_success_timestamp", "tenure.job.name", "report")
		require.InDelta(t, float64(time.Now().Unix()), first, 2)
		fails.Store(true)
		pass(10 * time.Second)
		require.Equal(t, first, tel.value(t, "tenure.job.last_success_timestamp", "tenure.job.name", "report"))
		fails.Store(false)
		pass(10 * time.Second)
		require.Greater(t, tel.value(t, "tenure.job.last_success_timestamp", "tenure.job.name", "report"), first)
	})
}
