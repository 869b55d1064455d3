package tenureotel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/scheduler"
)

// job is what is made once for a job's name.
type job struct {
	attributes []attribute.KeyValue
	record     []metric.RecordOption
	add        []metric.AddOption
	took       measurements
	observe    []metric.ObserveOption
	skipped    map[scheduler.Reason][]metric.AddOption
	own        atomic.Bool // a scheduler.Scheduler's, which tells more than gocron's monitors
	bare       atomic.Bool // of a scheduler of gocron's own

	backlog   atomic.Int64 // ticks
	paused    atomic.Int64 // 1 while it is
	succeeded atomic.Int64 // when a run has last, in Unix milliseconds; 0 for never
}

// skipMonitored is the reason of skips of which gocron's monitors do not tell one.
const skipMonitored = scheduler.Reason("skipped")

// skipReasons are the values of reason that tenure.job.skipped of a Scheduler's job can have.
var skipReasons = []scheduler.Reason{scheduler.SkipHeld, scheduler.SkipDone, scheduler.SkipOverlap, scheduler.SkipNotLeader, scheduler.SkipPaused, scheduler.SkipRefused, scheduler.SkipAhead, scheduler.SkipQuarantined,
	scheduler.SkipNoQuorum, scheduler.SkipTimeout, scheduler.SkipSplit, scheduler.SkipSuperseded, scheduler.SkipMissed, scheduler.SkipStopped, scheduler.SkipOther}

func (i *Instrumentation) job(name string) *job {
	return i.jobs.get(name)
}

func (i *Instrumentation) newJob(name string) *job {
	attributes := i.with(keyJob.String(name))
	j := &job{
		attributes: attributes,
		record:     []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		add:        []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		observe:    []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		took:       measurements{base: attributes},
		skipped:    make(map[scheduler.Reason][]metric.AddOption),
	}
	for _, reason := range append(skipReasons[:len(skipReasons):len(skipReasons)], skipMonitored) {
		j.skipped[reason] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(
			i.with(keyJob.String(name), keyReason.String(string(reason)))...))}
	}
	return j
}

// announce puts the counters of a job at zero.
func (j *job) announce(i *Instrumentation) {
	var reasons []scheduler.Reason
	switch {
	case j.own.Load():
		reasons = skipReasons
		i.jobConflict.Add(context.Background(), 0, j.add...)
	case j.bare.Load():
		reasons = []scheduler.Reason{skipMonitored, scheduler.SkipOverlap}
	}
	for _, reason := range reasons {
		i.jobSkipped.Add(context.Background(), 0, j.skipped[reason]...)
	}
}

// report observes what a job is in.
func (j *job) report(i *Instrumentation, o metric.Observer) {
	if j.own.Load() {
		o.ObserveInt64(i.jobBacklog, j.backlog.Load(), j.observe...)
		o.ObserveInt64(i.jobPaused, j.paused.Load(), j.observe...)
	}
	if at := j.succeeded.Load(); at != 0 {
		o.ObserveFloat64(i.jobLastSuccess, float64(at)/1000, j.observe...)
	}
}

// TraceJob implements scheduler.JobTracer.
func (i *Instrumentation) TraceJob(_ context.Context, data scheduler.TraceJobData) {
	j := i.job(data.Job)
	j.own.Store(true)
	j.announce(i)
	j.backlog.Store(0)
	j.paused.Store(0)
	if data.Election != "" {
		i.election(data.Election)
	}
}

// errPanicked stands for the panic of a task, whose value gocron has.
var errPanicked = errors.New("the task panicked")

type runSpanKey struct{}

