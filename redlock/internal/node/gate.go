package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Status says whether a node votes, and what else is known of its server.
type Status struct {
	Opened uint64        // how often its gate has opened
	Fault  *wire.Fault   // why it does not vote; nil while it does, or when the server did not answer
	Err    error         // why it does not vote when the server did not answer
	Until  clock.Instant // when a quarantine ends; 0 for none
	Risk   *wire.Fault   // what may make the server forget leases although it votes
	Lacks  *wire.Fault   // what fails on a server that votes, see trial

	// Unseen says that the gate has just been closed, and that the server is to be looked at.
	Unseen bool
}

// Reason returns why the node does not vote; nil while it does.
func (s *Status) Reason() error {
	if s.Fault != nil {
		return s.Fault
	}
	return s.Err
}

// errNotConnected is the reason before the first look.
var errNotConnected = errors.New("not connected yet")

// longAgo is before every quarantine.
const longAgo clock.Instant = -1 << 62

// maxPast bounds how many earlier processes are remembered by their run_ids. So up to maxPast+1
// servers that answer at one address by turns are recognized.
const maxPast = 16

// recheckEvery is how often a server with a condition that does not end by itself is looked at
// again.
const recheckEvery = 2 * time.Second

// gate keeps a node from voting until its server process was vouched for. A process that was
// restarted has forgotten the leases that it granted, and its vote could give a second holder a
// quorum. So it does not vote until every lease of its past has ended. That holds for each answer
// because a connection leads to one process: see Node.vouch.
//
// The gate is closed or open for one server process. In each state it knows when to look at the
// server next. It does no I/O and has no lock. Apart from status it belongs to the writer of its
// node, which passes looks, answers and errors to it.
type gate struct {
	cfg *Config

	open    bool   // the process votes
	reading bool   // while it is closed only because the user may not write: operations that only read are sent
	vouched uint64 // the generation of connections in which the process was found; 0 for none
	epoch   uint64 // rises when the gate opens and when it closes: a look of an earlier epoch is out of date
	process process
	past    []string      // run_ids of the latest processes before, maxPast at most
	several clock.Instant // when a process in past was found again; 0 for never
	doubted clock.Instant // when there last was a reason for a quarantine other than a start; by this process's own clock
	jumped  string        // how the server's clock jumped, while that keeps it from voting
	watch   Watch
	refused error // why a server that votes refused the last new connection
	untold  bool  // the Observer has not heard of refused yet
	accused bool  // the server has answered an operation with an error, and no trial since

	lookAt   clock.Instant // when the server is to be looked at
	looked   clock.Instant // when it was looked at
	answered clock.Instant // when it last answered a script that may write, while it votes
	sampleAt clock.Instant // when its clock is to be looked at, while it votes
	pause    time.Duration // before the next look after one that failed

	status atomic.Pointer[Status] // never nil
}

// process is what is known of a server process.
type process struct {
	id      string        // its run_id; empty before the first
	role    string        // as it says
	history string        // its replication id, which changes when a server is promoted
	born    clock.Instant // the latest time at which it can have started, by its uptime and by when it was first seen
}

func newGate(cfg *Config) *gate {
	g := &gate{cfg: cfg, doubted: longAgo}
	g.status.Store(&Status{Err: errNotConnected, Unseen: true})
	return g
}

// become sets the status, and tells the Observer.
func (g *gate) become(status *Status) {
	g.cfg.Observer.Status(g.status.Swap(status), status)
}

// shut closes the gate because another process answers than the one that was vouched for, or
// because the server was out of reach for long. The next look is due at once.
func (g *gate) shut() {
	g.vouched, g.pause = 0, 0
	g.closes(&Status{Fault: &wire.Fault{Condition: wire.Restarted, Detail: "its run_id or role has changed, or it was out of reach for long"}, Unseen: true}, 0)
}

// closes makes grants count no more, and sets the status and the time of the next look. Extensions
// go on counting as long as the process is the one that was vouched for: whatever else is wrong
// with it, it has not forgotten its keys.
func (g *gate) closes(status *Status, lookAt clock.Instant) {
	g.open, g.reading, g.lookAt = false, false, lookAt
	g.epoch++
	was := g.status.Load()
	status.Opened, status.Risk, status.Lacks = was.Opened, was.Risk, was.Lacks
	g.become(status)
}

// close closes the gate, or keeps it closed; why is the reason. The next look is due at until, or
// after LookEvery if that is earlier and the reason ends by itself.
func (g *gate) close(why *wire.Fault, until clock.Instant) {
	status, lookAt := &Status{Fault: why}, until
	if why.IsAny(wire.Quarantined, wire.ClockJumped) {
		// The server may be restarted once more before until.
		now := g.cfg.Clock.Now()
		lookAt = min(until, now.Add(g.cfg.LookEvery))
		status.Until = until
		why.Until = time.Now().Add(until.Sub(now))
	}
	g.closes(status, lookAt)
}

