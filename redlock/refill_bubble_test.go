package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The model's counterexample (tools/model/testdata/searches.md): a server votes for B, is
// restarted, and takes back A's key. If that counts for A's extension, the server has helped both:
// B's vote is from before the restart, and still counts in B's round.
func TestRefillOnARestartedNodeDoesNotCount(t *testing.T) {
	twice := func(a *redlock.Lease) {
		time.Sleep(200 * time.Millisecond)
		_ = a.Extend(context.Background()) // which finds out that the connection, or the process, is another
		_ = a.Extend(context.Background())
	}
	t.Run("gate", func(t *testing.T) { require.False(t, refilled(t, twice), "two leases are live") })
	// One that extends more often would find, and count, a key that was taken back without being
	// counted. How soon it notices the restart is not the same each time.
	t.Run("more often", func(t *testing.T) {
		for range 8 {
			require.False(t, refilled(t, func(a *redlock.Lease) {
				for range 8 {
					ctx, cancel := context.WithTimeout(context.Background(), 40*time.Millisecond)
					_ = a.Extend(ctx)
					cancel()
				}
			}), "two leases are live")
		}
	})
	t.Run("without it", func(t *testing.T) {
		require.True(t, refilled(t, twice, redlock.WithoutRestartGate()), "this tests nothing")
	})
}

// refilled reports whether two leases are live when A extends the way it is told to, after the
// server was restarted.
func refilled(t *testing.T, extend func(*redlock.Lease), opts ...redlock.Option) (double bool) {
	t.Helper()
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		opts := append(opts, redlock.WithNodeTimeout(time.Second))
		var link cable // from A to node 1
		qa := open(t, fleet, append(opts, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			if url == fleet.Node(1).URL() {
				o.DialCtxFn = link.through(o.DialCtxFn)
			}
		}))...)
		qb := open(t, fleet, opts...)
		require.NoError(t, fleet.Node(2).Kill())
		a := acquire(t, qa, redlock.WithoutAutoExtend())
		require.NoError(t, fleet.Node(2).Restart(false))
		time.Sleep(2 * quarantine)
		a = reacquire(t, qa, a, fleet)

		start := time.Now()
		at := func(d time.Duration) { time.Sleep(d - time.Since(start)) }
		at(3450 * time.Millisecond)
		freeze(t, fleet, 1)
		link.cut()
		at(3500 * time.Millisecond)
		granted := make(chan *redlock.Lease, 1)
		go func() {
			l, _ := qb.TryAcquire(t.Context(), "key")
			granted <- l
		}()
		synctest.Wait()
		_, voted := fleet.Node(2).Get("tenure:{key}")
		require.True(t, voted, "the server has not voted for B, so this tests nothing")
		restart(t, fleet, 2)
		extended := make(chan struct{})
		go func() {
			defer close(extended)
			extend(a)
		}()
		at(ttl + 50*time.Millisecond) // A's key on node 1 has expired
		thaw(t, fleet, 1)
		b := <-granted
		<-extended
		double = b != nil && b.Err() == nil && a.Err() == nil
	})
	return double
}

// cable is a way to a node that can be cut for good.
type cable struct {
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	gone  bool       // guarded by mu
}

type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

func (c *cable) through(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.gone {
			return nil, syscall.ECONNREFUSED
		}
		conn, err := dial(ctx, addr, d, tc)
		if err == nil {
			c.conns = append(c.conns, conn)
		}
		return conn, err
	}
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// reacquire makes sure that the lease is on nodes 0 and 1, and on nothing else.
func reacquire(t *testing.T, q *redlock.Quorum, old *redlock.Lease, fleet *redlocktest.Fleet) *redlock.Lease {
	t.Helper()
	_ = old.Release(t.Context())
	synctest.Wait()
	freeze(t, fleet, 2)
	l := acquire(t, q, redlock.WithoutAutoExtend())
	synctest.Wait()
	thaw(t, fleet, 2)
	synctest.Wait()
	fleet.Node(2).FlushAll()
	return l
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = false
}
