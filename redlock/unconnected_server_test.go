package redlock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// Nothing is concluded from a connection that cannot be made, whatever the reason: nodes vote over
// those that there are, leases are held and extended, and each node is warned of. It is so for a
// server that was replaced at its address by one that lets nobody in, too: see guarantees.md.
func TestLiveConnectionsGoOnWhereNoNewOneCanBeMade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tls    bool
		refuse func(t *testing.T, s *refusing)
		want   redlock.Condition
	}{
		"the client's certificate has expired": {true, func(_ *testing.T, s *refusing) { s.use(s.expired) }, redlock.ConditionUnconnected},
		"another password": {false, func(_ *testing.T, s *refusing) {
			s.do([]string{"CONFIG", "SET", "requirepass", "another"})
		}, redlock.ConditionNoAuth},
		"a proxy that is full": {false, func(_ *testing.T, s *refusing) { s.lead(s.nobody) }, redlock.ConditionUnconnected},
		"a proxy that hangs": {false, func(t *testing.T, s *refusing) {
			silent, err := net.Listen("tcp", "127.0.0.1:0") // a kernel accepts for it, and nobody answers
			require.NoError(t, err)
			t.Cleanup(func() { silent.Close() })
			s.lead(silent.Addr().String())
		}, redlock.ConditionUnconnected},
		"a successor with another password": {false, func(t *testing.T, s *refusing) {
			successor := startServers(t, 1)
			successor.do([]string{"CONFIG", "SET", "requirepass", "another"})
			s.lead(successor.Node(0).Addr())
		}, redlock.ConditionNoAuth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRefusing(t, test.tls)
			var log lockedBuffer
			q := gatedURLs(t, s.urls, redlock.WithMaxTTL(longTTL), redlock.WithClientOption(s.option), logTo(&log))
			l := s.hold(q, "key", redlock.WithTTL(longTTL))
			first := l.Deadline()
			test.refuse(t, s)
			for i := range s.ways {
				require.Eventually(t, func() bool {
					told := node(t, q, i).Warnings
					return len(told) == 1 && redlock.ErrorType(told[0]) == string(test.want)
				}, 2*longTTL, pollTick, "%s", &log)
			}
			s.awaitTries(3)
			for i := range s.ways {
				require.True(t, node(t, q, i).Votes, "%s", &log)
			}
			require.Eventually(t, func() bool { return l.Deadline().After(first.Add(longTTL / 2)) }, 2*longTTL, pollTick)
			require.NoError(t, l.Err())
			require.GreaterOrEqual(t, strings.Count(log.String(), "lacks what"), 3, "%s", &log)
			for _, word := range []string{"another server", "does not vote"} {
				require.NotContains(t, log.String(), word)
			}
			require.NoError(t, s.hold(q, "another").Release(t.Context()))
			require.NoError(t, l.Release(t.Context()))
		})
	}
}

// refusing is three servers that begin to refuse new connections.
type refusing struct {
	*servers
	urls    []string
	ways    []*detour
	nobody  string // an address where nobody listens
	option  func(url string, o *valkey.ClientOption)
	expired *tls.Certificate

	mu   sync.Mutex
	cert *tls.Certificate // guarded by mu; what the client shows
}

func (s *refusing) use(cert *tls.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cert = cert
}

func (s *refusing) lead(to string) {
	for _, way := range s.ways {
		way.lead(to)
	}
}

// awaitTries waits until somebody has tried to connect to each server so often again.
func (s *refusing) awaitTries(n int64) {
	s.t.Helper()
	for _, way := range s.ways {
		began := way.accepted.Load()
		require.Eventually(s.t, func() bool { return way.accepted.Load() >= began+n }, 6*longTTL, pollTick)
	}
}

func startRefusing(t *testing.T, encrypted bool) *refusing {
	t.Helper()
	s := &refusing{nobody: freeAddr(t), option: func(string, *valkey.ClientOption) {}}
	scheme, opts := "valkey://", []valkeytest.Option(nil)
	if encrypted {
		dir := t.TempDir()
		roots := writeCertificate(t, dir)
		s.use(issue(t, dir, time.Now().Add(time.Hour)))
		s.expired = issue(t, dir, time.Now().Add(-time.Minute))
		scheme = "valkeys://"
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		opts = append(opts, valkeytest.WithArgs("--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert))
		s.option = func(_ string, o *valkey.ClientOption) {
			o.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "localhost", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.cert, nil
			}}
		}
	}
	s.servers = startAged(t, 3, opts...)
	for i, n := range s.Nodes() {
		addr := n.Addr()
		if encrypted {
			addr = freeAddr(t)
			_, port, err := net.SplitHostPort(addr)
			require.NoError(t, err)
			s.do([]string{"CONFIG", "SET", "tls-port", port}, i)
		}
		way := startDetour(t, addr)
		s.ways = append(s.ways, way)
		s.urls = append(s.urls, scheme+way.Addr().String())
	}
	return s
}

// issue returns a client's certificate, of the authority that writeCertificate has made.
func issue(t *testing.T, dir string, until time.Time) *tls.Certificate {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(until.Unix()), Subject: pkix.Name{CommonName: "client"}, NotBefore: until.Add(-time.Hour), NotAfter: until,
	}, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
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
