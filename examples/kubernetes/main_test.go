package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a fake API server, which keeps the labels of pods.
type cluster struct {
	*httptest.Server

	mu     sync.Mutex
	labels map[string]string // guarded by mu; of the pods that have the label
	fail   int               // guarded by mu; how many requests to refuse
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{labels: make(map[string]string)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var patch struct {
			Metadata struct{ Labels map[string]*string }
		}
		pod, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/billing/pods/")
		switch {
		case !ok, r.Method != http.MethodPatch, r.Header.Get("Authorization") != "Bearer a-token",
			r.Header.Get("Content-Type") != "application/merge-patch+json", json.NewDecoder(r.Body).Decode(&patch) != nil:
			http.Error(w, "no", http.StatusBadRequest)
		case c.fail > 0:
			c.fail--
			http.Error(w, "no", http.StatusServiceUnavailable)
		default:
			if value := patch.Metadata.Labels["tenure.dev/leader"]; value == nil {
				delete(c.labels, pod)
			} else {
				c.labels[pod] = *value
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) has() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.labels)
}

// replica is one that runs in this process.
type replica struct {
	pod, base string
	stop      func() error
}

func start(t *testing.T, c *cluster, pod string) *replica {
	t.Helper()
	env := map[string]string{
		"POD_NAME": pod, "POD_NAMESPACE": "billing", "POD_IP": "127.0.0.1",
		"LISTEN": valkeytest.FreeAddress(t), "STOP_TIMEOUT": "5s",
	}
	cfg, err := newConfig(func(name string) string { return env[name] })
	require.NoError(t, err)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("a-token\n"), 0o600))
	cfg.label, cfg.api = "tenure.dev/leader", &podAPI{base: c.URL, token: token, client: c.Client()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	r := &replica{pod: pod, base: "http://" + env["LISTEN"]}
	r.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	return r
}

// get returns the status and the text; 0 while nobody listens.
func (r *replica) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get(r.base + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// Replicas are ready whether they lead or not, every one of them answers for the leader, the label
// is on the leader's pod, and all of that moves when the leader stops. While that stops it is
// alive, and not ready.
func TestReplicas(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	t.Setenv("TENURE_NODES", strings.Join(fleet.URLs(), ","))
	t.Setenv("TENURE_PREFIX", "billing")
	c := newCluster(t)
	c.fail = 1
	all := make(map[string]*replica)
	for _, pod := range []string{"billing-a", "billing-b", "billing-c"} {
		all[pod] = start(t, c, pod)
	}
	answers := func(but string) (leader string) {
		for pod, r := range all {
			if pod == but {
				continue
			}
			ready, _ := r.get(t, "/readyz")
			status, text := r.get(t, "/reports/7")
			name, rest, _ := strings.Cut(text, " ")
			if ready != 200 || status != 200 || rest != "answers /reports/7\n" || leader != "" && leader != name {
				return ""
			}
			leader = name
		}
		return leader
	}
	var first string
	require.Eventually(t, func() bool { first = answers(""); return first != "" && c.has() == "map["+first+":reports]" }, patience, 20*time.Millisecond)
	for pod, r := range all {
		status, text := r.get(t, "/metrics")
		require.Equal(t, 200, status)
		require.Contains(t, text, "tenure_node_voting")
		if pod == first {
			continue
		}
		req, err := http.NewRequest(http.MethodGet, r.base+"/reports/7", nil)
		require.NoError(t, err)
		req.Header.Set(sentOn, "1")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 503, resp.StatusCode, "a request is sent on once")
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
	}

	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- all[first].stop() }()
	require.Eventually(t, func() bool { ready, _ := all[first].get(t, "/readyz"); return ready == 503 }, patience, 10*time.Millisecond)
	live, _ := all[first].get(t, "/livez")
	require.Equal(t, 200, live)
	var second string
	require.Eventually(t, func() bool {
		second = answers(first)
		return second != "" && second != first && c.has() == "map["+second+":reports]"
	},
		patience, 20*time.Millisecond)
	require.NoError(t, <-ended)
	require.GreaterOrEqual(t, time.Since(begun), lameDuck)
}

func TestAddressOfTheLeader(t *testing.T) {
	for payload, good := range map[string]bool{
		"http://10.0.0.7:8080": true, "http://[fd00::7]:8080": true,
		"": false, "10.0.0.7:8080": false, "https://10.0.0.7:8080": false, "http://internal.example.net": false, "http://a@10.0.0.7": false,
		"http://10.0.0.7/admin": false, "http://10.0.0.7?x": false, "http://10.0.0.7#x": false, "file:///etc/passwd": false, "http://\x00": false,
	} {
		_, err := parseAddress(payload)
		require.Equal(t, good, err == nil, "%q: %v", payload, err)
	}
}

func TestConfigurationThatIsMissing(t *testing.T) {
	env := map[string]string{"POD_NAME": "a", "POD_IP": "127.0.0.1", "LISTEN": ":1", "STOP_TIMEOUT": "5s"}
	get := func(name string) string { return env[name] }
	_, err := newConfig(get)
	require.NoError(t, err)
	for name := range env {
		was := env[name]
		env[name] = ""
		_, err := newConfig(get)
		require.ErrorContains(t, err, name)
		env[name] = was
	}
	env["LEADER_LABEL"] = "tenure.dev/leader"
	_, err = newConfig(get)
	require.ErrorContains(t, err, "automountServiceAccountToken")
}
