package tenureotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
)

// operation is an acquisition, an attempt of one, or a release, whose span is recorded. It is in
// the context under a key of its own, and not as the current span: the context of a lease has the
// values of that of its acquisition, and what is done with the lease is no part of the acquisition.
type operation struct {
	*recording
	attempt int  // the number of the round; 0 for a release
	own     bool // the span is of this attempt, and not of the whole acquisition
}

type operationKey struct{}

func operationFrom(ctx context.Context) *operation {
	op, _ := ctx.Value(operationKey{}).(*operation)
	return op
}

// operation is operationFrom, without a look where no spans are made: to look into a
// context.WithoutCancel, which a caller's may be, allocates.
func (i *Instrumentation) operation(ctx context.Context) *operation {
	if !i.spans {
		return nil
	}
	return operationFrom(ctx)
}

// withOperation puts op into the context; nil hides one that is there already.
func withOperation(ctx context.Context, op *operation) context.Context {
	if op == nil && operationFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, operationKey{}, op)
}

// recording is a span, and the operations on nodes below it. Those of the first round have spans,
// and those of the round that won: a waiter asks again and again, and all it hears is that it is to
// wait. So the spans of nodes are made when the operation is over, or the round is.
//
// The acquisition of a tick has no span until it is over, see tick.
type recording struct {
	later   bool // begin follows
	mu      sync.Mutex
	begun   bool            // guarded by mu; it has followed
	span    trace.Span      // guarded by mu; nil before that, and where there is none
	ctx     context.Context // guarded by mu; of the caller, with the span as the current one
	ended   int             // guarded by mu; the number of the last round that is decided
	won     int             // guarded by mu; the number of the round that won; 0 for none
	pending []nodeEnd       // guarded by mu; of rounds that go on
}

// nodeEnd is an operation on a node that is over.
type nodeEnd struct {
	redlock.TraceNodeEndData
	attempt int
	at      time.Time
}

// current returns the span; nil for none.
func (r *recording) current() trace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.span
}

// shown reports whether the nodes of a round have spans. Called with mu held.
func (r *recording) shown(attempt int) bool {
	return attempt <= 1 || attempt == r.won
}

// waits reports whether it is not known yet what becomes of the nodes of a round: there is no span
// yet, or the round may win. Called with mu held.
func (r *recording) waits(attempt int) bool {
	if r.shown(attempt) {
		return r.later && !r.begun
	}
	return attempt > r.ended
}

// nodeEnded makes the span of a node's operation, if there is to be one, and returns it. Without
// one it returns that of the operation as a whole.
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

// attemptEnded tells that a round is decided.
func (r *recording) attemptEnded(i *Instrumentation, attempt int, won bool) {
	r.decide(i, func() {
		if r.ended = attempt; won {
			r.won = attempt
		}
	})
}

// begin gives an acquisition its span, whose nodes have been noted until now; or nil for none.
func (r *recording) begin(i *Instrumentation, span trace.Span, ctx context.Context) {
	r.decide(i, func() { r.begun, r.span, r.ctx = true, span, ctx })
}

// decide makes the spans of nodes that are to have them with what is known now, and forgets those
// of which that is known.
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

// measuring returns the context to record metrics with: exemplars are taken from the current span.
func measuring(ctx context.Context, span trace.Span) context.Context {
	if span == nil || !span.SpanContext().IsSampled() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// linkTo returns a link to the acquisition whose context, or whose lease's context, this is.
func linkTo(ctx context.Context) []trace.Link {
	if op := operationFrom(ctx); op != nil {
		return linkToSpan(op.current())
	}
	return nil
}

// startLinked adds links to options, and makes none of no link.
func startLinked(start []trace.SpanStartOption, links []trace.Link) []trace.SpanStartOption {
	if links == nil {
		return start
	}
	return append(start[:len(start):len(start)], trace.WithLinks(links...))
}

func linkToSpan(span trace.Span) []trace.Link {
	if span == nil || !span.SpanContext().IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: span.SpanContext()}}
}
