package redlock

import (
	"context"
	"errors"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// The server behind an address may become another one while connections to the old one live on: a
// pod that is started before its predecessor has ended, behind one name. Who has old connections
// and who makes new ones would then count two servers as one node. So the regular look at a server
// that votes is a visit, over a new connection; and whenever another process is found, the
// connection that is in use is asked whether it leads to the same one. If not, the node is astray:
// what the old server answers does not count any more. A client made by Open is then replaced by a
// new one. One that a caller gave to New keeps its connection for as long as that lives, and the
// node stays out.

// visit is a look at the server over a connection of its own.
type visit struct {
	of   *wire.Set // what was open when it began
	info *wire.ServerInfo
	err  error
}

// startVisit begins a visit unless one is under way, and tells the run goroutine when it is over.
func (n *node) startVisit() {
	client := n.client.Load()
	if n.visiting || client == nil {
		return
	}
	v := &visit{of: n.gate.open}
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	n.endEarly = cancel
	n.visiting = n.dials.start(func() {
		defer func() { n.visited <- v }() // there is room for one
		defer cancel()
		conn, err := n.looking.dedicate(ctx, *client)
		if err != nil {
			v.err = err
			return
		}
		defer conn.Close()
		v.info, v.err = infoOf(conn.Do(ctx, wire.InfoCommand(conn)))
	})
	if !n.visiting {
		cancel()
	}
}

// awaitVisit waits for a visit that is under way, which takes no longer than the node's timeout:
// two connections for looks are not to be had at a time.
func (n *node) awaitVisit() {
	if n.visiting {
		<-n.visited
		n.visiting = false
	}
}

// cancelVisit ends one that is under way.
func (n *node) cancelVisit() {
	if n.visiting {
		n.endEarly()
		n.awaitVisit()
	}
}

// endVisit takes the outcome of a visit. Where no new connection could be had the one in use is
// asked.
func (n *node) endVisit(v *visit) {
	n.visiting = false
	n.visitErr = v.err
	switch {
	case n.gate.open == nil || n.gate.open != v.of: // it was looked at otherwise meanwhile
	case v.err != nil:
		n.probe(wire.Info, n.q.clock.Now())
	default:
		n.gate.inspect(v.info)
	}
}

// keepVisit keeps why a server that votes refuses new connections, and logs it when that is news:
// one that is full goes on with those it has, until they end.
func (n *node) keepVisit() {
	var is *ConditionError
	if errors.As(n.failure(OpObserve, n.visitErr).Err, &is) { //mutant:full-server-unsaid
		is = &ConditionError{Condition: is.Condition, Detail: "new connections are refused: " + is.cause(), Err: is.Err, prefix: is.prefix}
	}
	n.logLacks(n.unvisited.Swap(is), is)
}

// compareProcess compares the process behind the connection in use with the one that was found over
// a new one, if that has changed. It reports whether the node is astray.
func (n *node) compareProcess(info *wire.ServerInfo) bool {
	if n.compareAt == never {
		return false
	}
	if info.RunID == n.gate.process {
		n.compareAt = never
		n.astray = false
		return false
	}
	if !n.astray {
		n.q.cfg.logger.WarnContext(context.Background(), "redlock: another server answers at a node's address than over the connection in use: "+
			"end a server before its successor starts", "node", n.addr)
	}
	if !n.astray && n.connect == nil {
		n.gate.retry = 0 // it says so at the next look
	}
	n.astray = true
	n.compareAt = n.q.clock.Now().Add(recheckEvery)
	return true
}

// giveUp replaces the client of a node that is astray. Flights come back first: a connection that
// is made while its client is being closed could stay open for ever.
func (n *node) giveUp(now clock.Instant) {
	client := n.client.Load()
	if n.connect == nil || client == nil {
		return
	}
	n.landAll()
	if n.client.CompareAndSwap(client, nil) {
		n.dials.start((*client).Close)
	}
	n.astray = false
	n.compareAt = now // the new one may have gone astray too
}

// isStray reports whether a request is not for the server that the connection in use leads to.
func (n *node) isStray(r *request) bool { //mutant:stray-extension-counts
	return n.astray && r.call.Op.OfAttempt() && !r.call.Op.IsProbe()
}

// errAstray is why a node that is astray does not vote.
func errAstray() *ConditionError {
	return &ConditionError{Condition: ConditionRestarted, Detail: "another server answers at its address than over the connection in use"}
}
