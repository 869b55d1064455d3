package cluster

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/web"
)

// Cluster is a set of servers, and of replicas in processes of their own. It ends with its test.
type Cluster struct {
	tb    testing.TB
	Fleet *valkeytest.Fleet
	TTL   time.Duration
}

// Start starts n servers that vote from the start.
func Start(tb testing.TB, n int, ttl time.Duration, options ...valkeytest.Option) *Cluster {
	tb.Helper()
	return &Cluster{tb: tb, Fleet: valkeytest.Start(tb, n, append(options, valkeytest.WithAge(24*time.Hour))...), TTL: ttl}
}

// Replica starts a replica, in a process of its own. It sets the nodes, the TTL and the identity of
// r itself.
func (c *Cluster) Replica(identity string, r Replica) *child.Replica {
	c.tb.Helper()
	r.Nodes, r.TTL, r.Identity = c.Fleet.URLs(), c.TTL, identity
	p, err := child.StartReplica(r, func(line string) { c.tb.Log(identity, line) })
	require.NoError(c.tb, err)
	c.tb.Cleanup(func() {
		_ = p.Thaw()
		p.Stop()
	})
	return p
}

// Quorum opens a Quorum of the cluster's nodes, which is closed with the test.
func (c *Cluster) Quorum(identity string) *redlock.Quorum {
	c.tb.Helper()
	q, err := Open(c.Fleet.URLs(), identity, c.TTL)
	require.NoError(c.tb, err)
	c.tb.Cleanup(func() { assert.NoError(c.tb, q.Close()) })
	return q
}

// Admin makes a Client with which a test looks at the cluster.
func (c *Cluster) Admin(q *redlock.Quorum) *admin.Client {
	c.tb.Helper()
	a, err := admin.New(q, admin.WithActor("test"), admin.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(c.tb, err)
	return a
}

// Site is the pages, served by this process.
type Site struct {
	Top string // URL of the server, which serves nothing but the pages
	URL string // URL of the overview, with a slash at the end
}

// Page returns the URL of a page.
func (s *Site) Page(path string) string { return s.URL + strings.TrimPrefix(path, "/") }

// Serve serves the pages until the test ends. They accept orders.
func (c *Cluster) Serve(a *admin.Client, options ...web.Option) *Site {
	c.tb.Helper()
	top, stop, err := serve("127.0.0.1:0", a, append(options, web.WithLogger(slog.New(slog.DiscardHandler)))...)
	require.NoError(c.tb, err)
	c.tb.Cleanup(func() { assert.NoError(c.tb, stop()) })
	return &Site{top, top + Prefix + "/"}
}
