package telemetry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A key or a job whose name is no UTF-8 costs no other metric its scrape.
func TestNamesThatAreNoTextAreScraped(t *testing.T) {
	registry, provider := exported(t)
	tel, err := tenureotel.New(tenureotel.WithMeterProvider(provider), tenureotel.WithTracerProvider(noop.NewTracerProvider()))
	require.NoError(t, err)
	for _, name := range []string{"café", "caf\xe9"} {
		tel.TraceAcquireEnd(t.Context(), redlock.TraceAcquireEndData{Key: name, Err: redlock.ErrHeld})
		tel.Scheduler().Job(t.Context(), scheduler.JobTrace{Job: name})
	}
	text := scrape(t, registry)
	for _, name := range []string{"café", "caf\uFFFD"} {
		require.Contains(t, text, `tenure_lease_name="`+name+`"`)
		require.Contains(t, text, `tenure_job_name="`+name+`"`)
	}
}
