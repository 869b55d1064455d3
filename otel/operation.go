package tenureotel

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// operation is an acquisition, or a release, whose span is recorded. It is in the context under a
// key of its own, and not as the current span: the context of a lease has the values of that of its
// acquisition, and what is done with the lease is no part of the acquisition.
type operation struct{ span trace.Span }

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

// measuring returns the context to record metrics with: exemplars are taken from the current span.
func measuring(ctx context.Context, span trace.Span) context.Context {
	if span == nil || !span.SpanContext().IsSampled() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// linkTo returns a link to the acquisition whose context, or whose lease's context, this is.
func linkTo(ctx context.Context) []trace.Link {
	op := operationFrom(ctx)
	if op == nil || !op.span.SpanContext().IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: op.span.SpanContext()}}
}
