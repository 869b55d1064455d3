package redlock_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A successor that refuses those who knew the server before, because it wants another password, or
// TLS, is another server all the same: the old one has no vote from then on, and extends nothing.
func TestSuccessorThatRefusesIsAnotherServer(t *testing.T) {
	for name, successor := range map[string]func(t *testing.T) string{
		"another password": func(t *testing.T) string {
			s := startServers(t, 1)
			s.do([]string{"CONFIG", "SET", "requirepass", "another"})
			return s.Node(0).Addr()
		},
		"TLS": func(t *testing.T) string {
			s, dir := startServers(t, 1), t.TempDir()
			writeCertificate(t, dir)
			free, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := free.Addr().String()
			require.NoError(t, free.Close())
			_, port, err := net.SplitHostPort(addr)
			require.NoError(t, err)
			s.do([]string{"CONFIG", "SET", "tls-cert-file", filepath.Join(dir, "cert.pem"), "tls-key-file", filepath.Join(dir, "key.pem"),
				"tls-ca-cert-file", filepath.Join(dir, "cert.pem"), "tls-port", port})
			return addr
		},
	} {
		for _, callers := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", a caller's client: ", callers), func(t *testing.T) {
				t.Parallel()
				s := startAged(t, 3)
				way := startDetour(t, s.Node(0).Addr())
				urls := []string{"valkey://" + way.Addr().String(), s.Node(1).URL(), s.Node(2).URL()}
				var log lockedBuffer
				q := looking(t, callers, urls, &log)
				s.squat("key", time.Minute, 2)
				held, err := tryUntilAnswered(t, q, "key")
				require.NoError(t, err)
				way.lead(successor(t))
				select {
				case <-held.Context().Done():
				case <-time.After(3 * longTTL):
					require.Fail(t, "the lease is still extended by a server that has been replaced")
				}
				require.NoError(t, s.Node(0).Do(t, "EXISTS", lockKey("key")).Error(), "it lives")
				require.False(t, q.Nodes(t.Context())[0].Votes)
				require.Contains(t, log.String(), "another server answers")
			})
		}
	}
}

// A server that lets no new connection log in, and is the one that was there, goes on with those
// that it has, for as long as they live, and is warned of.
func TestServerWithAnotherPasswordGoesOn(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	l := s.hold(q, "key")
	s.do([]string{"CONFIG", "SET", "requirepass", "another"})
	const looks = 4
	time.Sleep(looks * 2 * time.Second) // in which nothing may happen
	require.NoError(t, l.Err())
	require.NoError(t, q.Healthy())
	for i := range 3 {
		n := node(t, q, i)
		require.True(t, n.Votes)
		require.Len(t, n.Warnings, 1)
		require.Equal(t, "noauth", redlock.ErrorType(n.Warnings[0]))
		require.ErrorContains(t, n.Warnings[0], "new connections are refused")
	}
	require.Equal(t, 3, strings.Count(log.String(), "lacks what"), "%s", &log)
	s.do([]string{"CONFIG", "SET", "requirepass", ""})
	require.Eventually(t, func() bool { return len(node(t, q, 0).Warnings) == 0 }, 2*longTTL, pollTick)
	require.NoError(t, l.Err())
}

// A server that nobody can connect to any more goes on with the connections that it has, and is
// warned of.
func TestServerThatTakesNoConnectionsIsNamed(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	l := s.hold(q, "key")
	ports := make([]string, 3)
	for i, n := range s.Nodes() {
		_, ports[i], _ = net.SplitHostPort(n.Addr())
		s.do([]string{"CONFIG", "SET", "port", "0"}, i)
	}
	for i := range 3 {
		require.Eventually(t, func() bool {
			n := node(t, q, i)
			require.True(t, n.Votes)
			return len(n.Warnings) == 1 && redlock.ErrorType(n.Warnings[0]) == "unconnected"
		}, 2*longTTL, pollTick)
		require.ErrorContains(t, node(t, q, i).Warnings[0], "connection refused")
	}
	require.NoError(t, q.Healthy())
	require.NoError(t, l.Err())
	require.Equal(t, 3, strings.Count(log.String(), "lacks what"), "%s", &log)
	for i := range 3 {
		s.do([]string{"CONFIG", "SET", "port", ports[i]}, i)
	}
	require.Eventually(t, func() bool { return len(node(t, q, 0).Warnings) == 0 }, 2*longTTL, pollTick)
	require.Eventually(t, func() bool { return strings.Count(log.String(), "lacks nothing") == 3 }, 2*longTTL, pollTick, "%s", &log)
}
