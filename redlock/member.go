package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/clocks"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// link is what a Quorum uses of a node.Node.
type link interface {
	Send(r *node.Request)
	Status() *node.Status
	Run()
	Close()
	Wait()
}

// member is a node of a Quorum, with what users are told of it: names, errors, log lines. It
// observes its node: the methods of node.Observer are called on the node's goroutine.
type member struct {
	link

	q      *Quorum
	index  int
	addr   string // host:port, for people
	name   string // by which all processes know it
	option valkey.ClientOption

	answered  atomic.Bool                              // the server has answered anything at all
	lastErr   atomic.Pointer[NodeError]                // why the last exchange failed; nil after one that worked
	lookErr   atomic.Pointer[NodeError]                // why the last look failed; nil after one that worked
	damaged   atomic.Pointer[damaged]                  // the damage that was found last
	silent    atomic.Pointer[NodeError]                // why the node does not answer, once that was logged
	suffering [troubles]atomic.Pointer[ConditionError] // warnings of a node that may vote all the same, see suffers

	unkept atomic.Bool // the node could not keep its roster when it was asked last

	tells atomic.Int32 // changes that the tracer is to be told of; the goroutine that makes it 1 tells, until it is 0

	// Used on the node's goroutine only.
	began, ended clock.Instant // when the node began to fail, 0 while it answers; when the last failure that was logged ended
	unconnected  bool          // the last new connection failed
}

// Address is the node's name, for people.
func (m *member) Address() string { return m.addr }

// Reply returns a node's answer as rounds take it. An answer fails if its token leads all clocks so
// far that it is damaged. A grant fails if nothing that the node grants counts, see package roster.
func (m *member) Reply(call *wire.Call, a node.Answer) vote.Reply {
	rep := vote.Reply{Answer: a.Answer, Err: a.Err, Unsent: a.Unsent, At: a.Received}
	if why := a.More().Unkept; isRoster(call) && why != nil {
		rep.Answer, rep.Err = wire.Answer{Verdict: wire.Failed}, why
	}
	lead := m.q.clocks.Lead(rep.Token, rep.Server, time.Now())
	if rep.Err == nil && call.Op.Gated() && lead > clocks.MostLead {
		rep = vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: wire.DamagedCounter(strconv.FormatUint(rep.Token, 10)), At: a.Received}
	}
	m.lookForDamage(call, &rep, lead)
	if why := m.q.roster.Against(m.index); call.Op.Gated() && rep.Verdict == wire.OK && why != nil {
		rep.Answer, rep.Err = wire.Answer{Verdict: wire.Failed}, why
	}
	if isRoster(call) {
		m.keeps(rep.Err)
	}
	return rep
}

// keeps notes whether the node keeps its roster. It warns at the second failure: a server that
// refuses more than that loses its vote by then, which is reported instead.
func (m *member) keeps(err error) {
	switch failed := m.unkept.Swap(err != nil); {
	case err == nil:
		m.suffers(unwritten, nil)
	case failed && wire.IsServerError(err) && m.Status().Reason() == nil:
		m.suffers(unwritten, m.q.refusal(err, "it cannot keep who uses it"))
	}
}

// failure returns an error of the node as users see it.
func (m *member) failure(op Op, err error) *NodeError {
	return &NodeError{Node: m.addr, Op: op, Err: m.known(err)}
}

// known returns an error of the node as one of this package.
func (m *member) known(err error) error {
	var fault *wire.Fault
	switch {
	case err == nil:
		return nil
	case errors.Is(err, node.ErrHeldBack):
		return &suspicion{ErrTimeout, heldBack}
	case errors.Is(err, node.ErrUnresolved):
		return &suspicion{ErrTimeout, unresolved}
	case errors.Is(err, node.ErrTimeout):
		err = ErrTimeout
	case errors.Is(err, node.ErrClosed):
		return ErrClosed
	case errors.As(err, &fault):
		return m.q.conditionError(fault)
	}
	return m.suspect(err)
}

