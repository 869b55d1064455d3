package redlock

import (
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
)

// A Quorum is as the variables say, and as an option does where there is one.
func TestFromEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "urls")
	require.NoError(t, os.WriteFile(file, []byte("# ours\nvalkeys://127.0.0.1:1?name=a\r\nvalkey://127.0.0.1:2, valkey://127.0.0.1:3"), 0o600))
	server := httptest.NewTLSServer(nil)
	server.Close()
	ca := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{
		"TENURE_NODES": "", "TENURE_NODES_FILE": file, "TENURE_PREFIX": "billing", "TENURE_CLOCK_SKEW": "3s",
		"TENURE_WITH_REPLICAS": "true", "TENURE_WITHOUT_RESTART_GATE": "1", "TENURE_TLS_CA": ca, "TENURE_TLS_CERT": "", "TENURE_TLS_KEY": "",
	} {
		t.Setenv(name, value)
	}
	silent := WithLogger(slog.New(slog.DiscardHandler))
	q, err := FromEnv(silent)
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.Equal(t, "billing", q.cfg.prefix)
	require.Equal(t, 3*time.Second, q.cfg.clockSkew)
	require.True(t, q.cfg.acceptReplicas)
	require.False(t, q.cfg.restartGate)
	require.Len(t, q.nodes, 3)

	t.Setenv("TENURE_WITH_REPLICAS", "false")
	var trusting []bool
	q, err = FromEnv(silent, WithClockSkew(4*time.Second), WithClientOption(func(_ string, o *valkey.ClientOption) {
		trusting = append(trusting, o.TLSConfig != nil && o.TLSConfig.RootCAs != nil)
	}))
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.Equal(t, 4*time.Second, q.cfg.clockSkew)
	require.False(t, q.cfg.acceptReplicas)
	require.Equal(t, []bool{true, false, false}, trusting)
}

// What cannot be used is named, with the variable and without a password.
func TestFromEnvNamesTheVariable(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const some, secret = "valkey://a,valkey://b,valkey://c", "valkey://ann:s3cret@a"
	for _, of := range []struct {
		variables    map[string]string
		option, says string
	}{
		{nil, "TENURE_NODES", "TENURE_NODES_FILE to a file"},
		{map[string]string{"TENURE_NODES": some, "TENURE_NODES_FILE": "x"}, "TENURE_NODES", "set one of them"},
		{map[string]string{"TENURE_NODES": " , "}, "TENURE_NODES", "names no nodes"},
		{map[string]string{"TENURE_NODES": some + "," + secret + ":x"}, "TENURE_NODES", "urls[3] has a port"},
		{map[string]string{"TENURE_NODES_FILE": secret}, "TENURE_NODES_FILE", "is a URL, and has to be the name of a file"},
		{map[string]string{"TENURE_NODES_FILE": dir}, "TENURE_NODES_FILE", "no regular file"},
		{map[string]string{"TENURE_NODES_FILE": file("urls", secret+"\n"+secret)}, "TENURE_NODES_FILE", "urls[1] names the same node"},
		{map[string]string{"TENURE_PREFIX": "a{"}, "TENURE_PREFIX", "without { or }"},
		{map[string]string{"TENURE_CLOCK_SKEW": secret}, "TENURE_CLOCK_SKEW", "no duration"},
		{map[string]string{"TENURE_CLOCK_SKEW": "2m"}, "TENURE_CLOCK_SKEW", "between 1ms and 1m"},
		{map[string]string{"TENURE_WITH_REPLICAS": "yes"}, "TENURE_WITH_REPLICAS", "neither true nor false"},
		{map[string]string{"TENURE_WITHOUT_RESTART_GATE": "yes"}, "TENURE_WITHOUT_RESTART_GATE", "neither true nor false"},
		{map[string]string{"TENURE_TLS_CA": file("ca", "nothing")}, "TENURE_TLS_CA", "has no certificate"},
		{map[string]string{"TENURE_TLS_CERT": "x"}, "TENURE_TLS_CERT", "set TENURE_TLS_KEY, too"},
		{map[string]string{"TENURE_TLS_KEY": "x"}, "TENURE_TLS_KEY", "set TENURE_TLS_CERT, too"},
		{map[string]string{"TENURE_TLS_CERT": filepath.Join(dir, "none"), "TENURE_TLS_KEY": dir}, "TENURE_TLS_CERT", "no such file"},
		{map[string]string{"TENURE_TLS_CERT": file("crt", "x"), "TENURE_TLS_KEY": file("key", "s3cret")}, "TENURE_TLS_CERT, TENURE_TLS_KEY", "find any PEM"},
	} {
		t.Run(of.option+" "+of.says, func(t *testing.T) {
			for _, name := range []string{"TENURE_NODES", "TENURE_NODES_FILE", "TENURE_TLS_CA", "TENURE_TLS_CERT", "TENURE_TLS_KEY"} {
				t.Setenv(name, "")
			}
			if of.variables != nil && of.variables["TENURE_NODES_FILE"] == "" {
				t.Setenv("TENURE_NODES", some)
			}
			for name, value := range of.variables {
				t.Setenv(name, value)
			}
			q, err := FromEnv()
			require.Nil(t, q)
			var wrong *OptionError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, of.option, wrong.Option)
			require.Contains(t, wrong.Reason, of.says)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}
