package cluster_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

const (
	silence = 150 * time.Millisecond // after which nothing is taken to come
	soon    = 10 * time.Second
)

// conn speaks to one server through one link.
type conn struct {
	net.Conn
	r *bufio.Reader
}

// dial connects to where the URL of a server leads, by TLS if it has a configuration.
func dial(t *testing.T, to string, secure *tls.Config) (*conn, error) {
	server, err := url.Parse(to)
	require.NoError(t, err)
	c, err := net.Dial("tcp", server.Host)
	if err == nil && secure != nil {
		c = tls.Client(c, secure)
		err = c.(*tls.Conn).Handshake()
	}
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	return &conn{Conn: c, r: bufio.NewReader(c)}, nil
}

func connect(t *testing.T, a *cluster.Cluster, side plan.Side, node int) *conn {
	t.Helper()
	c, err := dial(t, a.URLs(side)[node], nil)
	require.NoError(t, err)
	return c
}

// call sends a command and returns the first line of the answer.
func (c *conn) call(patience time.Duration, command string) (string, error) {
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	return strings.TrimSpace(line), err
}

// require sends a command, and wants the lines of the answer.
func (c *conn) require(t *testing.T, command string, answer ...string) {
	t.Helper()
	got, err := c.call(soon, command)
	require.NoError(t, err)
	require.Equal(t, answer[0], got)
	for _, want := range answer[1:] {
		line, err := c.r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, strings.TrimSpace(line))
	}
}

func start(t *testing.T, of plan.Topology, prefix, dir string) *cluster.Cluster {
	t.Helper()
	a, err := cluster.New(of, prefix, dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

func TestLinks(t *testing.T) {
	a := start(t, plan.Topology{Servers: 2}, "", "")
	for _, test := range []struct {
		fault plan.Fault
		// struck checks a connection that was there before.
		struck func(t *testing.T, c *conn)
		broken bool // the connection does not survive
		new    string
	}{
		{plan.Fault{Kind: plan.Cut}, func(t *testing.T, c *conn) {
			_, err := c.call(soon, "PING")
			require.Error(t, err)
			require.NotErrorIs(t, err, net.ErrClosed)
			_, err = dial(t, a.URLs(plan.Left)[0], nil)
			require.Error(t, err, "connections are refused")
		}, true, "cut"},
		{plan.Fault{Kind: plan.BlackHole}, func(t *testing.T, c *conn) {
			requireSilence(t, c, "SET k black-hole")
		}, true, ""},
		{plan.Fault{Kind: plan.DropRequests}, func(t *testing.T, c *conn) {
			requireSilence(t, c, "SET k drop-requests")
		}, true, ""},
		{plan.Fault{Kind: plan.DropReplies}, func(t *testing.T, c *conn) {
			requireSilence(t, c, "SET k drop-replies")
		}, true, "drop-replies"},
		{plan.Fault{Kind: plan.Latency, Amount: 200 * time.Millisecond}, func(t *testing.T, c *conn) {
			began := time.Now()
			c.require(t, "SET k latency", "+OK")
			require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
		}, false, "latency"},
		{plan.Fault{Kind: plan.Bandwidth}, func(t *testing.T, c *conn) {
			began := time.Now()
			c.require(t, "SET k "+strings.Repeat("x", 900), "+OK")
			require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond, "900 bytes at 3 KB/s")
			c.require(t, "SET k bandwidth", "+OK")
		}, false, "bandwidth"},
		{plan.Fault{Kind: plan.SlowClose, Amount: 200 * time.Millisecond}, func(t *testing.T, c *conn) {
			began := time.Now()
			require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
			_, err := io.Copy(io.Discard, c)
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
		}, true, ""},
	} {
		t.Run(string(test.fault.Kind), func(t *testing.T) {
			left, right, other := connect(t, a, plan.Left, 0), connect(t, a, plan.Right, 0), connect(t, a, plan.Left, 1)
			left.require(t, "SET k before", "+OK")
			f := test.fault
			f.Targets, f.Side = []int{0}, plan.Left
			require.NoError(t, a.Strike(f))
			test.struck(t, left)
			right.require(t, "PING", "+PONG")
			other.require(t, "PING", "+PONG")
			want := test.new
			switch want {
			case "", "cut":
				want = "before"
			}
			right.require(t, "GET k", fmt.Sprintf("$%d", len(want)), want)

			require.NoError(t, a.Heal(f))
			if test.broken {
				_, err := left.call(soon, "PING")
				require.Error(t, err)
				left = connect(t, a, plan.Left, 0)
			}
			left.require(t, "PING", "+PONG")
		})
	}
}

func requireSilence(t *testing.T, c *conn, command string) {
	t.Helper()
	_, err := c.call(silence, command)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), err)
}

func TestBothSides(t *testing.T) {
	a := start(t, plan.Topology{Servers: 2}, "", "")
	f := plan.Fault{Kind: plan.Cut, Targets: []int{0, 1}, Side: plan.Both}
	require.NoError(t, a.Strike(f))
	all := slices.Concat(a.URLs(plan.Left), a.URLs(plan.Right))
	for _, url := range all {
		_, err := dial(t, url, nil)
		require.Error(t, err)
	}
	require.NoError(t, a.Heal(f))
	for _, url := range all {
		c, err := dial(t, url, nil)
		require.NoError(t, err)
		c.require(t, "PING", "+PONG")
	}
}

