package environment

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
)

// A file of more bytes than one has is not read.
func TestFileThatIsTooLarge(t *testing.T) {
	t.Parallel()
	link, file := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	require.NoError(t, os.Symlink(file, link))
	text, err := readFile(link, CA, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(text))
	_, err = readFile(link, CA, 4)
	require.ErrorContains(t, err, "more than 4 bytes")
}

// A certificate that was replaced is shown with the next connection, and one without its key is an
// error there.
func TestReplacedCertificateIsShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{CA: filepath.Join(dir, "crt"), Cert: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key")}
	first := certify(t, files)
	adjust, err := TLS(func(name string) (string, string) { return files[name], name })
	require.NoError(t, err)
	plain, secure := valkey.ClientOption{}, valkey.ClientOption{TLSConfig: new(tls.Config)}
	adjust("", &plain)
	require.Nil(t, plain.TLSConfig)
	adjust("", &secure)
	require.NotNil(t, secure.TLSConfig.RootCAs)
	shown := func() []byte {
		pair, err := secure.TLSConfig.GetClientCertificate(new(tls.CertificateRequestInfo))
		require.NoError(t, err)
		return pair.Certificate[0]
	}
	require.Equal(t, first, shown())
	second := certify(t, files)
	require.NotEqual(t, first, second)
	require.Equal(t, second, shown())
	require.NoError(t, os.Remove(files[Key]))
	_, err = secure.TLSConfig.GetClientCertificate(new(tls.CertificateRequestInfo))
	require.ErrorContains(t, err, Key+": ")
}

// certify writes a certificate and its key.
func certify(t *testing.T, files map[string]string) (der []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{Cert: {Type: "CERTIFICATE", Bytes: der}, Key: {Type: "EC PRIVATE KEY", Bytes: private}} {
		require.NoError(t, os.WriteFile(files[name], pem.EncodeToMemory(block), 0o600))
	}
	return der
}
