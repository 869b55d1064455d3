package redlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Healthy returns nil if a quorum of nodes answered when they were last asked anything, and may
// vote. A server that answers, but refuses or holds back what a lease needs, does not count. It
// does no I/O: each node is looked at by itself at least once a TTL (every two to ten seconds), so
// news is as old as that. For a fresh answer see Nodes.
//
// Errors: *QuorumError with the nodes that failed or do not vote; *NodeError of
// ConditionAnotherList or ConditionSeveralServers where processes do not agree on their nodes,
// although this one goes on; or ErrClosed.
func (q *Quorum) Healthy() error {
	if q.isClosed() {
		return ErrClosed
	}
	e := &QuorumError{Op: OpObserve, Need: q.need, Nodes: len(q.nodes)}
	for _, n := range q.nodes {
		if err := n.failing(); err != nil {
			e.Errs = append(e.Errs, err)
		} else if err := n.votes(); err != nil {
			e.Errs = append(e.Errs, &NodeError{Node: n.addr, Op: OpAcquire, Err: err})
		}
	}
	if e.Succeeded = len(q.nodes) - len(e.Errs); e.Succeeded < q.need {
		return e
	}
	for _, n := range q.nodes { // another process's list was found to differ after both had begun
		if why := n.suffering[differing].Load(); why != nil {
			return &NodeError{Node: n.addr, Op: OpObserve, Err: why}
		}
	}
	for _, err := range e.Errs {
		if ErrorType(err) == string(ConditionAnotherList) {
			return err
		}
	}
	return nil
}

// NodeStatus is the state of one node as this Quorum sees it.
type NodeStatus struct {
	Node      string        // host:port
	Reachable bool          // it answered now
	Votes     bool          // its grants count now
	Role      string        // "master" or "slave" as the server says; empty when unknown
	Version   string        // of the server, as it says itself: "valkey 8.0.1", or "redis 7.2.4"; empty when unknown
	Uptime    time.Duration // of the server process, in whole seconds
	Latency   time.Duration // of the answer, with its wait in the node's queue; 0 for none

	// QuarantinedUntil is when a node that was restarted, or whose clock jumped, votes again; zero
	// when it is not quarantined.
	QuarantinedUntil time.Time

	// Warnings are what is wrong with it although it answers. Each is a *ConditionError.
	Warnings []error
	// Err is why it does not vote, a *NodeError: it did not answer, or its Err is a
	// *ConditionError. Nil when it votes.
	Err error
}

// Nodes asks every node for its state, and tries on nodes that vote what a lease needs. It waits at
// most the node timeout, or until ctx ends (a nil one does not). A node that does not vote is
// looked at every two seconds, however often Nodes is called. The result has one entry for each
// node, in the order given to Open.
func (q *Quorum) Nodes(ctx context.Context) []NodeStatus {
	if q.none() {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	start, timeout := q.clock.Now(), q.cfg.timeout(q.cfg.lease.ttl)
	asked := q.probe(ctx, wire.Info, start.Add(timeout), nil)
	defer asked.drop()
	tried := q.probe(ctx, wire.Enroll, start.Add(timeout), func(i int) bool { return q.nodes[i].Status().Reason() == nil }) // the gate hears of it
	defer tried.drop()
	err := asked.Wait(ctx, timeout)
	_ = tried.Wait(ctx, max(timeout-q.clock.Now().Sub(start), 0))
	answers, trials := asked.Outcome().Replies, tried.Outcome().Replies
	status := make([]NodeStatus, len(q.nodes))
	for i, n := range q.nodes {
		status[i].Node = n.addr
		status[i].fill(n, &answers[i], start, err)
		status[i].judge(n, unanswered(ctx, &trials[i]))
	}
	return status
}

// fill takes over what the node answered.
func (s *NodeStatus) fill(m *member, rep *vote.Reply, start clock.Instant, err error) {
	known := wire.FaultOf(rep.Err)
	switch {
	case rep.Verdict == wire.OK:
		s.Reachable = true
		s.Role, s.Version, s.Uptime = rep.More().Info.Role, rep.More().Info.Name, rep.More().Info.Uptime
		if why := node.Judge(rep.More().Info, true); why != nil && rep.More().Info.Role != "master" {
			s.Warnings = append(s.Warnings, m.q.conditionError(why))
		}
		if risk := node.Risk(rep.More().Info); risk != nil {
			s.Warnings = append(s.Warnings, m.q.conditionError(risk))
		}
	case known != nil && wire.IsServerError(rep.Err):
		s.Reachable = true
		s.Warnings = append(s.Warnings, m.q.conditionError(known))
	case rep.Err != nil && wire.IsServerError(rep.Err):
		s.Reachable = true
		s.Warnings = append(s.Warnings, m.q.refusal(rep.Err, "INFO"))
	case rep.Err != nil:
		s.Err = m.failure(OpObserve, rep.Err)
	default:
		s.Err = &NodeError{Node: s.Node, Op: OpObserve, Err: cmp.Or(err, ErrTimeout)}
	}
	if rep.At != 0 {
		s.Latency = rep.At.Sub(start)
	}
}

// judge adds why the node does not vote. held says that the node was tried, and did not answer the
// trial.
func (s *NodeStatus) judge(n *member, held bool) {
	if errors.Is(s.Err, ErrTimeout) {
		s.Err = n.failure(OpObserve, ErrTimeout)
		if is := n.failing(); is != nil && (Advice(is) == heldBack || Advice(is) == unresolved) {
			s.Err = &NodeError{Node: s.Node, Op: OpObserve, Err: is.Err}
		}
	}
	gate := n.Status()
	why := n.reason(gate)
	if why == nil && held {
		why = n.known(node.ErrHeldBack)
	}
	if s.Votes = s.Reachable && why == nil; s.Votes {
		s.warn(n, lacking, uncalling, unconnected, unwritten)
	}
	if why != nil && s.Err == nil {
		s.Err = &NodeError{Node: s.Node, Op: OpAcquire, Err: why}
	}
	if s.Err != nil { // Err says it: no warning repeats it
		s.Warnings = slices.DeleteFunc(s.Warnings, func(w error) bool { return ErrorType(w) == ErrorType(s.Err) })
	}
	s.warn(n, wrongClock, differing, excluding)
	if last := n.damaged.Load(); last != nil && n.q.clock.Now().Sub(last.at) < damagedSeen {
		s.Warnings = append(s.Warnings, last.why)
	}
	if gate.Until != 0 {
		s.QuarantinedUntil = gate.Fault.Until
	}
}

// warn adds those of these troubles that the node has now.
func (s *NodeStatus) warn(m *member, all ...trouble) {
	for _, what := range all {
		if is := m.suffering[what].Load(); is != nil {
			s.Warnings = append(s.Warnings, is)
		}
	}
}

// probe asks the nodes that want selects (all when nil) about their servers. It ends with the last
// answer.
func (q *Quorum) probe(ctx context.Context, op wire.Op, expires clock.Instant, want func(int) bool) *operation {
	rd := q.newOperation(OpObserve, len(q.nodes))
	rd.Decided = func([]vote.Reply) bool { return false }
	at := q.question(&q.rosterKeys)
	rd.send(ctx, at, at.call(op), expires, rd.only(want))
	return rd
}

// unanswered reports whether a node did not answer in its time, although ctx has not ended the
// wait.
func unanswered(ctx context.Context, rep *vote.Reply) bool {
	return ctx.Err() == nil && (rep.Verdict == wire.Pending || isTimeout(rep))
}
