//go:build nightly

package dashtest

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// observed is how long Prometheus scrapes at least before it is asked. Meanwhile leaders are killed
// and a node is restarted.
const observed = 95 * time.Second

// startProcess starts a program that ends with the test.
func startProcess(t *testing.T, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	process, err := child.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = process.Terminate(15 * time.Second)
		if t.Failed() {
			said := output.String()
			t.Logf("%s said at last:\n%s", program, said[max(0, len(said)-4000):])
		}
	})
}

// scrape runs the example's three replicas and a Prometheus with the repository's rules that
// scrapes them each second.
func scrape(t *testing.T) promv1.API {
	t.Helper()
	directory := t.TempDir()
	binary, config := filepath.Join(directory, "observability"), filepath.Join(directory, "prometheus.yml")
	build := exec.Command("go", "build", "-o", binary, "./observability")
	build.Dir = filepath.Join(root, "examples")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	address, a, b, c := valkeytest.FreeAddress(t), valkeytest.FreeAddress(t), valkeytest.FreeAddress(t), valkeytest.FreeAddress(t)
	startProcess(t, binary, "-duration", "10m", "-listen", a+","+b+","+c, "-kill-leader-after", "25s")

	rules, err := filepath.Abs(filepath.Join(files, "prometheus/rules/*.yml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: tenure
    static_configs: [{targets: [%q, %q, %q]}]
`, rules, a, b, c), 0o600))
	startProcess(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(directory, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	require.NoError(t, err)
	t.Cleanup(client.(api.CloseIdler).CloseIdleConnections)
	return promv1.NewAPI(client)
}

// filled counts the series of an answer that have a value.
func filled(answer model.Value) (n int) {
	matrix, _ := answer.(model.Matrix)
	for _, series := range matrix {
		for _, point := range series.Values {
			if !math.IsNaN(float64(point.Value)) {
				n++
				break
			}
		}
	}
	return n
}

// A real Prometheus evaluates each expression of the dashboard and of the rules, and has a value
// for each but for the alerts, which may be quiet: promtool tests those.
func TestPrometheusAnswersEverything(t *testing.T) {
	prometheus := scrape(t)
	series := func(expr string) int {
		answer, _, _, err := prometheus.Query(t.Context(), expr, time.Now())
		vector, ok := answer.(model.Vector)
		if !ok || err != nil {
			return 0
		}
		return len(vector)
	}
	require.Eventually(t, func() bool { return series(`up == 1`) == 3 }, time.Minute, 200*time.Millisecond, "three replicas are scraped")
	span := promv1.Range{Start: time.Now(), Step: time.Second}
	require.Eventually(t, func() bool {
		return time.Since(span.Start) > observed && series(`tenure_election_handover_duration_seconds_count{tenure_reason="expiry"}`) > 0
	}, 3*observed, time.Second, "a leader was killed, and nobody took over")
	span.End = time.Now()

	// As Grafana replaces them, with everything selected.
	grafana := strings.NewReplacer("$__rate_interval", "4s", "$__interval", "1s", "$__range_s", "95", "$__range", "95s",
		"$job", ".+", "$instance", ".+", "$election", ".+", "$lease", ".+")
	for where, expr := range expressions(t) {
		answer, warnings, _, err := prometheus.QueryRange(t.Context(), grafana.Replace(expr), span)
		assert.NoError(t, err, "%s: %s", where, expr)
		assert.Empty(t, warnings, where)
		t.Logf("%3d series: %s", filled(answer), where)
		if !strings.HasPrefix(where, "rule Tenure") {
			assert.Positive(t, filled(answer), "%s is empty: %s", where, expr)
		}
	}
	for _, v := range readDashboard(t).Templating.List {
		if v.Type == "query" {
			selector, label := v.selector(t)
			values, _, _, err := prometheus.LabelValues(t.Context(), label, []string{grafana.Replace(selector)}, span.Start, span.End)
			assert.NoError(t, err)
			assert.NotEmpty(t, values, "variable %s", v.Name)
		}
	}
	loaded, err := prometheus.Rules(t.Context(), nil)
	require.NoError(t, err)
	for _, group := range loaded.Groups {
		for _, rule := range group.Rules {
			switch rule := rule.(type) {
			case promv1.AlertingRule:
				assert.EqualValues(t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
			case promv1.RecordingRule:
				assert.EqualValues(t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
			}
		}
	}
	assert.GreaterOrEqual(t, len(loaded.Groups), 6)
}
