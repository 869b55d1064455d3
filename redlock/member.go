package redlock

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/clocks"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// link is what a Quorum uses of a node.Node.
type link interface {
	Send(r *node.Request) error
	Status() *node.Status
	Ahead() time.Duration
	Run()
	Close()
	Wait()
}

// member is a node of a Quorum, with what the Quorum's users are told of it: names, errors, log
// lines. It observes its node, on whose goroutine the methods of node.Observer are called.
type member struct {
	link

	q      *Quorum
	index  int
	addr   string // host:port, for people
	option valkey.ClientOption

	answered     atomic.Bool                    // the server has, whatever
	lastErr      atomic.Pointer[NodeError]      // why the last exchange failed; nil after one that worked
	lookErr      atomic.Pointer[NodeError]      // why the last look failed; nil after one that worked
	subscribeErr atomic.Pointer[ConditionError] // why it cannot call waiters of this process
	said         *ConditionError                // what was logged of that; of whoever listens
	connectErr   atomic.Pointer[ConditionError] // why it refuses new connections
	damage       damage
	wrong        atomic.Pointer[ConditionError] // what is wrong with its clock
	unwritten    atomic.Pointer[ConditionError] // why it cannot keep who uses it
	differs      atomic.Pointer[ConditionError] // how another process's list differs there
	silent       atomic.Pointer[NodeError]      // why it does not answer, once that was logged

	tells atomic.Int32 // how often the tracer is to be told; who makes it 1 does so, until it is 0

	// Used on the node's goroutine only.
	cut         bool     // the last exchange failed
	unconnected bool     // the last new connection failed
	outage      reminder // while it fails
	held        bool     // and it was said that it holds writes back
	voteless    reminder // while it does not vote, and answers
}

// Dedicate returns a connection for subscriptions, which the caller closes.
func (m *member) Dedicate(ctx context.Context) (valkey.DedicatedClient, error) {
	return node.NewConnection(ctx, m.option)
}

// Address is the node's name, for people.
func (m *member) Address() string { return m.addr }

// Reply is a node's answer as rounds take it. A token that no such server can have granted is no
// answer.
func (m *member) Reply(call *wire.Call, a node.Answer) vote.Reply {
	rep := vote.Reply{Answer: a.Answer, Err: a.Err, Unsent: a.Unsent, At: a.Received}
	lead := m.q.clocks.Lead(rep.Token, rep.Server, time.Now())
	if rep.Err == nil && lead > clocks.MostLead {
		rep = vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: wire.DamagedCounter(strconv.FormatUint(rep.Token, 10)), At: a.Received}
	}
	m.damage.look(m, call, &rep, lead)
	return rep
}

// failure is an error of the node as users know it.
func (m *member) failure(op Op, err error) *NodeError {
	return &NodeError{Node: m.addr, Op: op, Err: m.known(err)}
}

// known is an error in the words of this package.
func (m *member) known(err error) error {
	var fault *wire.Fault
	switch {
	case err == nil:
		return nil
	case errors.Is(err, node.ErrHeldBack):
		return &suspicion{ErrTimeout, heldBack}
	case errors.Is(err, node.ErrTimeout):
		err = ErrTimeout
	case errors.Is(err, node.ErrClosed):
		return ErrClosed
	case errors.As(err, &fault):
		return m.q.conditionError(fault)
	}
	return m.suspect(err)
}

// reason is why the node does not vote by that status, and nil when it does.
func (m *member) reason(status *node.Status) error { return m.known(status.Reason()) }

// votes is why the node does not vote now, and nil while it does.
func (m *member) votes() error { return m.reason(m.Status()) }

// failing returns why the node does not answer, or cannot be looked at. Nil while it works.
func (m *member) failing() *NodeError { return cmp.Or(m.lastErr.Load(), m.lookErr.Load()) }

// unanswered is why the node does not answer, from when that is said on; nil while it does.
func (m *member) unanswered() error {
	if silent := m.silent.Load(); silent != nil {
		return silent.Err
	}
	return nil
}

// observer is what a member is to its node.
type observer struct{ *member }

// Exchanged keeps how the last exchange went, and logs a line when the node starts or stops
// failing.
func (o observer) Exchanged(err error) {
	o.hears(err)
	o.lastErr.Store(o.exchangeError(err))
	o.logFailing()
}

