package redlock_test

import (
	"context"
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
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// sick is the node of these tests that something is wrong with.
const sick = 1

// A server in trouble is named, with what is wrong and what to do, and the others go on without it.
func TestConditions(t *testing.T) {
	t.Parallel()
	config := func(words ...string) func(*servers) {
		return func(s *servers) { s.do(append([]string{"CONFIG", "SET"}, words...), sick) }
	}
	do := func(words ...string) func(*servers) { return func(s *servers) { s.do(words, sick) } }
	for _, test := range []struct {
		name         string
		args         []string
		hurt, heal   func(s *servers) // the latter may be nil
		inUse, fresh wire.Condition   // for a client that used it before, and one that comes later
		advice       string
	}{
		{"replica", nil, func(s *servers) { s.follow(sick, 3) }, nil, wire.ReadOnly, wire.Replica, "name"},
		{"replica without its master", nil, func(s *servers) {
			s.kill(3)
			host, port, err := net.SplitHostPort(s.Node(3).Addr())
			require.NoError(s.t, err)
			config("replica-serve-stale-data", "no")(s)
			do("REPLICAOF", host, port)(s)
		}, nil, wire.Masterless, wire.Replica, "master"},
		{"out of memory", nil, config("maxmemory", "1"), nil, wire.OutOfMemory, wire.OutOfMemory, "raise maxmemory"},
		{"busy", []string{"--busy-reply-threshold", "1"}, func(s *servers) { s.busy(sick, "EVAL", "while true do end", "0") },
			do("SCRIPT", "KILL"), wire.Busy, wire.Busy, "SCRIPT KILL"},
		{"loading", []string{"--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"}, func(s *servers) { s.reload(sick) },
			config("key-load-delay", "0"), wire.Loading, wire.Loading, "wait for it"},
		{"not saving", nil, func(s *servers) {
			dir, err := s.Node(sick).Do(s.t, "CONFIG", "GET", "dir").AsStrMap()
			require.NoError(s.t, err)
			require.NoError(s.t, os.Mkdir(filepath.Join(dir["dir"], "dump.rdb"), 0o700)) // nothing can be renamed to that
			config("save", "3600 1")(s)
			s.Node(sick).Do(s.t, "BGSAVE") // unless one is under way
			require.Eventually(s.t, func() bool { return s.info(sick, "rdb_last_bgsave_status") == "err" }, patience, pollTick)
		}, nil, wire.NotSaving, wire.NotSaving, "disk"},
		{"too few replicas", nil, config("min-replicas-to-write", "1"), nil, wire.FewReplicas, wire.FewReplicas, "min-replicas-to-write 0"},
		{"permission taken away", nil, do("ACL", "SETUSER", "default", "-set"), do("ACL", "SETUSER", "default", "+@all"),
			wire.NoPermission, wire.NoPermission, "+evalsha"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 4, valkeytest.WithArgs(test.args...))
			only, urls := s.three(sick), s.three(0, sick, 2)
			alone := redlock.WithPrefix("alone") // which has other nodes than the others
			users := []*redlock.Quorum{gatedURLs(t, only, alone), gatedURLs(t, urls)}
			for _, q := range users {
				l, err := tryUntilAnswered(t, q, "before")
				require.NoError(t, err)
				require.NoError(t, l.Release(t.Context()))
			}
			test.hurt(s)
			if test.heal != nil {
				defer test.heal(s)
			}
			addr := s.Node(sick).Addr()
			requireSick(t, users[0], users[1], "used", addr, redlock.Condition(test.inUse), test.advice)
			requireSick(t, gatedURLs(t, only, alone), gatedURLs(t, urls), "fresh", addr, redlock.Condition(test.fresh), test.advice)
		})
	}
}

// requireSick demands that alone, a Quorum of the sick node only, reports the condition, and that
// full, which has two healthy ones too, grants.
func requireSick(t *testing.T, alone, full *redlock.Quorum, key, addr string, want redlock.Condition, advice string) {
	t.Helper()
	_, err := tryUntilAnswered(t, full, key)
	require.NoError(t, err, "a quorum of others is well")
	require.Eventually(t, func() bool {
		_, err = alone.TryAcquire(t.Context(), key+" alone")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		return redlock.ErrorType(err) != "timeout" // a loaded machine
	}, patience, pollTick)
	ce := requireCondition(t, errorOf(t, err, addr), addr, want)
	require.ErrorContains(t, err, addr)
	require.ErrorContains(t, err, string(want))
	require.ErrorContains(t, err, advice)
	require.ErrorContains(t, ce, advice)
	require.Zero(t, ce.Until, "it does not end by itself")
}

