package tenureotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
)

// orderOutcomes are the values of outcome of tenure.orders.
var orderOutcomes = []string{outcomeDone, outcomeRefused, outcomeNobody, outcomeUnknown, outcomeError}

type orderSpanKey struct{}

// TraceOrderStart implements admin.OrderTracer. What is asked of the nodes for the order is below
// its span.
func (i *Instrumentation) TraceOrderStart(ctx context.Context, data admin.TraceOrderStartData) context.Context {
	if !i.spans {
		return ctx
	}
	ctx, span := i.tracer.Start(ctx, "tenure.order", trace.WithAttributes(i.with(keyOperation.String(text(string(data.Kind))))...))
	span.SetAttributes(keyOrderTarget.String(text(data.Target)), keyOrderBy.String(text(data.By)), keyOrderReason.String(text(data.Reason)))
	return context.WithValue(ctx, orderSpanKey{}, span)
}

// TraceOrderEnd implements admin.OrderTracer.
func (i *Instrumentation) TraceOrderEnd(ctx context.Context, data admin.TraceOrderEndData) {
	outcome := outcomeDone
	switch {
	case data.Err == nil:
	case errors.Is(data.Err, admin.ErrRefused):
		outcome = outcomeRefused
	case errors.Is(data.Err, admin.ErrNobody):
		outcome = outcomeNobody
	case errors.Is(data.Err, admin.ErrUnknown):
		outcome = outcomeUnknown
	default:
		outcome = outcomeError
	}
	if i.orders.Enabled(ctx) {
		for _, o := range orderOutcomes {
			i.orders.Add(ctx, 0, i.orderOption(data.Kind, o)) // so that the first with another outcome is an increase
		}
		i.orders.Add(ctx, 1, i.orderOption(data.Kind, outcome))
	}
	span, ok := ctx.Value(orderSpanKey{}).(trace.Span)
	if !ok {
		return
	}
	span.SetAttributes(keyOutcome.String(outcome))
	if data.Err != nil {
		span.SetAttributes(keyErrorType.String(text(redlock.ErrorType(data.Err))))
		fail(span, data.Err)
	}
	span.End()
}

func (i *Instrumentation) orderOption(kind admin.OrderKind, outcome string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(i.with(keyOperation.String(text(string(kind))), keyOutcome.String(outcome))...))
}
