package redlock_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// requireRefused demands an error that names the way out.
func requireRefused(t *testing.T, err error, argument, wayOut string) {
	t.Helper()
	var oe *redlock.OptionError
	require.ErrorAs(t, err, &oe)
	require.Equal(t, argument, oe.Option)
	require.Contains(t, oe.Reason, wayOut)
}

// A Cluster is no node, whatever the options say of restarts and replicas.
func TestClusterClientsAreRefused(t *testing.T) {
	t.Parallel()
	s := startServers(t, 1, valkeytest.WithArgs("--cluster-enabled", "yes"))
	s.do([]string{"CLUSTER", "ADDSLOTSRANGE", "0", "16383"})
	var client valkey.Client
	require.Eventually(t, func() (ok bool) {
		var err error
		client, err = valkey.NewClient(valkey.ClientOption{InitAddress: []string{s.Node(0).Addr()}})
		return err == nil
	}, longTTL, pollTick)
	t.Cleanup(client.Close)
	require.Equal(t, valkey.ClientModeCluster, client.Mode(), "so this tests nothing")
	for _, opts := range [][]redlock.Option{
		nil,
		{redlock.WithoutRestartGate()},
		{redlock.WithReplicas()},
		{redlock.WithoutRestartGate(), redlock.WithReplicas()},
	} {
		_, err := redlock.New([]valkey.Client{client}, opts...)
		requireRefused(t, err, "clients[0]", "use independent servers")
		_, err = redlock.Open([]string{"valkey://127.0.0.1:1?addr=127.0.0.1:2"}, opts...)
		requireRefused(t, err, "urls[0]", "no Cluster")
	}
}

func TestGateRefusesSentinelsUnlessReplicasAreAccepted(t *testing.T) {
	t.Parallel()
	urls := []string{"valkey://127.0.0.1:1", "valkey://127.0.0.1:2?master_set=primary"} // nobody is asked
	for _, opts := range [][]redlock.Option{nil, {redlock.WithoutRestartGate()}} {
		_, err := redlock.Open(urls, opts...)
		requireRefused(t, err, "urls[1]", "WithReplicas")
	}
	q, err := redlock.Open(urls, append(quietOptions(), redlock.WithReplicas())...)
	require.NoError(t, err)
	require.NoError(t, q.Close())
}

// startSentinel watches a master under the name primary, and returns the URL of that.
func (s *servers) startSentinel(master int) (client valkey.Client, url string) {
	s.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	addr := free.Addr().(*net.TCPAddr)
	require.NoError(s.t, free.Close())
	host, port, err := net.SplitHostPort(s.Node(master).Addr())
	require.NoError(s.t, err)
	dir := s.t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	config := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\n"+
		"sentinel monitor primary %s %s 1\nsentinel down-after-milliseconds primary 60000\n", addr.Port, dir, host, port)
	require.NoError(s.t, os.WriteFile(file, []byte(config), 0o600))
	binary := os.Getenv("TENURE_VALKEY_SERVER")
	if binary == "" {
		binary = "valkey-server"
	}
	sentinel := exec.CommandContext(s.t.Context(), binary, file, "--sentinel")
	require.NoError(s.t, sentinel.Start())
	s.t.Cleanup(func() { _ = sentinel.Wait() }) // killed by the end of the context
	require.Eventually(s.t, func() bool {
		client, err = valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr.String()},
			ForceSingleClient: true, DisableCache: true})
		return err == nil
	}, longTTL, pollTick, "the sentinel does not answer")
	s.t.Cleanup(client.Close)
	return client, "valkey://" + addr.String() + "?master_set=primary"
}

// sentinelOfAPair is the URL of a Sentinel of a master and its replica, and what promotes that.
func (s *servers) sentinelOfAPair(master int) (url string, failOver func(replica int)) {
	s.t.Helper()
	sentinel, url := s.startSentinel(master)
	ask := func(args ...string) valkey.ValkeyResult {
		return sentinel.Do(s.t.Context(), sentinel.B().Arbitrary(append([]string{"SENTINEL"}, args...)...).Build())
	}
	require.Eventually(s.t, func() bool {
		replicas, err := ask("REPLICAS", "primary").ToArray()
		return err == nil && len(replicas) == 1
	}, 3*longTTL, 10*pollTick, "the replica is not found")
	return url, func(replica int) {
		s.t.Helper()
		require.Eventually(s.t, func() bool { return ask("FAILOVER", "primary").Error() == nil }, 3*longTTL, 10*pollTick)
		require.Eventually(s.t, func() bool { return s.info(replica, "role") == "master" }, 3*longTTL, pollTick, "there was no fail-over")
	}
}

// Without the gate a promoted replica votes, and is looked at as any other node is.
func TestSentinelFailOverWithoutTheGate(t *testing.T) {
	t.Parallel()
	s := startServers(t, 2)
	s.follow(1, 0)
	url, failOver := s.sentinelOfAPair(0)
	q := openURLs(t, []string{url}, redlock.WithReplicas())
	requireVotes(t, q, 0, longTTL)
	failOver(1)
	require.Eventually(t, func() bool {
		l, err := q.TryAcquire(t.Context(), "key")
		return err == nil && l.Release(t.Context()) == nil
	}, longTTL, pollTick, "the promoted replica does not vote")
	s.resetStats()
	require.Eventually(t, func() bool { return s.Node(1).CommandStats(t)["time"] > 0 }, longTTL, pollTick, "nobody looks at it")
}
