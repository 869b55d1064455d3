package tenureotel

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/scheduler"
)

// job has the attribute sets and the state of one job's name.
type job struct {
	*series
	runs    counter[string] // by outcome
	skipped counter[scheduler.Reason]
	own     atomic.Bool // a scheduler.Scheduler reports it, which tells more than gocron
	bare    atomic.Bool // a bare gocron scheduler has it

	known   atomic.Pointer[scheduler.JobTrace]
	running atomic.Int64 // calls of the task that go on in this process
}

// skipMonitored is the reason of a skip that gocron's monitors report, which give none.
const skipMonitored = scheduler.Reason("skipped")

// The values of tenure.reason of tenure.job.skipped, and of tenure.outcome of tenure.job.runs.
// bareReasons are for jobs of a bare gocron scheduler, the others for jobs of a Scheduler. A tick
// that is skipped for another reason was run by another replica, or may still be run.
var (
	skipReasons = []scheduler.Reason{scheduler.SkipOverlap, scheduler.SkipPaused, scheduler.SkipMissed, scheduler.SkipSuperseded, scheduler.SkipCutShort}
	runOutcomes = []string{outcomeSuccess, outcomeError, outcomePanic, outcomeStopped, outcomeLost}
	bareReasons = []scheduler.Reason{scheduler.SkipOverlap, skipMonitored}
)

// bareOutcomes is how many of runOutcomes, from the first, a job of a bare gocron scheduler can
// have.
const bareOutcomes = 3

func (i *Instrumentation) newJob(name string) *job {
	attributes := i.with(attribute.String("tenure.job.name", name))
	return &job{
		series:  newSeries(attributes...),
		runs:    newCounter(i.jobRuns, attributes, keyOutcome, runOutcomes...),
		skipped: newCounter(i.jobSkipped, attributes, keyReason, append([]scheduler.Reason{skipMonitored}, skipReasons...)...),
	}
}

// report observes the states of a job, as far as this replica knows them: it does not know those of
// a job whose ticks it does not run. A job becomes overdue by the passing of time alone.
func (j *job) report(i *Instrumentation, o metric.Observer) {
	known := j.known.Load()
	if known == nil {
		return
	}
	flag := func(gauge metric.Int64Observable, is bool) {
		n := int64(0)
		if is {
			n = 1
		}
		o.ObserveInt64(gauge, n, j.observe...)
	}
	if j.own.Load() {
		flag(i.jobPaused, known.Pause.Paused)
	}
	at := func(gauge metric.Float64Observable, at time.Time) {
		if !at.IsZero() {
			o.ObserveFloat64(gauge, float64(at.UnixMilli())/1000, j.observe...)
		}
	}
	if j.running.Load() == 0 || known.Next.After(time.Now()) { // else Next is outdated
		at(i.jobNext, known.Next)
	}
	at(i.jobSuccess, known.Succeeded)
	if !known.OverdueAt.IsZero() {
		flag(i.jobOverdue, time.Now().After(known.OverdueAt))
	}
}

// Scheduler returns the tracer with which a scheduler.Scheduler reports to i, its election
// included:
//
//	s, err := scheduler.New(q, scheduler.WithTracer(tel.Scheduler()))
func (i *Instrumentation) Scheduler() *scheduler.Tracer {
	if i == nil { // it came with an error: scheduler.New refuses the tracer
		return nil
	}
	return &scheduler.Tracer{
		Job: i.jobKnown, Tick: i.tickAsked, RunStart: i.runBegins, RunEnd: i.runEnded, TraceID: traceID, Skip: i.ticksSkipped,
		Campaign: i,
	}
}

func (i *Instrumentation) jobKnown(ctx context.Context, data scheduler.JobTrace) {
	j := i.jobs.get(data.Job)
	was := j.known.Swap(&data)
	if !j.own.Swap(true) {
		i.announce(func() {
			j.runs.zero(runOutcomes...)
			j.skipped.zero(skipReasons...)
			i.jobConflict.Add(context.Background(), 0, j.add...)
		})
	}
	if data.Election != "" {
		i.elections.get(data.Election)
	}
	if data.Conflict != nil && (was == nil || was.Conflict != data.Conflict) {
		i.jobConflict.Add(ctx, 1, j.add...)
	}
}

