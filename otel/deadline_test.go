package tenureotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A caller that gives up has waited in vain for the holder, for nodes that do not answer, or has
// been cancelled. Only the second of these is a failure.
func TestDeadlineOfAnAcquisition(t *testing.T) {
	for _, test := range []struct {
		name            string
		silent, cancels bool
		outcome, kind   string
		status          codes.Code
	}{
		{name: "held", outcome: "held", status: codes.Unset},
		{name: "nodes are silent", silent: true, outcome: "failed", kind: "deadline_exceeded", status: codes.Error},
		{name: "cancelled", cancels: true, outcome: "canceled", kind: "canceled", status: codes.Unset},
		{name: "cancelled while nodes are silent", silent: true, cancels: true, outcome: "canceled", kind: "canceled", status: codes.Unset},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				tel := newTelemetry(t)
				if !test.silent {
					acquire(t, open(t, fleet, redlock.WithIdentity("web-1")), "orders")
				}
				q := open(t, fleet, redlock.WithTracer(tel))
				if test.silent {
					freeze(t, fleet, 0, 1, 2)
					defer thaw(t, fleet, 0, 1, 2)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*ttl+ttl/2)
				defer cancel()
				if test.cancels {
					time.AfterFunc(ttl/2, cancel)
				}
				_, err := q.Acquire(ctx, "orders")
				require.Error(t, err)
				settle()

				attributes := attributesOf(tel.span(t, "tenure.lease.acquire"))
				require.Equal(t, test.outcome, attributes["tenure.outcome"])
				require.Equal(t, test.kind, attributes["error.type"])
				require.Equal(t, test.status, tel.span(t, "tenure.lease.acquire").Status().Code)
				if test.outcome == "held" {
					require.Equal(t, "web-1", attributes["tenure.lease.holder"])
				}
				points := tel.points(t, "tenure.lease.acquire.duration")
				require.Len(t, points, 1)
				outcome, _ := points[0].attributes.Value("tenure.outcome")
				require.Equal(t, test.outcome, outcome.AsString())
				kind, _ := points[0].attributes.Value("error.type")
				require.Equal(t, test.kind, kind.AsString())
				pass(ttl)
				require.NotZero(t, tel.total(t, "tenure.node.operation.duration"))
				require.Empty(t, tel.matching(t, "tenure.node.operation.duration", "error.type", "canceled"), "no node is to blame")
			})
		})
	}
}
