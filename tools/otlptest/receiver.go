// Package otlptest receives OpenTelemetry traces as a collector does, and draws them as trees.
package otlptest

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBody bounds a request.
const maxBody = 16 << 20

// Receiver is an OTLP/HTTP endpoint for traces on a free loopback port. It is safe for concurrent
// use.
type Receiver struct {
	server   *http.Server
	listener net.Listener
	served   chan error

	mu     sync.Mutex
	spans  []*tracepb.Span // guarded by mu; in the order in which they came
	scopes map[string]string
	news   chan struct{} // guarded by mu; closed when a span comes
}

// Start starts a Receiver. The caller closes it.
func Start() (*Receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("otlptest: %w", err)
	}
	r := &Receiver{listener: listener, served: make(chan error, 1), scopes: make(map[string]string), news: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.receive)
	r.server = &http.Server{Handler: mux}
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
}

// Endpoint is what otlptracehttp.WithEndpointURL takes.
func (r *Receiver) Endpoint() string { return "http://" + r.listener.Addr().String() + "/v1/traces" }

// Close ends the endpoint and waits until it has.
func (r *Receiver) Close() error {
	err := r.server.Close()
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("otlptest: %w", err)
	}
	return nil
}

func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) {
	export, err := decode(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.keep(export)
	answer, err := proto.Marshal(&collector.ExportTraceServiceResponse{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func decode(req *http.Request) (*collector.ExportTraceServiceRequest, error) {
	if kind := req.Header.Get("Content-Type"); kind != "application/x-protobuf" {
		return nil, fmt.Errorf("otlptest: content type %q is not understood: send application/x-protobuf", kind)
	}
	body := io.Reader(http.MaxBytesReader(nil, req.Body, maxBody))
	if req.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("otlptest: %w", err)
		}
		body = io.LimitReader(unzipped, maxBody)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("otlptest: %w", err)
	}
	export := &collector.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(data, export); err != nil {
		return nil, fmt.Errorf("otlptest: %w", err)
	}
	return export, nil
}

func (r *Receiver) keep(export *collector.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
			r.scopes[scope.GetScope().GetName()] = scope.GetScope().GetVersion()
		}
	}
	close(r.news)
	r.news = make(chan struct{})
}

// Spans returns what has come so far.
func (r *Receiver) Spans() []*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*tracepb.Span(nil), r.spans...)
}

// Scopes returns the versions of the instrumentation scopes that spans have come from, by name.
func (r *Receiver) Scopes() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	scopes := make(map[string]string, len(r.scopes))
	for name, version := range r.scopes {
		scopes[name] = version
	}
	return scopes
}

// Await waits until what has come is enough, and returns it. It returns ctx's error if that ends
// first.
func (r *Receiver) Await(ctx context.Context, enough func([]*tracepb.Span) bool) ([]*tracepb.Span, error) {
	for {
		r.mu.Lock()
		spans, news := append([]*tracepb.Span(nil), r.spans...), r.news
		r.mu.Unlock()
		if enough(spans) {
			return spans, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return spans, fmt.Errorf("otlptest: of %d spans not those that were awaited: %w", len(spans), context.Cause(ctx))
		}
	}
}
