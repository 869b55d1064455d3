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
					links[n.URL()] = &link{}
				}
				q := open(t, fleet, redlock.WithTTL(redlock.DefaultTTL), redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
					fleet.ClientOption(url, o)
					o.DialCtxFn = links[url].through(o.DialCtxFn)
				}))
				leases := hold(t, q, test.leases)
				time.Sleep(2 * redlock.DefaultTTL) // until tokens have been spread
				for _, l := range links {
					l.slow(test.bytes, test.stall)
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
					require.Less(t, l.most, test.stall+time.Second, "what was queued in %s's link", url)
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
	mu    sync.Mutex
	bytes int           // guarded by mu
	free  time.Time     // guarded by mu; when it has carried all
	most  time.Duration // guarded by mu; for how long anything was in it
}

// slow has the link carry no more than that from now on, and stand still for a while first.
func (l *link) slow(bytes int, stall time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes, l.free, l.most = bytes, time.Now().Add(stall), 0
}

// takes is how long what is sent now is in the link, behind all else.
func (l *link) takes(size int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.bytes == 0 {
		return 0
	}
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(size) * time.Second / time.Duration(l.bytes))
	l.most = max(l.most, l.free.Sub(now))
	return l.free.Sub(now)
}

func (l *link) through(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, addr, d, tc)
		if err != nil {
			return nil, err
		}
		near, end := net.Pipe()
		go carry(conn, end, constant(0))
		go carry(end, conn, l.takes)
		return near, nil
	}
}
