package tenureotel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// logged is what a log has in it, a line each.
func logged(t *testing.T, log *bytes.Buffer) (lines []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(log.Bytes()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal(line, &m))
		delete(m, "time")
		lines = append(lines, m)
	}
	log.Reset()
	return lines
}

func TestLogLinesHaveTheIDsOfTheContextsSpan(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		l := acquire(t, q, "orders")
		var log bytes.Buffer
		logger := slog.New(tenureotel.NewLogHandler(slog.NewJSONHandler(&log, nil)))
		line := func(ctx context.Context) map[string]any {
			logger.InfoContext(ctx, "text", "key", "value")
			return logged(t, &log)[0]
		}
		want := func(s trace.SpanContext) map[string]any {
			return map[string]any{"level": "INFO", "msg": "text", "key": "value", "trace_id": s.TraceID().String(), "span_id": s.SpanID().String()}
		}
		require.Equal(t, map[string]any{"level": "INFO", "msg": "text", "key": "value"}, line(t.Context()), "there is no span")
		ctx, own := tel.tracer().Start(t.Context(), "own")
		require.Equal(t, want(own.SpanContext()), line(ctx), "the current span")
		require.Equal(t, want(ofLease(t, tel, "orders").SpanContext()), line(l.Context()), "the acquisition of the lease")
		ctx, inner := tel.tracer().Start(l.Context(), "inner")
		require.Equal(t, want(inner.SpanContext()), line(ctx), "the current span rather than the acquisition")
	})
}

func TestLogHandlerKeepsAttributesGroupsAndLevels(t *testing.T) {
	tel := newTelemetry(t)
	ctx, own := tel.tracer().Start(t.Context(), "own")
	ids := map[string]any{"trace_id": own.SpanContext().TraceID().String(), "span_id": own.SpanContext().SpanID().String()}
	var log bytes.Buffer
	logger := slog.New(tenureotel.NewLogHandler(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	require.False(t, logger.Enabled(ctx, slog.LevelInfo))
	require.True(t, logger.Enabled(ctx, slog.LevelWarn))
	logger.With("with", 1).WarnContext(ctx, "text")
	logger.WithGroup("group").With("with", 1).WarnContext(ctx, "text", "key", "value")
	require.Equal(t, []map[string]any{
		{"level": "WARN", "msg": "text", "with": 1.0, "trace_id": ids["trace_id"], "span_id": ids["span_id"]},
		{"level": "WARN", "msg": "text", "group": map[string]any{"with": 1.0, "key": "value", "trace_id": ids["trace_id"], "span_id": ids["span_id"]}},
	}, logged(t, &log))
}

// shared is a handler that keeps the record, as one that writes later does.
type shared struct {
	slog.Handler
	records []slog.Record
}

func (s *shared) Handle(_ context.Context, r slog.Record) error {
	s.records = append(s.records, r)
	return nil
}

// A record that a handler before this one has kept does not change.
func TestLogHandlerDoesNotChangeTheRecord(t *testing.T) {
	tel := newTelemetry(t)
	ctx, _ := tel.tracer().Start(t.Context(), "own")
	next := &shared{Handler: slog.DiscardHandler}
	record := slog.Record{Message: "text"}
	for i := range 20 {
		record.AddAttrs(slog.Int("n", i))
	}
	require.NoError(t, tenureotel.NewLogHandler(next).Handle(ctx, record))
	require.NoError(t, tenureotel.NewLogHandler(next).Handle(ctx, record))
	require.Equal(t, 20, record.NumAttrs())
	require.Equal(t, 22, next.records[0].NumAttrs())
	require.Equal(t, 22, next.records[1].NumAttrs())
}

func TestLogHandlerIsAHandlerAsSlogWantsIt(t *testing.T) {
	var log bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		log.Reset()
		return tenureotel.NewLogHandler(slog.NewJSONHandler(&log, nil))
	}, func(t *testing.T) map[string]any {
		var m map[string]any
		require.NoError(t, json.Unmarshal(log.Bytes(), &m))
		return m
	})
}
