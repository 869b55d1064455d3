package redlock

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// doDue does what a node does by itself: it sends owed releases again, looks at a server that may
// not vote yet, and at the clock and the role of one that does. Called by run.
func (n *node) doDue() {
	now := n.q.clock.Now()
	n.mu.Lock()
	owed := n.owedAt != 0 && n.owedAt <= now
	n.mu.Unlock()
	if owed {
		n.requeueOwed()
	}
	g := n.gate
	if n.astray {
		n.giveUp(now)
	}
	if g.open == nil && g.retry <= now {
		n.lookNow()
	}
	if n.compareAt != never && n.compareAt <= now {
		n.compareAt = now.Add(recheckEvery)
		n.probe(wire.Info, now) //mutant:connection-in-use-not-asked
	}
	if g.open == nil {
		return
	}
	if g.inspectAt <= now {
		g.inspectAt, g.inspected = now.Add(n.q.cfg.inspectEvery()), now
		n.startVisit() //mutant:look-over-the-old-connection
		n.probe(wire.Trial, now)
	}
	if g.sampleAt <= now {
		g.sampleAt = now.Add(n.q.cfg.sampleEvery())
		n.probe(wire.Time, now) //mutant:jump-unseen-while-idle
	}
}

// lookNow tries to open the gate.
func (n *node) lookNow() {
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	client, err := n.connected()
	if err != nil {
		n.reportLook(connectionError(n.gate.failed(err)))
		return
	}
	_ = n.gate.look(ctx, client)
}

// probe queues a question to the server about itself.
func (n *node) probe(op wire.Op, now clock.Instant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) < maxQueue {
		n.queue = append(n.queue, &request{call: n.q.probe(op), expires: now.Add(n.timeout)})
	}
}

// untilDue is how long it takes until doDue has something to do.
func (n *node) untilDue() time.Duration {
	const longest = time.Hour
	n.mu.Lock()
	owedAt := n.owedAt
	n.mu.Unlock()
	g, now := n.gate, n.q.clock.Now()
	until := now.Add(longest)
	if n.compareAt != never {
		until = min(until, n.compareAt)
	}
	if owedAt != 0 {
		until = min(until, owedAt)
	}
	if g.open == nil {
		until = min(until, g.retry)
	} else {
		until = min(until, g.inspectAt, g.sampleAt)
	}
	return max(until.Sub(now), atOnce)
}

// atOnce is the least that a timer is set to. One that is due already is run by the goroutine that
// sets it or receives from it, and in a bubble of testing/synctest two timers that run at the same
// time crash the race detector: they share its state (runtime.timer.unlockAndRun of Go 1.26).
const atOnce = time.Nanosecond
