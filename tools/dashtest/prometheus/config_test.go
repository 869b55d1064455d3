package prometheus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tenure-dev/tenure/tools/dashtest/prometheus"
)

const directory = "../../../examples/observability/prometheus"

func TestAdaptTheRepositorysConfiguration(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(directory, "prometheus.yml"))
	require.NoError(t, err)
	adapted, err := prometheus.Adaptation{Directory: directory, Targets: "t.json", Every: time.Second}.Adapt(text)
	require.NoError(t, err)
	var config struct {
		Global struct {
			Scrape   string `yaml:"scrape_interval"`
			Evaluate string `yaml:"evaluation_interval"`
		}
		Rules []string `yaml:"rule_files"`
		Jobs  []struct {
			Name  string                     `yaml:"job_name"`
			Files []struct{ Files []string } `yaml:"file_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal(adapted, &config))
	assert.Equal(t, "1000ms", config.Global.Scrape)
	assert.Equal(t, "1000ms", config.Global.Evaluate)
	require.Len(t, config.Jobs, 1)
	assert.Equal(t, prometheus.Job, config.Jobs[0].Name)
	assert.Equal(t, []string{"t.json"}, config.Jobs[0].Files[0].Files)
	for _, pattern := range config.Rules {
		rules, err := prometheus.ReadRules(pattern)
		require.NoError(t, err)
		assert.NotEmpty(t, rules)
	}
}

func TestAdaptRuleFilesOfAContainer(t *testing.T) {
	text := "global: {}\nrule_files: [/etc/prometheus/rules/*.yml]\nscrape_configs: [{job_name: tenure, static_configs: [{targets: [a:1]}]}]"
	adapted, err := prometheus.Adaptation{Directory: directory, Targets: "t.json", Every: time.Second}.Adapt([]byte(text))
	require.NoError(t, err)
	assert.Contains(t, string(adapted), filepath.Join(directory, "rules/*.yml"))
	assert.NotContains(t, string(adapted), "static_configs")
}

func TestAdaptRefuses(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"a: [", "the configuration"},
		{"rule_files: [a]", "global"},
		{"global: {}", "rule_files"},
		{"global: {}\nrule_files: [a]\nscrape_configs: [{job_name: other}]", `no scrape job "tenure"`},
	} {
		_, err := prometheus.Adaptation{}.Adapt([]byte(tc.text))
		assert.ErrorContains(t, err, tc.want)
	}
}

func TestReadRules(t *testing.T) {
	rules, err := prometheus.ReadRules(filepath.Join(directory, "rules/*.yml"))
	require.NoError(t, err)
	alerts := 0
	for _, r := range rules {
		assert.NotEmpty(t, r.Name(), r.File)
		assert.NotEmpty(t, strings.TrimSpace(r.Expr), r.Name())
		if r.Alert != "" {
			alerts++
		}
	}
	assert.NotZero(t, alerts)

	_, err = prometheus.ReadRules(filepath.Join(t.TempDir(), "*.yml"))
	assert.ErrorContains(t, err, "has no rules")
	_, err = prometheus.ReadRules("[")
	assert.ErrorContains(t, err, "pattern")
	broken := filepath.Join(t.TempDir(), "broken.yml")
	require.NoError(t, os.WriteFile(broken, []byte("groups: 3"), 0o600))
	_, err = prometheus.ReadRules(broken)
	assert.ErrorContains(t, err, "broken.yml")
}
