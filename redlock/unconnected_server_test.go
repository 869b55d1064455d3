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
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

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