// Looked keeps how the last look went.
func (o observer) Looked(err error) {
	o.hears(err)
	o.lookErr.Store(o.exchangeError(err))
	o.logFailing()
}

// hears notes that the server has answered.
func (m *member) hears(err error) {
	if err == nil || errors.Is(err, node.ErrHeldBack) {
		m.answered.Store(true)
	}
}

// Refused keeps why a server that votes takes no new connections, and logs it when that is news: it
// goes on with those it has, until they end. That one could not be made once is none.
func (o observer) Refused(err error) {
	var is *ConditionError
	again := o.unconnected
	o.unconnected = err != nil
	switch why := wire.FaultOf(err); {
	case why != nil:
		is = o.q.conditionError(&wire.Fault{Condition: why.Condition, Detail: "new connections are refused: " + why.Cause(), Err: why.Err})
	case err != nil && again:
		is = o.q.conditionError(&wire.Fault{Condition: wire.Unconnected, Detail: "new connections fail: " + wire.Short(o.suspect(wire.WithoutAddress(err)).Error()), Err: err})
	}
	was := o.connectErr.Swap(is)
	if was != nil && is != nil && was.Condition == is.Condition {
		return // its words may differ
	}
	o.logLacks(was, is)
}

// Status logs what is news, and tells the tracer.
func (o observer) Status(was, is *node.Status) {
	if is.Reason() != nil && !is.Unseen {
		o.q.belongs.Settled(o.index, is.Fault == nil)
	}
	if is.Until != 0 && was.Until == 0 { // another process, which does not know who uses it
		o.q.belongs.Restarted(o.index)
	}
	if was.Until != is.Until || ErrorType(o.reason(was)) != ErrorType(o.reason(is)) {
		o.tell()
	}
	log, ctx, now := o.q.cfg.logger, context.Background(), o.q.clock.Now()
	switch {
	case is.Fault == nil || is.Unseen:
	case was.Fault == nil || was.Fault.Condition != is.Fault.Condition || is.Until > was.Until:
		if !o.voteless.said { // another reason may have followed on the first
			o.voteless.begin(now)
		}
		log.WarnContext(ctx, "redlock: node does not vote", "node", o.addr, "reason", o.reason(is))
	case is.Until == 0 && o.voteless.due(now): // a quarantine has said when it ends
		log.WarnContext(ctx, "redlock: node still does not vote", "node", o.addr, "for", o.voteless.lasted(now), "reason", o.reason(is))
	}
	if is.Reason() != nil {
		return
	}
	if is.Opened != was.Opened {
		o.q.gates.opens()
	}
	if was.Fault != nil && was.Fault.Condition != wire.Restarted {
		log.InfoContext(ctx, "redlock: node votes", "node", o.addr, "after", o.voteless.lasted(now))
	}
	o.voteless = reminder{}
	if is.Risk != nil && was.Risk == nil {
		log.WarnContext(ctx, "redlock: node may forget leases", "node", o.addr, "reason", o.q.conditionError(is.Risk))
	}
	o.logLacks(o.q.conditionError(was.Lacks), o.q.conditionError(is.Lacks))
}

// tell tells the tracer whether the node votes now. What it is told last is so: one goroutine tells
// it at a time, and again what has changed meanwhile.
func (m *member) tell() {
	t := m.q.cfg.tracers.vote
	if t == nil || m.tells.Add(1) > 1 {
		return
	}
	for told := int32(1); ; told = m.tells.Load() {
		t.TraceVote(context.Background(), m.vote())
		if m.tells.CompareAndSwap(told, 0) {
			return
		}
	}
}

// vote is what a tracer is told of the node now.
func (m *member) vote() TraceVoteData {
	status := m.Status()
	data := TraceVoteData{Quorum: m.q, Node: m.addr, Err: m.reason(status)}
	switch silent := m.unanswered(); {
	case m.q.isClosed():
		data.Err = ErrClosed
	case silent != nil:
		data.Err = silent
	case status.Until != 0:
		data.Until = status.Fault.Until
	}
	if why := m.wrong.Load(); why != nil {
		data.Warning = why
	}
	if why := m.differs.Load(); why != nil {
		data.Warning = why
	}
	data.Votes = data.Err == nil
	return data
}

