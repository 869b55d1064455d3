package tenureotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// tick is one of a job of a Scheduler, or another run of it, from the question for its lease to the
// release. All of that is one trace, below a span of the tick. Most replicas do not get the lease,
// and make none: so nothing is begun before the acquisition is over.
type tick struct {
	data scheduler.TickTrace

	mu      sync.Mutex
	began   time.Time                     // guarded by mu; when its lease was first asked for
	of      redlock.TraceAcquireStartData // guarded by mu; the acquisition that goes on
	lease   *redlock.Lease                // guarded by mu; nil unless it was granted
	root    trace.Span                    // guarded by mu; nil for a tick without a trace
	outcome string                        // guarded by mu; of the run
	kind    string                        // guarded by mu; of its error
	err     error                         // guarded by mu
}

type tickKey struct{}

func tickFrom(ctx context.Context) *tick {
	t, _ := ctx.Value(tickKey{}).(*tick)
	return t
}

// notBegun is the outcome of a tick that was granted, and given back before its task was called.
const notBegun = "not_begun"

// tickAsked hears of a tick before its lease is asked for.
func (i *Instrumentation) tickAsked(ctx context.Context, data scheduler.TickTrace) context.Context {
	if !i.spans {
		return ctx
	}
	return context.WithValue(ctx, tickKey{}, &tick{data: data, outcome: notBegun})
}

// acquires begins an acquisition of the tick's lease, and reports whether this is one: a tick may
// wait for its lease after a first question, and what is acquired later is done in the run.
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

// acquired makes the spans of a tick and of its acquisition, with what is known of nodes, and
// returns that of the acquisition. Of one that another replica has there are none.
func (i *Instrumentation) acquired(ctx context.Context, t *tick, op *operation, data redlock.TraceAcquireEndData, kind string) trace.Span {
	outcome, failed := acquireOutcome(kind)
	if data.Lease == nil && !failed && !i.cfg.lostTickSpans {
		op.begin(i, nil, nil)
		return nil
	}
	t.mu.Lock()
	began, of := t.began, t.of
	t.mu.Unlock()
	rooted, root := i.tracer.Start(ctx, "tenure.job.tick", trace.WithNewRoot(), trace.WithTimestamp(began), trace.WithAttributes(i.job(t.data.Job).attributes...))
	if root.IsRecording() {
		root.SetAttributes(keyJobWhy.String(t.data.Why))
		if !t.data.Due.IsZero() {
			root.SetAttributes(dueAttribute(t.data.Due))
		}
	}
	spanned, span := i.tracer.Start(rooted, "tenure.lease.acquire", append(i.lease(data.Key).start, trace.WithTimestamp(began))...)
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
		err := data.Err
		if !failed {
			err = nil
		}
		t.returned(outcome, kind, err)
		t.end()
	}
	return span
}

// tickOf returns the tick whose lease this is, which has its root; nil for a lease of something
// else, such as one that a task acquired.
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
		endWith(t.root, t.outcome, t.kind, t.err)
	}
	t.root.End()
}
