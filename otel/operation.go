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
// The acquisition of a tick gets its span when it is over, see tick.
type recording struct {
	later   bool // the span is set later, by begin
	mu      sync.Mutex
	begun   bool            // guarded by mu; begin was called
	span    trace.Span      // guarded by mu; nil before begin, and if there is no span
	ctx     context.Context // guarded by mu; the caller's, with span as the current one
	ended   int             // guarded by mu; number of the last decided round
	won     int             // guarded by mu; number of the round that won; 0 for none
	pending []nodeEnd       // guarded by mu; operations of rounds that are not decided
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

// shown reports whether the operations of a round get spans. Called with mu held.
func (r *recording) shown(attempt int) bool {
	return attempt <= 1 || attempt == r.won
}

// waits reports whether the operations of a round must be kept: the span is not set yet, or the
// round may win. Called with mu held.
func (r *recording) waits(attempt int) bool {
	if r.shown(attempt) {
		return r.later && !r.begun
	}
	return attempt > r.ended
}

// nodeEnded returns the span of an operation on a node, which it makes if the round gets spans now.
// Otherwise it returns the span of the whole operation.
func (r *recording) nodeEnded(i *Instrumentation, n nodeEnd) trace.Span {
	r.mu.Lock()
	if r.waits(n.attempt) {
		r.pending = append(r.pending, n)
	}
	shown, span, ctx := r.shown(n.attempt), r.span, r.ctx
	r.mu.Unlock()
	if span == nil || !shown {
		return span
	}
	return i.spanOfNode(ctx, n)
}

// attemptEnded notes that a round is decided.
func (r *recording) attemptEnded(i *Instrumentation, attempt int, won bool) {
	r.decide(i, func() {
		if r.ended = attempt; won {
			r.won = attempt
		}
	})
}

// begin sets the span of an acquisition after its nodes have answered; nil for none.
func (r *recording) begin(i *Instrumentation, span trace.Span, ctx context.Context) {
	r.decide(i, func() { r.begun, r.span, r.ctx = true, span, ctx })
}

// decide takes over new knowledge by calling known. Then it makes the spans of kept operations that
// get one, and drops all operations that need not be kept any more.
func (r *recording) decide(i *Instrumentation, known func()) {
	r.mu.Lock()
	known()
	var wait, shown []nodeEnd
	for _, n := range r.pending {
		switch {
		case r.waits(n.attempt):
			wait = append(wait, n)
		case r.span != nil && r.shown(n.attempt):
			shown = append(shown, n)
		}
	}
	r.pending = wait
	ctx := r.ctx
	r.mu.Unlock()
	for _, n := range shown {
		i.spanOfNode(ctx, n)
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
