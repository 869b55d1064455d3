package node

import (
	"cmp"
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A look asks the server about itself over a connection of its own, beside the writer, so that a
// connection that hangs delays no extension and no release. What it finds goes to the writer, which
// alone changes the gate. If the server may be vouched for, the look goes on: over the same
// connection it loads the scripts, and tries whether leases can be had. If the server is restarted
// in between, that connection breaks, and the scripts of the old process cannot reach the new one.
//
// The server behind an address may become another one while connections to the old one live on: a
// pod that is started before its predecessor has ended, behind one name. Who has old connections
// and who makes new ones would then count two servers as one node. So a server that votes is looked
// at as well, over a new connection, from time to time; and whenever another process is found, the
// connection in use is asked whether it leads to the same one. If not, what the old server answers
// does not count any more, and its client is replaced by a new one.
//
// From a look that finds nothing (the certificate has expired, the password is another one, a proxy
// is full) nothing is concluded: the connection in use goes on, and why there is no new one is
// told.

// look is one look at the server. The writer and the look's goroutine have it in turn.
type look struct {
	epoch uint64 // of the gate when it began
	end   context.CancelFunc
	load  chan *wire.Set // from the writer: the scripts to load; nil ends it

	err   error         // why it found nothing
	age   time.Duration // for how long it might have voted already, were the quarantine shorter
	retry time.Duration // after how long to look again where it may not vote

	// What the server said of itself.
	info           *wire.ServerInfo
	time           time.Duration
	sent, received clock.Instant

	// What came of loading scripts.
	scripts *wire.Set // nil before
	trial   *trial    // nil where it could not be had
}

func newLook(epoch uint64) (*look, context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	return &look{epoch: epoch, end: cancel, load: make(chan *wire.Set, 1)}, ctx
}

// run looks. It tells of what it has found once or twice.
func (l *look) run(ctx context.Context, cfg *Config, found chan<- *look) {
	defer l.end()
	inTime, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	conn, err := cfg.Connect(inTime)
	if err != nil {
		l.err = cmp.Or(inTime.Err(), err)
		found <- l
		<-l.load
		return
	}
	l.ask(inTime, conn, cfg.Clock)
	if l.err != nil {
		l.err = cmp.Or(inTime.Err(), l.err) // which ends the connection
	}
	found <- l
	if l.scripts = <-l.load; l.scripts != nil {
		if l.err = l.try(inTime, conn, cfg); l.err != nil && inTime.Err() == context.DeadlineExceeded {
			l.err = ErrHeldBack
		}
	}
	conn.Close()
	if l.scripts == nil {
		return
	}
	if l.err == nil && l.trial.why == nil {
		var process string
		if l.info != nil {
			process = l.info.RunID
		}
		l.retry, l.err = cfg.Join(ctx, process, l.age)
	}
	found <- l
}

// ask asks the server about itself.
func (l *look) ask(ctx context.Context, conn valkey.Client, c *clock.Clock) {
	l.sent = c.Now()
	results := conn.DoMulti(ctx, wire.InfoCommand(conn), wire.TimeCommand(conn))
	l.received = c.Now()
	info := wire.Decode([]*wire.Call{{Op: wire.Info}}, results[0], "0", nil)[0]
	at := wire.Decode([]*wire.Call{{Op: wire.Time}}, results[1], "0", nil)[0]
	l.info, l.time, l.err = info.More().Info, at.Server, cmp.Or(info.Err, at.Err)
}

// try has the server load the scripts, and tries whether leases can be had. Scripts that are
// flushed in between are loaded again.
func (l *look) try(ctx context.Context, conn valkey.Client, cfg *Config) (err error) {
	scripts := l.scripts.Scripts()
	calls := []*wire.Call{cfg.probe(wire.Trial)}
	for range maxTaught {
		commands := make(valkey.Commands, 0, len(scripts)+1)
		for _, s := range scripts {
			commands = append(commands, wire.LoadCommand(conn, s))
		}
		results := conn.DoMulti(ctx, append(commands, new(wire.Buffers).Encode(conn, calls, nil, "0"))...)
		for _, result := range results[:len(scripts)] {
			if err := result.Error(); err != nil {
				return explain(err, loadNeeded)
			}
		}
		tried := wire.Decode(calls, results[len(scripts)], "0", nil)[0]
		if l.trial, err = trialOf(tried.More().Trial), tried.Err; !wire.IsNoScript(err) {
			break
		}
	}
	return explain(err, evalNeeded)
}

// route is whether the connection in use leads to the server that new connections find.
type route struct {
	checkAt   clock.Instant // when to ask the connection in use which process it leads to; or never
	elsewhere bool          // to another than new connections
}

// isElsewhere is why a node does not vote whose connection leads elsewhere.
func isElsewhere() *wire.Fault {
	return &wire.Fault{Condition: wire.Restarted, Detail: "another server answers at its address than over the connection in use"}
}

// leadsTo takes which process the connection in use leads to, if that is to be known, and reports
// whether it leads elsewhere than new connections.
func (r *route) leadsTo(process string, g *gate) bool {
	if r.checkAt == never {
		return false
	}
	was := r.elsewhere
	if r.elsewhere = process != g.process.id; !r.elsewhere {
		r.checkAt = never
		return false
	}
	if !was {
		g.cfg.Observer.Elsewhere()
	}
	r.checkAt = g.cfg.Clock.Now().Add(recheckEvery)
	return true
}

// bars reports whether a request is not for the server that the connection in use leads to.
func (r *route) bars(op wire.Op) bool {
	return r.elsewhere && op.OfAttempt() && !op.IsProbe()
}
