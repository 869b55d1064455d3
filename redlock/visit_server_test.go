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
		d.cut()
		d.copying.Wait()
	})
	return d
}

// lead has new connections lead to a server.
func (d *detour) lead(to string) { d.next.Store(new(func() string { return to })) }

// cut ends all connections.
func (d *detour) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns = nil
}

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

// looking makes a Quorum of servers that all vote, and looks at each of them every TTL.
func looking(t *testing.T, urls []string, log *lockedBuffer) *redlock.Quorum {
	t.Helper()
	opts := []redlock.Option{redlock.WithTTL(2 * time.Second), redlock.WithLogger(slog.New(slog.NewTextHandler(log, nil)))}
	q, err := redlock.Open(urls, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	require.Eventually(t, func() bool { return node(t, q, 0).Votes && node(t, q, 1).Votes && node(t, q, 2).Votes }, longTTL, pollTick)
	return q
}
