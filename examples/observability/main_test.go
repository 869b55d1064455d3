package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
)

const (
	patience = 4 * time.Minute
	program  = "TENURE_TEST_PROGRAM" // makes the binary of the tests the program
)

func TestMain(m *testing.M) {
	if replicas.IsReplica() || os.Getenv(program) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// launch starts the program, which serves metrics at any ports. The function that it returns waits
// for its end.
func launch(t *testing.T, env []string, args ...string) (process *os.Process, end func() string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	var out strings.Builder
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-metrics-port", "0"}, args...)...)
	cmd.Env = append(append(os.Environ(), program+"=1"), env...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 20*time.Second
	require.NoError(t, cmd.Start())
	return cmd.Process, func() string {
		require.NoError(t, cmd.Wait(), &out)
		return out.String()
	}
}

// All replicas export, the one that was killed too, with the address that it had. What each metric
// is asked for is tested with a Prometheus, by make dashboard.
func TestReplicas(t *testing.T) {
	targets := filepath.Join(t.TempDir(), "replicas.json")
	process, end := launch(t, nil, "-targets", targets, "-kill-leader-after", "1s", "-restart-node-after", "2s")
	var list []struct {
		Targets []string
		Labels  map[string]string
	}
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(targets)
		return err == nil && json.Unmarshal(text, &list) == nil
	}, patience, 20*time.Millisecond)
	require.Len(t, list, 3)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	seen := ""
	require.Eventually(t, func() bool {
		for _, target := range list {
			resp, err := client.Get("http://" + target.Targets[0] + "/metrics")
			if err != nil {
				continue // it was killed
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if strings.Contains(string(text), `service_instance_id="`+target.Labels["instance"]+`"`) {
				seen += string(text)
			}
		}
		for _, metric := range []string{
			`tenure_election_handover_duration_seconds_count{`, `tenure_job_runs_total{`, `tenure_lease_held{`, `tenure_reason="expiry"`, `tenure_lease_name="invoice"`,
			`service_instance_id="a"`, `service_instance_id="b"`, `service_instance_id="c"`,
		} {
			if !strings.Contains(seen, metric) {
				return false
			}
		}
		return true
	}, patience, 200*time.Millisecond)
	require.NoError(t, process.Signal(syscall.SIGTERM))
	require.Contains(t, end(), `which leads "poller" (SIGKILL)`)
}
