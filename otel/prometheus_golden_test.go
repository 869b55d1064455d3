package tenureotel_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// What Prometheus scrapes: the names, types and labels that dashboards and rules are written for.
func TestPrometheusTextIsThatOfTheGoldenFile(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		registry := client.NewRegistry()
		exporter, err := prometheus.New(prometheus.WithRegisterer(registry), prometheus.WithoutTargetInfo())
		require.NoError(t, err)
		tel := newTelemetry(t, tenureotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))))
		story(t, tel, fleet)
		golden(t, "metrics.prom.golden", shape(scrape(t, registry)))
	})
}

func scrape(t *testing.T, registry *client.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		require.NoError(t, encoder.Encode(family))
	}
	return text.String()
}

var (
	sample     = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	labelValue = regexp.MustCompile(`="(?:[^"\\]|\\.)*"`)
)

// shape leaves of a text the types, and the names of the samples with those of their labels, in an order of its own.
func shape(text string) string {
	var lines []string
	family := 0 // where the samples of the last begin
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := sample.FindStringSubmatch(line); m != nil {
			line = m[1] + "{" + labelValue.ReplaceAllString(m[2], "") + "}"
		} else if !strings.HasPrefix(line, "# TYPE ") {
			continue
		}
		if strings.HasPrefix(line, "#") {
			slices.Sort(lines[min(family, len(lines)):])
			family = len(lines) + 1
		} else if slices.Contains(lines[family:], line) {
			continue
		}
		lines = append(lines, line)
	}
	slices.Sort(lines[min(family, len(lines)):])
	return strings.Join(lines, "\n") + "\n"
}
