package redlock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/register"
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
	ce := requireConditionOf(t, err, addr, want)
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
			require.GreaterOrEqual(t, n.Latency, time.Duration(0))
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
	require.ErrorContains(t, requireConditionOf(t, err, addr, redlock.Condition(wire.Moved)), "independent servers")
	s.do([]string{"CLUSTER", "ADDSLOTSRANGE", "0", "16383"})
	require.Eventually(t, func() bool { return s.Node(0).Do(t, "GET", "key").NonValkeyError() == nil }, longTTL, pollTick)
	require.ErrorContains(t, requireCondition(t, node(t, s.gated(), 0).Err, addr, redlock.Condition(wire.Moved)), "cluster mode")
}

// A server that has no HELLO, as it is renamed or the server is too old, says so itself.
func TestConditionOfAServerWithoutHello(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1, valkeytest.WithArgs("--rename-command", "HELLO", ""))
	addr := s.Node(0).Addr()
	_, err := s.gated().TryAcquire(t.Context(), "key")
	is := requireConditionOf(t, err, addr, redlock.Condition(wire.NoCommand))
	require.ErrorContains(t, is, "unknown command 'HELLO'")
	require.ErrorContains(t, is, "rename-command")
}

// What may delete leases on a full server is worth a warning, not a vote.
func TestConditionOfAnEvictingServer(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, valkeytest.WithArgs("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))
	var log lockedBuffer
	v, watching := watch()
	q := s.gated(logTo(&log), watching)
	s.hold(q, "key")
	for i := range s.Nodes() {
		n, told := node(t, q, i), v.take(s.Node(i).Addr())
		require.True(t, n.Votes)
		require.NoError(t, n.Err)
		require.Len(t, n.Warnings, 1)
		require.Equal(t, string(wire.Evicting), redlock.ErrorType(told[len(told)-1].Warning), "for a metric")
		require.ErrorContains(t, n.Warnings[0], "allkeys-lru")
		require.ErrorContains(t, n.Warnings[0], "noeviction")
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
			o.TLSConfig = &tls.Config{RootCAs: roots, ServerName: "example.com"}
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
	ne := errorAs[*redlock.NodeError](t, err)
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
		require.ErrorAs(t, err, new(*redlock.OptionError))
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
	_, addr, trust := startTLS(t, "no")
	q := openURLs(t, []string{"valkeys://" + addr}, trust, redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL/4))
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

// writeCertificate writes a certificate for example.com that signs itself: that of httptest.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	secret, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: server.Certificate().Raw},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// userURLs are the URLs of a fleet for the user of withUser.
func (s *servers) userURLs() []string {
	urls := make([]string, len(s.Nodes()))
	for i, n := range s.Nodes() {
		urls[i] = "valkey://tenure:p4ss@" + n.Addr()
	}
	return urls
}

// withUser starts servers with a user who may do what Tenure needs, but for what the rules say.
func withUser(t *testing.T, rules ...string) valkeytest.Option {
	t.Helper()
	args := []string{"--user", "tenure", "on", ">p4ss", "resetchannels", "~tenure:*", "&tenure:*"}
	return valkeytest.WithArgs(append(append(args, advised(t)...), rules...)...)
}

// advised are the commands that the advice names, as rules.
func advised(t *testing.T) []string {
	t.Helper()
	rules := regexp.MustCompile(`\+[a-z|_]+`).FindAllString((&redlock.ConditionError{Condition: redlock.ConditionNoPermission}).Error(), -1)
	require.NotEmpty(t, rules)
	return rules
}

// What the advice says is what examples/nodes grants, where it is tried that it is enough and no
// more than that.
func TestACLAdviceIsTheRecipe(t *testing.T) {
	text, err := os.ReadFile("../examples/nodes/users.acl")
	require.NoError(t, err)
	_, recipe, found := strings.Cut(string(text), "user billing ")
	require.True(t, found)
	require.ElementsMatch(t, regexp.MustCompile(`\+\S+`).FindAllString(recipe, -1), advised(t))
}

func TestACLWithWhatTheAdviceGrants(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, withUser(t))
	first, second := gatedURLs(t, s.userURLs(), redlock.WithTTL(longTTL)), gatedURLs(t, s.userURLs(), redlock.WithTTL(longTTL))
	l := s.hold(first, "key")
	require.NoError(t, l.Extend(t.Context()))
	granted := s.wait(second, "key")
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, requireCalled(t, granted).err)
	for i := range s.Nodes() {
		require.True(t, node(t, first, i).Votes)
		require.NotZero(t, s.Node(i).CommandStats(t)["eval"])
	}
}