// busy keeps a server busy with a command that does not end.
func (s *servers) busy(node int, args ...string) {
	s.t.Helper()
	s.background(node, args...)
	require.Eventually(s.t, func() bool {
		err := s.Node(node).Do(s.t, "GET", "key").Error()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	}, patience, pollTick)
}

// reload makes a server load what it has, slowly, until it is told to hurry.
func (s *servers) reload(node int) {
	s.t.Helper()
	s.do([]string{"DEBUG", "POPULATE", "20000"}, node)
	s.do([]string{"CONFIG", "SET", "key-load-delay", "1000"}, node) // microseconds
	s.background(node, "DEBUG", "RELOAD")
	require.Eventually(s.t, func() bool {
		err := s.Node(node).Do(s.t, "GET", "key").Error()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	}, patience, pollTick)
}

// background sends a command over a connection of its own and waits for its end with the test's.
func (s *servers) background(node int, args ...string) {
	s.t.Helper()
	client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{s.Node(node).Addr()}, ForceSingleClient: true,
		DisableRetry: true, ConnWriteTimeout: time.Minute})
	require.NoError(s.t, err)
	var ended sync.WaitGroup
	ended.Go(func() { client.Do(context.Background(), client.B().Arbitrary(args...).Build()) })
	s.t.Cleanup(func() {
		ended.Wait()
		client.Close()
	})
}

// Trouble that a client meets when it connects.
func TestConditionsOfConnections(t *testing.T) {
	t.Parallel()
	const password, wrong, noAuth = "p4ss", "n0ne", "user and password"
	protected := []valkeytest.Option{valkeytest.WithPassword(password)}
	to := func(user string) func(n *valkeytest.Node) string {
		return func(n *valkeytest.Node) string { return "valkey://" + user + n.Addr() }
	}
	for _, test := range []struct {
		name   string
		opts   []valkeytest.Option
		url    func(n *valkeytest.Node) string
		want   redlock.Condition
		advice string
	}{
		{"no password", protected, to(""), redlock.ConditionNoAuth, noAuth},
		{"wrong password", protected, to(":" + wrong + "@"), redlock.ConditionNoAuth, noAuth},
		{"unknown user", nil, to("nobody:" + wrong + "@"), redlock.ConditionNoAuth, noAuth},
		{"too many clients", nil, (*valkeytest.Node).URL, redlock.Condition(wire.TooManyUsers), "raise maxclients"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, test.opts...)
			if test.name == "too many clients" {
				s.do([]string{"CONFIG", "SET", "maxclients", "1"}, sick)
			}
			addr, url := s.Node(sick).Addr(), test.url(s.Node(sick))
			alone := gatedURLs(t, []string{url})
			full := gatedURLs(t, []string{s.Node(0).URL(), url, s.Node(2).URL()})
			requireSick(t, alone, full, "fresh", addr, test.want, test.advice)
			var n redlock.NodeStatus
			require.Eventually(t, func() bool { // a look may take too long on a busy machine
				n = alone.Nodes(t.Context())[0]
				return redlock.ErrorType(n.Err) == string(test.want)
			}, patience, pollTick)
			require.False(t, n.Votes)
		})
	}
}

// A server in cluster mode is one also if it serves all keys (Valkey 8 says server_mode, Valkey 7.2
// redis_mode).
func TestConditionOfAClusterServer(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1, valkeytest.WithArgs("--cluster-enabled", "yes"))
	addr := s.Node(0).Addr()
	_, err := s.gated().TryAcquire(t.Context(), "key")
	require.ErrorContains(t, requireCondition(t, errorOf(t, err, addr), addr, redlock.Condition(wire.Moved)), "independent servers")
	s.do([]string{"CLUSTER", "ADDSLOTSRANGE", "0", "16383"})
	require.Eventually(t, func() bool { return s.Node(0).Do(t, "GET", "key").NonValkeyError() == nil }, longTTL, pollTick)
	require.ErrorContains(t, requireCondition(t, node(t, s.gated(), 0).Err, addr, redlock.Condition(wire.Moved)), "cluster mode")
}

