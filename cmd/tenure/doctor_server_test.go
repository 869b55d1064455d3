package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// setup is servers, and what to tell doctor of them. The zero one is three servers that are well.
type setup struct {
	name    string
	options []valkeytest.Option
	count   int // of servers; 0 for 3
	// prepare breaks something, and returns the URLs, and more flags and variables.
	prepare func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string)
	want    []string // codes
	worst   int      // the exit code
	says    []string // parts of what is said
}

// break1 prepares by doing something, with the URLs as they are.
func break1(do func(t *testing.T, f *valkeytest.Fleet)) func(*testing.T, *valkeytest.Fleet) (urls, flags, environ []string) {
	return func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
		do(t, f)
		return f.URLs(), nil, nil
	}
}

// instead prepares by another URL in the place of the first.
func instead(url func(t *testing.T, f *valkeytest.Fleet) string, flags ...string) func(*testing.T, *valkeytest.Fleet) (urls, flags, environ []string) {
	return func(t *testing.T, f *valkeytest.Fleet) (urls, _, environ []string) {
		return append([]string{url(t, f)}, f.URLs()[1:3]...), flags, nil
	}
}

// command has servers carry out a command.
func command(t *testing.T, nodes []*valkeytest.Node, words ...string) {
	t.Helper()
	for _, n := range nodes {
		require.NoError(t, n.Do(t, words...).Error(), "%v", words)
	}
}

// recipe is the user of docs/nodes.md on all servers, with other rules behind it, and the URLs of
// that user.
func recipe(t *testing.T, f *valkeytest.Fleet, rules ...string) []string {
	t.Helper()
	words := append([]string{"ACL", "SETUSER", "billing", "reset", "on", ">p4ss", "resetchannels", "~tenure:*", "&tenure:*", "-@all"}, strings.Fields(redlock.Rights)...)
	command(t, f.Nodes(), append(words, rules...)...)
	return as(f, "billing:p4ss")
}

// as are the URLs with a user.
func as(f *valkeytest.Fleet, user string) (urls []string) {
	for _, n := range f.Nodes() {
		urls = append(urls, "valkey://"+user+"@"+n.Addr())
	}
	return urls
}

