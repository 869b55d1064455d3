package dashtest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dashboard is the part of a Grafana dashboard's JSON that is checked.
type dashboard struct {
	UID        string
	ID         *int
	Inputs     json.RawMessage `json:"__inputs"`
	Panels     []panel
	Templating struct{ List []variable }
}

type source struct{ Type, UID string }

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  source
	Grid        struct{ X, Y, W, H int } `json:"gridPos"`
	Field       struct {
		Defaults struct{ Unit string }
	} `json:"fieldConfig"`
	Targets []struct {
		RefID      string
		Datasource source
		Expr       string
		Instant    bool
	}
}

type variable struct {
	Name, Type string
	Query      any
}

// selector and label are those of a variable's query label_values(selector, label).
func (v variable) selector(t *testing.T) (selector, label string) {
	t.Helper()
	query, _ := v.Query.(map[string]any)["query"].(string)
	match := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(query)
	require.NotNil(t, match, "variable %s: %q is not label_values(selector, label)", v.Name, query)
	return match[1], match[2]
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(files, "grafana/dashboards/tenure.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.Greater(t, len(d.Panels), 20)
	return d
}

// expressions are all of the dashboard and of the rules, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = target.Expr
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			all["variable "+v.Name], _ = v.selector(t)
		}
	}
	for name, r := range rules(t) {
		all["rule "+name] = r.Expr
	}
	require.Greater(t, len(all), 50)
	return all
}

// It works on another Grafana than its author's, and says of each panel what it is for.
func TestDashboardIsForEveryGrafana(t *testing.T) {
	d := readDashboard(t)
	assert.Equal(t, "tenure-leases", d.UID, "links and bookmarks use it")
	assert.Nil(t, d.ID, "it is the database's of one Grafana")
	assert.Nil(t, d.Inputs, "provisioning does not fill them in")
	grafana := source{"prometheus", "${datasource}"}
	ids := make(map[int]bool)
	for i, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels are %d", p.ID)
		ids[p.ID] = true
		assert.NotEmpty(t, p.Title)
		assert.True(t, p.Grid.W > 0 && p.Grid.H > 0 && p.Grid.X+p.Grid.W <= 24, "%s is not on the grid", p.Title)
		for _, q := range d.Panels[:i] {
			a, b := p.Grid, q.Grid
			assert.False(t, a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H, "%s lies on %s", p.Title, q.Title)
		}
		if p.Type == "row" {
			continue
		}
		assert.Contains(t, p.Description, "Normal:", "%s does not say what is normal", p.Title)
		assert.NotEmpty(t, p.Field.Defaults.Unit, p.Title)
		assert.Equal(t, grafana, p.Datasource, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			assert.Equal(t, grafana, target.Datasource, p.Title)
			for _, window := range regexp.MustCompile(`\b(?:rate|increase)\([^\[]*\[([^\]]*)\]`).FindAllStringSubmatch(target.Expr, -1) {
				assert.Equal(t, "$__rate_interval", window[1], "%s has a fixed window", p.Title)
			}
			assert.NotContains(t, target.Expr, "tenure_election_leader{", "a killed process can leave its 1 behind; count lease expiries")
		}
	}
}

// Variables of expressions are set, by the dashboard or by Grafana, and those of the dashboard are
// used.
func TestVariablesOfTheDashboard(t *testing.T) {
	known, used := []string{"__rate_interval", "__interval", "__range", "__range_s"}, map[string]bool{"datasource": true}
	for where, expr := range expressions(t) {
		if strings.HasPrefix(where, "rule ") {
			continue
		}
		for _, match := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(expr, -1) {
			used[match[1]] = true
		}
	}
	for _, v := range readDashboard(t).Templating.List {
		assert.True(t, used[v.Name], "nothing uses $%s", v.Name)
		known = append(known, v.Name)
	}
	assert.Subset(t, known, slices.Collect(maps.Keys(used)))
}

// Each metric and each label that is asked for is one of those that Prometheus scrapes, as the
// golden file has them, or of what a rule records. Each metric that the on-call asks for is on a
// panel.
func TestMetricsThatAreAskedForAreThere(t *testing.T) {
	golden, err := os.ReadFile("../telemetry/testdata/metrics.prom.golden")
	require.NoError(t, err)
	labels := make(map[string]string)
	for _, match := range regexp.MustCompile(`(?m)^(\w+)\{(.*)\}$`).FindAllStringSubmatch(string(golden), -1) {
		labels[match[1]] += "," + match[2] + ",job,instance,"
	}
	all, shown := expressions(t), make(map[string]bool)
	for where, expr := range all {
		for _, match := range regexp.MustCompile(`([\w:]*\btenure_\w+(?::\w+)?)(?:\{([^}]*)\})?`).FindAllStringSubmatchIndex(expr, -1) {
			name := expr[match[2]:match[3]]
			if strings.Contains(name, ":") {
				assert.Contains(t, all, "rule "+name, where)
				continue
			}
			if labels[name] == "" {
				listed := regexp.MustCompile(`(?:by|on|ignoring|without) \([^()]*$`).MatchString(expr[:match[2]])
				matched := regexp.MustCompile(`\{[^{}]*$`).MatchString(expr[:match[2]])
				assert.True(t, listed || matched, "%s: there is no metric %s", where, name)
				continue
			}
			shown[name] = shown[name] || !strings.HasPrefix(where, "rule ")
			if match[4] >= 0 {
				for _, l := range regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`).FindAllStringSubmatch(expr[match[4]:match[5]], -1) {
					assert.Contains(t, labels[name], ","+l[1]+",", "%s: %s has no label %s", where, name, l[1])
				}
			}
		}
	}
	for _, name := range []string{
		"tenure_election_lease_expiry_timestamp_seconds", "tenure_election_transitions_total", "tenure_election_handover_duration_seconds_sum",
		"tenure_lease_acquire_duration_seconds_bucket", "tenure_lease_extend_margin_seconds_bucket", "tenure_lease_extend_duration_seconds_count",
		"tenure_lease_held", "tenure_lease_lost_total", "tenure_lease_hold_duration_seconds_bucket", "tenure_node_operation_duration_seconds_bucket",
		"tenure_node_voting", "tenure_job_duration_seconds_bucket", "tenure_job_lateness_seconds_bucket", "tenure_job_runs_total", "tenure_job_skipped_total",
		"tenure_job_overdue", "tenure_job_next_timestamp_seconds", "tenure_job_success_timestamp_seconds",
	} {
		assert.True(t, shown[name], "no panel shows %s", name)
	}
}
