package dashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	root  = "../.."
	files = root + "/examples/observability"
)

// service is the part of a service that is checked.
type service struct {
	Image string
	Build struct {
		Context    string
		Dockerfile string
	}
	Command     []string
	Environment map[string]string
	DependsOn   []string `yaml:"depends_on"`
	Ports       []string
	Volumes     []string
	Configs     []struct{ Source, Target string }
}

type composition struct {
	Services map[string]service
	Configs  map[string]struct{ Content string }
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(files, file))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), file)
}

func readComposition(t *testing.T) composition {
	t.Helper()
	var c composition
	readYAML(t, "docker-compose.yml", &c)
	return c
}

func TestComposeRefersToWhatIsThere(t *testing.T) {
	c := readComposition(t)
	published := make(map[string]string)
	for name, s := range c.Services {
		assert.Regexp(t, `^[a-z/-]+(:[a-z0-9.]+)?$`, s.Image, name)
		for _, other := range s.DependsOn {
			assert.Contains(t, c.Services, other, name)
		}
		for _, v := range s.Volumes {
			_, err := os.Stat(filepath.Join(files, strings.Split(v, ":")[0]))
			assert.NoError(t, err, "%s mounts it", name)
		}
		for _, p := range s.Ports {
			require.Regexp(t, `^127\.0\.0\.1:\d+:\d+$`, p, "%s is for this machine alone", name)
			port := strings.Split(p, ":")[1]
			assert.Empty(t, published[port], "%s publishes the port of another service", name)
			published[port] = name
		}
		for _, used := range s.Configs {
			assert.Contains(t, c.Configs, used.Source, name)
		}
		if s.Build.Context != "" {
			assert.FileExists(t, filepath.Join(files, s.Build.Context, s.Build.Dockerfile), name)
			assert.FileExists(t, filepath.Join(files, s.Build.Context, "go.mod"), name)
		}
	}
}

func TestComposeRunsFiveNodesAndThreeReplicas(t *testing.T) {
	c := readComposition(t)
	flags, err := os.ReadFile(filepath.Join(files, "main.go"))
	require.NoError(t, err)
	nodes, replicas := 0, 0
	for name, s := range c.Services {
		switch {
		case strings.HasPrefix(name, "valkey-"):
			nodes++
			assert.Equal(t, []string{"valkey-server", "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"}, s.Command)
		case strings.HasPrefix(name, "replica-"):
			replicas++
			addresses := strings.Split(s.Environment["TENURE_NODES"], ",")
			assert.Len(t, addresses, 5, name)
			for _, a := range addresses {
				host := strings.TrimSuffix(strings.TrimPrefix(a, "valkey://"), ":6379")
				assert.Contains(t, c.Services, host, name)
			}
			for i, word := range s.Command {
				if i%2 == 0 {
					assert.Contains(t, string(flags), `"`+strings.TrimPrefix(word, "-")+`"`, "%s: the example has no flag %s", name, word)
				}
			}
			assert.Equal(t, []string{"-replica", strings.TrimPrefix(name, "replica-")}, s.Command[:2])
			endpoint := regexp.MustCompile(`^http://(\w+):4318/v1/traces$`).FindStringSubmatch(s.Environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
			require.NotNil(t, endpoint, name)
			assert.Contains(t, c.Services, endpoint[1])
		}
	}
	assert.Equal(t, 5, nodes)
	assert.Equal(t, 3, replicas)
}

func TestComposePrometheusFindsTheReplicas(t *testing.T) {
	c := readComposition(t)
	var targets, here []struct {
		Targets []string
		Labels  map[string]string
	}
	require.NoError(t, yaml.Unmarshal([]byte(c.Configs["replicas"].Content), &targets))
	readYAML(t, "prometheus/targets/replicas.yml", &here)
	require.Len(t, targets, 3)
	require.Len(t, here, 3)
	for i, target := range targets {
		assert.Equal(t, target.Labels, here[i].Labels)
		assert.Equal(t, fmt.Sprintf("127.0.0.1:%d", 9464+i), here[i].Targets[0])
		host, found := strings.CutSuffix(target.Targets[0], ":9464")
		assert.True(t, found)
		assert.Contains(t, c.Services, host)
		assert.Equal(t, "replica-"+target.Labels["instance"], host)
		assert.Subset(t, c.Services[host].Command, []string{"-listen", "0.0.0.0:9464"})
	}
	var config struct {
		Jobs []struct {
			Discovery []struct{ Files []string } `yaml:"file_sd_configs"`
		} `yaml:"scrape_configs"`
		Rules []string `yaml:"rule_files"`
	}
	readYAML(t, "prometheus/prometheus.yml", &config)
	prometheus := c.Services["prometheus"]
	assert.Equal(t, "/etc/prometheus/"+config.Jobs[0].Discovery[0].Files[0], prometheus.Configs[0].Target)
	assert.Equal(t, []string{"rules/*.yml"}, config.Rules)
	assert.Contains(t, prometheus.Volumes, "./prometheus/rules:/etc/prometheus/rules:ro")
}

func TestGrafanaIsProvisioned(t *testing.T) {
	c := readComposition(t)
	var sources struct {
		Datasources []struct {
			UID, Type, URL string
			IsDefault      bool `yaml:"isDefault"`
			JSON           struct {
				TimeInterval string `yaml:"timeInterval"`
				Exemplars    []struct {
					Datasource string `yaml:"datasourceUid"`
				} `yaml:"exemplarTraceIdDestinations"`
			} `yaml:"jsonData"`
		}
	}
	readYAML(t, "grafana/provisioning/datasources/tenure.yml", &sources)
	kinds := make(map[string]string)
	for _, s := range sources.Datasources {
		kinds[s.UID] = s.Type
		host := regexp.MustCompile(`^http://(\w+):\d+$`).FindStringSubmatch(s.URL)
		require.NotNil(t, host, s.URL)
		assert.Contains(t, c.Services, host[1])
		for _, e := range s.JSON.Exemplars {
			defer func() { assert.Equal(t, "jaeger", kinds[e.Datasource]) }()
		}
	}
	var config struct {
		Global struct {
			Every string `yaml:"scrape_interval"`
		}
	}
	readYAML(t, "prometheus/prometheus.yml", &config)
	first := sources.Datasources[0]
	assert.True(t, first.IsDefault && first.Type == "prometheus", "the dashboard's variable takes the default")
	assert.Equal(t, config.Global.Every, first.JSON.TimeInterval, "$__rate_interval is made of it")

	var dashboards struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	readYAML(t, "grafana/provisioning/dashboards/tenure.yml", &dashboards)
	path := dashboards.Providers[0].Options.Path
	grafana := c.Services["grafana"]
	assert.Contains(t, grafana.Volumes, "./grafana/dashboards:"+path+":ro")
	assert.Contains(t, grafana.Volumes, "./grafana/provisioning:/etc/grafana/provisioning:ro")
	home, found := strings.CutPrefix(grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"], path+"/")
	assert.True(t, found)
	assert.FileExists(t, filepath.Join(files, "grafana/dashboards", home))
}