// Sampled compares the server's clock with the others'.
func (o observer) Sampled(server node.Watch, jump time.Duration) {
	o.q.belongs.Refresh()
	is := o.q.conditionError(o.q.clocks.Sampled(o.index, server))
	if was := o.wrong.Swap(is); (was == nil) != (is == nil) {
		o.tell()
	}
	if jump < 0 {
		// Keys live longer, which is in nobody's way but a successor's.
		o.q.cfg.logger.WarnContext(context.Background(), "redlock: a server's clock jumped backward: keys of dead holders live longer on it",
			"node", o.addr, "by", (-jump).Round(time.Millisecond))
	}
}

// Due has this process say again which servers it counts.
func (o observer) Due() { o.q.belongs.Refresh() }

// Replaced notes that the server that counted is gone.
func (o observer) Replaced(process string) { o.q.belongs.Replaced(o.index, process) }

// Elsewhere warns of two servers at one address.
func (o observer) Elsewhere() {
	o.q.cfg.logger.WarnContext(context.Background(), "redlock: another server answers at a node's address than over the connection in use: "+
		"end a server before its successor starts", "node", o.addr)
}

func (m *member) exchangeError(err error) *NodeError {
	if err == nil {
		return nil
	}
	e := m.failure("exchange", err)
	if m.answered.Load() && e.Err == ErrTimeout {
		e.Err = &suspicion{e.Err, fellSilent}
	}
	return e
}

// logLacks logs a line when something begins or ends to suffer on a node that votes.
func (m *member) logLacks(was, is *ConditionError) {
	switch log := m.q.cfg.logger; {
	case is != nil && (was == nil || was.Detail != is.Detail):
		log.WarnContext(context.Background(), "redlock: node lacks what it should have", "node", m.addr, "reason", is)
	case is == nil && was != nil:
		log.InfoContext(context.Background(), "redlock: node lacks nothing any more", "node", m.addr)
	}
}

// logFailing logs a line when the node begins to fail, and from time to time while it lasts, and
// one when it answers again. That a connection ends on which it has answered before is no news by
// itself: a server closes those that are idle (timeout), or is restarted. The next exchange tells.
func (m *member) logFailing() {
	ctx, log, now := context.Background(), m.q.cfg.logger, m.q.clock.Now()
	is := m.failing()
	if is == nil {
		if m.outage.said {
			log.InfoContext(ctx, "redlock: node answers again", "node", m.addr, "after", m.outage.lasted(now))
			m.silence(nil)
		}
		m.outage, m.cut, m.held = reminder{}, false, false
		return
	}
	held := Advice(is) == heldBack && !m.held // another word than the first, which nobody would wait for
	m.held = m.held || held
	once := !m.cut && wire.IsCut(is.Err) && m.answered.Load()
	m.cut = true
	switch {
	case once:
	case !m.outage.said:
		m.outage.begin(now)
		log.WarnContext(ctx, "redlock: node failing", "node", m.addr, "error", is.said())
		m.silence(is)
	case held, m.outage.due(now):
		log.WarnContext(ctx, "redlock: node still failing", "node", m.addr, "for", m.outage.lasted(now), "error", is.said())
		m.silence(is)
	}
}

// silence keeps why the node does not answer, nil for that it does, and tells the tracer.
func (m *member) silence(why *NodeError) {
	m.silent.Store(why)
	m.tell()
}

// cannotCall keeps why the node cannot call waiters of this process, and logs it unless the node's
// trial has said as much. Nil when it can.
func (m *member) cannotCall(err error) {
	var is *ConditionError
	if wire.IsServerError(err) {
		why := wire.FaultOf(err)
		if why == nil {
			why = &wire.Fault{Condition: wire.Unsupported, Err: err}
		}
		is = m.q.conditionError(&wire.Fault{Condition: why.Condition, Detail: node.SlowHandovers + ": SUBSCRIBE: " + why.Cause(), Err: why.Err})
	}
	m.subscribeErr.Store(is)
	if is == nil || m.Status().Lacks == nil {
		m.logLacks(m.said, is)
		m.said = is
	}
}
