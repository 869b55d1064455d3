package redlocktest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestFleet(t *testing.T) {
	onBoth(t, 3, func(t *testing.T, f *redlocktest.Fleet) {
		require.Len(t, f.Nodes(), 3)
		seen := map[string]bool{}
		for i, url := range f.URLs() {
			require.Equal(t, f.Node(i).URL(), url)
			require.False(t, seen[url], url)
			seen[url] = true
			mustDo(t, open(t, f, f.Node(i)), "SET", "node", strconv.Itoa(i))
		}
		for i, n := range f.Nodes() {
			v, _ := n.Get("node")
			require.Equal(t, strconv.Itoa(i), v, "nodes are independent")
		}
		require.NoError(t, f.Node(1).Freeze())
		require.NoError(t, f.Node(2).Kill())
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		require.ErrorContains(t, f.Node(0).Restart(true), "its fleet is closed")
	})
}

func TestFleetNeedsNodes(t *testing.T) {
	_, err := redlocktest.New(0)
	require.ErrorContains(t, err, "at least one")
}

func TestPipeURLs(t *testing.T) {
	f := redlocktest.StartPipes(t, 2)
	require.Equal(t, []string{"valkey://node-1.pipe:6379", "valkey://node-2.pipe:6379"}, f.URLs())
}

func TestClientOptionLeavesOthersAlone(t *testing.T) {
	f := redlocktest.StartPipes(t, 1)
	var o valkey.ClientOption
	for _, url := range []string{"valkey://127.0.0.1:6379", "::", ""} {
		f.ClientOption(url, &o)
		require.False(t, o.DisableCache)
		require.Nil(t, o.DialCtxFn)
	}
	f.ClientOption(f.Node(0).URL()+"/0?client_name=x", &o)
	require.True(t, o.DisableCache)
	require.NotNil(t, o.DialCtxFn)
}

func TestInfoKnowsRestarts(t *testing.T) {
	inBubble(t, func(t *testing.T, n *redlocktest.Node, c valkey.Client) {
		first := info(t, c, "server")
		require.Len(t, first["run_id"], 40)
		require.Equal(t, "172800", first["uptime_in_seconds"], "the fleet was there before the test")

		require.NoError(t, n.Restart(true))
		reconnect(t, c)
		time.Sleep(1900 * time.Millisecond)
		second := info(t, c, "server", "replication")
		require.NotEqual(t, first["run_id"], second["run_id"])
		require.Equal(t, "1", second["uptime_in_seconds"])
		require.Equal(t, "master", second["role"])

		all := info(t, c)
		require.Equal(t, second["run_id"], all["run_id"])
		require.Equal(t, "noeviction", all["maxmemory_policy"])
		require.Equal(t, "0", all["loading"])
		require.Equal(t, all, info(t, c, "everything"))
		require.Contains(t, mustString(t, mustDo(t, c, "INFO", "clients")), "connected_clients", "miniredis's own sections are left to it")
		require.Error(t, do(t.Context(), c, "INFO", "commandstats").Error())

		inScript, err := do(t.Context(), c, "EVAL", "return redis.call('INFO', 'server')", "0").ToString()
		require.NoError(t, err)
		require.Contains(t, inScript, second["run_id"])
	})
}

func info(t *testing.T, c valkey.Client, sections ...string) map[string]string {
	t.Helper()
	text := mustString(t, mustDo(t, c, append([]string{"INFO"}, sections...)...))
	fields := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