// reason returns why the node does not vote by that status; nil if it does.
func (m *member) reason(status *node.Status) error {
	if why := status.Reason(); why != nil {
		return m.known(why)
	}
	if why := m.q.roster.Against(m.index); why != nil {
		return m.known(why)
	}
	return nil
}

// votes returns why the node does not vote now; nil if it does.
func (m *member) votes() error { return m.reason(m.Status()) }

// failing returns why the node does not answer, or cannot be looked at; nil while it works.
func (m *member) failing() *NodeError { return cmp.Or(m.lastErr.Load(), m.lookErr.Load()) }

// observer is a member as the observer of its node.
type observer struct{ *member }

// Exchanged keeps how the last exchange went.
func (o observer) Exchanged(err error) { o.went(&o.lastErr, err) }

// Looked keeps how the last look went. After Close it says nothing of the node: the roster is not
// answered any more.
func (o observer) Looked(err error) {
	if err == nil || !o.q.isClosed() {
		o.went(&o.lookErr, err)
	}
}

// went keeps how an exchange or a look went, and logs a line when the node starts or stops failing.
func (m *member) went(last *atomic.Pointer[NodeError], err error) {
	if err == nil || errors.Is(err, node.ErrHeldBack) {
		m.answered.Store(true)
	}
	var is *NodeError
	if err != nil {
		if is = m.failure("exchange", err); m.answered.Load() && is.Err == ErrTimeout {
			is.Err = &suspicion{is.Err, fellSilent}
		}
	}
	last.Store(is)
	m.logFailing()
}

// Refused keeps why a server that votes takes no new connections, and logs it when that is news.
// The node goes on with the connections that it has, until they end. A connection that cannot be
// made is reported when the next one fails, too; one that the server refuses is reported at once.
func (o observer) Refused(err error) {
	var is *ConditionError
	again := o.unconnected
	o.unconnected = err != nil
	switch {
	case wire.FaultOf(err) != nil:
		is = o.q.refusal(err, "new connections are refused")
	case err != nil && again:
		is = o.q.conditionError(&wire.Fault{Condition: wire.Unconnected, Detail: "new connections fail: " + wire.Short(o.suspect(wire.WithoutAddress(err)).Error()), Err: err})
	}
	o.suffers(unconnected, is)
}

// Status logs changes of the node's status, and tells the tracer.
func (o observer) Status(was, is *node.Status) {
	if is.Until != 0 && was.Until == 0 { // another server process, which may lack the roster
		o.q.roster.Restarted(o.index)
	}
	if was.Until != is.Until || ErrorType(o.reason(was)) != ErrorType(o.reason(is)) {
		o.tell()
	}
	if is.Fault != nil && !is.Unseen && (is.Until == 0 || is.Until > was.Until) { // a quarantine has said when it ends: an earlier end is no news
		word := fmt.Sprint(is.Fault.Condition, is.Until)
		o.q.news.is(matter{trouble: voteless, node: o.member}, word, "", "reason", o.reason(is))
	}
	if is.Reason() != nil {
		return
	}
	if is.Opened != was.Opened {
		o.q.gateOpens()
	}
	o.q.news.over(matter{trouble: voteless, node: o.member}, "")
	o.suffers(forgetful, o.q.conditionError(is.Risk))
	o.suffers(lacking, o.q.conditionError(is.Lacks))
}

// suffers keeps and reports a trouble of a node that may vote all the same; nil ends the trouble.
func (m *member) suffers(what trouble, is *ConditionError) {
	was := m.suffering[what].Swap(is)
	about := matter{trouble: what, node: m}
	switch {
	case is == nil:
		m.q.news.over(about, "")
	case what == uncalling && m.Status().Lacks != nil: // the trial of the node has reported the same
	case what == lacking:
		m.q.news.is(about, is.Detail, "", "reason", is)
	case what == unconnected && is.Err != nil:
		m.q.news.is(about, string(is.Condition)+hintOf(is.Err), "", "reason", is)
	default:
		m.q.news.is(about, string(is.Condition), "", "reason", is)
	}
	if (was == nil) != (is == nil) && what != excluding {
		m.tell()
	}
}

