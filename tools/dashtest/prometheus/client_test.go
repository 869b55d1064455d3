package prometheus_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
)

// answering returns a client of a server that gives one answer to everything, and where the last
// request is put.
func answering(t *testing.T, status int, answer string) (*prometheus.Client, *http.Request) {
	var last http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last.URL = r.URL
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return &prometheus.Client{URL: server.URL, HTTP: server.Client()}, &last
}

var at = time.Unix(1700000000, 0)

func TestQueryRange(t *testing.T) {
	c, last := answering(t, 200, `{"status":"success","data":{"resultType":"matrix","result":[
		{"metric":{"a":"b"},"values":[[1700000000,"1.5"],[1700000001.5,"NaN"],[1700000002,"+Inf"]]}]}}`)
	got, err := c.QueryRange(context.Background(), "x > 0", at, at.Add(10*time.Second), 500*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, map[string]string{"a": "b"}, got[0].Labels)
	require.Len(t, got[0].Points, 3)
	assert.Equal(t, prometheus.Point{At: at, Value: 1.5}, got[0].Points[0])
	assert.Equal(t, at.Add(1500*time.Millisecond), got[0].Points[1].At)
	assert.True(t, math.IsNaN(got[0].Points[1].Value))
	assert.True(t, math.IsInf(got[0].Points[2].Value, 1))
	q := last.URL.Query()
	assert.Equal(t, "/api/v1/query_range", last.URL.Path)
	assert.Equal(t, []string{"x > 0", "1700000000.000", "1700000010.000", "0.5"}, []string{q.Get("query"), q.Get("start"), q.Get("end"), q.Get("step")})
}

func TestQuery(t *testing.T) {
	c, _ := answering(t, 200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000,"2"]}]}}`)
	got, err := c.Query(context.Background(), "x", at)
	require.NoError(t, err)
	assert.Equal(t, []prometheus.Series{{Labels: map[string]string{}, Points: []prometheus.Point{{At: at, Value: 2}}}}, got)

	c, _ = answering(t, 200, `{"status":"success","data":{"resultType":"scalar","result":[1700000000,"3"]}}`)
	got, err = c.Query(context.Background(), "3", at)
	require.NoError(t, err)
	assert.Equal(t, 3.0, got[0].Points[0].Value)
}

func TestErrorsOfTheAPI(t *testing.T) {
	c, _ := answering(t, 400, `{"status":"error","errorType":"bad_data","error":"1:3: parse error: unexpected end of input"}`)
	_, err := c.Query(context.Background(), "x{", at)
	var refused *prometheus.APIError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "bad_data", refused.Type)
	assert.ErrorContains(t, err, "parse error")

	for _, answer := range []string{
		`<html>`, `{"status":"success","data":3}`,
		`{"status":"success","data":{"resultType":"string","result":[1,"a"]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"a"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":["a","1"]}]}}`,
	} {
		c, _ := answering(t, 200, answer)
		_, err := c.Query(context.Background(), "x", at)
		assert.ErrorContains(t, err, "prometheus: ", answer)
	}
}

func TestRulesTargetsAndLabels(t *testing.T) {
	c, _ := answering(t, 200, `{"status":"success","data":{"groups":[{"rules":[{"name":"a","health":"ok"}]},{"rules":[{"name":"b","health":"err","lastError":"e"}]}]}}`)
	rules, err := c.Rules(context.Background())
	require.NoError(t, err)
	assert.Equal(t, []prometheus.Rule{{Name: "a", Health: "ok"}, {Name: "b", Health: "err", LastError: "e"}}, rules)

	c, _ = answering(t, 200, `{"status":"success","data":{"activeTargets":[{"scrapeUrl":"u","health":"up"}]}}`)
	targets, err := c.Targets(context.Background())
	require.NoError(t, err)
	assert.Equal(t, []prometheus.Target{{URL: "u", Health: "up"}}, targets)

	c, last := answering(t, 200, `{"status":"success","data":["a","b"]}`)
	values, err := c.LabelValues(context.Background(), "instance", "up", at, at)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, values)
	assert.Equal(t, "/api/v1/label/instance/values", last.URL.Path)
	assert.Equal(t, "up", last.URL.Query().Get("match[]"))
}

func TestNoPrometheus(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.ErrorIs(t, prometheus.Installed(), prometheus.ErrMissing)
	_, err := prometheus.Start(context.Background(), t.TempDir(), nil)
	require.ErrorIs(t, err, prometheus.ErrMissing)
	assert.ErrorContains(t, err, "install-prometheus.sh")
}

func TestPrometheusThatDoesNotStart(t *testing.T) {
	if prometheus.Installed() != nil {
		// What stands for it says why it ends, as the real one does.
		stand := t.TempDir()
		writeProgram(t, stand+"/prometheus", "#!/bin/sh\necho 'Error loading config' >&2\nexit 2\n")
		t.Setenv("PATH", stand)
	}
	_, err := prometheus.Start(context.Background(), t.TempDir(), []byte("nonsense: 1\n"))
	assert.ErrorContains(t, err, "ended instead of getting ready")
	assert.ErrorContains(t, err, "rror loading config")
}

func writeProgram(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o700))
}
