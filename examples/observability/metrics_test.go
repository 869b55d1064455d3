package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/examples/internal/replicas/replicastest"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// scrape returns what a replica exports, and nothing while it is gone.
func scrape(client *http.Client, address string) string {
	response, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// newClient returns a client that leaves no connection and no goroutine behind.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
}

// labels returns the values of a label of a metric.
func labels(page, metric, label string) map[string]bool {
	values := make(map[string]bool)
	series := regexp.MustCompile(`(?m)^` + metric + `(?:_count)?\{(?:.*,)?` + label + `="([^"]*)"`)
	for _, found := range series.FindAllStringSubmatch(page, -1) {
		values[found[1]] = true
	}
	return values
}

// All replicas together export everything within one kill of the leader, which keeps its address.
func TestEverythingIsExported(t *testing.T) {
	targets := filepath.Join(t.TempDir(), "replicas.json")
	s := launch(t, nil, "-ttl", "3s", "-targets", targets, "-kill-leader-after", "8s", "-restart-node-after", "20s")
	var text []byte
	require.Eventually(t, func() (found bool) {
		var err error
		text, err = os.ReadFile(targets)
		return err == nil
	}, replicastest.Soon, 10*time.Millisecond)
	var list []target
	require.NoError(t, json.Unmarshal(text, &list))
	require.Len(t, list, 3)

	client := newClient()
	missing := map[string][]string{ // a metric, and a label with the values that it has to have had
		"tenure_lease_acquire_duration_seconds":          {"tenure_lease_name", "election/poller", "election/jobs", "job/*", "invoice", "stock"},
		"tenure_lease_hold_duration_seconds":             {"tenure_reason", "released"},
		"tenure_lease_held":                              {"tenure_lease_name", "election/poller"},
		"tenure_lease_extend_duration_seconds":           {"tenure_outcome", "extended"},
		"tenure_lease_extend_margin_seconds":             {"tenure_lease_name", "election/poller", "job/*"},
		"tenure_lease_lost_total":                        {"tenure_reason", "deadline", "refused"},
		"tenure_node_operation_duration_seconds":         {"error_type", "connection", "quarantined"},
		"tenure_node_voting":                             {"error_type", "quarantined"},
		"tenure_election_leader":                         {"tenure_election_name", "poller", "jobs"},
		"tenure_election_lease_expiry_timestamp_seconds": {"tenure_election_name", "poller", "jobs"},
		"tenure_election_transitions_total":              {"tenure_to", "leader", "follower"},
		"tenure_election_handover_duration_seconds":      {"tenure_reason", "expiry"},
		"tenure_job_runs_total":                          {"tenure_outcome", "success", "error"},
		"tenure_job_lateness_seconds":                    {"tenure_job_name", "heartbeat", "import", "sync", "invoices", "digest"},
		"tenure_job_next_timestamp_seconds":              {"tenure_job_name", "heartbeat", "import", "sync", "invoices", "digest"},
		"tenure_job_success_timestamp_seconds":           {"tenure_job_name", "heartbeat", "import", "sync", "invoices", "digest"},
		"tenure_job_overdue":                             {"tenure_job_name", "heartbeat", "import", "sync", "invoices", "digest"},
		"tenure_job_skipped_total":                       {"tenure_reason", "missed", "paused", "cut_short"},
		"tenure_orders_total":                            {"tenure_operation", "pause", "resume"},
		"target_info":                                    {"service_instance_id", "a", "b", "c"},
	}
	outcomes := make(map[string]bool)
	require.Eventually(t, func() bool {
		for _, target := range list {
			page := scrape(client, target.Targets[0])
			for name, want := range missing {
				seen := labels(page, name, want[0])
				want = slices.DeleteFunc(want, func(value string) bool { return seen[value] })
				if missing[name] = want; len(want) == 1 {
					delete(missing, name)
				}
			}
			maps.Copy(outcomes, labels(page, "tenure_lease_acquire_duration_seconds", "tenure_outcome"))
		}
		return len(missing) == 0 && outcomes["acquired"] && outcomes["held"] && strings.Count(s.Output(), "started\n") > 3
	}, 2*replicastest.Soon, 100*time.Millisecond, "%v %v", &missing, &outcomes) // a job that takes long begins every ten seconds, unless its replica is killed then

	require.NoError(t, s.Process.Signal(os.Interrupt))
	require.Equal(t, exitOK, s.End(t), "%s\n%s", s.Output(), s.Stderr())
	require.Regexp(t, `KILLS replica [abc] \(pid [0-9]+\), which leads "poller" \(SIGKILL\)\n`, s.Output())
	for line := range strings.Lines(s.Stderr()) {
		require.True(t, json.Valid([]byte(line)), "the log is JSON: %s", line)
	}
}

func TestDuration(t *testing.T) {
	s := launch(t, nil, "-duration", "3s", "-ttl", "1s", "-replicas", "1")
	require.Equal(t, exitOK, s.End(t), "%s\n%s", s.Output(), s.Stderr())
	require.Regexp(t, `replica a \(pid [0-9]+\) exited\n`, s.Output())
}

// As in a container: one replica, in the process that was started.
func TestReplicaAlone(t *testing.T) {
	for name, nodes := range map[string]func(*testing.T) []string{
		"nodes inside a process": func(t *testing.T) []string { return redlocktest.Start(t, 3).URLs() },
		"servers":                func(t *testing.T) []string { return valkeytest.Start(t, 3).URLs() },
	} {
		t.Run(name, func(t *testing.T) {
			s := launch(t, []string{replicas.NodesVariable + "=" + strings.Join(nodes(t), ",")}, "-replica", "x", "-ttl", "1s")
			var listens event
			require.Eventually(t, func() bool {
				return json.NewDecoder(strings.NewReader(s.Output())).Decode(&listens) != io.EOF
			}, replicastest.Soon, 10*time.Millisecond)
			require.Equal(t, "x", listens.Replica)
			require.Equal(t, kindListens, listens.Kind)
			client, leads := newClient(), regexp.MustCompile(`(?m)^tenure_election_leader\{.*\} 1$`)
			require.Eventually(t, func() bool {
				return len(leads.FindAllString(scrape(client, listens.Detail), -1)) == 2
			}, replicastest.Soon, 50*time.Millisecond)
			require.NoError(t, s.Process.Signal(os.Interrupt))
			require.Equal(t, exitOK, s.End(t), s.Stderr())
		})
	}
}