// saidOf is how often the log says what is wrong with a server that answers.
func saidOf(log *lockedBuffer) int {
	return strings.Count(log.String(), "node does not vote") + strings.Count(log.String(), "node lacks what it should have")
}

// Whatever the server is that the tests run on, its words for a right that is missing are known.
func TestWordsOfThisServer(t *testing.T) {
	t.Parallel()
	s := startServers(t, 1)
	for _, test := range []struct {
		name string
		rule []string
	}{
		{"the call", []string{"-evalsha", "-eval"}},
		{"a key of the call", []string{"resetkeys", "~other:*"}},
		{"a command of a script", []string{"-set"}},
		{"a key of a script", []string{"resetkeys", "%R~tenure:*"}},
	} {
		s.do(append([]string{"ACL", "SETUSER", "tenure", "reset", "on", ">p4ss", "~tenure:*", "&tenure:*"}, append(advised(t), test.rule...)...))
		_, err := openURLs(t, s.userURLs()).TryAcquire(t.Context(), "key")
		require.Error(t, err, test.name)
		requireConditionOf(t, err, s.Node(0).Addr(), redlock.ConditionNoPermission)
	}
}

// A user who may hear no channel, as ACL SETUSER makes one, waits all the same, and the log says
// once what that costs. What a refused subscription costs a server, package listen tests.
func TestACLWithoutChannels(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1, withUser(t, "resetchannels"))
	began := time.Now()
	var log lockedBuffer
	q := gatedURLs(t, s.userURLs(), logTo(&log))
	l := s.hold(q, "key")
	defer board.Of(q).Hear("kind", func(bulletin.Entry) {})() // as an Elector does, without anybody waiting
	granted := s.wait(gatedURLs(t, s.userURLs(), logTo(&log)), "key")
	rejected := func() int {
		stats, err := s.Node(0).Do(t, "INFO", "commandstats").ToString()
		require.NoError(t, err)
		found := regexp.MustCompile(`cmdstat_subscribe:.*rejected_calls=(\d+)`).FindStringSubmatch(stats)
		if found == nil {
			return 0
		}
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	require.Eventually(t, func() bool { return rejected() >= 2 }, longTTL, pollTick, "it is not asked for")
	n := node(t, q, 0)
	require.True(t, n.Votes)
	require.Len(t, n.Warnings, 1)
	requireCondition(t, &redlock.NodeError{Node: n.Node, Err: n.Warnings[0]}, n.Node, redlock.ConditionNoPermission)
	require.Equal(t, 2, saidOf(&log), "once in each Quorum: %s", &log)
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, receive(t, granted, patience, "it asks once a TTL").err)
	require.Equal(t, 2, saidOf(&log), "%s", &log)
	require.LessOrEqual(t, rejected(), 2*(1+int(time.Since(began)/time.Minute)), "it is asked for once a minute in each Quorum")
}

// A server that refuses what a lease needs is tried at once, also if the process has just said who
// it is.
func TestServerIsTriedAfterARefusal(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1)
	q := s.gated(redlock.WithTTL(longTTL))
	require.NoError(t, s.hold(q, "before").Release(t.Context()))
	s.do([]string{"CONFIG", "SET", "maxmemory", "1"})
	_, err := q.TryAcquire(t.Context(), "key")
	requireConditionOf(t, err, s.Node(0).Addr(), redlock.ConditionOutOfMemory)
	require.Eventually(t, func() bool { return q.Healthy() != nil }, longTTL/2, pollTick, "it votes until the next look")
}

// Whoever asks for the state of the nodes gets it as it is now.
func TestNodesAreTriedWhenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := gatedURLs(t, s.URLs(), redlock.WithTTL(8*longTTL), redlock.WithMaxTTL(8*longTTL))
	require.NoError(t, s.hold(q, "before").Release(t.Context()))
	s.do([]string{"CONFIG", "SET", "maxmemory", "1"})
	for _, n := range q.Nodes(t.Context()) {
		require.True(t, n.Reachable)
		require.False(t, n.Votes)
		requireCondition(t, n.Err, n.Node, redlock.ConditionOutOfMemory)
	}
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
}

// readerRights are the rights that docs/nodes.md gives a user who only reads, for a prefix.
func readerRights(t *testing.T, prefix string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/nodes.md")
	require.NoError(t, err)
	line := regexp.MustCompile("`user billing-reader on >\\S+ ([^`]*)`").FindStringSubmatch(string(text))
	require.NotNil(t, line)
	return strings.Fields(strings.ReplaceAll(line[1], "billing", prefix))
}

