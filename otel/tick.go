package tenureotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// tick is a tick of a Scheduler's job, or another run of it, from the request for its lease to the
// release. All of it is one trace, with a span of the tick at its root. Most replicas do not get
// the lease and make no trace, so the spans are made when the acquisition is over.
type tick struct {
	data scheduler.TickTrace

	mu      sync.Mutex
	began   time.Time                     // guarded by mu; the first request for its lease
	of      redlock.TraceAcquireStartData // guarded by mu; the present acquisition
	lease   *redlock.Lease                // guarded by mu; nil unless it was granted
	root    trace.Span                    // guarded by mu; nil for a tick without a trace
	outcome string                        // guarded by mu; the run's
	kind    string                        // guarded by mu; error.type of the run
	err     error                         // guarded by mu
}

type tickKey struct{}

func tickFrom(ctx context.Context) *tick {
	t, _ := ctx.Value(tickKey{}).(*tick)
	return t
}

// notBegun is the outcome of a tick whose lease was granted and released without a call of the
// task.
const notBegun = "not_begun"

// tickAsked is called before the lease of a tick is asked for.
func (i *Instrumentation) tickAsked(ctx context.Context, data scheduler.TickTrace) context.Context {
	if !i.spans {
		return ctx
	}
	return context.WithValue(ctx, tickKey{}, &tick{data: data, outcome: notBegun})
}

// acquires reports whether an acquisition is for the tick's lease, and notes its beginning. The
// first request may be followed by a second acquisition, which waits for the lease. Acquisitions
// after the grant are made by the run.
func (t *tick) acquires(data redlock.TraceAcquireStartData) bool {
	if t == nil || data.Key != t.data.Key {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease != nil {
		return false
	}
	if t.of = data; t.began.IsZero() {
		t.began = time.Now()
	}
	return true
}

// acquired makes the spans of a tick and of its acquisition, with those of the nodes. It returns
// the span of the acquisition, and nil if another replica has the lease.
func (i *Instrumentation) acquired(ctx context.Context, t *tick, op *operation, data redlock.TraceAcquireEndData, kind string) trace.Span {
	outcome, failed := acquireOutcome(kind)
	if data.Lease == nil && !failed {
		op.begin(i, nil, nil)
		return nil
	}
	t.mu.Lock()
	began, of := t.began, t.of
	t.mu.Unlock()
	rooted, root := i.tracer.Start(ctx, "tenure.job.tick", trace.WithNewRoot(), trace.WithTimestamp(began), trace.WithAttributes(i.jobs.get(t.data.Job).attributes...))
	if root.IsRecording() {
		root.SetAttributes(keyJobWhy.String(t.data.Why))
		if !t.data.Due.IsZero() {
			root.SetAttributes(dueAttribute(t.data.Due))
		}
	}
	spanned, span := i.tracer.Start(rooted, "tenure.lease.acquire", trace.WithAttributes(i.lease(data.Key).attributes...), trace.WithTimestamp(began))
	if span.IsRecording() {
		span.SetAttributes(append(acquireStartAttributes(of), keyLeaseAttempts.Int(data.Attempts))...)
		op.begin(i, span, spanned)
		endAcquire(span, data, kind, false)
	} else {
		op.begin(i, nil, nil)
	}
	t.mu.Lock()
	t.root, t.lease = root, data.Lease
	t.mu.Unlock()
	if data.Lease == nil {
		t.returned(outcome, kind, data.Err)
		t.end()
	}
	return span
}

// tickOf returns the tick that has this lease, if the tick has a span. It returns nil for other
// leases, such as one that a task acquired.
func tickOf(l *redlock.Lease) *tick {
	if l == nil {
		return nil
	}
	t := tickFrom(l.Context())
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease != l || t.root == nil {
		return nil
	}
	return t
}

// within returns the context with the tick's span as the current one.
func (t *tick) within(ctx context.Context) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	return trace.ContextWithSpan(ctx, t.root)
}

// returned notes the outcome of the run.
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
		endWith(t.root, t.outcome, t.kind, t.err)
	}
	t.root.End()
}
