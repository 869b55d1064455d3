package node

import (
	"context"
	"errors"
	"slices"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A connection leads to one process. So the connections of the client are counted: the generation
// rises before a new connection is made, and when one has ended. What a server has done counts only
// in a generation whose process was found, and vouched for, before the commands were written, and
// only if the generation is the same when they have been answered.

// reach gives a batch its client, and first finds out to which process the connection leads.
func (n *Node) reach(b *batch) error {
	if n.down != nil && n.cfg.Clock.Now() < n.rest {
		return n.down
	}
	client, err := n.connected()
	if err == nil {
		err = n.vouch(b.ctx, client)
	}
	if err == nil { // that connection may have been given up
		b.client, err = n.connected()
	}
	return err
}

// encode makes the commands of a batch for the process that its connection leads to.
func (n *Node) encode(b *batch, requests []*Request) {
	g := n.gate
	b.before = n.generation.Load()
	b.vouched = b.before == g.vouched
	// Another process knows no script, nor does one that has forgotten some. Batches in flight have
	// no order, so a batch with what failed for that brings the texts itself.
	if n.knowsIn != b.before || slices.ContainsFunc(requests, func(r *Request) bool { return r.unknown }) {
		clear(n.knows)
		n.knowsIn = b.before
	}
	b.target = wire.Target{
		Knows:   n.knows,
		Vouched: g.open && (b.vouched || !n.cfg.RestartGate),
	}
	if n.cfg.RestartGate {
		b.target.Process = g.process.id
	}
	b.requests, b.leases, b.server = requests, 0, 0
	for _, r := range requests {
		b.leases += r.Call.Leases()
	}
	b.commands, b.sizes = b.commands[:0], b.sizes[:0]
	for rest := requests; len(rest) > 0; {
		calls := n.group(rest)
		b.commands, b.sizes = append(b.commands, n.buffers.Encode(b.client, calls, &b.target)), append(b.sizes, len(calls))
		rest = rest[len(calls):]
	}
}

// vouch asks the server for its run_id, unless the generation in use is vouched for: a new
// connection may lead to another process. What a process has done counts only in a generation in
// which it was found before the first command was written. valkey-go makes a new connection inside
// a call without saying so, and so the generation is compared after each exchange as well, see
// counts.
//
// The error is why the server does not answer. If another process answers, the gate is shut.
func (n *Node) vouch(ctx context.Context, client valkey.Client) error {
	g := n.gate
	for try := 0; g.open && n.cfg.RestartGate && n.generation.Load() != g.vouched; try++ {
		before := n.generation.Load()
		s := whoIs(ctx, client, n.cfg.Clock)
		switch {
		case wire.IsTimeout(s.err):
			return s.err
		case n.generation.Load() != before && try < maxTries: // a new connection has just been made: ask again
		case s.err != nil && wire.IsServerError(s.err):
			g.answeredError(wire.Info, s.err, s.received)
		case s.err != nil:
			return s.err
		case n.generation.Load() != before:
			return errUnsteady
		default:
			if s.info.RunID != g.process.id {
				n.leave(client) // new connections may not lead to that process any more
			}
			g.inspect(s.info)
			if g.open {
				g.vouched = before
				_ = g.sample(s.sent, s.received, s.time)
			}
		}
	}
	return nil
}

// maxTries is how often a server is asked once more for its run_id: valkey-go notices a broken
// connection only by using it, and makes a new one with the next command.
const maxTries = 2

var errUnsteady = errors.New("its connections break again and again")

// counts reports whether the effect of a batch counts: its process was vouched for when the batch
// was written, and the generation is the same.
func (n *Node) counts(b *batch) bool {
	return !n.cfg.RestartGate || b.vouched && b.before == b.after && b.before == n.gate.vouched
}