// admit opens the gate, or keeps it open. risk and lacks say what is wrong although the server
// votes.
func (g *gate) admit(risk, lacks *wire.Fault) {
	status := &Status{Opened: g.status.Load().Opened, Risk: risk, Lacks: lacks}
	if !g.open {
		g.epoch++
		status.Opened++
		g.answered = g.cfg.Clock.Now()
		g.lookAt = g.answered.Add(g.cfg.LookEvery) // a caller that asks for the state of an open node puts no look off
		g.refused, g.untold = nil, true
	}
	g.open, g.reading, g.pause, g.jumped = true, false, 0, ""
	g.become(status)
	if g.untold {
		g.untold = false
		g.cfg.Observer.Refused(g.refused)
	}
}

// refuses keeps the gate closed for a process that might vote, but refused the trial. If the user
// may only read, operations that read are sent all the same: they grant no lease.
func (g *gate) refuses(err error) error {
	err = g.failed(err)
	g.reading = wire.FaultOf(err).IsAny(wire.NoPermission)
	return err
}

// failed closes the gate after a look that got no answer, or an error for one, and returns why.
func (g *gate) failed(err error) error {
	if why := wire.FaultOf(err); why != nil {
		g.close(why, g.cfg.Clock.Now().Add(recheckEvery))
		return why
	}
	g.pause = min(max(2*g.pause, MinPause), MaxPause)
	err = timely(err)
	g.closes(&Status{Err: err}, g.cfg.Clock.Now().Add(Jitter(g.pause, 0.2)))
	return err
}

// sample compares the server's clock with this process's. If the server's clock jumped forward, it
// closes the gate and returns why.
func (g *gate) sample(sent, received clock.Instant, server time.Duration) error {
	g.sampleAt = received.Add(g.cfg.SampleEvery)
	jump := g.watch.observe(sent, received, server, g.cfg.Drift)
	g.cfg.Observer.Sampled(g.watch, jump)
	if jump <= 0 {
		return nil
	}
	g.jumped = fmt.Sprintf("its wall clock jumped forward by %v", jump.Round(time.Millisecond))
	why := &wire.Fault{Condition: wire.ClockJumped, Detail: g.jumped}
	g.doubted = received
	g.close(why, received.Add(g.cfg.Quarantine()))
	return why
}

// wasAbsent reports whether a server that votes and answers now had not answered for so long that
// other processes may have agreed to do without it.
func (g *gate) wasAbsent(now clock.Instant) bool {
	return g.open && now.Sub(g.answered) > g.cfg.Absence
}

// counts returns why a grant that came at that time does not count; nil if it does.
func (g *gate) counts(op wire.Op, a *wire.Answer, now clock.Instant) error {
	if op.Gated() && a.Verdict == wire.OK && g.wasAbsent(now) {
		return &wire.Fault{Condition: wire.Restarted, Detail: "it had not answered for a while, and is looked at first"}
	}
	why := g.status.Load().Fault
	if op.Grants() && a.Verdict == wire.OK && why.IsAny(wire.ClockJumped) {
		return why
	}
	return nil
}

// follow notices another process, or a server that was promoted. It then counts the quarantine by
// this process's own clock, because the server's uptime follows the server's wall clock, and a
// promoted replica was up while it was a replica. INFO says only for a time that a server was a
// replica (master_replid2 is cleared with the backlog), so the role and the history that were seen
// before count, too.
func (g *gate) follow(info *wire.ServerInfo) {
	now, p := g.cfg.Clock.Now(), &g.process
	first, another := p.id == "", p.id != info.RunID
	promoted := first && info.Promoted || !first && (p.role != info.Role || p.history != info.ReplID)
	if g.cfg.RestartGate && (promoted || another && !first) {
		g.doubted = now
		g.cfg.Observer.Another()
	}
	if another && !first {
		if slices.Contains(g.past, info.RunID) {
			g.several = now
		}
		g.past = append(g.past[max(len(g.past)-maxPast+1, 0):], p.id)
	}
	if another {
		p.born = now
		g.watch, g.jumped = Watch{}, ""
	}
	p.born = min(p.born, now.Add(-info.Uptime))
	p.id, p.role, p.history = info.RunID, info.Role, info.ReplID
}

