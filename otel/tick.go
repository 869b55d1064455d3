package tenureotel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// tick is one of a job of a Scheduler, or another run of it, from the question for its lease to the
// release. All of that is one trace, below a span of the tick. Most replicas do not get the lease,
// and make none: so nothing is begun before the acquisition is over.
type tick struct {
	data  scheduler.TraceTickData
	asked atomic.Bool // its lease has been: what comes later is done in the run
	began time.Time
	of    redlock.TraceAcquireStartData

	mu      sync.Mutex
	lease   *redlock.Lease  // guarded by mu; nil unless it was granted
	root    trace.Span      // guarded by mu; nil for a tick without a trace
	ctx     context.Context // guarded by mu; with the root as the current span
	outcome string          // guarded by mu; of the run
	kind    string          // guarded by mu; of its error
	err     error           // guarded by mu
}

type tickKey struct{}

func tickFrom(ctx context.Context) *tick {
	t, _ := ctx.Value(tickKey{}).(*tick)
	return t
}

// notBegun is the outcome of a tick that was granted, and given back before its task was called.
const notBegun = "not_begun"

// TraceTick implements scheduler.TickTracer.
func (i *Instrumentation) TraceTick(ctx context.Context, data scheduler.TraceTickData) context.Context {
	if !i.spans {
		return ctx
	}
	return context.WithValue(ctx, tickKey{}, &tick{data: data, outcome: notBegun})
}

// acquires begins the acquisition of the tick's lease, and reports whether this is it.
func (t *tick) acquires(data redlock.TraceAcquireStartData) bool {
	if t == nil || data.Key != t.data.Key || !t.asked.CompareAndSwap(false, true) {
		return false
	}
	t.began, t.of = time.Now(), data
	return true
}

// lostTick reports whether a tick was not granted although nothing is wrong.
func lostTick(err error, kind string) bool {
	_, failed := acquireOutcome(kind)
	return !failed || errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrPaused)
}

// acquired makes the spans of a tick and of its acquisition, with what is known of nodes, and
// returns that of the acquisition. Of one that another replica has there are none, and none of one
// that is not to be run.
func (i *Instrumentation) acquired(ctx context.Context, t *tick, op *operation, data redlock.TraceAcquireEndData, kind string) trace.Span {
	if data.Lease == nil && lostTick(data.Err, kind) && !i.cfg.lostTickSpans {
		op.begin(i, nil, nil)
		return nil
	}
	rooted, root := i.tracer.Start(ctx, "tenure.job.tick", trace.WithNewRoot(), trace.WithTimestamp(t.began), trace.WithAttributes(i.job(t.data.Job).attributes...))
	if root.IsRecording() {
		root.SetAttributes(keyJobCatchUp.Bool(t.data.Late))
		if !t.data.Tick.IsZero() {
			root.SetAttributes(keyJobTick.String(t.data.Tick.Format(time.RFC3339Nano)))
		}
	}
	spanned, span := i.tracer.Start(rooted, "tenure.lease.acquire", append(i.lease(data.Key).start, trace.WithTimestamp(t.began))...)
	if span.IsRecording() {
		span.SetAttributes(append(acquireStartAttributes(t.of), keyLeaseAttempts.Int(data.Attempts))...)
		op.begin(i, span, spanned)
		endAcquire(span, data, kind, false)
	} else {
		op.begin(i, nil, nil)
	}
	t.mu.Lock()
	t.root, t.ctx, t.lease = root, rooted, data.Lease
	t.mu.Unlock()
	if data.Lease == nil {
		outcome, failed := acquireOutcome(kind)
		if !failed {
			t.returned(outcome, "", nil)
		} else {
			t.returned(outcome, kind, data.Err)
		}
		t.end()
	}
	return span
}

// tickOf returns the tick whose lease this is, and its root; nil for a lease of something else,
// such as one that a task acquired.
func tickOf(l *redlock.Lease) (*tick, context.Context) {
	t := tickFrom(l.Context())
	if t == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease != l || t.root == nil {
		return nil, nil
	}
	return t, t.ctx
}

// within returns the context with the tick's span as the current one.
func within(ctx, tick context.Context) context.Context {
	return trace.ContextWithSpan(ctx, trace.SpanFromContext(tick))
}

// returned notes how the run ended.
func (t *tick) returned(outcome, kind string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcome, t.kind, t.err = outcome, kind, err
}

// end ends the span of the tick.
func (t *tick) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.root.IsRecording() {
		attributes := []attribute.KeyValue{keyOutcome.String(t.outcome)}
		if t.err != nil {
			attributes = append(attributes, keyErrorType.String(t.kind))
			fail(t.root, t.err)
		}
		t.root.SetAttributes(attributes...)
	}
	t.root.End()
}
