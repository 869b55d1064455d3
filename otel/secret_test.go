package tenureotel_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// ledger notes what is not to be on a metric: it is a tracer that stands before the real one.
type ledger struct {
	*telemetry
	fleet *redlocktest.Fleet

	mu        sync.Mutex
	forbidden map[string]string // guarded by mu; value: what it is
}

func (l *ledger) note(value, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forbidden[value] = what
}

func (l *ledger) TraceAcquireEnd(ctx context.Context, data redlock.TraceAcquireEndData) {
	if data.Lease != nil {
		l.note(attribute.Int64Value(int64(data.FencingToken)).String(), "fencing token")
		l.note(data.Lease.Identity(), "identity")
		for _, n := range l.fleet.Nodes() {
			if owner, ok := n.Get("tenure:{" + data.Key + "}"); ok {
				l.note(owner, "owner value")
			}
		}
	}
	if data.Err != nil {
		l.note(data.Err.Error(), "error text")
	}
	l.telemetry.TraceAcquireEnd(ctx, data)
}

func (l *ledger) TraceNodeEnd(ctx context.Context, data redlock.TraceNodeEndData) {
	if data.Err != nil {
		l.note(data.Err.Error(), "error text")
	}
	l.telemetry.TraceNodeEnd(ctx, data)
}

// Owner values, fencing tokens and error texts are on no metric, and owner values on no span
// either.
func TestNothingSecretOrEndlessIsOnAMetric(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		l := &ledger{telemetry: tel, fleet: fleet, forbidden: make(map[string]string)}
		q := open(t, fleet, redlock.WithTracer(l), redlock.WithIdentity("identity-one"))
		other := open(t, fleet, redlock.WithTracer(l), redlock.WithIdentity("identity-two"))
		acquisitions(t, fleet, q, other)
		extensions(t, fleet, q)
		elections(t, tel, fleet, q, other)
		jobs(t, tel, fleet, q)
		kinds := make(map[string]int)
		for _, what := range l.forbidden {
			kinds[what]++
		}
		for _, what := range []string{"fencing token", "identity", "owner value", "error text"} {
			require.NotZero(t, kinds[what], "the test has seen no %s", what)
		}

		values := 0
		for _, m := range tel.scope(t).Metrics {
			for _, p := range pointsOf(t, m) {
				for _, a := range p.attributes.ToSlice() {
					values++
					for secret, what := range l.forbidden {
						require.False(t, strings.Contains(a.Value.String(), secret), "%s has as %s the %s", m.Name, a.Key, what)
					}
					require.NotContains(t, a.Value.String(), " ", "%s: %s looks like a text", m.Name, a.Key)
					require.NotContains(t, a.Value.String(), "the task's own")
				}
			}
		}
		require.Greater(t, values, 100)
		for _, s := range tel.spans() {
			texts := attributesOf(s)
			texts["status"] = s.Status().Description
			for key, value := range texts {
				for secret, what := range l.forbidden {
					require.False(t, what == "owner value" && strings.Contains(value, secret), "%s has as %s the %s", s.Name(), key, what)
				}
			}
		}
	})
}

// A holder's payload is on no span of those who are refused. Its identity is.
func TestPayloadIsOnNoSpan(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel), redlock.WithIdentity("web-1"))
		held := acquire(t, q, "orders", redlock.WithPayload("sesame"))
		_, err := q.TryAcquire(t.Context(), "orders", redlock.WithPayload("sesame"))
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.NoError(t, held.Release(t.Context()))
		settle()
		holders := 0
		for _, s := range tel.spans() {
			texts := attributesOf(s)
			if texts["tenure.lease.holder"] == "web-1" {
				holders++
			}
			texts["status"] = s.Status().Description
			for key, value := range texts {
				require.NotContains(t, value, "sesame", "%s has it as %s", s.Name(), key)
			}
		}
		require.Equal(t, 1, holders)
	})
}
