package redlock_test

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// detour is an address behind which the server changes: connections stay with the one that they
// were made to.
type detour struct {
	net.Listener
	next     atomic.Pointer[func() string] // what the next connection leads to
	accepted atomic.Int64
	mu       sync.Mutex
	conns    []net.Conn // guarded by mu
	copying  sync.WaitGroup
}

func startDetour(t *testing.T, to string) *detour {
	return startDetourAt(t, "127.0.0.1:0", to)
}

func startDetourAt(t *testing.T, at, to string) *detour {
	l, err := net.Listen("tcp", at)
	require.NoError(t, err)
	d := &detour{Listener: l}
	d.lead(to)
	d.copying.Go(d.accept)
	t.Cleanup(func() {
		assert.NoError(t, d.Close())
		d.mu.Lock()
		for _, conn := range d.conns {
			conn.Close()
		}
		d.mu.Unlock()
		d.copying.Wait()
	})
	return d
}

// lead has new connections lead to a server.
func (d *detour) lead(to string) { d.next.Store(new(func() string { return to })) }

func (d *detour) accept() {
	for {
		near, err := d.Accept()
		if err != nil {
			return
		}
		d.accepted.Add(1)
		far, err := net.Dial("tcp", (*d.next.Load())())
		if err != nil {
			near.Close()
			continue
		}
		d.mu.Lock()
		d.conns = append(d.conns, near, far)
		d.mu.Unlock()
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			d.copying.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				pair[0].Close()
				pair[1].Close()
			})
		}
	}
}

// A server that is replaced at its address while it lives on has no vote from the next look on, nor
// does it help to extend a lease: a process that comes later votes with its successor.
func TestServerThatIsReplacedWhileItLivesOn(t *testing.T) {
	t.Parallel()
	for name, byNew := range map[string]bool{"clients of Open": false, "clients of a caller": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3)
			way := startDetour(t, s.Node(0).Addr())
			urls := []string{"valkey://" + way.Addr().String(), s.Node(1).URL(), s.Node(2).URL()}
			var log lockedBuffer
			q := looking(t, byNew, urls, &log)
			s.squat("key", time.Minute, 2)
			var held *redlock.Lease
			require.Eventually(t, func() (ok bool) {
				var err error
				held, err = q.TryAcquire(t.Context(), "key")
				return err == nil
			}, longTTL, pollTick)

			successor := startServers(t, 1)
			to := successor.Node(0).Addr()
			way.lead(to)
			select {
			case <-held.Context().Done():
			case <-time.After(longTTL):
				require.Fail(t, "the lease is still extended by a server that has been replaced")
			}
			require.NoError(t, s.Node(0).Do(t, "EXISTS", lockKey("key")).Error(), "it lives")
			n := node(t, q, 0)
			require.False(t, n.Votes)
			require.Error(t, n.Err)
			require.Contains(t, log.String(), "another server answers")
			if byNew {
				require.Eventually(t, func() bool { return redlock.ErrorType(node(t, q, 0).Err) == string(redlock.ConditionRestarted) }, longTTL, pollTick)
				return // until the old connection ends
			}
			require.Eventually(t, func() bool { return node(t, q, 0).Votes }, longTTL, pollTick, "the successor")
			l, err := q.TryAcquire(t.Context(), "another")
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				there, err := successor.Node(0).Do(t, "EXISTS", lockKey("another")).AsInt64()
				return err == nil && there == 1
			}, longTTL, pollTick)
			require.NoError(t, l.Release(t.Context()))
		})
	}
}

// looking makes a Quorum of servers that all vote, and looks at each of them every TTL: with
// clients of the caller's, or with those of Open.
func looking(t *testing.T, callers bool, urls []string, log *lockedBuffer) (q *redlock.Quorum) {
	t.Helper()
	opts := []redlock.Option{redlock.WithTTL(2 * time.Second), redlock.WithLogger(slog.New(slog.NewTextHandler(log, nil)))}
	if callers {
		q = wrapURLs(t, urls, opts...)
	} else {
		var err error
		q, err = redlock.Open(urls, opts...)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, q.Close()) })
	}
	require.Eventually(t, func() bool { return node(t, q, 0).Votes && node(t, q, 1).Votes && node(t, q, 2).Votes }, longTTL, pollTick)
	return q
}

// wrapURLs makes a Quorum of clients of the caller's.
func wrapURLs(t *testing.T, urls []string, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	clients := make([]valkey.Client, len(urls))
	for i, url := range urls {
		o, err := valkey.ParseURL(url)
		require.NoError(t, err)
		o.ForceSingleClient, o.DisableRetry, o.DisableCache = true, true, true
		clients[i], err = valkey.NewClient(o)
		require.NoError(t, err)
		t.Cleanup(clients[i].Close)
	}
	q, err := redlock.New(clients, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	return q
}
