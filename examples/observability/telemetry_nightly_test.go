//go:build nightly

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// receiver takes OTLP over HTTP, and notes what came of which replica.
type receiver struct {
	mu   sync.Mutex
	seen map[string]bool // guarded by mu; replica and name of a span or a metric
	errs []error         // guarded by mu
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch request.URL.Path {
	case "/v1/traces":
		message := &collectortraces.ExportTraceServiceRequest{}
		r.errs = append(r.errs, err, proto.Unmarshal(body, message))
		for _, resource := range message.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					r.note(resource.GetResource().GetAttributes(), "span "+span.GetName())
				}
			}
		}
	case "/v1/metrics":
		message := &collectormetrics.ExportMetricsServiceRequest{}
		r.errs = append(r.errs, err, proto.Unmarshal(body, message))
		for _, resource := range message.GetResourceMetrics() {
			for _, scope := range resource.GetScopeMetrics() {
				for _, metric := range scope.GetMetrics() {
					r.note(resource.GetResource().GetAttributes(), "metric "+metric.GetName())
				}
			}
		}
	}
}

func (r *receiver) note(resource []*common.KeyValue, name string) {
	var service, instance string
	for _, a := range resource {
		switch a.GetKey() {
		case "service.name":
			service = a.GetValue().GetStringValue()
		case "service.instance.id":
			instance = a.GetValue().GetStringValue()
		}
	}
	r.seen[service+" "+instance+" "+name] = true
}

// has tells whether all of these have come from some replica.
func (r *receiver) has(replica string, names ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if !r.seen["tenure-observability "+replica+" "+name] {
			return false
		}
	}
	return true
}

func TestOTLP(t *testing.T) {
	r := &receiver{seen: make(map[string]bool)}
	server := httptest.NewServer(r)
	defer server.Close()
	process, end := launch(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_METRIC_EXPORT_INTERVAL=500"})
	require.Eventually(t, func() bool {
		for _, replica := range []string{"a", "b", "c"} {
			if !r.has(replica, "span tenure.lease.acquire", "span tenure.node.acquire", "span tenure.job.run", "metric tenure.lease.held", "metric tenure.election.leader") {
				return false
			}
		}
		return true
	}, patience, 50*time.Millisecond)
	require.NoError(t, process.Signal(syscall.SIGTERM))
	require.Contains(t, end(), `"msg":"elector: elected"`)
	// The span of a campaign that nobody won ends with the process.
	require.True(t, r.has("a", "span tenure.election.campaign"))
	require.True(t, r.has("b", "span tenure.election.campaign"))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.errs {
		require.NoError(t, err)
	}
}
