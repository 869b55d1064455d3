package tenureotel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// ofLease returns the acquisition of the lease name.
func ofLease(t *testing.T, tel *telemetry, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range tel.spans("tenure.lease.acquire") {
		if attributesOf(s)["lease.name"] == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "acquisitions of %s", name)
	return found[0]
}

func TestRunIsARootThatIsLinkedToItsLease(t *testing.T) {
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
		run := tel.span(t, "tenure.job.run")
		require.False(t, run.Parent().IsValid())
		require.NotEqual(t, caller.SpanContext().TraceID(), run.SpanContext().TraceID(), "a root of its own")
		require.Equal(t, trace.SpanKindInternal, run.SpanKind())
		linkedTo(t, run, ofLease(t, tel, "job/report"))
		require.Equal(t, run.SpanContext(), task, "the task's context has it")
		childOf(t, ofLease(t, tel, "inner"), run.SpanContext())
		require.Equal(t, sdktrace.Status{}, run.Status())
		attributes := attributesOf(run)
		require.Equal(t, attributesOf(ofLease(t, tel, "job/report"))["lease.fencing_token"], attributes["lease.fencing_token"])
		delete(attributes, "lease.fencing_token")
		require.Equal(t, map[string]string{"job.name": "report", "job.attempt": "1", "job.catch_up": "false", "job.delay": "0",
			"job.tick": "2000-01-01T00:00:10Z", "outcome": "success"}, attributes)
		released := tel.spans("tenure.lease.release")
		require.Len(t, released, 2)
		linkedTo(t, released[1], ofLease(t, tel, "job/report"))
	})
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
		childOf(t, ofLease(t, tel, "election/jobs"), tel.span(t, "tenure.election.campaign").SpanContext())
		require.EqualValues(t, 1, tel.value(t, "tenure.election.leader", "election.name", "jobs"))
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
		require.NotContains(t, attributes, "job.tick")
		require.NotContains(t, attributes, "job.delay")
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
			{"error", "other", "the task's own"},
			{"panic", "panic", "the task panicked"},
			{"lost", "lost_refused", "redlock: lease on \"job/report\" lost"},
		} {
			attributes := attributesOf(runs[i])
			assert.Equal(t, want.outcome, attributes["outcome"])
			assert.Equal(t, want.errorType, attributes["error.type"])
			assert.True(t, strings.HasPrefix(runs[i].Status().Description, want.status), runs[i].Status().Description)
			assert.Equal(t, want.status != "", runs[i].Status().Code == codes.Error)
			assert.Equal(t, 1, tel.total(t, "tenure.job.duration", "job.name", "report", "outcome", want.outcome), want.outcome)
		}
		assert.Equal(t, 4, tel.total(t, "tenure.job.start.delay", "job.name", "report"))
		assert.EqualValues(t, 1, tel.value(t, "tenure.job.skipped", "job.name", "report", "reason", "held")+
			tel.value(t, "tenure.job.skipped", "job.name", "report", "reason", "overlap"))
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
		require.EqualValues(t, 5, tel.value(t, "tenure.job.skipped", "job.name", "report", "reason", "not_leader"))
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
		require.EqualValues(t, 1, tel.value(t, "tenure.job.skipped", "reason", "superseded"))
	})
}

// A job that another replica runs in another way is counted as long as it does, from zero.
func TestConflictsOfJobs(t *testing.T) {
	tel := newTelemetry(t)
	tel.TraceJob(t.Context(), scheduler.TraceJobData{Job: "report"})
	require.EqualValues(t, 0, tel.value(t, "tenure.job.conflict", "job.name", "report"))
	for range 2 {
		tel.TraceConflict(t.Context(), scheduler.TraceConflictData{Conflict: scheduler.Conflict{Job: "report", Other: "another"}})
	}
	require.EqualValues(t, 2, tel.value(t, "tenure.job.conflict", "job.name", "report"))
}
