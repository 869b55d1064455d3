package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/environment"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	patience = time.Minute // more than a quarantine
	operator = "an-operators-secret"
	service  = "p4ss:w/rd@billing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recipe is a fleet that is set up with the files of this directory, and the service's way to it.
type recipe struct {
	*valkeytest.Fleet
	etc  string   // where the nodes have their files
	urls []string // of the user billing
}

// setUp follows docs/nodes.md.
func setUp(t *testing.T) *recipe {
	t.Helper()
	t.Parallel()
	return start(t, 3, read(t, "valkey.conf"), read(t, "users.acl"))
}

// start starts servers with a configuration and users, whose passwords it fills in.
func start(t *testing.T, nodes int, conf, acl string) *recipe {
	t.Helper()
	etc := filepath.Join(t.TempDir(), "etc")
	certificates(t, etc)
	write(t, filepath.Join(etc, "valkey.conf"), strings.NewReplacer(
		"/etc/valkey/node.", filepath.Join(etc, "127.0.0.1."), "/etc/valkey", etc).Replace(conf))
	write(t, filepath.Join(etc, "users.acl"), strings.NewReplacer(
		"OPERATOR-PASSWORD-SHA256", hashed(operator), "BILLING-PASSWORD-SHA256", hashed(service),
		"OPERATOR-PASSWORD", operator, "BILLING-PASSWORD", service).Replace(acl))
	fleet := valkeytest.Start(t, nodes, valkeytest.WithConfig(filepath.Join(etc, "valkey.conf")),
		valkeytest.WithUser("operator", operator), valkeytest.WithTLS(clientTLS(t, etc)))
	r := &recipe{Fleet: fleet, etc: etc}
	for _, n := range fleet.Nodes() {
		r.urls = append(r.urls, "valkeys://"+url.UserPassword("billing", service).String()+"@"+n.Addr())
	}
	return r
}

// certificates makes those of an authority, and makes them anew where there are some.
func certificates(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.Command("bash", "certificates.sh", dir, "127.0.0.1").CombinedOutput()
	require.NoError(t, err, "certificates.sh needs openssl: %s", out)
}

func hashed(password string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(password))) }

func clientTLS(t *testing.T, etc string) *tls.Config {
	t.Helper()
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM([]byte(read(t, filepath.Join(etc, "ca.crt")))))
	own, err := tls.LoadX509KeyPair(filepath.Join(etc, "client.crt"), filepath.Join(etc, "client.key"))
	require.NoError(t, err)
	return &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{own}, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

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

// secure has a client use certificates as a program does whose environment names them.
func (r *recipe) secure(t *testing.T) redlock.Option { return withTLS(t, r.etc, r.etc) }

func withTLS(t *testing.T, authority, own string) redlock.Option {
	t.Helper()
	files := map[string]string{
		environment.CA: filepath.Join(authority, "ca.crt"), environment.Cert: filepath.Join(own, "client.crt"), environment.Key: filepath.Join(own, "client.key"),
	}
	adjust, err := environment.TLS(func(name string) (string, string) { return files[name], name })
	require.NoError(t, err)
	return redlock.WithClientOption(adjust)
}

// leased tries a lease as the service.
func leased(t *testing.T, urls []string, options ...redlock.Option) error {
	t.Helper()
	q, err := redlock.Open(urls, append(options, redlock.WithPrefix("billing"), redlock.WithLogger(quiet))...)
	require.NoError(t, err)
	defer q.Close()
	l, err := q.TryAcquire(t.Context(), "check")
	if err != nil {
		return err
	}
	return errors.Join(l.Extend(t.Context()), l.Release(t.Context()))
}

