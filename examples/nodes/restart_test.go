package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Servers of the documented files keep what is on them when they are started again: leases, ticks
// that were run, pauses, and the journal of orders. Neither a file that is not loaded whole nor a
// record that other nodes have is enough: each node is looked at.
func TestRestartsKeepTheData(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*testing.T, *cluster)
	}{
		{"all at once, SIGTERM", func(t *testing.T, c *cluster) { c.restartAll(t, (*valkeytest.Node).Stop) }},
		{"all at once, SIGKILL", func(t *testing.T, c *cluster) { c.restartAll(t, (*valkeytest.Node).Kill) }},
		{"one after the other, SIGTERM", func(t *testing.T, c *cluster) { c.restartEach(t, (*valkeytest.Node).Stop) }},
		{"one after the other, SIGKILL", func(t *testing.T, c *cluster) { c.restartEach(t, (*valkeytest.Node).Kill) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &cluster{recipe: setUp(t)}
			c.use(t)
			test.do(t, c)
			c.check(t)
		})
	}
}

// cluster is nodes with data on them.
type cluster struct {
	*recipe

	q      *redlock.Quorum // of the service; its leases are short, and so are quarantines
	patron *redlock.Quorum // of leases that outlive a restart of all nodes
	lease  *redlock.Lease
	admin  *admin.Client
	orders []admin.Order
	jobs   *scheduler.Scheduler

	mu   sync.Mutex
	runs map[string]map[time.Time]int // how often each tick of each job was run; guarded by mu
	ran  chan struct{}
}

var quiet = slog.New(slog.DiscardHandler)

// short makes quarantines of three seconds.
var short = []redlock.Option{redlock.WithTTL(time.Second), redlock.WithClockSkew(100 * time.Millisecond)}

// use puts data on the nodes.
func (c *cluster) use(t *testing.T) {
	t.Helper()
	c.q = c.open(t, short...)
	// Of another prefix, which does not make quarantines longer, and without waiting for one.
	c.patron = c.open(t, redlock.WithPrefix("billing:patron"), redlock.WithTTL(time.Hour), redlock.WithoutRestartGate())
	var err error
	c.lease, err = c.patron.TryAcquire(t.Context(), "ledger")
	require.NoError(t, err)

	c.admin, err = admin.New(c.q, admin.WithLogger(quiet))
	require.NoError(t, err)
	for _, why := range []string{"the books are audited", "the books are audited again"} {
		_, err = c.admin.Pause(t.Context(), admin.Job("audit"), admin.PauseOptions{Reason: why, Force: true})
		require.NoError(t, err)
		require.NoError(t, c.admin.Resume(t.Context(), admin.Job("audit"), why+", no more"))
	}
	_, err = c.admin.Pause(t.Context(), admin.Job("report"), admin.PauseOptions{Reason: "the database moves", Force: true})
	require.NoError(t, err)
	c.orders = c.journal(t)
	require.Len(t, c.orders, 5)

	c.runs = map[string]map[time.Time]int{"tick": {}, "report": {}}
	c.ran = make(chan struct{}, 1)
	c.begin(t)
	c.awaitTicks(t, 2)
}

// journal is what the nodes know of orders.
func (c *cluster) journal(t *testing.T) []admin.Order {
	t.Helper()
	orders, err := c.admin.Orders(t.Context(), 100)
	require.NoError(t, err)
	for i := range orders {
		orders[i].Sources = 0 // how many of them answered in time
	}
	return orders
}

// begin starts a replica. It runs all ticks that nobody has run.
func (c *cluster) begin(t *testing.T) {
	t.Helper()
	var err error
	c.jobs, err = scheduler.New(c.q, scheduler.WithLogger(quiet))
	require.NoError(t, err)
	for name := range c.runs {
		_, err = c.jobs.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(c.run), gocron.WithName(name),
			scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))
		require.NoError(t, err)
	}
	c.jobs.Start()
}

func (c *cluster) run(ctx context.Context) {
	if r, ok := scheduler.RunFromContext(ctx); ok {
		c.mu.Lock()
		c.runs[r.Job][r.Due.UTC()]++
		c.mu.Unlock()
	}
	select {
	case c.ran <- struct{}{}:
	default:
	}
}

