package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// gate keeps the vote of a node out until its server process has been vouched for. A process that
// was restarted has forgotten the leases it granted, and its vote could give a second holder a
// quorum; it is kept out until every lease of its past has ended. What makes that atomic is in the
// scripts, see wire.NewSet.
//
// Apart from status a gate belongs to its node's run goroutine.
type gate struct {
	n        *node
	open     *wire.Set       // nil while closed
	unloaded *ConditionError // why the scripts of open are sent whole; nil where they are loaded
	process  string          // run_id of the process that was last seen; empty before the first
	role     string          // its role
	history  string          // its replication id, which changes when a server is promoted
	born     clock.Instant   // when that process was started at the latest, by its uptime or by when it was first seen
	trusted  clock.Instant   // when that process may vote, by this process's own clock
	jumped   string          // how its clock jumped, while that keeps it from voting
	retry    clock.Instant   // when to look again, while closed
	pause    time.Duration   // before the next look after one that failed
	watch    clockWatch
	wrong    *ConditionError // what is wrong with its clock, as the tracer was told

	voteless reminder // while it is closed and the node answers

	sampleAt  clock.Instant // when the server's clock is to be looked at
	inspectAt clock.Instant // when its role is, and whether leases can be had on it
	inspected clock.Instant // when that was asked last

	status atomic.Pointer[gateStatus] // never nil
}

// gateStatus is what others may know of a gate.
type gateStatus struct {
	err   *ConditionError // why it is closed; nil while open or when the node did not answer
	cause error           // why it is closed when the node did not answer
	until clock.Instant   // when a quarantine ends; 0 for none
	risk  *ConditionError // see risk
	lacks *ConditionError // see trial
}

// closed is the status of the same server while the gate is closed.
func (s *gateStatus) closed(err *ConditionError, cause error) *gateStatus {
	return &gateStatus{err: err, cause: cause, risk: s.risk, lacks: s.lacks}
}

// reason is why the gate is closed, and nil while it is open.
func (s *gateStatus) reason() error {
	if s.err != nil {
		return s.err
	}
	return s.cause
}

// become sets the status, and tells the tracer if it is news.
func (g *gate) become(status *gateStatus) (was *gateStatus) {
	was = g.status.Swap(status)
	if was.until != status.until || ErrorType(was.reason()) != ErrorType(status.reason()) {
		g.tell(status)
	}
	return was
}

func (g *gate) tell(status *gateStatus) {
	t := g.n.q.cfg.tracers.vote
	if t == nil {
		return
	}
	data := TraceVoteData{Node: g.n.addr, Err: status.reason()}
	if g.wrong != nil {
		data.Warning = g.wrong
	}
	if data.Votes = data.Err == nil; status.until != 0 {
		data.Until = status.err.Until
	}
	t.TraceVote(context.Background(), data)
}

// errNotConnected is the reason before the first look.
var errNotConnected = errors.New("not connected yet")

// recheckEvery is how often a server with a condition that does not end by itself is looked at
// again.
const recheckEvery = 2 * time.Second

func newGate(n *node) *gate {
	g := &gate{n: n}
	g.status.Store(&gateStatus{cause: errNotConnected})
	return g
}

// admit returns those of a batch's requests that may be sent. Where the gate is closed and it is
// time, it first tries to open it.
func (g *gate) admit(ctx context.Context, client valkey.Client, batch []*request) []*request {
	if g.n.astray {
		batch = slices.DeleteFunc(slices.Clone(batch), func(r *request) bool {
			stray := g.n.isStray(r)
			if stray {
				g.n.fail(r, errAstray())
			}
			return stray
		})
	}
	if g.open != nil {
		return batch
	}
	kept := batch[:0:0]
	var refusal error
	for _, r := range batch {
		if !r.call.Op.Gated() {
			kept = append(kept, r)
			continue
		}
		if refusal == nil {
			if refusal = g.look(ctx, client); refusal == nil {
				return batch
			}
		}
		g.n.fail(r, refusal)
	}
	return kept
}

// look tries to open the gate unless it is too early, and returns why it is closed.
func (g *gate) look(ctx context.Context, client valkey.Client) error {
	if now := g.n.q.clock.Now(); now < g.retry {
		return g.status.Load().reason()
	}
	err := g.vouch(ctx, client)
	g.n.reportLook(connectionError(err))
	return err
}