func (r *recipe) open(t *testing.T, options ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q, err := redlock.Open(r.urls, append([]redlock.Option{redlock.WithPrefix("billing"), r.secure(t), redlock.WithLogger(quiet)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	awaitVotes(t, q)
	return q
}

// awaitVotes waits until all nodes vote.
func awaitVotes(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(q.Nodes(t.Context()), func(n redlock.NodeStatus) bool { return !n.Votes })
	}, patience, 10*time.Millisecond, "nodes do not vote")
}

// denied returns what the nodes refused the service, as they have logged it.
func (r *recipe) denied(t *testing.T) (lines []string) {
	t.Helper()
	for _, n := range r.Nodes() {
		entries, err := n.Do(t, "ACL", "LOG").ToArray()
		require.NoError(t, err)
		for _, entry := range entries {
			fields, err := entry.AsStrMap()
			require.NoError(t, err)
			if fields["username"] == "billing" {
				lines = append(lines, fields["reason"]+" "+fields["object"]+" in "+fields["context"])
			}
		}
	}
	return lines
}

// What the service's user must not do, it cannot.
func TestRecipeGrantsNoMore(t *testing.T) {
	r := setUp(t)
	o, err := valkey.ParseURL(r.urls[0])
	require.NoError(t, err)
	o.TLSConfig, o.ForceSingleClient, o.DisableCache = clientTLS(t, r.etc), true, true
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	defer client.Close()
	refused := func(t *testing.T, command valkey.Completed) {
		t.Helper()
		words := strings.Join(command.Commands(), " ")
		err := client.Do(t.Context(), command).Error()
		require.Error(t, err, words)
		require.Regexp(t, "NOPERM|ACL failure in script|The user executing the script", err.Error(), words)
	}
	for _, command := range []string{
		"FLUSHALL", "FLUSHDB", "CONFIG GET maxmemory", "CONFIG SET maxmemory-policy allkeys-lru", "KEYS *", "SCAN 0", "RANDOMKEY",
		"DBSIZE", "SWAPDB 0 0", "SCRIPT FLUSH", "SCRIPT KILL", "FUNCTION FLUSH", "SHUTDOWN NOSAVE", "SAVE", "BGREWRITEAOF",
		"REPLICAOF 127.0.0.1 1", "MONITOR", "ACL LIST", "CLIENT LIST", "CLIENT KILL TYPE normal", "CLIENT PAUSE 1", "PUBSUB CHANNELS", "MODULE LIST",
		"GET payments:{key}", "SET payments:{key} x", "SET payments:{key} x PX 1", "DEL payments:{key}", "ZADD payments:{key}:wait 1 x", "GET key",
		"PUBLISH payments:call:x 1",
		"EVAL return(redis.call('FLUSHALL')) 0", "EVAL return(redis.call('KEYS','*')) 0", "EVAL return(redis.call('GET',KEYS[1])) 1 payments:{key}",
		"EVAL return(redis.call('GET','payments:{key}')) 0", "EVAL return(redis.call('PUBLISH','payments:call:x','1')) 0",
	} {
		refused(t, client.B().Arbitrary(strings.Fields(command)...).Build())
	}
	write, err := r.Node(0).Do(t, "ACL", "CAT", "write").AsStrSlice()
	require.NoError(t, err)
	require.Contains(t, write, "flushall", "why the recipe has no categories")
	refused(t, client.B().Subscribe().Channel("payments:call:x").Build())
	refused(t, client.B().Psubscribe().Pattern("*").Build())
	require.True(t, valkey.IsValkeyNil(client.Do(t.Context(), client.B().Get().Key("billing:{key}").Build()).Error()))
}

// A node talks to nobody who has no certificate, and a client to no node that has none of the
// authority's for its name.
func TestRecipeNeedsCertificates(t *testing.T) {
	r := setUp(t)
	other := filepath.Join(t.TempDir(), "other")
	certificates(t, other)
	noCert := redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		o.TLSConfig.RootCAs = clientTLS(t, r.etc).RootCAs
	})
	plain, named := make([]string, len(r.urls)), make([]string, len(r.urls))
	for i, url := range r.urls {
		plain[i] = strings.Replace(url, "valkeys://", "valkey://", 1)
		named[i] = strings.Replace(url, "127.0.0.1", "localhost", 1)
	}
	for _, test := range []struct {
		name   string
		urls   []string
		option redlock.Option
	}{
		{"the client trusts another authority", r.urls, withTLS(t, other, r.etc)},
		{"the client's certificate is another authority's", r.urls, withTLS(t, r.etc, other)},
		{"the client has no certificate", r.urls, noCert},
		{"the node's certificate is for another name", named, r.secure(t)},
		{"the client speaks no TLS", plain, r.secure(t)},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Error(t, leased(t, test.urls, test.option))
		})
	}
}

// configured looks whether a node has the settings of its file.
func (r *recipe) configured(t *testing.T, n *valkeytest.Node) {
	t.Helper()
	harness := map[string]bool{"bind": true, "tls-port": true, "dir": true}
	for line := range strings.Lines(read(t, filepath.Join(r.etc, "valkey.conf"))) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" || harness[name] {
			continue
		}
		got, err := n.Do(t, "CONFIG", "GET", name).AsStrMap()
		require.NoError(t, err)
		want := strings.Trim(value, `"`)
		if megabytes, found := strings.CutSuffix(want, "mb"); found {
			n, err := strconv.Atoi(megabytes)
			require.NoError(t, err)
			want = strconv.Itoa(n << 20)
		}
		require.Equal(t, want, got[name], name)
	}
}

// renew gives a node another certificate, of the same authority, as docs/nodes.md says.
func (r *recipe) renew(t *testing.T, n *valkeytest.Node) {
	t.Helper()
	certificates(t, r.etc)
	require.NoError(t, n.Do(t, "CONFIG", "SET", "tls-cert-file", filepath.Join(r.etc, "127.0.0.1.crt"),
		"tls-key-file", filepath.Join(r.etc, "127.0.0.1.key")).Error())
}

// New certificates need no restart. The clients' are renewed too, and the authority lasts longer.
func TestCertificatesAreRenewed(t *testing.T) {
	r := setUp(t)
	before := clientTLS(t, r.etc)
	r.open(t) // waits for the end of the quarantine
	for _, n := range r.Nodes() {
		r.renew(t, n)
	}
	require.NoError(t, leased(t, r.urls, r.secure(t)))
	after := clientTLS(t, r.etc)
	require.True(t, before.RootCAs.Equal(after.RootCAs))
	renewed := after.Certificates[0].Leaf
	require.NotEqual(t, before.Certificates[0].Leaf.SerialNumber, renewed.SerialNumber)
	_, err := renewed.Verify(x509.VerifyOptions{Roots: after.RootCAs, CurrentTime: renewed.NotAfter, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
}