// reads asks for all that a user may see who only reads.
func reads(t *testing.T, q *redlock.Quorum) error {
	h, err := q.Holder(t.Context(), "held")
	if err != nil {
		return fmt.Errorf("Holder: %w", err)
	}
	require.NotEmpty(t, h.Identity)
	states, err := register.Of(q, "job", time.Hour).Read(t.Context())
	if err != nil {
		return fmt.Errorf("a register: %w", err)
	}
	require.Equal(t, "seven", string(states[0].Value))
	if _, err = q.Holder(t.Context(), "free"); !errors.Is(err, redlock.ErrNotHeld) {
		return fmt.Errorf("Holder of none: %w", err)
	}
	card, found, err := board.Of(q).Card(t.Context(), "k", "a")
	if err != nil {
		return fmt.Errorf("Card: %w", err)
	}
	require.True(t, found)
	require.Equal(t, 3, card.Nodes)
	entries, err := board.Of(q).Journal(t.Context(), "j", 5)
	if err != nil {
		return fmt.Errorf("Journal: %w", err)
	}
	require.NotEmpty(t, entries)
	return nil
}

// readsRoster reads who uses the nodes, as tools do.
func readsRoster(t *testing.T, url string) error {
	o, err := valkey.ParseURL(url)
	require.NoError(t, err)
	o.DisableCache = true
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	defer client.Close()
	r, err := bridge.ReadRoster(t.Context(), client, "tenure")
	if err == nil {
		require.NotEmpty(t, r)
	}
	return err
}