// awaitTicks waits until so many more ticks have been run that are due from now on.
func (c *cluster) awaitTicks(t *testing.T, more int) {
	t.Helper()
	from := time.Now()
	enough := time.After(patience)
	for {
		c.mu.Lock()
		due := 0
		for tick := range c.runs["tick"] {
			if tick.After(from) {
				due++
			}
		}
		c.mu.Unlock()
		if due >= more {
			return
		}
		select {
		case <-c.ran:
		case <-enough:
			t.Fatal("ticks are not run")
		}
	}
}

// restartAll is an outage: the replica ends, and all servers, which are then started again.
func (c *cluster) restartAll(t *testing.T, end func(*valkeytest.Node) error) {
	t.Helper()
	require.NoError(t, c.jobs.Shutdown())
	before := make([][]string, len(c.Nodes()))
	for i, n := range c.Nodes() {
		before[i] = lasting(t, n)
	}
	var all sync.WaitGroup
	for _, n := range c.Nodes() {
		all.Go(func() { assert.NoError(t, end(n)) })
	}
	all.Wait()
	for _, n := range c.Nodes() {
		all.Go(func() { assert.NoError(t, n.Restart(true)) })
	}
	all.Wait()
	for i, n := range c.Nodes() {
		kept(t, n, before[i])
	}
	awaitVotes(t, c.q)
	c.begin(t)
}

// restartEach restarts the servers as docs/operations.md says, while everything goes on.
func (c *cluster) restartEach(t *testing.T, end func(*valkeytest.Node) error) {
	t.Helper()
	for _, n := range c.Nodes() {
		before := lasting(t, n)
		require.NoError(t, end(n))
		require.NoError(t, n.Restart(true))
		kept(t, n, before)
		awaitVotes(t, c.q)
		c.awaitTicks(t, 1) // a TTL, in which holders put back their keys
	}
	require.NoError(t, c.jobs.Shutdown())
	c.begin(t) // a replica that has to ask the nodes what was run
}

// lasting are the keys of a node that nobody removes within the test, as cards are when their
// process ends.
func lasting(t *testing.T, n *valkeytest.Node) []string {
	t.Helper()
	var keys []string
	for _, key := range n.Keys(t) {
		if strings.Contains(key, ":cards:") {
			continue
		}
		left, err := n.Do(t, "PTTL", key).AsInt64()
		require.NoError(t, err)
		if left == -1 || left > patience.Milliseconds() {
			keys = append(keys, key)
		}
	}
	require.NotEmpty(t, keys)
	return keys
}

// kept looks at a node that was started again.
func kept(t *testing.T, n *valkeytest.Node, before []string) {
	t.Helper()
	require.Subset(t, n.Keys(t), before, "%s has lost keys", n.Addr())
	text, err := n.Do(t, "INFO", "everything").ToString()
	require.NoError(t, err)
	require.Contains(t, text, "aof_enabled:1")
	require.Contains(t, text, "unexpected_error_replies:0", "%s has dropped writes while it loaded its file", n.Addr())
}

// check looks whether anything was lost, or is done twice.
func (c *cluster) check(t *testing.T) {
	t.Helper()
	c.awaitTicks(t, 1)
	require.NoError(t, c.jobs.Shutdown())
	c.mu.Lock()
	defer c.mu.Unlock()
	for tick, times := range c.runs["tick"] {
		require.Equal(t, 1, times, "the tick of %v was run twice", tick)
	}
	require.Empty(t, c.runs["report"], "it is paused")

	p, err := c.admin.Paused(t.Context(), admin.Job("report"))
	require.NoError(t, err)
	require.Equal(t, "the database moves", p.Reason)
	_, err = c.admin.Paused(t.Context(), admin.Job("audit"))
	require.ErrorIs(t, err, admin.ErrNotPaused)
	require.Equal(t, c.orders, c.journal(t))

	rival := c.open(t, redlock.WithPrefix("billing:patron"), redlock.WithTTL(time.Hour), redlock.WithoutRestartGate())
	_, err = rival.TryAcquire(t.Context(), "ledger")
	require.ErrorIs(t, err, redlock.ErrHeld)
	require.NoError(t, c.lease.Extend(t.Context()))
	require.NoError(t, c.lease.Release(t.Context()))
	next, err := rival.TryAcquire(t.Context(), "ledger")
	require.NoError(t, err)
	require.Greater(t, next.FencingToken(), c.lease.FencingToken())
	require.NoError(t, next.Release(t.Context()))

	require.Empty(t, c.denied(t))
}
