package kubernetes

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	patience   = 2 * time.Minute
	domain     = "nodes.tenure.svc.cluster.local"
	operator   = "an-operators-secret"
	service    = "a-services-secret"
	quarantine = 14 * time.Second // of the defaults
	resolving  = 30 * time.Second // the time to live in the cache of the cluster's DNS
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// configuration is what the pods of the nodes find in /etc/valkey but for their certificates.
func configuration(t *testing.T) (conf, acl string) {
	t.Helper()
	return object[core.ConfigMap](t, "nodes.yaml", "nodes").Data["valkey.conf"], object[core.Secret](t, "secrets/nodes.yaml", "nodes-acl").StringData["users.acl"]
}

// filledIn is a template with its passwords.
func filledIn(acl string) string {
	hash := func(password string) string {
		sum := sha256.Sum256([]byte(password))
		return hex.EncodeToString(sum[:])
	}
	return strings.NewReplacer("OPERATOR-PASSWORD-SHA256", hash(operator), "BILLING-PASSWORD-SHA256", hash(service)).Replace(acl)
}

// fleet is five servers as the manifests set them up, and a service's way to them.
type fleet struct {
	*valkeytest.Fleet
	etc  string // as /etc/valkey
	conf string // the file
}

func setUp(t *testing.T, names ...string) *fleet {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("certificates.sh needs openssl: install it")
	}
	etc := filepath.Join(t.TempDir(), "etc")
	out, err := exec.Command("bash", append([]string{"../../examples/nodes/certificates.sh", etc}, names...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, end := range []string{".crt", ".key"} { // as the secret has them
		write(t, filepath.Join(etc, "node"+end), read(t, filepath.Join(etc, names[0]+end)))
	}
	conf, acl := configuration(t)
	f := &fleet{etc: etc, conf: filepath.Join(etc, "valkey.conf")}
	write(t, f.conf, strings.ReplaceAll(conf, "/etc/valkey", etc))
	write(t, filepath.Join(etc, "users.acl"), filledIn(acl))
	name := strings.Replace(names[0], "*", "node-0", 1)
	f.Fleet = valkeytest.Start(t, 5, valkeytest.WithConfig(f.conf), valkeytest.WithUser("operator", operator), valkeytest.WithTLS(f.tls(t, name)))
	return f
}

// tls is that of a client which expects a name.
func (f *fleet) tls(t *testing.T, name string) *tls.Config {
	t.Helper()
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM([]byte(read(t, filepath.Join(f.etc, "ca.crt")))))
	own, err := tls.LoadX509KeyPair(filepath.Join(f.etc, "client.crt"), filepath.Join(f.etc, "client.key"))
	require.NoError(t, err)
	return &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{own}, ServerName: name, MinVersion: tls.VersionTLS12}
}

// urls are those of the template, with the password.
func urls(t *testing.T) []string {
	t.Helper()
	text := object[core.Secret](t, "secrets/replicas.yaml", "billing-nodes").StringData["urls"]
	return strings.Fields(strings.ReplaceAll(text, "BILLING-PASSWORD", service))
}

// The configuration and the users of the manifests are those of docs/nodes.md.
func TestConfigurationIsThatOfThePage(t *testing.T) {
	conf, acl := configuration(t)
	require.Equal(t, read(t, "../../examples/nodes/valkey.conf"), conf)
	for _, user := range []string{"OPERATOR", "BILLING"} {
		acl = strings.ReplaceAll(acl, "#"+user+"-PASSWORD-SHA256", ">"+user+"-PASSWORD")
	}
	require.Equal(t, read(t, "../../examples/nodes/users.acl"), acl)
}

// The template has no password that works: with it, a node does not start.
func TestTemplateDoesNotStart(t *testing.T) {
	etc := t.TempDir()
	_, acl := configuration(t)
	write(t, filepath.Join(etc, "users.acl"), acl)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "valkey-server", "--port", "0", "--dir", etc, "--aclfile", filepath.Join(etc, "users.acl")).CombinedOutput()
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "it started")
	require.Contains(t, string(out), "users.acl:2")
}

// Five servers with the configuration, the users and the certificate of the page are a fleet for
// the user and the URLs of the template: each name leads to a server of its own.
func TestFleetOfTheManifests(t *testing.T) {
	t.Parallel()
	f := setUp(t, "*."+domain)
	require.Len(t, urls(t), int(*object[apps.StatefulSet](t, "nodes.yaml", "node").Spec.Replicas))
	addresses := make(map[string]string)
	for i, url := range urls(t) {
		_, host, _ := strings.Cut(url, "@")
		addresses[host] = f.Node(i).Addr()
	}
	require.Len(t, addresses, 5)
	q, err := redlock.Open(urls(t), redlock.WithPrefix("billing"), redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
			name := o.TLSConfig.ServerName
			require.True(t, strings.HasSuffix(name, "."+domain), name)
			o.TLSConfig = f.tls(t, name)
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
				return (&tls.Dialer{NetDialer: d, Config: c}).DialContext(ctx, "tcp", addresses[addr])
			}
		}))
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	require.Eventually(t, func() bool {
		for _, n := range q.Nodes(t.Context()) {
			if !n.Votes || len(n.Warnings) > 0 {
				return false
			}
		}
		return true
	}, patience, 50*time.Millisecond, "all five vote, and nothing is wrong with them")
	lease, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.NoError(t, lease.Extend(t.Context()))
	require.NoError(t, lease.Release(t.Context()))
	for _, n := range f.Nodes() {
		entries, err := n.Do(t, "ACL", "LOG").ToArray()
		require.NoError(t, err)
		require.Empty(t, entries, "refused something")
	}
}

// The probe of a node tells a server that answers from one that is frozen, and needs no user.
func TestProbeOfANode(t *testing.T) {
	t.Parallel()
	f := setUp(t, "127.0.0.1")
	probe := object[apps.StatefulSet](t, "nodes.yaml", "node").Spec.Template.Spec.Containers[0].ReadinessProbe
	_, port, err := net.SplitHostPort(f.Node(0).Addr())
	require.NoError(t, err)
	command := probe.Exec.Command
	require.Equal(t, []string{"sh", "-c"}, command[:2])
	script := strings.ReplaceAll(command[2], "/etc/valkey", f.etc)
	require.Equal(t, 1, strings.Count(script, " PING "))
	script = strings.Replace(script, " PING ", " -p "+port+" PING ", 1)
	ask := func() error { return exec.CommandContext(t.Context(), "sh", "-c", script).Run() }
	require.NoError(t, ask())
	require.NoError(t, f.Node(0).Freeze())
	start := time.Now()
	require.Error(t, ask())
	require.Less(t, time.Since(start), 30*time.Second)
	require.NoError(t, f.Node(0).Thaw())
	require.Eventually(t, func() bool { return ask() == nil }, patience, 50*time.Millisecond)
	require.NoError(t, f.Node(0).Kill())
	require.Error(t, ask())
	require.Greater(t, probe.TimeoutSeconds, int32(3), "more than the script's own limit")
}