// setups are what is found, and by what.
func setups(t *testing.T) []setup {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	encrypted := []valkeytest.Option{
		valkeytest.WithTLS(certificate(t, dir)),
		valkeytest.WithArgs("--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert),
	}
	client := []string{"--tls-ca", cert, "--tls-cert", cert, "--tls-key", key}
	well := break1(func(*testing.T, *valkeytest.Fleet) {})

	return []setup{
		{name: "nothing: three servers", prepare: well},
		{name: "replicas, a pause, the file, the users of docs/nodes.md", options: []valkeytest.Option{valkeytest.WithPersistence()},
			prepare: func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
				urls = recipe(t, f)
				pause(t, use(t, urls))
				return urls, nil, nil
			}, want: []string{"default_user"}, worst: exitOK, says: []string{"lacks +acl|dryrun"}},
		{name: "nothing: TLS on both sides", options: encrypted,
			prepare: func(_ *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) { return f.URLs(), client, nil }},
		{name: "nothing: another prefix beside the replicas' own", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) {
			use(t, f.URLs())
			use(t, f.URLs(), redlock.WithPrefix("billing"))
		})},

		{name: "one URL twice", prepare: func(_ *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			return []string{f.URLs()[0], f.URLs()[1], f.URLs()[0]}, nil, nil
		}, want: []string{"nodes"}, worst: exitFaults, says: []string{"names the same node as urls[0]"}},
		{name: "one server under two names", prepare: func(_ *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			return []string{f.URLs()[0], f.URLs()[1], strings.Replace(f.URLs()[1], "127.0.0.1", "localhost", 1)}, nil, nil
		}, want: []string{"duplicate"}, worst: exitFaults, says: []string{"list it once"}},
		{name: "another list of nodes than the replicas'", count: 4, prepare: func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			use(t, f.URLs()[:3])
			call(t, nodesAt(f.URLs()[1:]...), "run", "--wait", "2s", "refused", "--", "true")
			return f.URLs()[1:], nil, nil
		}, want: []string{"another_list", "no_quorum"}, worst: exitFaults, says: []string{"seen", "replica has the nodes", "TENURE_NODES", "--without-restart-gate"}},
		{name: "another prefix than the replicas'", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) { use(t, f.URLs(), redlock.WithPrefix("billing")) }),
			want: []string{"another_prefix"}, worst: exitWarnings, says: []string{`in use are "billing"`, "--prefix"}},
		{name: "another prefix, and a user who may not list keys", prepare: func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			use(t, f.URLs(), redlock.WithPrefix("billing"))
			return recipe(t, f), nil, nil
		}, want: []string{"unused"}, worst: exitOK, says: []string{"they have another prefix"}},
		{name: "another clock skew than the replicas'", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) { use(t, f.URLs(), redlock.WithClockSkew(500*time.Millisecond)) }),
			want: []string{"clock_skew"}, worst: exitWarnings, says: []string{"a clock skew of 500ms", "--clock-skew 500ms"}},

		{name: "a node that has a replica, and one that is one", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) {
			host, port, _ := net.SplitHostPort(f.Node(0).Addr())
			command(t, f.Nodes()[1:2], "REPLICAOF", host, port)
			require.Eventually(t, func() bool {
				text, err := f.Node(0).Do(t, "INFO", "replication").ToString()
				return err == nil && strings.Contains(text, "connected_slaves:1")
			}, patience, poll)
		}), want: []string{"replica", "replicated", "no_quorum"}, worst: exitFaults, says: []string{"it has 1 replica(s)", "--with-replicas"}},
		{name: "a node that may evict", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) {
			command(t, f.Nodes()[:1], "CONFIG", "SET", "maxmemory", "100mb")
			command(t, f.Nodes()[:1], "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
		}), want: []string{"evicting"}, worst: exitWarnings, says: []string{"allkeys-lru", "noeviction"}},
		{name: "a full node", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) {
			command(t, f.Nodes()[:1], "CONFIG", "SET", "maxmemory", "1mb")
		}),
			want: []string{"oom"}, worst: exitFaults, says: []string{"raise maxmemory"}},
		{name: "a node without room for clients", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) {
			command(t, f.Nodes()[:1], "CONFIG", "SET", "maxclients", "1")
		}), want: []string{"max_clients"}, worst: exitFaults, says: []string{"raise maxclients"}},
		{name: "no file, with all jobs paused", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) { pause(t, use(t, f.URLs())) }),
			want: []string{"not_persistent"}, worst: exitWarnings, says: []string{"appendonly yes"}},

		{name: "a user without ZCARD and PUBLISH", prepare: func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			use(t, f.URLs())
			return recipe(t, f, "-zcard", "-publish"), nil, nil
		}, want: []string{"noperm", "noperm"}, worst: exitWarnings, says: []string{"lacks +zcard", "lacks +publish", "ACL SETUSER billing +zcard; and the same in its file of users"}},
		{name: "a user without channels", prepare: func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			use(t, f.URLs())
			return recipe(t, f, "resetchannels"), nil, nil
		}, want: []string{"noperm"}, worst: exitWarnings, says: []string{"ACL SETUSER billing &tenure:*"}},
		{name: "a user of another prefix", prepare: func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			return recipe(t, f, "resetkeys", "resetchannels", "~billing:*", "&billing:*"), nil, nil
		}, want: []string{"noperm", "noperm"}, worst: exitFaults, says: []string{"the keys of the prefix", "--prefix"}},
		{name: "a user who only reads", prepare: func(t *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			use(t, f.URLs())
			command(t, f.Nodes(), append([]string{"ACL", "SETUSER", "reader", "reset", "on", ">p4ss"}, readerRights(t, "tenure")...)...)
			return as(f, "reader:p4ss"), nil, nil
		}, want: []string{"reader"}, worst: exitOK},
		{name: "a wrong password", prepare: func(_ *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			return as(f, "default:wr0ng"), nil, nil
		}, options: []valkeytest.Option{valkeytest.WithPassword("right")}, want: []string{"noauth"}, worst: exitFaults, says: []string{"WRONGPASS"}},
		{name: "no password", prepare: instead(func(_ *testing.T, f *valkeytest.Fleet) string { return "valkey://" + f.Node(0).Addr() }), options: []valkeytest.Option{valkeytest.WithPassword("right")},
			want: []string{"noauth"}, worst: exitFaults, says: []string{"NOAUTH"}},
		{name: "protected mode", prepare: instead(func(t *testing.T, f *valkeytest.Fleet) string { return protected(t, f.Node(0)) }), options: []valkeytest.Option{valkeytest.WithArgs("--bind", "0.0.0.0", "--protected-mode", "yes")},
			want: []string{"protected"}, worst: exitFaults, says: []string{"set a password or protected-mode no"}},

		{name: "a clock that is off", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) { require.NoError(t, f.Node(1).JumpClock(time.Minute)) }),
			want: []string{"clock_wrong"}, worst: exitWarnings, says: []string{" ahead of the median of 3 servers", "set the others"}},
		{name: "a node that was restarted", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) { require.NoError(t, f.Node(2).Restart(false)) }),
			want: []string{"quarantined"}, worst: exitWarnings, says: []string{"it votes again at"}},
		{name: "an old version", prepare: instead(func(t *testing.T, f *valkeytest.Fleet) string {
			old := newProxy(t, func(reply []byte) []byte {
				return bytes.ReplaceAll(reply, []byte("redis_version:7.2.4"), []byte("redis_version:6.2.4"))
			}, f.Node(0).Addr())
			return "valkey://" + old
		}), want: []string{"unsupported"}, worst: exitFaults, says: []string{"use Valkey 7.2 or newer"}},
		{name: "a balancer in front of two servers", count: 4, prepare: instead(func(t *testing.T, f *valkeytest.Fleet) string {
			balancer := newProxy(t, nil, f.Node(0).Addr(), f.Node(3).Addr())
			return "valkey://" + balancer
		}), want: []string{"several_servers"}, worst: exitFaults, says: []string{"2 servers answer at this address"}},
		{name: "a server of a Cluster", options: []valkeytest.Option{valkeytest.WithArgs("--cluster-enabled", "yes")}, prepare: well,
			want: []string{"moved", "no_quorum"}, worst: exitFaults, says: []string{"cluster mode"}},
		{name: "a command with another name", options: []valkeytest.Option{valkeytest.WithArgs("--rename-command", "PEXPIRE", "PEXP")}, prepare: well,
			want: []string{"no_command", "no_quorum"}, worst: exitFaults, says: []string{"rename-command"}},
		{name: "a database that is not there", prepare: instead(func(_ *testing.T, f *valkeytest.Fleet) string { return f.URLs()[0] + "/99" }),
			want: []string{"no_database"}, worst: exitFaults, says: []string{"databases"}},

		{name: "a node that is down", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) { require.NoError(t, f.Node(0).Kill()) }),
			want: []string{"down"}, worst: exitFaults, says: []string{"connection refused", "start the server"}},
		{name: "a node that hangs", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) { require.NoError(t, f.Node(0).Freeze()) }),
			want: []string{"timeout"}, worst: exitFaults, says: []string{"valkey-cli PING"}},
		{name: "a node that holds back what may write", prepare: break1(func(t *testing.T, f *valkeytest.Fleet) {
			command(t, f.Nodes()[:1], "CLIENT", "PAUSE", "60000", "WRITE")
		}), want: []string{"timeout", "rights_unknown"}, worst: exitFaults, says: []string{"CLIENT UNPAUSE"}},
		{name: "a name that does not resolve", prepare: instead(func(_ *testing.T, f *valkeytest.Fleet) string { return "valkey://nowhere.invalid:6379" }),
			want: []string{"no_such_host"}, worst: exitFaults},
		{name: "plain to TLS", options: encrypted, prepare: instead(func(_ *testing.T, f *valkeytest.Fleet) string { return "valkey://" + f.Node(0).Addr() }, client...),
			want: []string{"plain_to_tls"}, worst: exitFaults, says: []string{"write valkeys://"}},
		{name: "TLS to plain", prepare: instead(func(_ *testing.T, f *valkeytest.Fleet) string { return "valkeys://" + f.Node(0).Addr() }),
			want: []string{"tls_to_plain"}, worst: exitFaults, says: []string{"write valkey://"}},
		{name: "an authority that is not known", options: encrypted, prepare: well,
			want: []string{"tls_authority", "no_quorum"}, worst: exitFaults, says: []string{"--tls-ca"}},
		{name: "a certificate of another name", options: encrypted, prepare: instead(func(_ *testing.T, f *valkeytest.Fleet) string {
			return strings.Replace(f.URLs()[0], "127.0.0.1", "localhost", 1)
		}, client...),
			want: []string{"tls_name"}, worst: exitFaults},
		{name: "no client certificate", options: encrypted, prepare: func(_ *testing.T, f *valkeytest.Fleet) (urls, flags, environ []string) {
			return f.URLs(), nil, []string{"TENURE_TLS_CA=" + cert}
		}, want: []string{"tls_client_certificate", "no_quorum"}, worst: exitFaults, says: []string{"--tls-cert"}},
		{name: "one node", count: 1, prepare: well, want: []string{"one_node"}, worst: exitWarnings},
		{name: "two nodes", count: 2, prepare: well, want: []string{"even_number"}, worst: exitOK},
	}
}

