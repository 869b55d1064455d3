package redlock_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Behind a slow link nothing is lost: neither when one stands still for a while, nor when it takes
// longer than a node timeout to extend all leases once. What is late is one round of extensions,
// and no other queues behind it.
func TestLeasesBehindASlowLink(t *testing.T) {
	for _, test := range []struct {
		name          string
		leases, bytes int // of each link, in a second
		stall         time.Duration
	}{
		{"that stands still", 1000, 100_000, 1500 * time.Millisecond},
		{"that is full", 2500, 150_000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				links := make(map[string]*link)
				for _, n := range fleet.Nodes() {
					links[n.URL()] = &link{turn: make(chan struct{}, 1)}
				}
				q := open(t, fleet, redlock.WithTTL(redlock.DefaultTTL), redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
					fleet.ClientOption(url, o)
					o.DialCtxFn = links[url].through(o.DialCtxFn)
				}))
				leases := hold(t, q, test.leases)
				time.Sleep(2 * redlock.DefaultTTL) // until tokens have been spread
				for _, l := range links {
					l.bytes.Store(int64(test.bytes))
				}
				time.Sleep(4 * time.Second)
				for _, l := range links {
					l.stall(test.stall)
				}
				least := redlock.DefaultTTL
				for range 40 {
					time.Sleep(500 * time.Millisecond)
					for _, l := range leases {
						require.NoError(t, l.Err())
						least = min(least, time.Until(l.Deadline()))
					}
				}
				t.Logf("the least validity was %v", least)
				for url, l := range links {
					require.Less(t, l.most.Load(), int64(test.bytes), "less than a second of %s's link was queued in it", url)
				}
			})
		})
	}
}

// hold acquires that many leases.
func hold(t *testing.T, q *redlock.Quorum, n int) []*redlock.Lease {
	t.Helper()
	leases := make([]*redlock.Lease, n)
	var busy sync.WaitGroup
	for w := range 50 {
		busy.Go(func() {
			for i := w; i < n; i += 50 {
				var err error
				leases[i], err = q.TryAcquire(t.Context(), fmt.Sprint("key/", i))
				assert.NoError(t, err)
			}
		})
	}
	busy.Wait()
	require.False(t, t.Failed())
	return leases
}

// link is a way to a node, for all connections to it, that carries so many bytes in a second; any
// number at 0.
type link struct {
	bytes atomic.Int64
	most  atomic.Int64 // that were queued in it since it was slow
	held  atomic.Int64
	turn  chan struct{} // capacity 1; a connection at a time
}

// stall has the link stand still.
func (l *link) stall(d time.Duration) {
	l.turn <- struct{}{}
	time.AfterFunc(max(d, 1), func() { <-l.turn })
}

func (l *link) through(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, addr, d, tc)
		if err != nil {
			return nil, err
		}
		c := &slowConn{Conn: conn, link: l, wake: make(chan struct{}, 1), closed: make(chan struct{})}
		go c.carry()
		return c, nil
	}
}

// slowConn queues what is written, as a kernel and a network do.
type slowConn struct {
	net.Conn

	link   *link
	wake   chan struct{} // capacity 1
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	queue  [][]byte // guarded by mu
}

func (c *slowConn) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.mu.Lock()
	c.queue = append(c.queue, bytes.Clone(b))
	c.mu.Unlock()
	if held := c.link.held.Add(int64(len(b))); c.link.bytes.Load() > 0 && held > c.link.most.Load() {
		c.link.most.Store(held)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (c *slowConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// carry brings what was written to the node. What a closed connection had queued is gone.
func (c *slowConn) carry() {
	for {
		select {
		case <-c.closed:
			c.mu.Lock()
			for _, b := range c.queue {
				c.link.held.Add(-int64(len(b)))
			}
			c.mu.Unlock()
			return
		case <-c.wake:
		}
		for {
			c.mu.Lock()
			if len(c.queue) == 0 {
				c.mu.Unlock()
				break
			}
			b := c.queue[0]
			c.queue = c.queue[1:]
			c.mu.Unlock()
			c.link.turn <- struct{}{}
			if rate := c.link.bytes.Load(); rate > 0 {
				time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(rate))
			}
			<-c.link.turn
			c.link.held.Add(-int64(len(b)))
			if _, err := c.Conn.Write(b); err != nil {
				return
			}
		}
	}
}