// shut closes the gate because another process answers than the one vouched for, or because it lost
// its scripts.
func (g *gate) shut() {
	g.open, g.retry, g.pause = nil, 0, 0 //mutant:quarantine-after-a-flush
	why := &ConditionError{Condition: ConditionRestarted, Detail: "its scripts are gone, or its run_id or role has changed"}
	g.become(g.status.Load().closed(why, nil))
}

// close keeps the gate closed until then.
func (g *gate) close(why *ConditionError, until clock.Instant) {
	why = why.with(g.n.q.cfg.prefix)
	g.open = nil
	g.retry = until
	status := g.status.Load().closed(why, nil)
	if why.Condition == ConditionQuarantined || why.Condition == ConditionClockJumped {
		// It may be restarted once more before that.
		now := g.n.q.clock.Now()
		g.retry = min(until, now.Add(g.n.q.cfg.inspectEvery())) //mutant:quarantine-without-a-look
		status.until = until
		why.Until = time.Now().Add(until.Sub(now))
	}
	was, now := g.become(status), g.n.q.clock.Now()
	log := g.n.q.cfg.logger
	switch {
	case was.err == nil || was.err.Condition != why.Condition || status.until > was.until:
		if !g.voteless.said { // another reason may have followed on the first
			g.voteless.begin(now)
		}
		log.WarnContext(context.Background(), "redlock: node does not vote", "node", g.n.addr, "reason", why)
	case status.until == 0 && g.voteless.due(now): // a quarantine has said when it ends //mutant:lost-vote-not-repeated
		log.WarnContext(context.Background(), "redlock: node still does not vote", "node", g.n.addr, "for", g.voteless.lasted(now), "reason", why)
	}
}

// admitProcess opens the gate for the scripts, or keeps it open, with what is wrong although the
// server votes.
func (g *gate) admitProcess(scripts *wire.Set, risk, lacks *ConditionError) {
	if lacks == nil {
		lacks = g.unloaded //mutant:missing-script-load-unsaid
	}
	lacks = lacks.with(g.n.q.cfg.prefix)
	news := g.open != scripts
	g.open, g.pause, g.jumped = scripts, 0, ""
	if news { //mutant:asked-node-not-looked-at
		g.inspectAt = g.n.q.clock.Now().Add(g.n.q.cfg.inspectEvery()) // who asks for its state puts no look off
		g.n.visitErr = nil
	}
	g.n.keepVisit()
	was := g.become(&gateStatus{risk: risk, lacks: lacks})
	if news { //mutant:kept-sequence-not-restored
		g.n.q.keeper.open(g.n.index)
	}
	if was.err != nil && was.err.Condition != ConditionRestarted {
		g.n.q.cfg.logger.InfoContext(context.Background(), "redlock: node votes", "node", g.n.addr, "after", g.voteless.lasted(g.n.q.clock.Now()))
	}
	g.voteless = reminder{}
	if risk != nil && was.risk == nil {
		g.n.q.cfg.logger.WarnContext(context.Background(), "redlock: node may forget leases", "node", g.n.addr, "reason", risk)
	}
	g.n.logLacks(was.lacks, lacks)
}

// failed keeps the gate closed after a look that got no answer, or an error for one.
func (g *gate) failed(err error) error {
	var known *ConditionError
	if err = diagnose(err); errors.As(err, &known) {
		g.close(known, g.n.q.clock.Now().Add(recheckEvery))
		return known
	}
	if isTimeout(err) {
		err = ErrTimeout
	}
	err = g.n.suspect(err)
	g.pause = min(max(2*g.pause, minRetryPause), maxRetryPause)
	g.retry = g.n.q.clock.Now().Add(jitter(g.pause, 0.2))
	g.become(g.status.Load().closed(nil, err))
	return err
}

