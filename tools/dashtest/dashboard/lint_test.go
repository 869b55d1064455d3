package dashboard_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/dashtest/dashboard"
)

const file = "../../../examples/observability/grafana/dashboards/tenure.json"

func TestTheDashboardHasNothingWrong(t *testing.T) {
	d, err := dashboard.Read(file)
	require.NoError(t, err)
	assert.Empty(t, dashboard.Lint(d))
	assert.Equal(t, "tenure-leases", d.UID, "links and bookmarks use it")
}

func TestWhatTheOnCallAsksFor(t *testing.T) {
	d, err := dashboard.Read(file)
	require.NoError(t, err)
	var all strings.Builder
	for _, p := range d.All() {
		for _, target := range p.Targets {
			all.WriteString(target.Expr + "\n")
		}
	}
	for _, metric := range []string{
		"tenure_election_lease_expiry_timestamp_seconds", "tenure_election_transitions_total", "tenure_election_handover_duration_seconds",
		"tenure_lease_acquire_duration_seconds", "tenure_lease_extend_margin_seconds", "tenure_lease_extend_duration_seconds",
		"tenure_lease_held", "tenure_lease_lost_total", "tenure_lease_hold_duration_seconds", "tenure_node_operation_duration_seconds",
		"tenure_node_voting", "tenure_job_duration_seconds", "tenure_job_start_delay_seconds", "tenure_job_skipped_total",
	} {
		assert.True(t, strings.Contains(all.String(), metric), "no panel shows %s", metric)
	}
}

func TestLintFinds(t *testing.T) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, tc := range []struct{ name, old, new, want string }{
		{"inputs", `"uid": "tenure-leases"`, `"__inputs": [], "uid": "tenure-leases"`, "__inputs"},
		{"id", `"uid": "tenure-leases"`, `"id": 7, "uid": "tenure-leases"`, "id is the database's"},
		{"uid", `"uid": "tenure-leases"`, `"uid": ""`, "uid"},
		{"schema", `"schemaVersion": 39`, `"schemaVersion": 16`, "schemaVersion 16"},
		{"no variable for the source", `"type": "datasource"`, `"type": "custom"`, "no variable datasource"},
		{"fixed source", `"uid": "${datasource}"`, `"uid": "prometheus"`, "not the variable"},
		{"no title", `"title": "Leases held"`, `"title": ""`, "no title"},
		{"no description", `"description": "Do extensions fail?`, `"text": "Do extensions fail?`, "does not say what it answers"},
		{"no unit", `"unit": "s"`, `"unit": ""`, "no unit"},
		{"unknown panel", `"type": "stat"`, `"type": "graph"`, `type "graph"`},
		{"overlap", `"w": 16,`, `"w": 17,`, "it lies on panel"},
		{"off the grid", `"w": 24,`, `"w": 25,`, "not on the grid"},
		{"same id", `"id": 3,`, `"id": 2,`, "id is not its own"},
		{"fixed window", `bucket{job=~\"$job\", instance=~\"$instance\"}[$__rate_interval]`, `bucket{job=~\"$job\", instance=~\"$instance\"}[5m]`, "not over [$__rate_interval]"},
		{"sum of leaders", `"expr": "min by (server_address, server_port) (tenure_node_voting`, `"expr": "sum by (tenure_election_name) (tenure_election_leader`, "adds up"},
		{"unknown variable", `tenure_lease_name=~\"$lease\"`, `tenure_lease_name=~\"$leaze\"`, "nobody sets $leaze"},
		{"unused variable", `"name": "election"`, `"name": "elections"`, "variable elections: nothing uses it"},
		{"no expression", `"expr": "sum by (tenure_lease_name) (tenure_lease_held{job=~\"$job\", instance=~\"$instance\", tenure_lease_name=~\"$lease\"})"`, `"expr": ""`, "no expression"},
		{"two alike", `"refId": "B"`, `"refId": "A"`, "two queries are A"},
		{"variable's query", `"query": "label_values(tenure_lease_held, job)"`, `"query": "job"`, "is not label_values"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.True(t, strings.Contains(string(text), tc.old), "the dashboard has no %s to replace", tc.old)
			d, err := dashboard.Parse([]byte(strings.ReplaceAll(string(text), tc.old, tc.new)))
			require.NoError(t, err)
			assert.Contains(t, strings.Join(dashboard.Lint(d), "\n"), tc.want)
		})
	}
}

func TestWhatIsNoDashboard(t *testing.T) {
	_, err := dashboard.Parse([]byte("{"))
	assert.ErrorContains(t, err, "no dashboard")
	_, err = dashboard.Parse([]byte("{}"))
	assert.ErrorContains(t, err, "no panels")
	_, err = dashboard.Read("missing.json")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
