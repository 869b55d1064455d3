package demo

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/tenure-dev/tenure/examples/demo/internal/service"
)

// held is how long a cut link keeps a connection open after something was sent on it. A replica
// gives the connection up long before.
const held = 5 * time.Second

// passes waits while the link between a replica and a node is cut: nothing passes in either
// direction, and connections stay open, as in a network that drops packets. It returns false if ctx
// ends, or if held passes first. It is called without the mutex.
func (d *Demo) passes(ctx context.Context, replica, node int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	cut := d.replicas[replica].cut
	return d.await(held, "the link is cut", func() bool { return !cut[node-1] || ctx.Err() != nil }) == nil && ctx.Err() == nil
}

// Serve forwards the connection of a replica to a node. Replicas are numbered from 0, and nodes
// from 1. It returns when the connection has ended, and closes it.
func (d *Demo) Serve(conn net.Conn, replica, node int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	context.AfterFunc(ctx, func() {
		_ = conn.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.more.Broadcast()
	})
	pass := func() bool { return d.passes(ctx, replica, node) }
	if !pass() {
		return
	}
	upstream, err := d.nodes[node-1].Dial(ctx)
	if err != nil {
		return // for the replica the connection is refused
	}
	context.AfterFunc(ctx, func() { _ = upstream.Close() })
	go func() {
		_, _ = io.Copy(gate{conn, pass}, upstream)
		cancel()
	}()
	_, _ = io.Copy(gate{upstream, pass}, conn)
}

// gate is a writer that waits while the link is cut.
type gate struct {
	io.Writer
	pass func() bool
}

func (g gate) Write(b []byte) (int, error) {
	if !g.pass() {
		return 0, net.ErrClosed
	}
	return g.Writer.Write(b)
}

// write handles a write of a replica to the store, the resource that the leases protect. The store
// keeps the largest fencing token that it has seen. While the check is on it refuses a smaller
// token.
func (d *Demo) write(r *replica, rep service.Report) {
	late := rep.Token < d.seen
	d.seen = max(d.seen, rep.Token)
	now := time.Now().UnixMilli()
	i := d.add(Item{Kind: KindWrite, Replica: r.name, From: now, To: now, Token: rep.Token, Tick: rep.Tick, Attempt: rep.Attempt, Late: late, End: "accepted"})
	r.wrote = max(r.wrote, rep.Token)
	switch {
	case late && d.switches.Fence:
		i.End = "refused"
		d.ledger.counters.Refused++
		d.say(Good, "the store REFUSES a late write of %s: its token %d is below %d, which it has seen", r.name, rep.Token, d.seen)
	case late:
		i.Bad = true
		d.ledger.counters.Accepted++
		d.say(Bad, "the store TAKES a late write of %s: it does not compare tokens, and %d is below %d", r.name, rep.Token, d.seen)
	}
}
