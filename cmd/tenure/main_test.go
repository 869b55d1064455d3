package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	made := time.Now().Add(-2 * day) // servers that are aged start a day ago
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, NotBefore: made, NotAfter: made.Add(4 * day),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	return &authority{cert, der, key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	cert, _ := x509.ParseCertificate(a.der) // which CreateCertificate has made
	pool.AddCert(cert)
	return pool
}

// write writes NAME.crt and NAME.key for 127.0.0.1, and ca.crt.
func (a *authority) write(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}, "ca.crt": {Type: "CERTIFICATE", Bytes: a.der},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600))
	}
}

// pair is what write wrote.
func (a *authority) pair(t *testing.T, dir, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	require.NoError(t, err)
	return pair
}