// sample compares the server's clock with this process's, and closes the gate and returns why if it
// jumped forward.
func (g *gate) sample(sent, received clock.Instant, server time.Duration) error {
	cfg := g.n.q.cfg
	g.sampleAt = received.Add(cfg.sampleEvery())
	jump := g.watch.observe(sent, received, server, cfg.drift)
	was := g.wrong
	if g.wrong = g.n.q.clocks.sampled(g.n.index, g.n.addr, g.watch); (was == nil) != (g.wrong == nil) { //mutant:wrong-clock-untraced
		g.tell(g.status.Load())
	}
	if jump < 0 {
		// Keys live longer, which is in nobody's way but a successor's.
		cfg.logger.WarnContext(context.Background(), "redlock: a server's clock jumped backward: keys of dead holders live longer on it",
			"node", g.n.addr, "by", (-jump).Round(time.Millisecond))
	}
	if jump <= 0 { //mutant:jump-ignored,jump-backward-costs-the-vote
		return nil
	}
	g.jumped = fmt.Sprintf("its wall clock jumped forward by %v", jump.Round(time.Millisecond))
	why := &ConditionError{Condition: ConditionClockJumped, Detail: g.jumped}
	g.trusted = received.Add(cfg.quarantine()) //mutant:jump-forgiven
	g.close(why, g.trusted)
	return why
}

// check looks at what an answer tells about its server, and returns why it may not count.
func (g *gate) check(r *request, rep reply, sent, received clock.Instant) error {
	if rep.Info != nil && !g.n.compareProcess(rep.Info) {
		g.inspect(rep.Info)
	}
	if rep.Trial != nil {
		g.tried(trialOf(rep.Trial))
	}
	if rep.Server == 0 {
		return nil
	}
	g.n.ahead.Store(int64(rep.Server) - time.Now().UnixNano())
	_ = g.sample(sent, received, rep.Server)
	why := g.status.Load().err
	if r.call.Op == wire.Acquire && rep.Verdict == wire.OK && why != nil && why.Condition == ConditionClockJumped { //mutant:jump-grant-counts
		return why
	}
	return nil
}

// inspect closes the gate of a server that has become another than it was, for the next look to
// decide.
func (g *gate) inspect(info *wire.ServerInfo) {
	cfg := g.n.q.cfg
	if g.open == nil {
		return
	}
	if !cfg.restartGate {
		g.follow(info) // another process has a clock of its own
	}
	another := cfg.restartGate && (info.RunID != g.process || info.ReplID != g.history)
	if another || judge(info, cfg.acceptReplicas) != nil { //mutant:voter-not-asked-again
		g.shut()
		return
	}
	g.admitProcess(g.open, risk(info), g.status.Load().lacks)
}

// tried takes the outcome of a trial of the server that votes.
func (g *gate) tried(t *trial) {
	switch {
	case g.open == nil:
	case t.why != nil: //mutant:failed-trial-ignored
		g.close(t.why, g.n.q.clock.Now().Add(recheckEvery))
	default:
		g.admitProcess(g.open, g.status.Load().risk, t.lacks)
	}
}

// refused closes the gate of a server that answers with an error when it is looked at. One that
// answers an operation so is looked at, no more often than one whose gate is closed: the
// operation's key may be the reason.
func (g *gate) refused(r *request, err error, received clock.Instant) {
	var known *ConditionError
	switch {
	case g.open == nil:
	case r.call.Op == wire.Trial:
		_ = g.failed(explain(err, evalNeeded))
	case r.call.Op.IsProbe(): //mutant:failed-look-leaves-the-gate-open
		if !g.isExcused(err) {
			_ = g.failed(explain(err, infoNeeded))
		}
	case errors.As(diagnose(err), &known) && known.Condition != ConditionDamaged:
		g.inspectAt = min(g.inspectAt, max(received, g.inspected.Add(recheckEvery))) //mutant:refused-operation-without-a-look
	}
}

// sampleEvery is how often at least a server's clock is looked at. Over the Quorum's TTL a jump as
// large as the allowance for drift of a lease with that TTL stands out. A lease with a shorter TTL
// allows for less, see docs/guarantees.md.
func (c *config) sampleEvery() time.Duration { return min(c.lease.ttl, maxSampleEvery) }

// inspectEvery is how often a server that votes is asked for its process, role and policy: one that
// was demoted and promoted again in between is not noticed.
func (c *config) inspectEvery() time.Duration { return max(c.sampleEvery(), minInspectEvery) }

const (
	maxSampleEvery  = 10 * time.Second
	minInspectEvery = 2 * time.Second
)
