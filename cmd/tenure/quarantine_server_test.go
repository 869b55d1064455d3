package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A node that was restarted votes again when the replicas say so, from the first moment on,
// whatever the TTL of the command is; and nobody is told to delete a key.
func TestQuarantineIsThatOfTheReplicas(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	skew := redlock.WithClockSkew(10 * time.Millisecond)
	q := use(t, f.URLs(), skew, redlock.WithTTL(6*time.Second))
	environ := append(nodesAt(f.URLs()...), "TENURE_CLOCK_SKEW=10ms") // a TTL of a second
	require.NoError(t, f.Node(2).Restart(false))
	replicas := func() time.Time { return q.Nodes(t.Context())[2].QuarantinedUntil }
	require.Eventually(t, func() bool { return !replicas().IsZero() }, patience, poll)
	until, compared := replicas(), 0
	for !replicas().IsZero() {
		began := time.Now()
		got := call(t, environ, "nodes", "-o", "json")
		require.NotContains(t, got.out, "delete")
		var nodes nodesDocument
		if got.code != exitOK { // a node that does not answer in a tenth of a second, on a busy machine
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(got.out), &nodes))
		if said := nodes.Nodes[2].QuarantinedUntil; !said.IsZero() {
			require.WithinDuration(t, until, said.Time, 1500*time.Millisecond+time.Since(began), "a server tells its age in seconds")
			compared++
		}
		require.NotContains(t, call(t, environ, "status", "-o", "json").out, "delete")
		began = time.Now()
		got = call(t, environ, "doctor")
		require.NotContains(t, got.out, "delete")
		if _, at, found := strings.Cut(got.out, "it votes again at "); found {
			said, err := time.ParseInLocation("2006-01-02 15:04:05", until.Format(time.DateOnly)+" "+at[:len("15:04:05")], time.Local)
			require.NoError(t, err)
			require.WithinDuration(t, until, said, 2500*time.Millisecond+time.Since(began), got.out)
			compared++
		}
	}
	require.NotZero(t, compared)
}
