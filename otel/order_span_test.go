package tenureotel_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// An order is a span with who gave it and why, and the lease under which it was written is below
// it.
func TestOrderSpans(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		c, err := admin.New(q, admin.WithTracer(tel), admin.WithActor("ann"), admin.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		_, err = c.Pause(t.Context(), admin.Job("report"), admin.PauseOptions{Reason: "it moves"})
		require.NoError(t, err)
		require.Error(t, c.Resign(t.Context(), "nobody", "why"))
		var done, failed bool
		for _, s := range tel.spans("tenure.order") {
			text := fmt.Sprint(s.Attributes())
			require.Contains(t, text, "ann")
			switch s.Status().Code {
			case codes.Unset:
				done = true
				require.Contains(t, text, "report")
				require.NotEmpty(t, s.ChildSpanCount())
			case codes.Error:
				failed = true
				require.Contains(t, text, "why")
			}
		}
		require.True(t, done)
		require.True(t, failed)
	})
}

// What came of orders is counted, and known to be nothing before.
func TestOrdersAreCounted(t *testing.T) {
	tel := newTelemetry(t)
	for err, outcome := range map[error]string{
		nil: "done", &admin.OrderError{Err: admin.ErrRefused}: "refused", &admin.OrderError{Err: admin.ErrNobody}: "nobody",
		&admin.OrderError{Err: admin.ErrUnknown}: "unknown", redlock.ErrNoQuorum: "error",
	} {
		tel.TraceOrderEnd(t.Context(), admin.TraceOrderEndData{Kind: admin.OrderRunNow, Err: err})
		require.Len(t, tel.matching(t, "tenure.orders", "tenure.operation", "run_now"), 5)
		require.EqualValues(t, 1, tel.value(t, "tenure.orders", "tenure.operation", "run_now", "tenure.outcome", outcome))
	}
}