// decide returns nil if the process that info describes may vote. Otherwise it closes the gate, and
// returns why.
func (g *gate) decide(info *wire.ServerInfo) *wire.Fault {
	now := g.cfg.Clock.Now()
	why := Judge(info, g.cfg.AcceptReplicas)
	if g.several != 0 && now.Sub(g.several) < g.cfg.Quarantine() {
		why = &wire.Fault{Condition: wire.SeveralServers, Detail: fmt.Sprintf("server processes answer at its address by turns: those with the run_ids %.8s and %.8s",
			info.RunID, g.past[len(g.past)-1])}
	}
	if why != nil {
		g.vouched = 0
		g.close(why, now.Add(recheckEvery))
		return why
	}
	until := now.Add(g.cfg.Quarantine() - g.age(now)) // the quarantine may have become longer since
	switch {
	case until <= now:
		return nil
	case g.jumped != "":
		why = &wire.Fault{Condition: wire.ClockJumped, Detail: g.jumped}
	case info.Promoted:
		g.vouched = 0
		why = &wire.Fault{Condition: wire.Quarantined, Detail: fmt.Sprintf(
			"it was a replica and was promoted, votes after %v: leases that its master granted and it lacks last as long", g.cfg.Quarantine())}
	default:
		g.vouched = 0
		since := fmt.Sprintf("up for %v", info.Uptime)
		if info.Uptime >= g.cfg.Quarantine() { // by its wall clock, see follow
			since = "it is another process than it was, or was a replica meanwhile"
		}
		why = &wire.Fault{Condition: wire.Quarantined, Detail: fmt.Sprintf(
			"%s, votes after %v: leases that it may have forgotten last as long", since, g.cfg.Quarantine())}
	}
	if longer := g.cfg.Longer(); longer != "" {
		why.Detail += "; " + longer
	}
	g.close(why, until)
	return why
}

// age returns for how long there has been no reason for a quarantine: how much of one has passed.
func (g *gate) age(now clock.Instant) time.Duration {
	since := g.doubted
	if g.cfg.RestartGate {
		since = max(since, g.process.born)
	}
	return now.Sub(since)
}

// inspect closes an open gate if the server is no longer the one that was vouched for, or has
// changed. The next look decides.
func (g *gate) inspect(info *wire.ServerInfo) {
	if !g.open {
		return
	}
	another := g.cfg.RestartGate && (info.RunID != g.process.id || info.ReplID != g.process.history)
	g.follow(info) // another process has a clock of its own, and a process that comes back is one of several
	if another || Judge(info, g.cfg.AcceptReplicas) != nil {
		g.shut()
		return
	}
	g.admit(Risk(info), g.status.Load().Lacks)
}

// tried takes the outcome of a trial of a server that votes.
func (g *gate) tried(t *trial) {
	g.accused = false
	switch {
	case !g.open:
	case t.why != nil:
		g.close(t.why, g.cfg.Clock.Now().Add(recheckEvery))
	default:
		g.admit(g.status.Load().Risk, t.lacks)
	}
}

// answeredError closes an open gate if the server answers a question about itself with an error. If
// it answers another operation with an error, a look at it with a trial is due at once, but no more
// often than for a server whose gate is closed: the key of the operation may be the reason.
func (g *gate) answeredError(op wire.Op, err error, received clock.Instant) {
	switch known := wire.FaultOf(err); {
	case !g.open:
	case op == wire.Enroll:
		_ = g.failed(explain(err, evalNeeded))
	case op.IsProbe():
		if !g.isExcused(err) {
			_ = g.failed(explain(err, infoNeeded))
		}
	case known != nil && !known.IsAny(wire.Damaged, wire.OtherVersion):
		g.accused = true
		g.lookAt = min(g.lookAt, max(received, g.looked.Add(recheckEvery)))
	}
}

// What a server must answer to be vouched for.
const (
	infoNeeded = "the restart gate needs INFO"
	evalNeeded = "scripts need EVAL, EVALSHA and all keys of the prefix"
)

// isExcused reports whether the server does not tell about itself because the user may not ask, in
// a process without a restart gate, which need not ask.
func (g *gate) isExcused(err error) bool {
	return wire.FaultOf(err).IsAny(wire.NoPermission) && !g.cfg.RestartGate
}

// explain says in the error of a server that refuses a command what the command is needed for.
// Other errors stay as they are.
func explain(err error, needed string) error {
	err = wire.Diagnose(err)
	known := wire.FaultOf(err)
	switch {
	case known == nil && wire.IsServerError(err):
		return &wire.Fault{Condition: wire.Unsupported, Detail: needed + ": " + wire.Short(err.Error()), Err: err}
	case known.IsAny(wire.NoPermission, wire.NoCommand) && known.Err != nil &&
		!strings.Contains(known.Err.Error(), "'select' command"): // the URL asks for a database
		return &wire.Fault{Condition: known.Condition, Detail: needed + ": " + known.Err.Error(), Err: known.Err}
	}
	return err
}
