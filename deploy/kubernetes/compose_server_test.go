package kubernetes

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"sigs.k8s.io/yaml"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

type composed struct {
	Image   string
	Command []string
	Ports   []string
	Volumes []string
	Restart string
}

// The three nodes of the compose file are alike but for their port and their data, are reached from
// this machine alone, and read the files of docs/nodes.md: a server that is started so takes the
// password of the file, keeps what it has, and takes none without a password.
func TestComposedNodes(t *testing.T) {
	t.Parallel()
	const directory = "../compose"
	var is struct{ Services map[string]composed }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(directory, "compose.yaml"))), &is))
	require.Len(t, is.Services, 3)
	ports := make(map[string]bool)
	var node composed
	for name, s := range is.Services {
		require.Len(t, s.Ports, 1)
		require.Regexp(t, `^127\.0\.0\.1:\d+:6379$`, s.Ports[0])
		ports[s.Ports[0]] = true
		require.Contains(t, s.Volumes, name+":/data", "data of its own")
		if s.Ports, s.Volumes = nil, s.Volumes[:2]; node.Image != "" {
			require.Equal(t, node, s)
		}
		node = s
	}
	require.Len(t, ports, 3)

	dir := t.TempDir()
	words := strings.Join(node.Command, "\n")
	conf := filepath.Join(dir, "valkey.conf")
	for _, v := range node.Volumes {
		from, to, _ := strings.Cut(v, ":")
		to = strings.TrimSuffix(to, ":ro")
		text := strings.ReplaceAll(read(t, filepath.Join(directory, from)), "/etc/valkey", dir)
		write(t, filepath.Join(dir, filepath.Base(to)), text)
	}
	_, port, _ := net.SplitHostPort(valkeytest.FreeAddress(t))
	words = strings.NewReplacer("/etc/valkey/valkey.conf", conf, "/data", dir, "6379", port).Replace(words)
	command := strings.Split(words, "\n")
	server := exec.Command(command[0], append(command[1:], "--bind", "127.0.0.1")...)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	ask := func(user, password string) (answer string) {
		client, err := valkey.NewClient(valkey.ClientOption{
			InitAddress: []string{"127.0.0.1:" + port}, Username: user, Password: password, DisableCache: true, ForceSingleClient: true, DisableRetry: true,
		})
		if err != nil {
			return err.Error()
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if user != "operator" {
			pong, err := client.Do(ctx, client.B().Ping().Build()).ToString()
			if err != nil {
				return err.Error()
			}
			return pong
		}
		kept, err := client.Do(ctx, client.B().ConfigGet().Parameter("appendonly").Build()).AsStrMap()
		if err != nil {
			return err.Error()
		}
		return "appendonly " + kept["appendonly"]
	}
	require.Eventually(t, func() bool { return strings.Contains(ask("billing", "BILLING-PASSWORD"), "PONG") }, patience, 100*time.Millisecond)
	require.Contains(t, ask("operator", "OPERATOR-PASSWORD"), "appendonly yes")
	require.Contains(t, ask("", ""), "NOAUTH")
}
