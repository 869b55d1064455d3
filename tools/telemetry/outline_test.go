package telemetry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// measure makes the metrics of a text that the test of package tenureotel pins: a line a metric,
// and below it the sets of its attributes. It measures once for each set.
func measure(t *testing.T, meter metric.Meter, outline string) {
	t.Helper()
	var record func(metric.MeasurementOption)
	for line := range strings.Lines(outline) {
		switch words := strings.Fields(line); {
		case !strings.HasPrefix(line, "\t"):
			record = instrument(t, meter, words)
		case words[0] == "attributes":
			var set []attribute.KeyValue
			for _, key := range words[1:] {
				set = append(set, attribute.String(key, "x"))
			}
			record(metric.WithAttributes(set...))
		}
	}
}

// instrument makes an instrument of the words of its line, which are name, unit and type. It
// returns the function that measures with it.
func instrument(t *testing.T, meter metric.Meter, words []string) (record func(metric.MeasurementOption)) {
	t.Helper()
	var text string
	_, err := fmt.Sscanf(words[1], "unit=%q", &text)
	require.NoError(t, err, "the unit of %s", words[0])
	ctx, name, unit := t.Context(), words[0], metric.WithUnit(text)
	switch kind := strings.Join(words[2:], " "); kind {
	case "Gauge[int64]":
		i, failed := meter.Int64Gauge(name, unit)
		record, err = func(set metric.MeasurementOption) { i.Record(ctx, 1, set) }, failed
	case "Gauge[float64]":
		i, failed := meter.Float64Gauge(name, unit)
		record, err = func(set metric.MeasurementOption) { i.Record(ctx, 1, set) }, failed
	case "Sum[int64] CumulativeTemporality monotonic=true":
		i, failed := meter.Int64Counter(name, unit)
		record, err = func(set metric.MeasurementOption) { i.Add(ctx, 1, set) }, failed
	case "Sum[int64] CumulativeTemporality monotonic=false":
		i, failed := meter.Int64UpDownCounter(name, unit)
		record, err = func(set metric.MeasurementOption) { i.Add(ctx, 1, set) }, failed
	case "Histogram[float64] CumulativeTemporality":
		i, failed := meter.Float64Histogram(name, unit)
		record, err = func(set metric.MeasurementOption) { i.Record(ctx, 1, set) }, failed
	default:
		require.Fail(t, "this test does not know such a type", "%s: %s", name, kind)
	}
	require.NoError(t, err)
	return record
}
