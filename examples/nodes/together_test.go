package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// recommended is what the pages recommend for nodes, in the order in which
// TestRecommendationsTogether does it, each on top of what came before.
var recommended = []struct {
	name, page string
	says       string // a part of the page, so that neither changes alone
	do         func(*cluster, *testing.T)
}{
	{"a user for each service", "nodes.md", "user billing on >BILLING-PASSWORD", (*cluster).leases},
	{"nobody is the default user", "nodes.md", "user default off ~* &* +@all", (*cluster).strangers},
	{"further users", "nodes.md", "`ACL LOAD` reads the file again.", (*cluster).addReader},
	{"no command has another name", "nodes.md", "**No `rename-command`.**", (*cluster).commands},
	{"certificates are renewed", "nodes.md", "`CONFIG SET tls-cert-file ... tls-key-file ...` as the operator", (*cluster).renewAll},
	{"the append-only file is rewritten", "nodes.md", "appendonly yes\nappendfsync everysec\nno-appendfsync-on-rewrite yes\nsave \"\"\n", (*cluster).rewrite},
	{"a full node removes nothing, and is started again", "nodes.md", "maxmemory-policy noeviction", (*cluster).fill},
	{"restarts in order", "operations.md", "**One at a time, a quarantine and a TTL apart:**", func(c *cluster, t *testing.T) { c.restartEach(t, (*valkeytest.Node).Stop) }},
	{"timeouts and all other settings", "nodes.md", "timeout 0\ntcp-keepalive 60\nmaxclients 10000\n", (*cluster).allConfigured},
	{"a user who only reads", "nodes.md", "| reader | `user billing-reader on >READER-PASSWORD ", (*cluster).read},
}

// Each recommendation is tested by itself elsewhere. Here nodes get all of them, one after the
// other, while a service has leases, jobs and a pause on them, and nothing is lost. Nodes have
// little memory, so that one can be filled.
func TestRecommendationsTogether(t *testing.T) {
	t.Parallel()
	conf := read(t, "valkey.conf")
	require.Contains(t, conf, "maxmemory 256mb\n")
	c := &cluster{recipe: start(t, 3, strings.Replace(conf, "maxmemory 256mb\n", "maxmemory 16mb\n", 1), read(t, "users.acl"))}
	c.use(t)
	for _, r := range recommended {
		require.Contains(t, flat(read(t, filepath.Join("../../docs", r.page))), flat(r.says), r.name)
		began := time.Now()
		r.do(c, t)
		t.Logf("%s: %v", r.name, time.Since(began).Round(time.Millisecond))
	}
	c.check(t)
}

// flat is a text in which any space is one: lines of a page may be broken anew.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// leases has all that leases and elections need of the service's user. The check in the end sees
// what nodes have refused.
func (c *cluster) leases(t *testing.T) {
	with := []redlock.Option{redlock.WithPrefix("billing:leases"), redlock.WithoutRestartGate()} // see use
	q, rival := c.open(t, with...), c.open(t, with...)
	held, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	_, err = rival.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
	wait := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() {
			lease, err := rival.Acquire(ctx, "key")
			if err == nil {
				err = lease.Release(ctx)
			}
			ended <- err
		}()
		// The rival hears on all nodes, and waits in their queues.
		require.Eventually(t, func() bool {
			return !slices.ContainsFunc(c.Nodes(), func(n *valkeytest.Node) bool {
				channels, err := n.Do(t, "PUBSUB", "CHANNELS", "billing:leases:*").AsStrSlice()
				require.NoError(t, err)
				waiting, err := n.Do(t, "ZCARD", "billing:leases:{key}:wait").AsInt64()
				require.NoError(t, err)
				return len(channels) == 0 || waiting != 1
			})
		}, patience, 5*time.Millisecond)
		return ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := wait(ctx)
	var many sync.WaitGroup
	for i := range 100 {
		many.Go(func() {
			lease, err := q.TryAcquire(t.Context(), fmt.Sprint("many/", i))
			if assert.NoError(t, err) {
				assert.NoError(t, lease.Extend(t.Context()))
				assert.NoError(t, lease.Release(t.Context()))
			}
		})
	}
	many.Wait()
	cancel()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
	called := wait(t.Context())
	require.NoError(t, held.Extend(t.Context()))
	released := time.Now()
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, <-called)
	require.Less(t, time.Since(released), redlock.DefaultTTL/3, "the waiter was not called")
	e, err := elector.New(q, "leader")
	require.NoError(t, err)
	ctx, cancel = context.WithCancel(t.Context())
	require.NoError(t, e.Run(ctx, func(context.Context, *elector.Term) error {
		cancel()
		return nil
	}))
}