// TraceRunStart implements scheduler.RunTracer. The task's context has the run's span, which is in
// the trace of its tick; where the Quorum has no tracer it is a root.
func (i *Instrumentation) TraceRunStart(ctx context.Context, data scheduler.TraceRunStartData) context.Context {
	j := i.job(data.Run.Job)
	if i.spans {
		links := linkTo(data.Run.Lease().Context())
		if data.Term != nil {
			links = append(links, linkTo(data.Term.Context())...)
		}
		options := []trace.SpanStartOption{trace.WithLinks(links...), trace.WithAttributes(j.attributes...)}
		parent := ctx
		if _, tick := tickOf(data.Run.Lease()); tick != nil {
			parent = within(ctx, tick)
		} else {
			options = append(options, trace.WithNewRoot())
		}
		spanned, span := i.tracer.Start(parent, "tenure.job.run", options...)
		if span.IsRecording() {
			span.SetAttributes(keyJobAttempt.Int(data.Run.Attempt), keyJobCatchUp.Bool(data.Run.CatchUp), keyLeaseToken.Int64(int64(data.Run.FencingToken())))
			if !data.Run.Tick.IsZero() {
				span.SetAttributes(keyJobTick.String(data.Run.Tick.Format(time.RFC3339Nano)), keyJobDelay.Float64(data.Delay.Seconds()))
			}
		}
		ctx = context.WithValue(spanned, runSpanKey{}, span)
	}
	if !data.Run.Tick.IsZero() && i.jobDelay.Enabled(ctx) {
		i.jobDelay.Record(ctx, max(data.Delay, 0).Seconds(), j.record...)
	}
	return ctx
}

// TraceRunEnd implements scheduler.RunTracer.
func (i *Instrumentation) TraceRunEnd(ctx context.Context, data scheduler.TraceRunEndData) {
	outcome, kind := outcomeSuccess, ""
	lost := data.Run.Lease().Err()
	switch {
	case data.Panicked:
		outcome, kind, data.Err = outcomePanic, "panic", errPanicked
	case lost != nil:
		outcome, kind, data.Err = outcomeLost, text(elector.ErrorType(lost)), lost
	case data.Err != nil:
		outcome, kind = outcomeError, text(elector.ErrorType(data.Err))
	}
	if i.jobDuration.Enabled(ctx) {
		i.jobDuration.Record(ctx, data.Duration.Seconds(), i.job(data.Run.Job).took.get(outcome, outcomeAttribute)...)
	}
	if outcome == outcomeSuccess {
		i.job(data.Run.Job).succeeded.Store(time.Now().UnixMilli())
	}
	span, ok := ctx.Value(runSpanKey{}).(trace.Span)
	if !ok {
		return
	}
	if t, _ := tickOf(data.Run.Lease()); t != nil {
		t.returned(outcome, kind, data.Err)
	}
	if span.IsRecording() {
		span.SetAttributes(keyOutcome.String(outcome))
		if data.Err != nil {
			span.SetAttributes(keyErrorType.String(kind))
			fail(span, data.Err)
		}
	}
	span.End()
}

func outcomeAttribute(outcome string) []attribute.KeyValue {
	return []attribute.KeyValue{keyOutcome.String(outcome)}
}

// TraceSkip implements scheduler.SkipTracer. A tick that is still pursued is not counted yet,
// because it is reported again when it is given up; but one that a follower pursues is, because
// most of the time the leader runs it and nothing more is heard.
func (i *Instrumentation) TraceSkip(ctx context.Context, data scheduler.TraceSkipData) {
	if data.Skip.Pending && data.Skip.Reason != scheduler.SkipNotLeader || !i.jobSkipped.Enabled(ctx) {
		return
	}
	i.jobSkipped.Add(ctx, 1, i.job(data.Skip.Job).skipped[data.Skip.Reason]...)
}

// TraceBacklog implements scheduler.BacklogTracer.
func (i *Instrumentation) TraceBacklog(_ context.Context, data scheduler.TraceBacklogData) {
	i.job(data.Job).backlog.Store(int64(data.Ticks))
}

// TracePause implements scheduler.PauseTracer.
func (i *Instrumentation) TracePause(_ context.Context, data scheduler.TracePauseData) {
	paused := int64(0)
	if data.Pause.Version != 0 {
		paused = 1
	}
	i.job(data.Job).paused.Store(paused)
}

// TraceConflict implements scheduler.ConflictTracer.
func (i *Instrumentation) TraceConflict(ctx context.Context, data scheduler.TraceConflictData) {
	if i.jobConflict.Enabled(ctx) {
		i.jobConflict.Add(ctx, 1, i.job(data.Conflict.Job).add...)
	}
}

// TraceID implements scheduler.TraceIdentifier: the trace of the run's span, sampled or not; empty
// without one.
func (i *Instrumentation) TraceID(ctx context.Context) string {
	span, ok := ctx.Value(runSpanKey{}).(trace.Span)
	if !ok || !span.SpanContext().HasTraceID() {
		return ""
	}
	return span.SpanContext().TraceID().String()
}
