package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/environment"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if installed != "" {
			_ = os.RemoveAll(installed) // what is left is in a temporary directory
		}
		os.Exit(code)
	}))
}

// patience is how long a test waits for an event that should come much sooner.
const (
	patience = time.Minute
	poll     = 20 * time.Millisecond
	day      = 24 * time.Hour
)

// called is what a command line did.
type called struct {
	code     int
	out, err string
}

// call carries out a command line in process, with an environment of its own.
func call(t *testing.T, environ []string, args ...string) called {
	t.Helper()
	var out, err bytes.Buffer
	p := &program{in: strings.NewReader(""), out: &out, err: &err, environ: environ}
	code := p.run(t.Context(), append([]string{}, args...)) // without any cobra takes those of this process
	return called{code, out.String(), err.String()}
}

// nodesAt is the environment of a command line that asks nodes.
func nodesAt(urls ...string) []string {
	return []string{environment.Nodes + "=" + strings.Join(urls, ",")}
}

// startServers starts servers that are old enough to vote.
func startServers(t *testing.T, n int, opts ...valkeytest.Option) *valkeytest.Fleet {
	t.Helper()
	return valkeytest.Start(t, n, append(opts, valkeytest.WithAge(day))...)
}

// use has a process use nodes, as a replica does, until the test ends.
func use(t *testing.T, urls []string, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q, err := redlock.Open(urls, append([]redlock.Option{redlock.WithLogger(slog.New(slog.DiscardHandler)), redlock.WithIdentity("replica"),
		redlock.WithTTL(4 * time.Second), redlock.WithNodeTimeout(time.Second)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() }) // its leases are released
	require.Eventually(t, func() bool {
		for _, n := range q.Nodes(context.Background()) {
			if !n.Votes {
				return false
			}
		}
		return true
	}, patience, poll, "the nodes of a replica vote")
	l, err := q.Acquire(t.Context(), "before") // with which it says which nodes it uses
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
	return q
}

// certificate writes one for 127.0.0.1 that servers and clients have and trust, as tls.crt and
// tls.key, and returns how a client has it.
func certificate(t *testing.T, dir string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	made := time.Now().Add(-2 * day) // servers that are aged start a day ago
	like := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: made, NotAfter: made.Add(4 * day),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, like, like, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), cert, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(cert))
	return &tls.Config{ServerName: "127.0.0.1", RootCAs: trusted, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
