package tenureotel

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogHandler returns a handler that adds trace_id and span_id to each record and passes it on to
// next. The span is the current one of the context. Without one, in the context of a lease, it is
// the span of the lease's acquisition. Without both the record is passed on unchanged. The
// attribute names are those that OpenTelemetry defines for log formats other than its own. Install
// the handler first:
//
//	slog.SetDefault(slog.New(tenureotel.NewLogHandler(slog.NewJSONHandler(os.Stderr, nil))))
//
// Packages without a WithLogger of their own take slog's default logger when they are made.
//
// Within a group of WithGroup the two attributes are part of the group, as is usual for slog's
// handlers.
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
