package tenureotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
)

// operation is an acquisition, an attempt of one, or a release, with a recorded span. It has its
// own key in the context, and is not the current span. The reason is that a lease's context
// inherits the values of its acquisition's context, but work under the lease is no part of the
// acquisition.
type operation struct {
	*recording
	attempt int  // number of the round; 0 for a release
	own     bool // the span is of this attempt alone, not of the whole acquisition
}

type operationKey struct{}

func operationFrom(ctx context.Context) *operation {
	op, _ := ctx.Value(operationKey{}).(*operation)
	return op
}

// operation is operationFrom, but does not search the context if no spans are made: a search
// through a caller's context.WithoutCancel allocates.
func (i *Instrumentation) operation(ctx context.Context) *operation {
	if !i.spans {
		return nil
	}
	return operationFrom(ctx)
}

// withOperation puts op into the context; a nil op hides an earlier one.
func withOperation(ctx context.Context, op *operation) context.Context {
	if op == nil && operationFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, operationKey{}, op)
}

// recording is the span of an operation, with the operations on single nodes below it. Only the
// first round and the round that won have spans of nodes: a waiter asks many times, and the other
// answers only tell it to wait. In the first round the span of a node is made when the node has
// answered, in a later round when the round is decided.
//
// The acquisition of a tick gets its span when its lease is granted, and has none of nodes: see tick.
type recording struct {
	ctx     context.Context // the caller's, with span as the current one; nil for a tick
	mu      sync.Mutex
	span    trace.Span // guarded by mu; nil for a tick before its lease is granted
	ended   int        // guarded by mu; number of the last decided round
	won     int        // guarded by mu; number of the round that won; 0 for none
	pending []nodeEnd  // guarded by mu; operations of the round that is not decided
}

// nodeEnd is the end of an operation on a node.
type nodeEnd struct {
	redlock.TraceNodeEndData
	attempt int
	at      time.Time
}

// current returns the span, or nil.
func (r *recording) current() trace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.span
}

// nodeEnded returns the span of an operation on a node, which it makes if the round gets spans now.
// Otherwise it returns the span of the whole operation.
func (r *recording) nodeEnded(i *Instrumentation, n nodeEnd) trace.Span {
	r.mu.Lock()
	span, shown := r.span, r.ctx != nil && (n.attempt <= 1 || n.attempt == r.won)
	if r.ctx != nil && !shown && n.attempt > r.ended {
		r.pending = append(r.pending, n)
	}
	r.mu.Unlock()
	if !shown {
		return span
	}
	return i.spanOfNode(r.ctx, n)
}

// attemptEnded notes that a round is decided: the operations that were kept get spans if it won,
// and are dropped if not.
func (r *recording) attemptEnded(i *Instrumentation, attempt int, won bool) {
	r.mu.Lock()
	pending := r.pending
	r.ended, r.pending = attempt, nil
	if won {
		r.won = attempt
	}
	r.mu.Unlock()
	if won {
		for _, n := range pending {
			i.spanOfNode(r.ctx, n)
		}
	}
}

// measuring returns the context to record metrics with, because exemplars are taken from the
// current span.
func measuring(ctx context.Context, span trace.Span) context.Context {
	if span == nil || !span.SpanContext().IsSampled() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// linkTo returns a link to the acquisition whose context this is, or whose lease's context.
func linkTo(ctx context.Context) []trace.Link {
	if op := operationFrom(ctx); op != nil {
		return linkToSpan(op.current())
	}
	return nil
}

func linkToSpan(span trace.Span) []trace.Link {
	if span == nil || !span.SpanContext().IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: span.SpanContext()}}
}
