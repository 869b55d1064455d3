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
// connection it tries whether leases can be had. The gate then opens for the process that was
// looked at, and the writer asks over its own connection whether that leads to the same one.
//
// The server behind an address may become another one while connections to the old one live on: a
// pod that is started before its predecessor has ended, behind one name. Who has old connections
// and who makes new ones would then count two servers as one node. So a server that votes is looked
// at as well, over a new connection, from time to time. If another process is found, what the old
// one answers does not count any more, and the connection in use is given up.
//
// From a look that finds nothing (the certificate has expired, the password is another one, a proxy
// is full) nothing is concluded: the connection in use goes on, and why there is no new one is
// told.

// look is one look at the server. The writer and the look's goroutine have it in turn.
type look struct {
	epoch  uint64 // of the gate when it began
	ctx    context.Context
	end    context.CancelFunc
	goesOn chan bool // from the writer: whether it goes on

	age   time.Duration // for how long it might have voted already, were the quarantine shorter
	retry time.Duration // after how long to look again where it may not vote

	self

	// What came of its trial.
	tried bool   // it was to be had
	trial *trial // nil where it could not
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

// run looks. It tells of what it has found once or twice.
func (l *look) run(cfg *Config, found chan<- *look) {
	defer l.end()
	inTime, cancel := context.WithTimeout(l.ctx, cfg.Timeout)
	defer cancel()
	conn, err := cfg.Connect(inTime, nil)
	if err != nil {
		l.err = cmp.Or(inTime.Err(), err)
		found <- l
		<-l.goesOn
		return
	}
	defer conn.Close()
	if l.self = whoIs(inTime, conn, cfg.Clock); l.err != nil {
		l.err = cmp.Or(inTime.Err(), l.err) // which ends the connection
	}
	found <- l
	if !<-l.goesOn {
		return
	}
	if l.err = l.try(inTime, conn, cfg); l.err != nil && inTime.Err() == context.DeadlineExceeded {
		l.err = ErrHeldBack
	}
	conn.Close()
	if l.tried = true; l.err == nil && l.trial.why == nil {
		var process string
		if l.info != nil {
			process = l.info.RunID
		}
		l.retry, l.err = cfg.Join(l.ctx, process, l.age)
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

// try tries whether leases can be had.
func (l *look) try(ctx context.Context, conn valkey.Client, cfg *Config) (err error) {
	calls := []*wire.Call{cfg.probe(wire.Trial)}
	for _, whole := range []bool{false, true} {
		result := conn.Do(ctx, new(wire.Buffers).Encode(conn, calls, &wire.Target{Whole: whole}))
		tried := wire.Decode(calls, result, nil)[0]
		if l.trial, err = trialOf(tried.More().Trial), tried.Err; !wire.IsNoScript(err) {
			break
		}
	}
	return explain(err, evalNeeded)
}
