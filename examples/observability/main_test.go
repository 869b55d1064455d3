package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/internal/valkeytest"
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

// launch starts the program, which serves metrics at free ports. The function that it returns waits
// for its end.
func launch(t *testing.T, env []string, args ...string) (addresses []string, process *os.Process, end func() string) {
	for range 3 {
		addresses = append(addresses, valkeytest.FreeAddress(t))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	var out strings.Builder
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-listen", strings.Join(addresses, ",")}, args...)...)
	cmd.Env = append(append(os.Environ(), program+"=1"), env...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 20*time.Second
	require.NoError(t, cmd.Start())
	return addresses, cmd.Process, func() string {
		require.NoError(t, cmd.Wait(), &out)
		return out.String()
	}
}

// All replicas export, the one that was killed too, with the address that it had. What each metric
// is asked for is tested with a Prometheus, by make dashboard.
func TestReplicas(t *testing.T) {
	addresses, process, end := launch(t, nil, "-kill-leader-after", "1s")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	seen := ""
	require.Eventually(t, func() bool {
		for i, address := range addresses {
			resp, err := client.Get("http://" + address + "/metrics")
			if err != nil {
				continue // it was killed
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if strings.Contains(string(text), `service_instance_id="`+string(rune('a'+i))+`"`) {
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
