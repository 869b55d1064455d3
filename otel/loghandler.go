package tenureotel

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogHandler returns a handler that hands on to next, with trace_id and span_id of the context's
// span added to each record: of the current span, or else of the acquisition of the lease whose
// context it is. These are the names that OpenTelemetry gives them in other formats than its own. A
// record without such a context is handed on as it is.
//
//	slog.SetDefault(slog.New(tenureotel.NewLogHandler(slog.NewJSONHandler(os.Stderr, nil))))
//
// before anything else is made: without a WithLogger of its own each package logs there.
//
// Within a group of WithGroup they are part of that group, as slog's handlers have it.
func NewLogHandler(next slog.Handler) slog.Handler { return &logHandler{next: next} }

type logHandler struct{ next slog.Handler }

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if op := operationFrom(ctx); !span.IsValid() && op != nil {
		if current := op.current(); current != nil {
			span = current.SpanContext()
		}
	}
	if span.IsValid() {
		record = record.Clone()
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.next.Handle(ctx, record)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{next: h.next.WithAttrs(attrs)}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{next: h.next.WithGroup(name)}
}
