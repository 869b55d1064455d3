package demo

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// held is for how long a link that is cut keeps a connection on which something was sent. A
	// replica has given it up long before.
	held = 5 * time.Second
	// greetingTimeout bounds the time in which a replica says where it wants to.
	greetingTimeout = 5 * time.Second
)

// Greeting is what a replica sends first on a connection to Demo.Serve: its number from 0, and the
// number of the node from 1, or 0 for the store.
func Greeting(replica, node int) []byte { return []byte{byte(replica), byte(node)} }

// link is between a replica and a node. While it is cut nothing passes, in either direction, and
// connections stay open, as with packets that are lost.
type link struct {
	mu   sync.Mutex
	cut  bool          // guarded by mu
	open chan struct{} // guarded by mu; closed unless it is cut
}

func newLink() *link {
	l := &link{open: make(chan struct{})}
	close(l.open)
	return l
}

// set cuts the link, or heals it, and reports whether that was a change.
func (l *link) set(cut bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut == cut {
		return false
	}
	if l.cut = cut; cut {
		l.open = make(chan struct{})
	} else {
		close(l.open)
	}
	return true
}

func (l *link) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// pass waits while the link is cut. It returns false when ctx ends, or after a while.
func (l *link) pass(ctx context.Context) bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	default:
	}
	limit := time.NewTimer(held)
	defer limit.Stop()
	select {
	case <-open:
		return true
	case <-limit.C:
	case <-ctx.Done():
	}
	return false
}

// Serve forwards a replica's connection to the node, or the store, that its first bytes name. It
// returns when the connection has ended, and closes it.
func (d *Demo) Serve(conn net.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	var to [2]byte
	_ = conn.SetReadDeadline(time.Now().Add(greetingTimeout))
	if _, err := io.ReadFull(conn, to[:]); err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	replica, node := int(to[0]), int(to[1])
	switch {
	case replica >= len(d.replicas) || node > len(d.nodes):
		return
	case node == 0:
		d.serveStore(conn, replica)
		return
	}
	l := d.links[replica][node-1]
	if !l.pass(ctx) {
		return
	}
	upstream, err := d.nodes[node-1].Dial(ctx)
	if err != nil {
		return // the replica finds its connection closed, as if it had been refused
	}
	defer context.AfterFunc(ctx, func() { _ = upstream.Close() })()
	defer upstream.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer cancel()
		l.forward(ctx, conn, upstream)
	}()
	l.forward(ctx, upstream, conn)
	cancel()
	<-back
}

// forward copies from one end to the other while the link is not cut.
func (l *link) forward(ctx context.Context, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !l.pass(ctx) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