// tell tells the tracer whether the node votes now. One goroutine at a time does so, and tells
// again if something has changed meanwhile: so the last report is true.
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

// vote returns the present state of the node for a tracer.
func (m *member) vote() TraceVoteData {
	status := m.Status()
	data := TraceVoteData{Quorum: m.q, Node: m.addr, Err: m.reason(status)}
	switch silent := m.silent.Load(); {
	case m.q.isClosed():
		data.Err = ErrClosed
	case silent != nil:
		data.Err = silent.Err
	case status.Until != 0:
		data.Until = status.Fault.Until
	}
	for _, what := range []trouble{unwritten, lacking, uncalling, unconnected, forgetful, wrongClock, differing} { // the worst at the end
		if why := m.suffering[what].Load(); why != nil {
			data.Warning = why
		}
	}
	data.Votes = data.Err == nil
	return data
}

// Sampled compares the server's clock with the others'.
func (o observer) Sampled(server node.Watch, jump time.Duration) {
	o.q.clocks.Sampled(o.index, server)
	for i, m := range o.q.nodes { // a sample of one may move the median
		m.suffers(wrongClock, o.q.conditionError(o.q.clocks.Wrong(i)))
	}
	if jump < 0 {
		// Keys live longer on it: only a successor waits longer.
		o.q.cfg.logger.WarnContext(context.Background(), "redlock: a server's clock jumped backward: keys of dead holders live longer on it",
			"node", o.addr, "by", (-jump).Round(time.Millisecond))
	}
}

// Another drops what was known of the server before: it may be long until the new one votes.
func (o observer) Another() { o.q.roster.Restarted(o.index) }

// Due has this process write again which servers it counts. The same script tries the server.
func (o observer) Due() { o.q.roster.Refresh() }

// Elsewhere warns of two servers at one address.
func (o observer) Elsewhere() {
	o.q.cfg.logger.WarnContext(context.Background(), "redlock: another server answers at a node's address than over the connection in use: "+
		"end a server before its successor starts", "node", o.addr)
}

// logFailing logs that the node fails, and that it answers again. The end of one connection is no
// news after the server has answered before: a server closes connections that are idle (timeout),
// or is restarted. The next exchange tells more. A node whose last failure ended within a minute
// has to fail for a second before that is logged: a proxy in between may have it come and go with
// each request.
func (m *member) logFailing() {
	is, about, now := m.failing(), matter{trouble: silent, node: m}, m.q.clock.Now()
	if is == nil {
		if m.began = 0; m.q.news.over(about, "") {
			m.ended = now
			m.silence(nil)
		}
		return
	}
	once := m.began == 0 && wire.IsCut(is.Err) && m.answered.Load()
	m.began = cmp.Or(m.began, now)
	if once || m.ended != 0 && now < m.ended.Add(firstReminder) && now < m.began.Add(time.Second) {
		return
	}
	// A new reason is no news, but for one that does not pass by waiting: a certificate, a name, or
	// writes that are held back.
	word := hintOf(is)
	if Advice(is) == heldBack {
		word = heldBack
	}
	if m.q.news.is(about, word, "", "error", is.said()) {
		m.silence(is)
	}
}

// silence keeps why the node does not answer, nil if it does, and tells the tracer.
func (m *member) silence(why *NodeError) {
	m.silent.Store(why)
	m.tell()
}

// cannotCall keeps and reports why the node cannot call waiters of this process; nil if it can.
func (m *member) cannotCall(err error) {
	var is *ConditionError
	if wire.IsServerError(err) {
		is = m.q.refusal(err, wire.ForQueues+": SUBSCRIBE")
	}
	m.suffers(uncalling, is)
}
