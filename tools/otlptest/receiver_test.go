package otlptest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tenure-dev/tenure/tools/otlptest"
)

// post sends a body and returns the status.
func post(t *testing.T, url, kind, encoding string, body []byte) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Content-Encoding", encoding)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestReceiverTakesProtobufAndNothingElse(t *testing.T) {
	r := receive(t)
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "s", Version: "1"}, Spans: []*tracepb.Span{{Name: "x"}}}},
	}}})
	require.NoError(t, err)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err = w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())

	const kind = "application/x-protobuf"
	require.Equal(t, http.StatusOK, post(t, r.Endpoint(), kind, "", body))
	require.Equal(t, http.StatusOK, post(t, r.Endpoint(), kind, "gzip", zipped.Bytes()))
	require.Equal(t, http.StatusBadRequest, post(t, r.Endpoint(), "application/json", "", body))
	require.Equal(t, http.StatusBadRequest, post(t, r.Endpoint(), kind, "gzip", body))
	require.Equal(t, http.StatusBadRequest, post(t, r.Endpoint(), kind, "", []byte("no protobuf")))
	require.Len(t, r.Spans(), 2)
	require.Equal(t, map[string]string{"s": "1"}, r.Scopes())

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = r.Await(ctx, func(spans []*tracepb.Span) bool { return len(spans) > 2 })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTree(t *testing.T) {
	attribute := func(key string, v *commonpb.AnyValue) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: key, Value: v}
	}
	spans := []*tracepb.Span{
		{SpanId: []byte{3}, Name: "late", StartTimeUnixNano: 4e6, EndTimeUnixNano: 5e6, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
			Links: []*tracepb.Span_Link{{SpanId: []byte{1}}, {SpanId: []byte{9}}}},
		{SpanId: []byte{2}, ParentSpanId: []byte{1}, Name: "child", StartTimeUnixNano: 2e6, EndTimeUnixNano: 2.5e6, Kind: tracepb.Span_SPAN_KIND_CLIENT,
			Status:     &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "no"},
			Attributes: []*commonpb.KeyValue{attribute("n", &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 7}})}},
		{SpanId: []byte{1}, Name: "root", StartTimeUnixNano: 1e6, EndTimeUnixNano: 3e6, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
			Attributes: []*commonpb.KeyValue{
				attribute("s", &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "text"}}),
				attribute("b", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}),
				attribute("f", &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.25}}),
			}},
	}
	require.Equal(t, `#1 root (internal) at 0.00 ms for 2.00 ms
   b=true f=0.25 s=text
   #2 child (client) at 1.00 ms for 0.50 ms ERROR "no"
      n=7
#3 late (internal) at 3.00 ms for 1.00 ms -> #1 -> elsewhere
`, otlptest.Tree(spans))
	require.Empty(t, otlptest.Tree(nil))
}
