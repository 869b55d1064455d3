package redlock

import (
	"cmp"
	"context"
	"errors"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// flight is a batch on its way to a node and back.
type flight struct {
	limit  timeLimit
	ctx    context.Context
	client valkey.Client
	taken  []*request    // from the queue
	done   chan struct{} // closed when it is back; nil where nobody else waits

	batch          []*request // that is sent
	second         bool       // once more
	gated          *wire.Set  // what was open when it was loaded
	commands       valkey.Commands
	sizes          []int   // how many requests each command carries
	echoes         []int64 // what its answer has to say besides; 0 for nothing
	results        []valkey.ValkeyResult
	one            [1]valkey.ValkeyResult // the results of one command
	sent, received clock.Instant
}

// fly sends what was loaded and waits for the answers.
func (f *flight) fly(c *clock.Clock) {
	f.sent = c.Now()
	if len(f.commands) == 1 {
		f.one[0] = f.client.Do(f.ctx, f.commands[0])
		f.results = f.one[:]
	} else {
		f.results = f.client.DoMulti(f.ctx, f.commands...)
	}
	f.received = c.Now()
}

// group returns how many of the requests share a command.
func (n *node) group(batch []*request) int {
	if batch[0].alone {
		return 1
	}
	n.calls = n.calls[:0]
	for _, r := range batch[:min(len(batch), wire.MaxGroup)] {
		if r.alone {
			break
		}
		n.calls = append(n.calls, r.call)
	}
	return n.buffers.Group(n.calls)
}

// callsOf returns the calls of requests, until it is asked again.
func (n *node) callsOf(group []*request) []*wire.Call {
	n.calls = n.calls[:0]
	for _, r := range group {
		n.calls = append(n.calls, r.call)
	}
	return n.calls
}

// load makes the commands of a flight.
func (n *node) load(f *flight, batch []*request, second bool) {
	f.batch, f.second, f.gated = batch, second, n.gate.open
	f.commands, f.sizes, f.echoes = f.commands[:0], f.sizes[:0], f.echoes[:0]
	for rest := batch; len(rest) > 0; {
		size := n.group(rest)
		echo, text := n.echoes.Next(rest[0].call.Op)
		command := n.buffers.Encode(f.client, n.callsOf(rest[:size]), n.gate.open, second, text)
		f.commands, f.sizes, f.echoes = append(f.commands, command), append(f.sizes, size), append(f.echoes, echo)
		rest = rest[size:]
	}
}

// settleAll settles the requests of a flight, all but those that it returns because they are worth
// sending once more: those whose script the server does not know (it is new, restarted, or was
// flushed), and those whose connection had broken while it was idle. An acquisition is never
// repeated on another connection, because the server behind that may have lost what the first one
// promised, and a server that does not know an acquisition's script must be vouched for first.
// single are requests that were sent together and are to be sent alone. broken is why the node did
// not answer, if it did not.
func (n *node) settleAll(f *flight) (again, single []*request, broken error) {
	batch, second := f.batch, f.second
	stranger := false // answers, but does not know what was only given to the process vouched for
	for c, size := range f.sizes {
		group := batch[:size]
		batch = batch[size:]
		n.found = wire.Decode(n.callsOf(group), f.results[c], f.echoes[c], answersItself, n.found[:0])
		for i, r := range group {
			a := &n.found[i]
			if a.Alone {
				r.alone = true
				single = append(single, r)
				continue
			}
			rep, err := reply{Answer: a.Answer}, a.Err
			if err == nil {
				err = n.gate.check(r, rep, f.sent, f.received)
			}
			err = n.lookForDamage(r, rep, err)
			if err != nil && isNoScript(err) && n.gate.open != nil && n.gate.open == f.gated && (r.call.Op.Gated() || r.call.Op == wire.Extend && size == 1) && (second || !n.gate.open.Teaches()) { //mutant:refill-closes-no-gate,flights-shut-a-new-gate
				stranger = true
			}
			if err != nil && n.gate.open != nil && isDemoted(err) { //mutant:demotion-unseen
				stranger = true
			}
			if err != nil && isBroken(err) {
				n.gate.inspectAt = min(n.gate.inspectAt, f.received.Add(maxRetryPause)) // another process may answer next
			}
			switch {
			case err == nil:
				rep.at = f.received
				n.settle(r, rep)
			case !second && !errors.Is(err, wire.ErrOutOfStep) && r.call.Op != wire.Join && (isNoScript(err) || r.call.Op.Repeatable() && isBroken(err)): //mutant:forgotten-script-not-taught
				again = append(again, r)
				f.commands = nil
			default:
				if isServerError(err) {
					n.gate.refused(r, err, f.received)
				} else {
					broken = err
					f.commands = nil // the client may still have it
				}
				n.fail(r, err)
			}
		}
	}
	if stranger {
		n.gate.shut()
	}
	if broken == nil {
		n.trip.observe(f)
	}
	f.batch, f.results = nil, nil
	if len(again) == 0 {
		n.report(broken)
	}
	return again, single, broken
}

// deliver sends requests and settles them. It returns why the node did not answer, if it did not.
func (n *node) deliver(f *flight, batch []*request) error {
	n.load(f, batch, false)
	f.fly(n.q.clock)
	return n.unload(f)
}

// unload settles the requests of a flight that is back, and sends those once more that are worth
// it.
func (n *node) unload(f *flight) (broken error) {
	single, broken := n.unloadTwice(f)
	if n.reload(f, single, false) {
		_, why := n.unloadTwice(f)
		broken = cmp.Or(broken, why)
	}
	return broken
}

// unloadTwice returns requests that were sent together and are to be sent alone.
func (n *node) unloadTwice(f *flight) (single []*request, broken error) {
	again, single, broken := n.settleAll(f)
	if n.reload(f, again, true) {
		var more []*request
		_, more, broken = n.settleAll(f)
		single = append(single, more...) //mutant:packet-dropped-after-a-flush
	}
	return single, broken
}

// reload sends requests of a flight once more, and reports whether there are any that still may be.
// What was released meanwhile must not be sent after its release.
func (n *node) reload(f *flight, batch []*request, second bool) bool {
	if client := n.client.Load(); client != nil {
		f.client = *client
	}
	batch = n.gate.admit(f.ctx, f.client, n.wanted(batch, false))
	if len(batch) == 0 {
		return false
	}
	n.load(f, batch, second)
	f.fly(n.q.clock)
	return true
}