// A user who may only read sees all there is, has no vote, and gives no order. It needs each of its
// rights, and no other. A write of a process that has rights is heard by it.
func TestReader(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, withUser(t))
	rights := readerRights(t, "tenure")
	patient := []redlock.Option{redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL / 4)}
	writer := s.gated(patient...)
	s.hold(writer, "held")
	turn, _, err := register.Of(writer, "job", time.Hour).Begin(t.Context(), s.hold(writer, "job"))
	require.NoError(t, err)
	require.NoError(t, turn.Write(t.Context(), []byte("seven")))
	entry := bulletin.Entry{Journal: "j", Text: "one", Most: 5, Keep: time.Hour}
	require.NoError(t, board.Of(writer).Post(t.Context(), []bulletin.Card{{Kind: "k", ID: "a", Text: "x", Lifetime: time.Hour}}, entry))

	require.Eventually(t, func() bool {
		card, _, err := board.Of(writer).Card(t.Context(), "k", "a")
		return err == nil && card.Nodes == 3
	}, patience, pollTick)

	as := func(rules ...string) *redlock.Quorum {
		s.do(append([]string{"ACL", "SETUSER", "tenure", "reset", "on", ">p4ss"}, rules...))
		s.do([]string{"ACL", "LOG", "RESET"})
		return gatedURLs(t, s.userURLs(), patient...)
	}
	var log lockedBuffer
	s.do(append([]string{"ACL", "SETUSER", "tenure", "reset", "on", ">p4ss"}, rights...))
	reader := gatedURLs(t, s.userURLs(), append(patient, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
	require.NoError(t, reads(t, reader))
	heard := make(chan bulletin.Entry, 100)
	defer board.Of(reader).Hear("j", func(e bulletin.Entry) { heard <- e })()
	require.Eventually(t, func() bool {
		entry.At = time.Now()
		return board.Of(writer).Post(t.Context(), nil, entry) == nil && len(heard) > 0
	}, patience, pollTick)

	for i := range s.Nodes() {
		n := node(t, reader, i)
		require.True(t, n.Reachable)
		require.False(t, n.Votes)
		require.Equal(t, string(redlock.ConditionNoPermission), redlock.ErrorType(n.Err))
	}
	require.Error(t, reader.Healthy())
	require.Contains(t, log.String(), "noperm")
	_, err = reader.TryAcquire(t.Context(), "other")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorIs(t, board.Of(reader).Post(t.Context(), nil, entry), redlock.ErrNoQuorum)

	require.NoError(t, readsRoster(t, s.userURLs()[0]))
	for i, right := range rights {
		if !strings.HasPrefix(right, "+") || connectionRights[right] || right == "+eval_ro" || right == "+hgetall" { // that is of tools
			continue
		}
		without := append(append([]string{}, rights[:i]...), rights[i+1:]...)
		require.Error(t, reads(t, as(without...)), "%s is not needed", right)
	}
	for _, more := range [][]string{{"+evalsha"}, {"+evalsha", "+set"}} {
		require.NoError(t, reads(t, as(append(rights, more...)...)), "what may not be written stays so: %v", more)
	}

	// Scripts that another process has sent are there.
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	for _, missing := range []string{"-eval_ro", "+eval_ro"} {
		q := as(append(rights, missing)...)
		s.do([]string{"SCRIPT", "FLUSH"})
		require.Eventually(t, func() bool {
			_, err := register.Of(q, "job", time.Hour).Read(t.Context())
			return (missing[0] == '-') == (redlock.ErrorType(err) == "no_quorum") && !errors.Is(err, redlock.ErrTimeout)
		}, patience, pollTick, missing)
	}
}

// connectionRights are for Hear, and what valkey-go sends by itself.
var connectionRights = map[string]bool{"+ping": true, "+subscribe": true}

// A process that does not belong to the nodes, because others use them with another list, tells
// nobody anything.
func TestProcessThatDoesNotBelongTellsNothing(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	q := gatedURLs(t, s.URLs()[:3])
	l, err := tryUntilAnswered(t, q, "key") // each node knows then that it is used
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
	other := gatedURLs(t, []string{s.URLs()[0], s.URLs()[1], s.URLs()[3]})
	require.Equal(t, string(redlock.ConditionAnotherList), redlock.ErrorType(node(t, other, 0).Err))
	err = board.Of(other).Post(t.Context(), []bulletin.Card{{Kind: "k", ID: "a", Text: "x", Lifetime: time.Hour}})
	requireConditionOf(t, err, s.Node(0).Addr(), redlock.ConditionAnotherList)
	_, found, err := board.Of(q).Card(t.Context(), "k", "a")
	require.NoError(t, err)
	require.False(t, found)
}

// A tool reads who uses a server, and leaves no trace there.
func TestReadRoster(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	client := s.Node(0).Client()
	r, err := bridge.ReadRoster(t.Context(), client, "tenure")
	require.NoError(t, err)
	require.Empty(t, append(s.Node(0).Keys(t), make([]string, len(r))...), "nobody uses it")
	read := func(entries int) []bridge.RosterList {
		require.Eventually(t, func() bool {
			r, err = bridge.ReadRoster(t.Context(), client, "tenure")
			return err == nil && len(r) == entries
		}, longTTL, pollTick)
		return r
	}
	q := gatedURLs(t, s.URLs(), redlock.WithTTL(3*time.Second), redlock.WithClockSkew(time.Second), redlock.WithIdentity("ann"))
	l, err := tryUntilAnswered(t, q, "key")
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
	ann := read(1)[0]
	require.Equal(t, []any{3 * time.Second, time.Second, "ann", ""}, []any{ann.MaxTTL, ann.Skew, ann.By, ann.Refused})
	require.ElementsMatch(t, []string{s.Node(0).Addr(), s.Node(1).Addr(), s.Node(2).Addr()}, ann.Names)
	_, err = gatedURLs(t, s.three(0), redlock.WithIdentity("bob")).TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	bob := read(2)[1]
	require.Equal(t, []any{"bob", string(redlock.ConditionAnotherList), []string{s.Node(0).Addr()}}, []any{bob.By, bob.Refused, bob.Names})
	r, err = bridge.ReadRoster(t.Context(), client, "another")
	require.NoError(t, err)
	require.Empty(t, r)
	require.NoError(t, s.Node(0).Do(t, "SET", "foreign:roster", "x").Error())
	_, err = bridge.ReadRoster(t.Context(), client, "foreign")
	require.ErrorContains(t, err, "WRONGTYPE")
	var none context.Context
	_, err = bridge.ReadRoster(none, client, "tenure")
	require.ErrorAs(t, err, new(*redlock.OptionError))
}

// The advice is what the text of an error has in parentheses.
func TestAdviceOfErrors(t *testing.T) {
	noSpace := &redlock.ConditionError{Condition: redlock.Condition(wire.NotSaving), Detail: "MISCONF Errors writing to the AOF file: No space left on device"}
	require.NotContains(t, redlock.Advice(noSpace), "bgsave", "that is for snapshots")
	require.Empty(t, redlock.Advice(nil))
	require.Empty(t, redlock.Advice(errors.New("x")))
	known := &redlock.ConditionError{Condition: redlock.Condition(wire.Evicting)}
	require.Contains(t, redlock.Advice(known), "noeviction")
	require.Contains(t, known.Error(), "("+redlock.Advice(known)+")")
	require.Equal(t, redlock.Advice(known), redlock.Advice(&redlock.NodeError{Node: "a", Op: redlock.OpObserve, Err: known}))
}