// ticksSkipped counts ticks that will not be run later. At most one replica reports each of them.
func (i *Instrumentation) ticksSkipped(ctx context.Context, e *scheduler.SkipError) {
	if !e.Pending {
		i.jobs.get(e.Job).skipped.add(ctx, e.Reason, max(e.Count, 1))
	}
}

type runSpanKey struct{}

// runBegins makes the span of a run and puts it into the task's context. The span belongs to the
// trace of the run's tick; if the Quorum has no tracer it is a root.
func (i *Instrumentation) runBegins(ctx context.Context, data scheduler.RunStartTrace) context.Context {
	j, run := i.jobs.get(data.Run.Job), data.Run
	j.running.Add(1)
	ticks := !run.Due.IsZero()
	if i.spans {
		lease := run.Lease()
		options := []trace.SpanStartOption{trace.WithAttributes(j.attributes...)}
		parent := ctx
		if t := tickOf(lease); t != nil {
			parent = t.within(ctx)
		} else {
			options = append(options, trace.WithNewRoot())
		}
		var links []trace.Link
		if lease != nil {
			links = linkTo(lease.Context())
		}
		if data.Term != nil {
			links = append(links, linkTo(data.Term.Context())...)
		}
		spanned, span := i.tracer.Start(parent, "tenure.job.run", append(options, trace.WithLinks(links...))...)
		if span.IsRecording() {
			span.SetAttributes(attribute.Int("tenure.job.attempt", run.Attempt), keyJobWhy.String(run.Why))
			if lease != nil {
				span.SetAttributes(keyLeaseToken.Int64(int64(lease.FencingToken())))
			}
			if ticks {
				span.SetAttributes(dueAttribute(run.Due), attribute.Float64("tenure.job.lateness", data.Lateness.Seconds()))
			}
		}
		ctx = context.WithValue(spanned, runSpanKey{}, span)
	}
	// The lateness of a backfilled tick is an operator's choice. A repeated call of a tick is not
	// its beginning.
	if ticks && run.Attempt == 1 && run.Why != string(joblog.Backfill) {
		i.jobLateness.Record(ctx, max(data.Lateness, 0).Seconds(), j.record...)
	}
	return ctx
}

// dueAttribute returns the time of a tick as an attribute.
func dueAttribute(due time.Time) attribute.KeyValue {
	return attribute.String("tenure.job.due", due.Format(time.RFC3339Nano))
}

func (i *Instrumentation) runEnded(ctx context.Context, data scheduler.RunEndTrace) {
	j, lease, err := i.jobs.get(data.Run.Job), data.Run.Lease(), data.Err
	j.running.Add(-1)
	outcome, kind := outcomeSuccess, ""
	if err != nil {
		outcome, kind = outcomeError, cmp.Or(ask(func() string { return text(elector.ErrorType(err)) }), "_OTHER")
	}
	_, panicked := err.(*scheduler.PanicError)
	switch {
	case panicked:
		outcome = outcomePanic
	case lease != nil && lease.Err() != nil:
		err = lease.Err()
		outcome, kind = outcomeLost, text(elector.ErrorType(err))
	case err != nil && ctx.Err() != nil:
		outcome = outcomeStopped
	}
	j.runs.add(ctx, outcome, 1)
	i.jobDuration.Record(ctx, data.Duration.Seconds(), j.record...)
	span, ok := ctx.Value(runSpanKey{}).(trace.Span)
	if !ok {
		return
	}
	if t := tickOf(lease); t != nil {
		t.returned(outcome, kind, err)
	}
	if span.IsRecording() {
		endWith(span, outcome, kind, err)
	}
	span.End()
}

// traceID returns the ID of the trace of the run's span, sampled or not; empty without a span.
func traceID(ctx context.Context) string {
	span, ok := ctx.Value(runSpanKey{}).(trace.Span)
	if !ok || !span.SpanContext().HasTraceID() {
		return ""
	}
	return span.SpanContext().TraceID().String()
}
