package node

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// settle answers the requests of a batch whose answers have come. Requests that are worth repeating
// are sent once more, before all others. It returns why the node did not answer; nil if requests
// are sent once more.
func (n *Node) settle(b *batch) (broken error) {
	n.gather.several = len(b.requests) > 1
	again, broken := n.answerAll(b)
	if wire.IsTimeout(broken) {
		n.leave(b.client) // valkey-go does so by itself only if no connection has carried two commands at a time, of which one may be its own PING
	}
	n.window.finish(b)
	if len(again) > 0 {
		n.pending, broken = append(again, n.pending...), nil
	}
	return broken
}

// answerAll answers the requests of a batch, except those that are worth sending once more, which
// it returns: the server does not know their script (it is new, restarted, or was flushed), their
// connection broke, or they were sent together with others and failed with them. An acquisition is
// never repeated on another connection, because the server behind that connection may have lost
// what the first one promised.
//
// broken is why the node did not answer; nil if it did.
func (n *Node) answerAll(b *batch) (again []*Request, broken error) {
	g, requests, counts := n.gate, b.requests, n.counts(b)
	writes := slices.ContainsFunc(b.requests, func(r *Request) bool { return r.Call.Op.Writes() })
	shut := false // the server answers, but is not the one that was vouched for, or not as it was
	cut := false  // the connection broke
	for c, size := range b.sizes {
		group := requests[:size]
		requests = requests[size:]
		results := wire.Decode(n.callsOf(group), b.results[c], n.results[:0])
		n.results = results
		for i, r := range group {
			if results[i].Alone {
				r.alone = true
				again = append(again, r)
				continue
			}
			a := Answer{Answer: results[i].Answer, Err: results[i].Err, Sent: b.sent, Received: b.received}
			if a.Err == nil {
				a.Err = n.examine(r, &a.Answer, b, counts)
			}
			err := a.Err
			if err == nil {
				if r.resent && r.Call.Op.Frees() { // a key that is not there was freed before the connection broke, or lost: nobody knows
					a.Verdict = wire.OK
				}
				n.answer(r, a)
				continue
			}
			isBroken := wire.IsBroken(err)
			cut = cut || isBroken
			if g.open && wire.FaultOf(err).IsAny(wire.ReadOnly, wire.Masterless, wire.Loading) { // it is not, or not yet, the master that it was
				shut = true
			}
			if g.open && isBroken {
				g.lookAt = min(g.lookAt, b.received.Add(MaxPause)) // another process may answer next
			}
			if r.worthRepeating(err) {
				r.resent, r.unknown = r.resent || isBroken, r.unknown || !isBroken
				again = append(again, r)
				b.commands = nil // the client may still have the commands
				continue
			}
			if wire.IsServerError(err) {
				g.answeredError(r.Call.Op, err, b.received)
			} else {
				broken, b.commands = err, nil
			}
			a = failed(err)
			a.Sent = b.sent
			n.fail(r, a)
		}
	}
	answered := broken == nil && !cut
	if shut || answered && g.wasAbsent(b.received) {
		g.shut()
	}
	if answered && writes {
		g.answered = b.received
	}
	if answered {
		n.window.trip.observe(b.received.Sub(b.sent), b.received, b.leases)
	}
	b.requests, b.results = nil, nil
	if len(again) == 0 {
		n.exchanged(broken, b.sent, writes)
	}
	return again, broken
}

// examine tells the gate what an answer says of its server, and returns why the answer may not
// count.
func (n *Node) examine(r *Request, a *wire.Answer, b *batch, counts bool) error {
	info := a.More().Info
	if info != nil {
		n.gate.inspect(info)
	}
	if a.More().Trial != nil {
		n.gate.tried(trialOf(a.More().Trial))
	}
	if a.Server != 0 && a.Server != b.server && (info == nil || n.gate.open) { // the answers of a command have one reading; the clock of another process is not compared
		b.server = a.Server
		_ = n.gate.sample(b.sent, b.received, a.Server)
	}
	if op := r.Call.Op; !counts && op.Counted() && a.DidSomething() && !(n.gate.reading && op.Reads()) {
		return cmp.Or(n.gate.status.Load().Fault, &wire.Fault{Condition: wire.Restarted, Detail: "its connection was made anew while it was asked"})
	}
	return n.gate.counts(r.Call.Op, a, b.received)
}

// refuse answers a request that is not sent, or not again.
func (n *Node) refuse(r *Request, err error) { n.fail(r, r.unsent(err)) }

// fail answers a request that the server did not carry out, as far as is known. A release is tried
// again until its key has expired or the node is closed.
func (n *Node) fail(r *Request, a Answer) {
	if r.Call.Op.Frees() && a.Err != ErrClosed {
		n.retries.add(r, errors.Is(a.Err, ErrTimeout), n.cfg.Clock.Now())
	}
	n.answer(r, a)
}

func (n *Node) answer(r *Request, a Answer) {
	if to := r.To; to != nil {
		to.Answered(r, a)
	}
}