// pause pauses all jobs.
func pause(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	c, err := admin.New(q, admin.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	_, err = c.Pause(t.Context(), admin.AllJobs, admin.PauseOptions{Reason: "test"})
	require.NoError(t, err)
}

// readerRights are the rights that docs/nodes.md gives a user who only reads.
func readerRights(t *testing.T, prefix string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/nodes.md")
	require.NoError(t, err)
	line := regexp.MustCompile("`user billing-reader on >\\S+ ([^`]*)`").FindStringSubmatch(string(text))
	require.NotNil(t, line)
	return strings.Fields(strings.ReplaceAll(line[1], "billing", prefix))
}

// Each right of the recipe is named when it is the one that is missing, and no other.
func TestDoctorNamesEachMissingRight(t *testing.T) {
	t.Parallel()
	f := startServers(t, 1)
	use(t, f.URLs())
	for _, right := range strings.Fields(redlock.Rights) {
		urls := recipe(t, f, "-"+strings.TrimPrefix(right, "+"))
		got := call(t, nodesAt(urls...), "doctor", "-o", "json", "--node-timeout", "1s")
		var d doctorDocument
		require.NoError(t, json.Unmarshal([]byte(got.out), &d), "%s%s", got.out, got.err)
		var said []string
		for _, finding := range d.Findings {
			if finding.Code == "noperm" {
				said = append(said, finding.Seen)
			}
		}
		require.Len(t, said, 1, "%s: %s", right, got.out)
		require.Contains(t, said[0], "the user lacks "+right+":")
	}
}

// For people it says the same; also of a node that is far.
func TestDoctorForPeople(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	got := call(t, nodesAt(f.URLs()...), "doctor", "--node-timeout", "1s")
	require.Equal(t, exitOK, got.code, "%+v", got)
	require.Contains(t, got.out, "NOTE unused: all")
	use(t, f.URLs())
	require.Contains(t, call(t, nodesAt(f.URLs()...), "doctor").out, "Nothing is wrong")
	far := newProxy(t, func(reply []byte) []byte { time.Sleep(2 * time.Second); return reply }, f.Node(1).Addr())
	require.Contains(t, call(t, nodesAt("valkey://"+far), "doctor", "--node-timeout", "1s").out, "it answers after 2.")
	require.NoError(t, f.Node(0).Kill())
	got = call(t, nodesAt(f.URLs()...), "doctor", "--node-timeout", "1s")
	require.Equal(t, exitFaults, got.code, "%+v", got)
	require.Contains(t, got.out, "FAULT down: "+f.Node(0).Addr())
	require.Contains(t, got.out, "do: start the server")
	require.Contains(t, got.out, "1 fault, 0 warnings, 0 notes.")
	require.Empty(t, got.err)
}

// With the skew of the replicas, and not with its own, it looks at the nodes: theirs stays.
func TestDoctorKeepsTheSkewOfReplicas(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	q := use(t, f.URLs(), redlock.WithClockSkew(300*time.Millisecond))
	require.Equal(t, exitWarnings, call(t, nodesAt(f.URLs()...), "doctor", "--clock-skew", "5s", "--node-timeout", "1s").code)
	require.Never(t, func() bool {
		m, err := bridge.ReadRoster(t.Context(), f.Node(0).Client(), "tenure")
		return err != nil || len(m) != 1 || m[0].Skew != 300*time.Millisecond
	}, time.Second, poll)
	require.NoError(t, q.Healthy())
}

// newProxy passes connections on to servers, one after the other, and lets replies be changed.
func newProxy(t *testing.T, change func([]byte) []byte, servers ...string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var next atomic.Uint64
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", servers[int(next.Add(1)-1)%len(servers)])
			if err != nil {
				conn.Close()
				continue
			}
			work.Go(func() {
				defer server.Close()
				_, _ = io.Copy(server, conn) // until either side ends it
			})
			work.Go(func() {
				defer conn.Close()
				buffer := make([]byte, 64<<10)
				for {
					n, err := server.Read(buffer)
					reply := buffer[:n]
					if change != nil {
						reply = change(reply)
					}
					if _, failed := conn.Write(reply); err != nil || failed != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

// protected is the URL of a server by an address that is not loopback. Where the machine has none,
// it is one that answers as the server does.
func protected(t *testing.T, n *valkeytest.Node) string {
	t.Helper()
	_, port, err := net.SplitHostPort(n.Addr())
	require.NoError(t, err)
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return "valkey://" + net.JoinHostPort(ip.IP.String(), port)
		}
	}
	return "valkey://" + newProxy(t, func([]byte) []byte {
		return []byte("-DENIED Redis is running in protected mode because protected mode is enabled\r\n")
	}, n.Addr())
}

// documented starts servers with the files of examples/nodes, without TLS, which that page allows,
// and with another line for the default user if one is given. It returns the file of the users.
func documented(t *testing.T, defaultUser string) (f *valkeytest.Fleet, users string) {
	t.Helper()
	dir := t.TempDir()
	users = filepath.Join(dir, "users.acl")
	acl, err := os.ReadFile("../../examples/nodes/users.acl")
	require.NoError(t, err)
	writeUsers(t, users, strings.NewReplacer("OPERATOR-PASSWORD", "op", "BILLING-PASSWORD", "p4ss").Replace(string(acl)), defaultUser)
	conf, err := os.ReadFile("../../examples/nodes/valkey.conf")
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^(tls-.*|port .*|bind .*)\n`).ReplaceAllString(string(conf), "")
	file := filepath.Join(dir, "valkey.conf")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "/etc/valkey", dir)), 0o600))
	return startServers(t, 3, valkeytest.WithConfig(file), valkeytest.WithUser("operator", "op")), users
}

// writeUsers writes the file of the users.
func writeUsers(t *testing.T, file, acl, defaultUser string) {
	t.Helper()
	if defaultUser != "" {
		acl = regexp.MustCompile(`(?m)^user default .*$`).ReplaceAllLiteralString(acl, defaultUser)
	}
	require.NoError(t, os.WriteFile(file, []byte(acl), 0o600))
}

// doctorFinds has doctor examine nodes, and returns what it finds but for quarantines: code,
// severity and how many nodes.
func doctorFinds(t *testing.T, urls []string) (all []string, said string) {
	t.Helper()
	got := call(t, nodesAt(urls...), "doctor", "-o", "json", "--node-timeout", "1s", "--prefix", "billing")
	var d doctorDocument
	require.NoError(t, json.Unmarshal([]byte(got.out), &d), "%s%s", got.out, got.err)
	all = []string{}
	for _, f := range d.Findings {
		if f.Code != "quarantined" {
			all = append(all, fmt.Sprintf("%s %s of %d", f.Severity, f.Code, len(f.Nodes)))
		}
	}
	return all, got.out
}

// Nothing is wrong with servers of the documented files. A service's user is told what it may not
// ask.
func TestDoctorOfTheDocumentedNodes(t *testing.T) {
	t.Parallel()
	f, _ := documented(t, "")
	use(t, f.URLs(), redlock.WithPrefix("billing"))
	all, said := doctorFinds(t, f.URLs())
	require.Empty(t, all, said)
	all, said = doctorFinds(t, as(f, "billing:p4ss"))
	require.Equal(t, []string{"note default_user of 3"}, all, said)
	require.Contains(t, said, "ACL SETUSER billing +acl|dryrun")

	command(t, f.Nodes(), "CONFIG", "SET", "maxmemory", "1mb")
	command(t, f.Nodes(), "DEL", "billing:roster") // as full nodes have nothing that is fresh after a while
	all, said = doctorFinds(t, f.URLs())
	require.Equal(t, []string{"fault oom of 3", "fault no_quorum of 0"}, all, said)
}

// A server that drops writes when it loads its file is found before it does, and after. When the
// default user is mended, its file has them again, as docs/operations.md says.
func TestDoctorFindsDroppedWrites(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"fault"}, severities(t)["writes_dropped"], "docs/steering.md")
	f, users := documented(t, "user default off")
	q := use(t, f.URLs(), redlock.WithPrefix("billing"))
	pause(t, q)
	node := f.Node(1)
	const journal = "billing:{}:journal:orders" // which is written and cut in one script
	require.Eventually(t, func() bool { return slices.Contains(node.Keys(t), journal) }, patience, poll)

	all, said := doctorFinds(t, f.URLs())
	require.Equal(t, []string{"warning default_user of 3"}, all, said)
	require.Contains(t, said, "no permissions to run the 'select' command")

	require.NoError(t, q.Close()) // or it would tell the node again
	require.NoError(t, node.Stop())
	require.NoError(t, node.Restart(true))
	require.NotContains(t, node.Keys(t), journal)
	for _, test := range []struct {
		urls []string
		want string
	}{
		{f.URLs(), "warning default_user of 3"},
		{as(f, "billing:p4ss"), "note default_user of 3"},
	} {
		all, said = doctorFinds(t, test.urls)
		require.Equal(t, []string{"fault writes_dropped of 1", test.want}, all, said)
		require.Contains(t, said, "its file still has the writes")
	}

	acl, err := os.ReadFile(users)
	require.NoError(t, err)
	writeUsers(t, users, string(acl), "user default off ~* &* +@all")
	for _, n := range f.Nodes() {
		require.NoError(t, n.Do(t, "ACL", "LOAD").Error())
	}
	all, said = doctorFinds(t, f.URLs())
	require.Equal(t, []string{"fault writes_dropped of 1"}, all, said)
	require.NoError(t, node.Restart(true))
	require.Contains(t, node.Keys(t), journal)
	all, said = doctorFinds(t, f.URLs())
	require.Empty(t, all, said)
}

// It is the rights that count, for what scripts write under the prefix, and where they are enough
// nothing is dropped.
func TestDoctorTriesTheDefaultUser(t *testing.T) {
	t.Parallel()
	for user, want := range map[string][]string{
		"user default on nopass ~* &* +@all":             {},
		"user default off ~billing:* +@all":              {},
		"user default off ~* +@write +select":            {},
		"user default off ~* +@write":                    {"warning default_user of 3"},
		"user default off ~* +@all -zadd":                {"warning default_user of 3"},
		"user default off ~payments:* +@all":             {"warning default_user of 3"},
		"user default on nopass ~* &* -@all +ping +info": {"warning default_user of 3"},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			f, _ := documented(t, user)
			q := use(t, f.URLs(), redlock.WithPrefix("billing"))
			pause(t, q)
			all, said := doctorFinds(t, f.URLs())
			require.Equal(t, want, all, said)
			if len(want) > 0 {
				return
			}
			before := f.Node(0).Keys(t)
			require.NoError(t, q.Close())
			require.NoError(t, f.Node(0).Restart(true))
			require.Subset(t, f.Node(0).Keys(t), before)
			all, said = doctorFinds(t, f.URLs())
			require.Empty(t, all, said)
		})
	}
}
