package tenureotel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	tenureotel "github.com/tenure-dev/tenure/otel"
)

// closed are the attributes whose values are pinned too. Those of error.type are redlock's words.
var closed = []string{"tenure.operation", "tenure.outcome", "tenure.reason", "tenure.to"}

// Names, units, types, attributes, buckets and closed values are part of the API: see
// docs/telemetry.md.
func TestMetricsAreThoseOfTheGoldenFile(t *testing.T) {
	_, got := told(t)
	require.Equal(t, "github.com/tenure-dev/tenure/otel", got.Scope.Name)
	require.Equal(t, tenureotel.Version(), got.Scope.Version)
	require.NotEmpty(t, got.Scope.Version)
	slices.SortFunc(got.Metrics, func(a, b metricdata.Metrics) int { return strings.Compare(a.Name, b.Name) })
	var text strings.Builder
	for _, m := range got.Metrics {
		assert.NotEmpty(t, m.Description, m.Name)
		text.WriteString(outline(t, m))
	}
	golden(t, "metrics.golden", text.String())
}

// outline describes a metric without its values.
func outline(t *testing.T, m metricdata.Metrics) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s unit=%q %s\n", m.Name, m.Unit, kindOf(m))
	if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
		fmt.Fprintf(&text, "\tbounds %v\n", data.DataPoints[0].Bounds)
	}
	keys := make(map[string]bool)
	values := make(map[string]map[string]bool)
	for _, p := range pointsOf(t, m) {
		for _, a := range p.attributes.ToSlice() {
			if values[string(a.Key)] == nil {
				values[string(a.Key)] = make(map[string]bool)
			}
			values[string(a.Key)][a.Value.String()] = true
		}
		keys[strings.Join(own(p.attributes), " ")] = true
	}
	for _, names := range sorted(keys) {
		fmt.Fprintf(&text, "\tattributes %s\n", names)
	}
	for _, key := range closed {
		if len(values[key]) > 0 {
			fmt.Fprintf(&text, "\t%s: %s\n", key, strings.Join(sorted(values[key]), " "))
		}
	}
	return text.String()
}

// kindOf tells the instrument's type as a reader sees it.
func kindOf(m metricdata.Metrics) string {
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		return fmt.Sprintf("Histogram[float64] %v", data.Temporality)
	case metricdata.Sum[int64]:
		return fmt.Sprintf("Sum[int64] %v monotonic=%v", data.Temporality, data.IsMonotonic)
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T", data), "metricdata.")
	}
}

func sorted(set map[string]bool) []string {
	var list []string
	for s := range set {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

// golden compares a text with a file in testdata; -update writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "if this is meant to change, run the test with -update, and say so in CHANGELOG.md and docs/telemetry.md")
}

// row is what docs/telemetry.md says of a metric, but for what it measures.
type row struct {
	kind, unit string
	attributes string // in the order of their names, with spaces
}

var quotedName = regexp.MustCompile("`([^`]+)`")

// rows are those of the page's table of metrics, by their names.
func rows(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile("../docs/telemetry.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| metric | type, unit | attributes | measures |\n| --- | --- | --- | --- |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	all := make(map[string]row)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		require.Len(t, cells, 4, "%s", line)
		name := strings.Trim(cells[0], "` ")
		require.NotContains(t, all, name, "it is there twice")
		kind, unit, _ := strings.Cut(strings.TrimSpace(cells[1]), ", ")
		attributes := make(map[string]bool)
		for _, match := range quotedName.FindAllStringSubmatch(cells[2], -1) {
			attributes[match[1]] = true
		}
		all[name] = row{kind, unit, strings.Join(sorted(attributes), " ")}
	}
	return all
}

// outlined is a metric of the golden file: its name, its unit, its type, and what some of its
// points have.
var outlined = regexp.MustCompile(`(?m)^(\S+) unit="(.*)" (\w+)\S* ?(.*)\n((?:\t.*\n)*)`)

// kinds are the page's words for types.
var kinds = map[string]string{
	"Histogram CumulativeTemporality": "histogram", "Gauge ": "gauge",
	"Sum CumulativeTemporality monotonic=true": "counter", "Sum CumulativeTemporality monotonic=false": "up-down counter",
}

// The page's table has every metric of the golden file, and no other, with its type, unit and
// attributes.
func TestPageHasTheMetrics(t *testing.T) {
	text, err := os.ReadFile("testdata/metrics.golden")
	require.NoError(t, err)
	made := make(map[string]row)
	for _, m := range outlined.FindAllStringSubmatch(string(text), -1) {
		attributes := make(map[string]bool)
		for line := range strings.Lines(m[5]) {
			if words := strings.Fields(line); words[0] == "attributes" {
				for _, name := range words[1:] {
					attributes[name] = true
				}
			}
		}
		require.Contains(t, kinds, m[3]+" "+m[4], "a type without a name on the page: %s", m[1])
		made[m[1]] = row{kinds[m[3]+" "+m[4]], m[2], strings.Join(sorted(attributes), " ")}
	}
	require.Equal(t, made, rows(t))
}