// strangers cannot do anything without a user and a password, also with a certificate.
func (c *cluster) strangers(t *testing.T) {
	for _, user := range []string{"", "default"} {
		o := valkey.MustParseURL("valkeys://" + c.Node(0).Addr())
		o.TLSConfig, o.ForceSingleClient, o.DisableCache = clientTLS(t, c.etc), true, true
		o.Username, o.Password = user, strings.Repeat("x", len(user))
		client, err := valkey.NewClient(o)
		if client != nil {
			defer client.Close()
			err = errors.Join(err, client.Do(t.Context(), client.B().Ping().Build()).Error())
		}
		require.Error(t, err)
		require.Regexp(t, "NOAUTH|WRONGPASS", err.Error())
	}
}

// addReader adds the page's user who only reads, while the nodes are in use.
func (c *cluster) addReader(t *testing.T) {
	line := regexp.MustCompile("`(user billing-reader on )>READER-PASSWORD ([^`]*)`").FindStringSubmatch(read(t, "../../docs/nodes.md"))
	require.NotNil(t, line)
	file := filepath.Join(c.etc, "users.acl")
	write(t, file, read(t, file)+line[1]+"#"+hashed(service)+" "+line[2]+"\n")
	for _, n := range c.Nodes() {
		_ = n.Do(t, "ACL", "LOAD").Error() // Redis 7.0 may end this connection too
		require.Eventually(t, func() bool {
			users, err := n.Do(t, "ACL", "USERS").AsStrSlice()
			return err == nil && slices.Contains(users, "billing-reader")
		}, patience, 10*time.Millisecond)
	}
	awaitVotes(t, c.q)
	c.awaitTicks(t, 1)
}

// commands looks for all that Tenure uses under its own name.
func (c *cluster) commands(t *testing.T) {
	for _, n := range c.Nodes() {
		for _, right := range strings.Fields(redlock.Rights) {
			known, err := n.Do(t, "COMMAND", "INFO", strings.TrimPrefix(right, "+")).ToArray()
			require.NoError(t, err)
			require.Len(t, known, 1)
			require.False(t, known[0].IsNil(), right)
		}
	}
}

func (c *cluster) renewAll(t *testing.T) {
	for _, n := range c.Nodes() {
		c.renew(t, n)
	}
	c.awaitTicks(t, 1)
}

// rewrite has all nodes write their files anew at once.
func (c *cluster) rewrite(t *testing.T) {
	for _, n := range c.Nodes() {
		require.NoError(t, n.Do(t, "BGREWRITEAOF").Error())
	}
	for _, n := range c.Nodes() {
		require.Eventually(t, func() bool {
			text, err := n.Do(t, "INFO", "persistence").ToString()
			return err == nil && strings.Contains(text, "aof_rewrites:1\r\n") && strings.Contains(text, "aof_rewrite_in_progress:0")
		}, patience, 10*time.Millisecond)
	}
	c.awaitTicks(t, 1)
}

// fill fills a node, ends it, and starts it again as full as it was. Then there is room again.
func (c *cluster) fill(t *testing.T) {
	n := c.Node(0)
	fillers := fillUp(t, n, nil)
	before := lasting(t, n)
	require.Subset(t, before, fillers)
	require.NoError(t, c.lease.Extend(t.Context()))
	require.NoError(t, n.Stop())
	require.NoError(t, n.Restart(true))
	kept(t, n, before)
	fillers = fillUp(t, n, fillers) // where what was loaded takes less
	c.awaitTicks(t, 1)              // by the other nodes
	require.NoError(t, n.Do(t, append([]string{"DEL"}, fillers...)...).Error())
	awaitVotes(t, c.q)
}

// fillUp gives a node more keys of another program until it takes none.
func fillUp(t *testing.T, n *valkeytest.Node, keys []string) []string {
	t.Helper()
	for {
		key := fmt.Sprint("filler/", len(keys))
		if err := n.Do(t, "SET", key, strings.Repeat("x", 1<<16)).Error(); err != nil {
			require.ErrorContains(t, err, "OOM")
			require.NotEmpty(t, keys)
			return keys
		}
		keys = append(keys, key)
	}
}

func (c *cluster) allConfigured(t *testing.T) {
	for _, n := range c.Nodes() {
		c.configured(t, n)
	}
}

// read has the reader look at what there is.
func (c *cluster) read(t *testing.T) {
	as := &recipe{Fleet: c.Fleet, etc: c.etc}
	for _, url := range c.urls {
		as.urls = append(as.urls, strings.Replace(url, "billing:", "billing-reader:", 1))
	}
	q, err := redlock.Open(as.urls, append(short, redlock.WithPrefix("billing"), c.secure(t), redlock.WithLogger(quiet))...)
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	reader, err := admin.New(q, admin.WithLogger(quiet))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		p, err := reader.Paused(t.Context(), admin.Job("report"))
		return err == nil && p.Reason == "the database moves"
	}, patience, 50*time.Millisecond)
}
