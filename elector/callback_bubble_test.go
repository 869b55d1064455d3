package elector_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// caller is foreign code of every kind. Each kind calls the library back, the first few times that
// it is called itself.
type caller struct {
	slog.Handler

	mu   sync.Mutex
	e    *elector.Elector // guarded by mu
	q    *redlock.Quorum  // guarded by mu
	went map[string]int   // guarded by mu
	came map[string]int   // guarded by mu; calls that have come back
}

func (c *caller) back(kind string) {
	c.mu.Lock()
	e, q, calls := c.e, c.q, c.e != nil && c.went[kind] < 2
	if calls {
		c.went[kind]++
	}
	c.mu.Unlock()
	if !calls {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = e.IsLeader(ctx)
	_ = e.Healthy()
	_, _ = e.Leader(ctx)
	for range e.Changes(ctx) {
		cancel()
	}
	_ = e.Run(ctx, nil) // it is running
	q.Nodes(context.Background())
	for _, key := range []string{elector.KeyPrefix + "test", "other"} {
		l, _ := q.TryAcquire(context.Background(), key)
		_ = l.Release(context.Background())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came[kind]++
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return true }

func (c *caller) Handle(_ context.Context, r slog.Record) error {
	c.back("log: " + r.Message)
	return nil
}

func (c *caller) TraceCampaignStart(ctx context.Context, _ elector.TraceCampaignStartData) context.Context {
	c.back("TraceCampaignStart")
	return ctx
}

func (c *caller) TraceCampaignEnd(context.Context, elector.TraceCampaignEndData) {
	c.back("TraceCampaignEnd")
}

func (c *caller) TraceChange(_ context.Context, data elector.TraceChangeData) {
	c.back("TraceChange " + string(data.Change.Kind))
}

// A logger, a tracer or lead that calls the library does not stop it, nor itself.
func TestForeignCodeCallsBack(t *testing.T) {
	c := &caller{Handler: slog.DiscardHandler, went: make(map[string]int), came: make(map[string]int)}
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(c)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		q.Nodes(t.Context())
		e, err := elector.New(q, "test", elector.WithLogger(slog.New(c)), elector.WithTracer(c), elector.WithDrainTimeout(ttl))
		require.NoError(t, err)
		c.mu.Lock()
		c.e, c.q = e, q
		c.mu.Unlock()
		r := run(t, e, func(ctx context.Context, term *elector.Term) error {
			c.back("lead")
			_ = term.Resign(ctx)
			return nil
		})
		time.Sleep(5 * ttl)
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Freeze())
		}
		time.Sleep(5 * ttl)
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Thaw())
		}
		time.Sleep(5 * ttl)
		require.NoError(t, r.end())
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, c.went, c.came)
	for _, kind := range []string{"TraceCampaignStart", "TraceCampaignEnd", "TraceChange elected", "TraceChange resigned", "lead", "log: elector: elected", "log: elector: resigned"} {
		assert.NotZero(t, c.came[kind], "%s was not called", kind)
	}
}
