package redlock

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// Holder is who holds a key, as seen from the nodes that answered. It is information, not a guarantee: it may
// be out of date when it arrives.
type Holder struct {
	Key          string
	Identity     string        // see WithIdentity
	TTL          time.Duration // until the key expires unless it is extended
	FencingToken uint64        // in answers of Quorum.Holder only
	Nodes        int           // nodes on which it was seen
}

// Holder reads who holds the key on a quorum of nodes. It reports a lease that was released with time left of
// its minimum hold as held, which it is on the servers.
//
// Errors: ErrNotHeld when a quorum answered and no owner has one, *QuorumError when too few answered,
// *OptionError, ErrClosed, or ctx's own error.
func (q *Quorum) Holder(ctx context.Context, key string) (Holder, error) {
	keys, err := q.cfg.keyset(key)
	if err != nil {
		return Holder{}, err
	}
	if q.isClosed() {
		return Holder{}, ErrClosed
	}
	timeout := q.cfg.timeout(OpObserve, q.cfg.lease.ttl)
	rd := newRound(OpObserve, len(q.nodes), q.need)
	rd.decided = q.holderCertain
	q.broadcast(ctx, rd, &attempt{keys: keys}, nil, q.clock.Now().Add(timeout), nil)
	if rd.wait(ctx, timeout) != nil {
		return Holder{}, newContextError(ctx, key, nil)
	}
	o := rd.outcome()
	holder, ok := q.holderIn(key, o.replies)
	switch {
	case ok:
		return holder, nil
	case o.agreed >= q.need:
		return Holder{}, ErrNotHeld
	default:
		return Holder{}, q.quorumError(OpObserve, key, o)
	}
}

// holderCertain reports whether further answers cannot change who has a quorum.
func (q *Quorum) holderCertain(replies []reply) bool {
	votes := make(map[string]int)
	most := 0
	for _, rep := range replies {
		if rep.verdict == agreed && rep.owner != "" {
			votes[rep.owner]++
			most = max(most, votes[rep.owner])
		}
	}
	return most >= q.need || most+count(replies, pending) < q.need
}

// holderIn returns the owner that a quorum of answers names.
func (q *Quorum) holderIn(key string, replies []reply) (Holder, bool) {
	seen := make(map[string]*Holder)
	tokens := make(map[string]map[uint64]int)
	for _, rep := range replies {
		if rep.verdict != agreed || rep.owner == "" {
			continue
		}
		h := seen[rep.owner]
		if h == nil {
			h = &Holder{Key: key, Identity: ownerIdentity(rep.owner)}
			seen[rep.owner] = h
			tokens[rep.owner] = make(map[uint64]int)
		}
		h.Nodes++
		h.TTL = max(h.TTL, rep.pttl)
		// Most nodes have the agreed token. One that granted late may have counted further.
		votes := tokens[rep.owner]
		votes[rep.token]++
		if best := votes[h.FencingToken]; votes[rep.token] > best || (votes[rep.token] == best && rep.token > h.FencingToken) {
			h.FencingToken = rep.token
		}
	}
	for _, h := range seen {
		if h.Nodes >= q.need {
			return *h, true
		}
	}
	return Holder{}, false
}

// Healthy reports whether a quorum of nodes answered when it was last asked anything. It does no I/O, so it tells
// of a failure no sooner than a lease or a waiter does: for a fresh answer see Nodes.
//
// Errors: *QuorumError with the nodes that failed, or ErrClosed.
func (q *Quorum) Healthy() error {
	if q.isClosed() {
		return ErrClosed
	}
	e := &QuorumError{Op: OpObserve, Key: "health", Need: q.need, Nodes: len(q.nodes)}
	for _, n := range q.nodes {
		if err := n.trouble.Load(); err != nil {
			e.Errs = append(e.Errs, err)
		}
	}
	if e.Succeeded = len(q.nodes) - len(e.Errs); e.Succeeded < q.need {
		return e
	}
	return nil
}

// Validate reports whether Acquire and TryAcquire would take the key and the options, as an *OptionError if not.
// It does no I/O.
func (q *Quorum) Validate(key string, opts ...LeaseOption) error {
	_, err := q.newAcquisition(key, opts)
	return err
}

// NodeStatus is the state of one node as this Quorum sees it.
type NodeStatus struct {
	Node             string        // host:port
	Reachable        bool          // it answered now
	Role             string        // "master", "slave" or "sentinel" as the server says; empty when unknown
	Latency          time.Duration // of the answer, waiting in the node's queue included
	QuarantinedUntil time.Time     // its vote is not counted before; zero when it is
	Warnings         []string      // what is wrong with it although it answers
	Err              error         // why it is not reachable, a *NodeError; nil when it is
}

// Nodes asks every node for its state and waits at most the node timeout, or until ctx ends. The result has one
// entry for each node, in the order given to Open or New.
func (q *Quorum) Nodes(ctx context.Context) []NodeStatus {
	timeout := q.cfg.timeout(OpObserve, q.cfg.lease.ttl)
	start := q.clock.Now()
	status := make([]NodeStatus, len(q.nodes))
	rounds := make([]*round, len(q.nodes))
	for i, n := range q.nodes {
		status[i].Node = n.addr
		rounds[i] = newRound(OpObserve, 1, 1)
		n.send(&request{op: OpObserve, attempt: roleProbe, round: rounds[i], expires: start.Add(timeout)})
	}
	for i, rd := range rounds {
		err := rd.wait(ctx, max(timeout-q.clock.Now().Sub(start), 0))
		status[i].fill(rd.outcome(), start, err)
	}
	return status
}

func (s *NodeStatus) fill(o outcome, start clock.Instant, err error) {
	rep := o.replies[0]
	switch {
	case rep.verdict == agreed:
		s.Reachable, s.Role = true, rep.role
		if rep.role != "master" {
			s.Warnings = append(s.Warnings, "is a "+rep.role+", not a master: what it holds may be overwritten; name its master instead")
		}
	case rep.err != nil && isServerError(rep.err.Err):
		s.Reachable = true
		s.Warnings = append(s.Warnings, "does not tell its role: "+rep.err.Err.Error())
	case rep.err != nil:
		s.Err = rep.err
	case err != nil:
		s.Err = &NodeError{Node: s.Node, Op: OpObserve, Err: err}
	default:
		s.Err = &NodeError{Node: s.Node, Op: OpObserve, Err: ErrTimeout}
	}
	if s.Reachable {
		s.Latency = rep.at.Sub(start)
	}
}
