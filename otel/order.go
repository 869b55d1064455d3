package tenureotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
)

// orderOutcomes are the values of tenure.outcome of tenure.orders.
var orderOutcomes = []string{outcomeDone, outcomeRefused, outcomeNobody, outcomeUnknown, outcomeError}

type orderSpanKey struct{}

// TraceOrderStart implements admin.OrderTracer. Requests to the nodes for the order are below its
// span.
func (i *Instrumentation) TraceOrderStart(ctx context.Context, data admin.TraceOrderStartData) context.Context {
	if !i.spans {
		return ctx
	}
	ctx, span := i.tracer.Start(ctx, "tenure.order", trace.WithAttributes(i.with(keyOperation.String(text(string(data.Kind))))...))
	span.SetAttributes(attribute.String("tenure.order.target", text(data.Target)), attribute.String("tenure.order.by", text(data.By)), attribute.String("tenure.order.reason", text(data.Reason)))
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
	orders := newCounter(i.orders, i.with(keyOperation.String(text(string(data.Kind)))), keyOutcome, orderOutcomes...)
	orders.zero(orderOutcomes...) // so that the first of another outcome is an increase
	orders.add(ctx, outcome, 1)
	span, ok := ctx.Value(orderSpanKey{}).(trace.Span)
	if !ok {
		return
	}
	endWith(span, outcome, text(redlock.ErrorType(data.Err)), data.Err)
	span.End()
}
