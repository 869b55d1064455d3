package redlock_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

func freeAddr(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer free.Close()
	return free.Addr().String()
}

// startTLS starts a server with a port for TLS beside its plain one, and returns a client's option
// for its certificate.
func startTLS(t *testing.T, authClients string) (plain, encrypted string, trust redlock.Option) {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	roots := writeCertificate(t, dir)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	s := startAged(t, 1, valkeytest.WithArgs("--tls-port", addr[strings.LastIndexByte(addr, ':')+1:],
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", authClients))
	return s.Node(0).Addr(), addr, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		if o.TLSConfig != nil {
			o.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
		}
	})
}

// requireTold demands that the error of an attempt, the node's status and the log say the same.
func requireTold(t *testing.T, url, want string, opts ...redlock.Option) {
	t.Helper()
	var log lockedBuffer
	q := openURLs(t, []string{url}, append(opts, logTo(&log))...)
	require.Eventually(t, func() bool { // a busy machine is slow first
		_, err := q.TryAcquire(t.Context(), "key")
		return err != nil && strings.Contains(err.Error(), want)
	}, longTTL, 10*pollTick, "%v", log.String())
	require.Eventually(t, func() bool {
		n := q.Nodes(t.Context())[0]
		return n.Err != nil && strings.Contains(n.Err.Error(), want)
	}, longTTL, 10*pollTick)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), want) }, longTTL, pollTick, "%s", &log)
	require.ErrorContains(t, q.Healthy(), want)
}

// A server that is spoken to in the wrong way does not say so.
func TestWrongEncryptionIsSuspected(t *testing.T) {
	t.Parallel()
	plain, encrypted, trust := startTLS(t, "yes")
	t.Run("TLS to a plain port", func(t *testing.T) {
		requireTold(t, "valkeys://"+plain, "write valkey:// in place of valkeys://", trust)
	})
	t.Run("plain to a TLS port", func(t *testing.T) {
		requireTold(t, "valkey://"+encrypted, "write valkeys:// in place of valkey://", trust)
	})
	t.Run("no client certificate", func(t *testing.T) {
		requireTold(t, "valkeys://"+encrypted, "TLSConfig.Certificates", trust)
	})
	t.Run("what has answered is not suspected", func(t *testing.T) {
		s := startAged(t, 1)
		q := s.gated()
		require.True(t, node(t, q, 0).Votes)
		s.freeze(0)
		defer s.thaw(0)
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrTimeout)
		require.NotContains(t, err.Error(), "TLS")
	})
	t.Run("what refuses connections is not suspected", func(t *testing.T) {
		_, err := gatedURLs(t, []string{"valkeys://" + freeAddr(t)}).TryAcquire(t.Context(), "key")
		require.ErrorContains(t, err, "refused")
		require.NotContains(t, err.Error(), "valkey://")
	})
}

// startSentinel watches a master, and returns the Sentinel's URL.
func (s *servers) startSentinel(master int) (url string) {
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
	return "valkey://" + addr.String()
}

// A Sentinel is told from a server that is old.
func TestSentinelIsNamed(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1)
	url := s.startSentinel(0)
	requireTold(t, url, "it is a Sentinel, which keeps no data (name the master itself)")
	n := gatedURLs(t, []string{url}).Nodes(t.Context())[0]
	requireCondition(t, n.Err, n.Node, redlock.Condition(wire.Sentinel))
}

func TestMissingDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1)
	requireTold(t, s.Node(0).URL()+"/99", "DB index is out of range (use a database number below")
	n := gatedURLs(t, []string{s.Node(0).URL() + "/99"}).Nodes(t.Context())[0]
	requireCondition(t, n.Err, n.Node, redlock.Condition(wire.NoDatabase))
}

// A server that has fallen silent is named with what to do.
func TestServerThatFallsSilent(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	require.NoError(t, s.hold(q, "key").Release(t.Context()))
	s.freeze(0)
	defer s.thaw(0)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "node failing") }, 2*longTTL, pollTick)
	require.Contains(t, log.String(), "ask it with valkey-cli PING")
}
