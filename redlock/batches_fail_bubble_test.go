package redlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// hole is a connection that swallows what is written after it was cut, as behind a firewall that
// forgot it.
type hole struct {
	net.Conn
	mu          sync.Mutex
	cut, closed bool
}

func (h *hole) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.Conn.Close()
}

func (h *hole) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut && !h.closed {
		return len(b), nil
	}
	return h.Conn.Write(b)
}

// holes makes connections that can be cut together.
type holes struct {
	mu    sync.Mutex
	conns []*hole
}

func (h *holes) option(fleet *redlocktest.Fleet) redlock.Option {
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		fleet.ClientOption(url, o)
		dial := o.DialCtxFn
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, addr, d, c)
			if err != nil {
				return nil, err
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.conns = append(h.conns, &hole{Conn: conn})
			return h.conns[len(h.conns)-1], nil
		}
	})
}

func (h *holes) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.mu.Lock()
		c.cut = true
		c.mu.Unlock()
	}
}

// Connections that are dead without a word are given up when they have not answered, so that a
// lease is extended on new ones.
func TestFarNodesWithDeadConnections(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, far} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				for _, n := range fleet.Nodes() {
					n.SetDelay(delay)
				}
				var conns holes
				q := open(t, fleet, conns.option(fleet), redlock.WithTTL(10*time.Second))
				for i := range 5 {
					timeOf(t, q, fmt.Sprint("first", i))
				}
				time.Sleep(time.Second)
				l := acquire(t, q)
				conns.cut()
				time.Sleep(time.Minute)
				require.NoError(t, l.Err())
				require.NoError(t, l.Release(t.Context()))
			})
		})
	}
}

// A clock that jumped closes the gate while acquisitions wait for the same node; they are refused,
// and nothing breaks.
func TestFarNodeWhoseClockJumps(t *testing.T) {
	bubbleFar(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		for i := range 400 {
			if i == 200 {
				fleet.Node(0).JumpClock(time.Minute)
			}
			go func() {
				if l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i)); assert.NoError(t, err) {
					assert.NoError(t, l.Release(t.Context()))
				}
			}()
			time.Sleep(3 * far / 2)
		}
		time.Sleep(time.Second)
		require.False(t, q.Nodes(t.Context())[0].Votes)
	})
}

// Scripts that were flushed are loaded once, however many batches found them missing.
func TestFarNodesAfterAScriptFlush(t *testing.T) {
	bubbleFar(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		for _, n := range fleet.Nodes() {
			n.FlushScripts()
		}
		var results []chan time.Duration
		for i := range 4 {
			results = append(results, timeOf(t, q, fmt.Sprint("key", i)))
			time.Sleep(time.Millisecond)
		}
		for _, result := range results {
			require.Less(t, <-result, ttl/2) // and no error
		}
	})
}
