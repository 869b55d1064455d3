package node

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A look asks the server about itself over a connection of its own, beside the writer, so that a
// connection that hangs delays no extension and no release. Its findings go to the writer, which
// alone changes the gate. If the server may be vouched for, the look goes on: over the same
// connection it tries whether leases can be acquired. The gate then opens for the process that was
// looked at. The writer asks over its own connection whether that leads to the same process.
//
// A new server may take over an address while connections to the old one live on: for example a pod
// that starts before its predecessor has ended, behind the same name. Processes with old
// connections and processes with new ones would then count two servers as one node. So a server
// that votes is looked at as well, over a new connection, from time to time. If the look finds
// another process, answers of the old one do not count any more, and the connection in use is given
// up.
//
// A look may get no connection: the certificate has expired, the password was changed, a proxy is
// full. That proves nothing about the server. The connection in use goes on, and the Observer hears
// why there is no new one.

// look is one look at the server. The writer and the look's goroutine have it in turn.
type look struct {
	epoch  uint64 // of the gate when it began
	ctx    context.Context
	end    context.CancelFunc
	goesOn chan bool // from the writer: whether the look goes on

	age   time.Duration // how much of the quarantine has passed, see gate.age
	retry time.Duration // after how long to look again if it may not vote, see Config.Join

	self

	// The outcome of its trial.
	tried bool   // the trial has ended
	trial *trial // nil before
}

// self is what a server says of itself.
type self struct {
	info           *wire.ServerInfo
	time           time.Duration
	sent, received clock.Instant
	err            error
}

func newLook(epoch uint64) *look {
	ctx, cancel := context.WithCancel(context.Background())
	return &look{epoch: epoch, ctx: ctx, end: cancel, goesOn: make(chan bool, 1)}
}

// run looks at the server. It sends the look to found after INFO and, if the look goes on, after
// the trial.
func (l *look) run(cfg *Config, found chan<- *look) {
	defer l.end()
	inTime, cancel := context.WithTimeout(l.ctx, cfg.Timeout)
	defer cancel()
	conn, err := cfg.Connect(inTime, nil)
	if err != nil {
		if l.err = err; !wire.Is[*net.DNSError](err) {
			l.err = cmp.Or(inTime.Err(), err)
		}
		found <- l
		<-l.goesOn
		return
	}
	defer conn.Close()
	if l.self = whoIs(inTime, conn, cfg.Clock); l.err != nil {
		l.err = cmp.Or(inTime.Err(), l.err) // the end of inTime breaks the connection
	}
	found <- l
	if !<-l.goesOn {
		return
	}
	l.err = l.try(inTime, conn, cfg) // a connection may time out a moment before inTime
	if wire.IsTimeout(l.err) || l.err != nil && inTime.Err() == context.DeadlineExceeded {
		l.err = ErrHeldBack
	}
	conn.Close()
	if l.tried = true; l.err == nil && l.trial.why == nil {
		var process string
		if l.info != nil {
			process = l.info.RunID
		}
		l.retry, l.err = cfg.Join(l.ctx, process, l.sent, l.age)
	}
	found <- l
}

// whoIs asks a server about itself.
func whoIs(ctx context.Context, conn valkey.Client, c *clock.Clock) (s self) {
	s.sent = c.Now()
	result := conn.Do(ctx, wire.InfoCommand(conn))
	s.received = c.Now()
	answer := wire.Decode([]*wire.Call{{Op: wire.Info}}, result, nil)[0]
	s.info, s.time, s.err = answer.More().Info, answer.Server, answer.Err
	return s
}

// try tries whether leases can be acquired.
func (l *look) try(ctx context.Context, conn valkey.Client, cfg *Config) error {
	calls := []*wire.Call{cfg.probe(wire.Enroll)}
	result := conn.Do(ctx, new(wire.Buffers).Encode(conn, calls, &wire.Target{Knows: make(map[*wire.Script]bool)}))
	tried := wire.Decode(calls, result, nil)[0]
	l.trial = trialOf(tried.More().Trial)
	return explain(tried.Err, evalNeeded)
}

// startLook begins a look at the server, unless one is under way.
func (n *Node) startLook() {
	if n.look != nil || n.isClosing() {
		return
	}
	n.look = newLook(n.gate.epoch)
	l := n.look
	n.work.Go(func() { l.run(&n.cfg, n.found) })
}

// isLooking reports whether a look is under way that may open the gate. If a look is due, it begins
// one.
func (n *Node) isLooking() bool {
	if n.look == nil && n.gate.lookAt <= n.cfg.Clock.Now() {
		n.startLook()
	}
	return n.look != nil
}

