//go:build nightly

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// receiver takes OTLP over HTTP, and keeps what comes of each signal.
type receiver struct {
	mu     sync.Mutex
	bodies map[string][][]byte // guarded by mu; by path
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.bodies[request.URL.Path] = append(r.bodies[request.URL.Path], body)
	}
}

// has tells whether all of these have come from a replica. In a protocol buffer a text stands as it
// is, behind its length; a process sends its own resource alone.
func (r *receiver) has(replica, path string, names ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(r.bodies[path], func(body []byte) bool {
			return bytes.Contains(body, []byte("tenure-observability")) && bytes.Contains(body, []byte("service.instance.id\x12\x03\x0a\x01"+replica)) &&
				bytes.Contains(body, []byte(string(rune(len(name)))+name))
		})
	})
}

func TestOTLP(t *testing.T) {
	const traces, metrics = "/v1/traces", "/v1/metrics"
	r := &receiver{bodies: make(map[string][][]byte)}
	server := httptest.NewServer(r)
	defer server.Close()
	_, process, end := launch(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_METRIC_EXPORT_INTERVAL=500"})
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc([]string{"a", "b", "c"}, func(replica string) bool {
			return !r.has(replica, traces, "tenure.lease.acquire", "tenure.node.acquire", "tenure.job.run") ||
				!r.has(replica, metrics, "tenure.lease.held", "tenure.election.leader")
		})
	}, patience, 50*time.Millisecond)
	require.NoError(t, process.Signal(syscall.SIGTERM))
	require.Contains(t, end(), `"msg":"elector: elected"`)
	// The span of a campaign that nobody won ends with the process.
	require.True(t, r.has("a", traces, "tenure.election.campaign"))
	require.True(t, r.has("b", traces, "tenure.election.campaign"))
}
