package node

import (
	"context"
	"errors"
	"slices"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A connection is one to a process. So the client's connections are counted: the generation rises
// before there is a new one, and when one has ended. What a server has done counts only in a
// generation of which its process was found, and vouched for, before the commands were written, and
// which is the same when they are answered.

// reach has requests go over a connection, of which it is known to which process that leads if that
// matters to one of them: a process that was restarted does not know who uses it either.
func (n *Node) reach(b *batch, requests []*Request) (err error) {
	b.client, err = n.connected()
	if err == nil && slices.ContainsFunc(requests, func(r *Request) bool { return r.Call.Op.Counted() || r.Call.Op == wire.Enroll }) {
		err = n.vouch(b.ctx, b.client)
	}
	return err
}

// encode makes the commands of a batch.
func (n *Node) encode(b *batch, requests []*Request) {
	g := n.gate
	b.before = n.generation.Load()
	b.vouched = b.before == g.vouched
	if n.knowsIn != b.before { // another process knows nothing
		clear(n.knows)
		n.knowsIn = b.before
	}
	b.target = wire.Target{
		Knows:   n.knows,
		Vouched: g.open && (b.vouched || !n.cfg.RestartGate),
		Whole:   slices.ContainsFunc(requests, func(r *Request) bool { return r.unknown }),
	}
	if n.cfg.RestartGate {
		b.target.Process = g.process.id
	}
	n.encoder.encode(b, requests)
}

// vouch asks the server who it is where that is not known of the connection in use: one that was
// made anew may lead to another process than the one that was vouched for. What that has done
// counts only in a generation of connections of which it was found before the first command was
// written: valkey-go makes another one inside a call, without a word, so the generation is compared
// after each exchange as well, see counts.
//
// The error is why the server does not answer. One that is another is not vouched for any more.
func (n *Node) vouch(ctx context.Context, client valkey.Client) error {
	g := n.gate
	for try := 0; g.open && n.cfg.RestartGate && n.generation.Load() != g.vouched; try++ {
		before := n.generation.Load()
		s := whoIs(ctx, client, n.cfg.Clock)
		switch {
		case wire.IsTimeout(s.err):
			return s.err
		case n.generation.Load() != before && try < maxTries: // it has been made now
		case s.err != nil && wire.IsServerError(s.err):
			g.answeredError(wire.Info, s.err, s.received)
		case s.err != nil:
			return s.err
		case n.generation.Load() != before:
			return errUnsteady
		default:
			if s.info.RunID != g.process.id {
				n.leave(client) // it may be one that new connections do not lead to any more
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

// maxTries is how often a server is asked once more who it is: valkey-go notices that a connection
// has broken by using it, and makes another one with what it is asked next.
const maxTries = 2

var errUnsteady = errors.New("its connections break again and again")

// counts reports whether what a batch has done counts: if the process was vouched for when it was
// written, and nothing has come between.
func (n *Node) counts(b *batch) bool {
	return !n.cfg.RestartGate || b.vouched && b.before == b.after && b.before == n.gate.vouched
}

// uncounted is why what a server has done does not count.
func (n *Node) uncounted() error {
	if why := n.gate.status.Load().Fault; why != nil {
		return why
	}
	return &wire.Fault{Condition: wire.Restarted, Detail: "its connection was made anew while it was asked"}
}

// greet has the writer connected and vouched for when the first request comes. Why not, that hears.
func (n *Node) greet() {
	b := &batch{}
	b.ctx = b.limit.start(n.cfg.Timeout)
	if client, err := n.connected(); err == nil {
		_ = n.vouch(b.ctx, client)
	}
	b.limit.stop()
}