// What may delete leases on a full server is worth a warning, not a vote.
func TestConditionOfAnEvictingServer(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, valkeytest.WithArgs("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))
	var log lockedBuffer
	q := s.gated(logTo(&log))
	s.hold(q, "key")
	for i := range s.Nodes() {
		n := node(t, q, i)
		require.True(t, n.Votes)
		require.NoError(t, n.Err)
		require.Len(t, n.Warnings, 1)
		var ce *redlock.ConditionError
		require.ErrorAs(t, n.Warnings[0], &ce)
		require.Equal(t, redlock.Condition(wire.Evicting), ce.Condition)
		require.ErrorContains(t, ce, "allkeys-lru")
		require.ErrorContains(t, ce, "noeviction")
		require.Contains(t, log.String(), n.Node)
	}
	require.Equal(t, 3, strings.Count(log.String(), "may forget leases"), "a line a node: %s", &log)

	s.do([]string{"CONFIG", "SET", "maxmemory-policy", "noeviction"})
	require.Empty(t, node(t, q, 0).Warnings)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer free.Close()
	return free.Addr().String()
}

// startTLS starts a server with a port for TLS beside its plain one, and returns a client's option
// for its certificate.
func startTLS(t *testing.T, authClients string) (plain, encrypted string, trust redlock.Option) {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	roots := writeCertificate(t, dir)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	s := startAged(t, 1, valkeytest.WithArgs("--tls-port", addr[strings.LastIndexByte(addr, ':')+1:],
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", authClients))
	return s.Node(0).Addr(), addr, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		if o.TLSConfig != nil {
			o.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
		}
	})
}

// requireTold demands that the error of an attempt, the node's status and the log say the same.
func requireTold(t *testing.T, url, want string, opts ...redlock.Option) {
	t.Helper()
	var log lockedBuffer
	q := openURLs(t, []string{url}, append(opts, logTo(&log))...)
	require.Eventually(t, func() bool { // a busy machine is slow first
		_, err := q.TryAcquire(t.Context(), "key")
		return err != nil && strings.Contains(err.Error(), want)
	}, longTTL, 10*pollTick, "%v", log.String())
	require.Eventually(t, func() bool {
		n := q.Nodes(t.Context())[0]
		return n.Err != nil && strings.Contains(n.Err.Error(), want)
	}, longTTL, 10*pollTick)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), want) }, longTTL, pollTick, "%s", &log)
	require.ErrorContains(t, q.Healthy(), want)
}

// A server that is spoken to in the wrong way does not say so.
func TestWrongEncryptionIsSuspected(t *testing.T) {
	t.Parallel()
	plain, encrypted, trust := startTLS(t, "yes")
	t.Run("TLS to a plain port", func(t *testing.T) {
		requireTold(t, "valkeys://"+plain, "write valkey:// in place of valkeys://", trust)
	})
	t.Run("plain to a TLS port", func(t *testing.T) {
		requireTold(t, "valkey://"+encrypted, "write valkeys:// in place of valkey://", trust)
	})
	t.Run("no client certificate", func(t *testing.T) {
		requireTold(t, "valkeys://"+encrypted, "TLSConfig.Certificates", trust)
	})
	t.Run("what has answered is not suspected", func(t *testing.T) {
		s := startAged(t, 1)
		q := s.gated()
		require.True(t, node(t, q, 0).Votes)
		s.freeze(0)
		defer s.thaw(0)
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrTimeout)
		require.NotContains(t, err.Error(), "TLS")
	})
	t.Run("what refuses connections is not suspected", func(t *testing.T) {
		_, err := gatedURLs(t, []string{"valkeys://" + freeAddr(t)}).TryAcquire(t.Context(), "key")
		require.ErrorContains(t, err, "refused")
		require.NotContains(t, err.Error(), "valkey://")
	})
}

// startSentinel watches a master, and returns the Sentinel's URL.
func (s *servers) startSentinel(master int) (url string) {
	s.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	addr := free.Addr().(*net.TCPAddr)
	require.NoError(s.t, free.Close())
	host, port, err := net.SplitHostPort(s.Node(master).Addr())
	require.NoError(s.t, err)
	dir := s.t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	config := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\n"+
		"sentinel monitor primary %s %s 1\nsentinel down-after-milliseconds primary 60000\n", addr.Port, dir, host, port)
	require.NoError(s.t, os.WriteFile(file, []byte(config), 0o600))
	binary := os.Getenv("TENURE_VALKEY_SERVER")
	if binary == "" {
		binary = "valkey-server"
	}
	sentinel := exec.CommandContext(s.t.Context(), binary, file, "--sentinel")
	require.NoError(s.t, sentinel.Start())
	s.t.Cleanup(func() { _ = sentinel.Wait() }) // killed by the end of the context
	return "valkey://" + addr.String()
}

// A Sentinel is told from a server that is old.
func TestSentinelIsNamed(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1)
	url := s.startSentinel(0)
	requireTold(t, url, "it is a Sentinel, which keeps no data (name the master itself)")
	n := gatedURLs(t, []string{url}).Nodes(t.Context())[0]
	requireCondition(t, n.Err, n.Node, redlock.Condition(wire.Sentinel))
}

func TestMissingDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1)
	requireTold(t, s.Node(0).URL()+"/99", "DB index is out of range (use a database number below")
	n := gatedURLs(t, []string{s.Node(0).URL() + "/99"}).Nodes(t.Context())[0]
	requireCondition(t, n.Err, n.Node, redlock.Condition(wire.NoDatabase))
}

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
