package telemetry_test

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver takes traces over OTLP/HTTP, as a collector does.
type receiver struct {
	url string

	mu     sync.Mutex
	spans  []*tracepb.Span // guarded by mu; in the order in which they came
	scopes map[string]string
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{scopes: make(map[string]string)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := io.Reader(req.Body)
		if req.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = unzipped
		}
		data, err := io.ReadAll(body)
		export := &collector.ExportTraceServiceRequest{}
		if err != nil || proto.Unmarshal(data, export) != nil {
			http.Error(w, "no traces", http.StatusBadRequest)
			return
		}
		r.keep(export)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	r.url = server.URL + "/v1/traces"
	return r
}

func (r *receiver) keep(export *collector.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
			r.scopes[scope.GetScope().GetName()] = scope.GetScope().GetVersion()
		}
	}
}

// got is what has come so far: spans, and the versions of their instrumentation scopes.
func (r *receiver) got() ([]*tracepb.Span, map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans), maps.Clone(r.scopes)
}

func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = nil
}

// await waits for as many spans of each name.
func (r *receiver) await(t *testing.T, names map[string]int) (spans []*tracepb.Span) {
	t.Helper()
	enough := func() bool {
		spans, _ = r.got()
		for name, n := range names {
			if len(named(spans, name)) < n {
				return false
			}
		}
		return true
	}
	for deadline := time.Now().Add(time.Minute); !enough(); {
		require.True(t, time.Now().Before(deadline), "not the spans that were awaited:\n%s", tree(spans))
		<-time.After(10 * time.Millisecond)
	}
	return spans
}
