package telemetry_test

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	tenureotel "github.com/tenure-dev/tenure/otel"
)

// outline is the text that the test of package tenureotel pins: a line a metric, and below it the
// sets of its attributes. It produces a point for each set.
type outline string

// Produce makes the metrics of the outline.
func (o outline) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	all := metricdata.ScopeMetrics{Scope: instrumentation.Scope{
		Name: tenureotel.ScopeName, Version: tenureotel.Version(),
	}}
	for line := range strings.Lines(string(o)) {
		words := strings.Fields(line)
		switch {
		case !strings.HasPrefix(line, "\t"):
			m, err := metric(words)
			if err != nil {
				return nil, err
			}
			all.Metrics = append(all.Metrics, m)
		case words[0] == "attributes":
			m := &all.Metrics[len(all.Metrics)-1]
			m.Data = extended(m.Data, words[1:])
		}
	}
	return []metricdata.ScopeMetrics{all}, nil
}

// metric makes a metric without points of the words of its line: name, unit, type.
func metric(words []string) (metricdata.Metrics, error) {
	m := metricdata.Metrics{Name: words[0], Description: "It is measured."}
	if _, err := fmt.Sscanf(words[1], "unit=%q", &m.Unit); err != nil {
		return m, fmt.Errorf("the unit of %s: %w", m.Name, err)
	}
	switch kind := strings.Join(words[2:], " "); kind {
	case "Gauge[int64]":
		m.Data = metricdata.Gauge[int64]{}
	case "Gauge[float64]":
		m.Data = metricdata.Gauge[float64]{}
	case "Sum[int64] CumulativeTemporality monotonic=true":
		m.Data = metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	case "Sum[int64] CumulativeTemporality monotonic=false":
		m.Data = metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality}
	case "Histogram[float64] CumulativeTemporality":
		m.Data = metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
	default:
		return m, fmt.Errorf("%s is of a type that this test does not know: %s", m.Name, kind)
	}
	return m, nil
}

// extended adds a point with such attributes.
func extended(data metricdata.Aggregation, keys []string) metricdata.Aggregation {
	var list []attribute.KeyValue
	for _, key := range keys {
		list = append(list, attribute.String(key, "x"))
	}
	set := attribute.NewSet(list...)
	switch data := data.(type) {
	case metricdata.Gauge[int64]:
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[int64]{Attributes: set})
		return data
	case metricdata.Gauge[float64]:
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[float64]{Attributes: set})
		return data
	case metricdata.Sum[int64]:
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[int64]{Attributes: set})
		return data
	case metricdata.Histogram[float64]:
		data.DataPoints = append(data.DataPoints, metricdata.HistogramDataPoint[float64]{
			Attributes: set, Bounds: []float64{1}, BucketCounts: []uint64{1, 0}, Count: 1, Sum: 1,
		})
		return data
	}
	return data
}