func TestServers(t *testing.T) {
	a := start(t, plan.Topology{Servers: 2}, "", "")
	strike := func(f plan.Fault) (heal func() *conn) {
		t.Helper()
		f.Targets = []int{0}
		require.NoError(t, a.Strike(f))
		return func() *conn {
			t.Helper()
			require.NoError(t, a.Heal(f))
			return connect(t, a, plan.Right, 0)
		}
	}
	c := connect(t, a, plan.Left, 0)
	c.require(t, "SET k v", "+OK")

	heal := strike(plan.Fault{Kind: plan.RestartKeep})
	_, err := c.call(soon, "PING")
	require.Error(t, err)
	heal().require(t, "EXISTS k", ":1")

	c = strike(plan.Fault{Kind: plan.RestartEmpty})()
	c.require(t, "EXISTS k", ":0")

	heal = strike(plan.Fault{Kind: plan.FreezeServer})
	requireSilence(t, c, "PING")
	c = heal()

	const script = "7f923f79fe76194c868d7e1d0820de36700eb649" // SHA-1 of: return 2
	c.require(t, `SCRIPT LOAD "return 2"`, "$40", script)
	c.require(t, "SCRIPT EXISTS "+script, "*1", ":1")
	strike(plan.Fault{Kind: plan.ScriptFlush})
	c.require(t, "SCRIPT EXISTS "+script, "*1", ":0")

	for kind, early := range map[plan.Kind]string{plan.ClockForward: ":0", plan.ClockBack: ":1"} {
		c.require(t, "SET k v PX 600000", "+OK")
		heal := strike(plan.Fault{Kind: kind, Amount: time.Hour})
		c.require(t, "EXISTS k", early)
		heal()
		c.require(t, "SET k v PX 600000", "+OK")
		c.require(t, "EXISTS k", ":1")
	}
}

// Each client is as far from each server as it was told.
func TestRoutes(t *testing.T) {
	a := start(t, plan.Topology{Servers: 2}, "", "")
	const far = 100 * time.Millisecond
	took := func(urls []string, node int) time.Duration {
		known, err := dial(t, urls[node], nil)
		require.NoError(t, err)
		known.require(t, "PING", "+PONG")
		began := time.Now()
		known.require(t, "PING", "+PONG")
		return time.Since(began)
	}
	one, err := a.Routes([]time.Duration{0, far})
	require.NoError(t, err)
	other, err := a.Routes([]time.Duration{far, 0})
	require.NoError(t, err)
	require.GreaterOrEqual(t, took(one, 1), far)
	require.GreaterOrEqual(t, took(other, 0), far)
	near := func() bool { return took(one, 0) < far/2 && took(other, 1) < far/2 }
	require.Eventually(t, near, soon, time.Millisecond, "unless the machine is busy")
}

// Clients may do what the pages say that they may, and what they wrote is there after a restart.
func TestUsers(t *testing.T) {
	page, err := os.ReadFile("../../../docs/nodes.md")
	require.NoError(t, err)
	dir := t.TempDir()
	a := start(t, plan.Topology{Servers: 1}, "billing", dir)
	users, err := os.ReadFile(filepath.Join(dir, "users.acl"))
	require.NoError(t, err)
	for line := range strings.Lines(strings.ReplaceAll(string(users), "password", "PASSWORD")) {
		name := strings.ToUpper(strings.Fields(line)[1])
		require.Contains(t, string(page), strings.Replace(line, ">PASSWORD", ">"+name+"-PASSWORD", 1))
	}
	say := func(answers ...string) {
		known, err := dial(t, a.URLs(plan.Left)[0], nil)
		require.NoError(t, err)
		known.require(t, "PING", "-NOAUTH Authentication required.")
		known.require(t, "AUTH billing password", "+OK")
		for i := 0; i < len(answers); i += 2 {
			known.require(t, answers[i], answers[i+1])
		}
	}
	say("EVAL \"return redis.call('SET', KEYS[1], '1')\" 1 billing:{k}", "+OK", "FLUSHALL", "-NOPERM User billing has no permissions to run the 'flushall' command")
	restart := plan.Fault{Kind: plan.RestartKeep, Targets: []int{0}}
	require.NoError(t, a.Strike(restart))
	require.NoError(t, a.Heal(restart))
	say("EXISTS billing:{k}", ":1")
}

// Who is connected goes on when the certificate has expired, and nobody can connect until it is
// renewed.
func TestCertificates(t *testing.T) {
	a := start(t, plan.Topology{Servers: 1, TLS: true}, "", t.TempDir())
	text, err := os.ReadFile(a.Trusted())
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(text))
	require.Contains(t, a.URLs(plan.Left)[0], "valkeys://")
	secure := func() (*conn, error) {
		return dial(t, a.URLs(plan.Left)[0], &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"})
	}
	c, err := secure()
	require.NoError(t, err)
	expire := plan.Fault{Kind: plan.Expire, Targets: []int{0}}
	require.NoError(t, a.Strike(expire))
	c.require(t, "PING", "+PONG")
	_, err = secure()
	require.ErrorContains(t, err, "expired")
	require.NoError(t, a.Heal(expire))
	_, err = secure()
	require.NoError(t, err)
}
