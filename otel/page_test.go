package tenureotel_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

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
		var attributes []string
		for _, match := range quotedName.FindAllStringSubmatch(cells[2], -1) {
			attributes = append(attributes, match[1])
		}
		slices.Sort(attributes)
		all[name] = row{kind, unit, strings.Join(attributes, " ")}
	}
	return all
}

// rowOf is what the page has to say of a metric: an attribute that some of its points have counts.
func rowOf(t *testing.T, m metricdata.Metrics) row {
	t.Helper()
	r := row{unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		r.kind = "histogram"
	case metricdata.Sum[int64]:
		if r.kind = "up-down counter"; data.IsMonotonic {
			r.kind = "counter"
		}
	case metricdata.Gauge[int64], metricdata.Gauge[float64]:
		r.kind = "gauge"
	default:
		require.Fail(t, "a type without a name on the page", "%s: %T", m.Name, m.Data)
	}
	names := make(map[string]bool)
	for _, p := range pointsOf(t, m) {
		for _, name := range own(p.attributes) {
			names[name] = true
		}
	}
	r.attributes = strings.Join(sorted(names), " ")
	return r
}

// The page's table has every metric, and no other, with its type, unit and attributes.
func TestPageHasTheMetrics(t *testing.T) {
	documented := rows(t)
	_, metrics := told(t)
	made := make(map[string]row)
	for _, m := range metrics.Metrics {
		made[m.Name] = rowOf(t, m)
	}
	require.Equal(t, slices.Sorted(maps.Keys(made)), slices.Sorted(maps.Keys(documented)))
	for name, want := range made {
		require.Equal(t, want, documented[name], name)
	}
}
