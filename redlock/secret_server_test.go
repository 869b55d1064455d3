package redlock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// Passwords must not reach errors, logs or anything else that is printed.
func TestPasswordsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	const right, wrong = "right-p4ssw0rd", "wrong-p4ssw0rd"
	s := startServers(t, 3, valkeytest.WithPassword(right))
	var log lockedBuffer
	var printed []string
	show := func(values ...any) {
		for _, v := range values {
			printed = append(printed, fmt.Sprintf("%v %+v %#v", v, v, v))
			for err, ok := v.(error); ok && err != nil; {
				printed = append(printed, err.Error())
				u, wraps := err.(interface{ Unwrap() error })
				if !wraps {
					break
				}
				err = u.Unwrap()
			}
		}
	}
	logged := redlock.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))

	q := s.open(logged)
	l, err := tryUntilAnswered(t, q, "key")
	require.NoError(t, err)
	_, err = q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
	show(err, q.Nodes(t.Context()), l.Identity())

	denied := make([]string, 3)
	for i, n := range s.Nodes() {
		denied[i] = "valkey://:" + wrong + "@" + n.Addr()
	}
	bad := openURLs(t, denied, logged, redlock.WithNodeTimeout(serverTTL/4))
	_, err = bad.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "WRONGPASS")
	var ne *redlock.NodeError
	require.ErrorAs(t, err, &ne)
	show(err, ne)
	for _, status := range bad.Nodes(t.Context()) {
		require.Equal(t, "", status.Role)
		require.Contains(t, fmt.Sprint(status), "WRONGPASS")
		show(status, status.Err)
	}

	for _, urls := range [][]string{
		{s.Node(0).URL(), s.Node(0).URL()},
		{"valkey://user:" + wrong + "@host:not-a-port"},
		{"valkey://user:" + wrong + "@host/not-a-database"},
		{"valkey://user:" + wrong + "%zz@host"},
		{"nonsense://user:" + wrong + "@host"},
	} {
		_, err = redlock.Open(urls, logged)
		var oe *redlock.OptionError
		require.ErrorAs(t, err, &oe)
		show(err)
	}

	s.kill(0, 1, 2)
	show(l.Release(t.Context()), q.Nodes(t.Context()))
	_, err = q.TryAcquire(t.Context(), "key")
	show(err)
	require.NotEmpty(t, log.String(), "nothing was logged, so this tests half")
	for _, text := range append(printed, log.String()) {
		require.NotContains(t, text, right)
		require.NotContains(t, text, wrong)
		require.NotContains(t, text, "p4ssw0rd")
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := writeCertificate(t, dir)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	startServers(t, 1, valkeytest.WithArgs("--tls-port", addr[strings.LastIndexByte(addr, ':')+1:],
		"--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"),
		"--tls-ca-cert-file", filepath.Join(dir, "cert.pem"), "--tls-auth-clients", "no"))

	q := openURLs(t, []string{"valkeys://" + addr}, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		o.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
	}))
	l, err := q.Acquire(t.Context(), "key")
	require.NoError(t, err)
	require.NoError(t, l.Extend(t.Context()))
	require.NoError(t, l.Release(t.Context()))

	suspicious := openURLs(t, []string{"valkeys://" + addr})
	require.Eventually(t, func() bool { // verifying takes longer than a node may at times
		_, err = suspicious.TryAcquire(t.Context(), "key")
		return redlock.ErrorType(err) != "timeout"
	}, longTTL, pollTick)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "certificate", "an unknown authority was trusted")
}

// writeCertificate makes a certificate for localhost that signs itself.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	parsed, err := x509.ParseCertificate(cert)
	require.NoError(t, err)
	pool.AddCert(parsed)
	return pool
}