// heed takes the findings of a look, and has the look go on or end. If the look ends, the requests
// that waited for it are pending again, before all others and in the order in which they came.
func (n *Node) heed(l *look) {
	goesOn := n.next(l)
	if !l.tried {
		l.goesOn <- goesOn // there is room for one
	}
	if goesOn {
		return
	}
	n.look = nil
	n.pending, n.held = append(n.held, n.pending...), nil
}

// next takes the findings of a look, and reports whether the look goes on.
func (n *Node) next(l *look) bool {
	g := n.gate
	switch {
	case l.epoch != g.epoch:
		return false // the findings may be about another server
	case g.open:
		if l.err == nil {
			n.exchanged(nil, 0, false)
		}
		n.recheck(l)
		return false
	case l.tried:
		n.opens(l)
		return false
	case g.isExcused(l.err):
		return true
	case l.err != nil:
		n.looked(g.failed(explain(l.err, infoNeeded)), false)
		return false
	}
	g.follow(l.info)
	if err := g.sample(l.sent, l.received, l.time); err != nil || g.decide(l.info) != nil {
		n.looked(nil, false)
		return false
	}
	l.age = g.age(n.cfg.Clock.Now())
	return true
}

// recheck takes the findings of a look at a server that votes. If the look got no connection,
// recheck asks over the connection in use, whose answer alone counts. If new connections lead to
// another process than the one that was vouched for, it gives up the connection in use, even if
// that one lives.
func (n *Node) recheck(l *look) {
	g := n.gate
	if g.refused, g.untold = l.err, true; l.err != nil {
		n.probe(wire.Info)
		return
	}
	if client := n.client.Load(); client != nil && n.cfg.RestartGate && l.info.RunID != g.process.id {
		ctx, cancel := context.WithTimeout(l.ctx, n.cfg.Timeout)
		if s := whoIs(ctx, *client, n.cfg.Clock); s.err == nil && s.info.RunID == g.process.id {
			n.cfg.Observer.Elsewhere()
		}
		cancel()
		n.leave(*client)
	}
	if g.inspect(l.info); g.open {
		_ = g.sample(l.sent, l.received, l.time)
	}
}

// opens opens the gate, if the trial went well.
func (n *Node) opens(l *look) {
	if why := wire.FaultOf(l.err); why != nil && l.retry > 0 {
		n.gate.close(why, n.cfg.Clock.Now().Add(l.retry))
		n.looked(nil, true)
		return
	}
	if l.err != nil {
		n.looked(n.gate.refuses(l.err), true)
		return
	}
	t := l.trial
	var dangers *wire.Fault
	if l.info != nil {
		dangers = Risk(l.info)
	}
	if t.why != nil {
		n.gate.close(t.why, n.cfg.Clock.Now().Add(recheckEvery))
	} else {
		n.gate.admit(dangers, t.lacks)
		n.probe(wire.Time) // connects the writer, and vouches for the connection, before the first request comes
	}
	n.looked(nil, true)
}

// cancelLook ends a look that is under way, and answers the requests that wait for it with
// ErrClosed.
func (n *Node) cancelLook() {
	if n.look == nil {
		return
	}
	n.look.end()
	if l := <-n.found; !l.tried {
		l.goesOn <- false
	}
	held := n.held
	n.look, n.held = nil, nil
	for _, r := range held {
		n.refuse(r, ErrClosed)
	}
}

// exchanged tells the Observer the outcome of an exchange, if it counts, see hearing. began is when
// the exchange began, and writes says whether it carried a script that may write. If it failed, and
// began after another had failed, nothing is sent for a moment: each batch would make a new
// connection.
func (n *Node) exchanged(err error, began clock.Instant, writes bool) {
	now := n.cfg.Clock.Now()
	switch {
	case err == nil || n.down == nil:
		n.since = now
	case began > n.since && now >= n.rest && !wire.IsTimeout(err):
		n.rest = now.Add(MinPause)
	}
	n.down = err
	if counts, does := n.hearing.heard(noAnswer(err), writes, now); does {
		n.cfg.Observer.Exchanged(counts)
	}
}

// looked tells the Observer the outcome of a look. tried says whether the look had a trial. A look
// that worked is also an exchange that worked. An exchange that worked says nothing of looks,
// because a look needs a connection of its own.
func (n *Node) looked(err error, tried bool) {
	err = noAnswer(err)
	if err == nil {
		n.exchanged(nil, 0, tried)
	}
	n.cfg.Observer.Looked(err)
}

// noAnswer returns why the server did not answer; nil if it did, even with an error.
func noAnswer(err error) error {
	if err == nil || wire.IsServerError(err) {
		return nil
	}
	return timely(err)
}
