package telemetry_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	tenureotel "github.com/tenure-dev/tenure/otel"
)

// update rewrites the golden file instead of comparing with it.
var update = flag.Bool("update", false, "rewrite the golden file in testdata")

// What the exporter makes of the metrics that the golden file of package tenureotel pins. The test
// there shows that the package makes those.
func TestPrometheusTextIsThatOfTheGoldenFile(t *testing.T) {
	metrics, err := os.ReadFile(filepath.Join("..", "..", "otel", "testdata", "metrics.golden"))
	require.NoError(t, err)
	registry, provider := exported(t)
	measure(t, provider.Meter(tenureotel.ScopeName, metric.WithInstrumentationVersion(tenureotel.Version())), string(metrics))
	text, path := shape(scrape(t, registry)), filepath.Join("testdata", "metrics.prom.golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text,
		"if this is meant to change, run the test with -update, and say so in CHANGELOG.md and docs/telemetry.md")
}

// exported returns a provider, and the registry from which Prometheus scrapes its metrics.
func exported(t *testing.T) (*client.Registry, *sdkmetric.MeterProvider) {
	t.Helper()
	registry := client.NewRegistry()
	exporter, err := prometheus.New(prometheus.WithRegisterer(registry), prometheus.WithoutTargetInfo())
	require.NoError(t, err)
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return registry, provider
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

// shape leaves of a text the types, and the names of the samples with those of their labels, in an
// order of its own.
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
