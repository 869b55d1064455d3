package redlock

import (
	"context"
	"math"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Holder is the holder of a key, as seen from the nodes that answered. It is information, not a
// guarantee: it may be out of date when it arrives.
type Holder struct {
	Key          string
	Identity     string        // see WithIdentity
	Payload      string        // see WithPayload; empty for none, and where something else wrote the key
	TTL          time.Duration // until the key expires unless it is extended; NoExpiry for one that does not
	FencingToken uint64        // in answers of Quorum.Holder only; zero where something else wrote the key
	Nodes        int           // nodes on which it was seen
}

// newHolder returns the holder with that owner value, or the waiter of a reservation, which has no
// payload yet.
func newHolder(key, owner string) Holder {
	said := wire.ParseOwner(owner)
	return Holder{Key: key, Identity: said.Identity, Payload: said.Payload}
}

// NoExpiry is the TTL of a holder whose key does not expire. No lease has such a key: something
// else wrote it, and it stays until it is deleted.
const NoExpiry time.Duration = math.MaxInt64

// Holder reads the holder of the key on a quorum of nodes. A lease that was released with time left
// of its minimum hold is reported as held, which it is on the servers. The fencing token is the
// largest that the nodes have: one that granted late may have an earlier proposal.
//
// Errors: ErrNotHeld when no owner can have a quorum, whatever is on the nodes that did not answer,
// or that have nothing and may have forgotten it, as in a quarantine; *QuorumError when those nodes
// could decide it; *OptionError, ErrClosed, or ctx's own error.
func (q *Quorum) Holder(ctx context.Context, key string) (Holder, error) {
	if q.isClosed() {
		return Holder{}, ErrClosed
	}
	if err := checkContext(ctx); err != nil {
		return Holder{}, err
	}
	keys, err := q.cfg.keys(key)
	if err != nil {
		return Holder{}, err
	}
	at, timeout := q.question(&keys), q.cfg.timeout(q.cfg.lease.ttl)
	rd := q.newOperation(OpObserve, q.need)
	rd.Decided = q.holderCertain
	rd.send(ctx, at, at.call(wire.Observe), q.clock.Now().Add(timeout), nil)
	if rd.Wait(ctx, timeout) != nil {
		return Holder{}, newContextError(ctx, key, nil)
	}
	o := rd.Outcome()
	holder := holderIn(key, o.Replies)
	switch {
	case holder.Nodes >= q.need:
		return holder, nil
	case holder.Nodes+len(o.Replies)-o.Agreed < q.need:
		return Holder{}, ErrNotHeld
	default:
		e := q.quorumError(OpObserve, key, o)
		if e.Succeeded >= q.need {
			e.Succeeded = holder.Nodes // enough nodes have answered, too few of them name the same owner
		}
		return Holder{}, e
	}
}

// holderCertain reports whether further answers cannot change the result of Holder: an owner that
// has a quorum; no owner that can have one; or too many failed nodes that could decide it.
func (q *Quorum) holderCertain(replies []vote.Reply) bool {
	most, silent, open := holderIn("", replies).Nodes, vote.Count(replies, wire.Failed), vote.Count(replies, wire.Pending)
	switch {
	case most >= q.need, most+silent+open < q.need:
		return true
	default:
		return most+open < q.need && most+silent >= q.need
	}
}

// holderIn returns the owner that most of the answers name, with its largest token. The token of a
// lease is on a quorum of nodes, and so on one of any quorum that names its owner.
func holderIn(key string, replies []vote.Reply) (most Holder) {
	seen := make(map[string]*Holder)
	for i := range replies {
		rep := &replies[i]
		owner := rep.More().Owner
		if rep.Verdict != wire.OK || owner == "" {
			continue
		}
		if seen[owner] == nil {
			named := newHolder(key, owner)
			seen[owner] = &named
		}
		h := seen[owner]
		h.Nodes++
		h.TTL, h.FencingToken = max(h.TTL, rep.More().PTTL), max(h.FencingToken, rep.Token)
		if h.Nodes >= most.Nodes {
			most = *h
		}
	}
	return most
}

// Validate returns the *OptionError with which Acquire and TryAcquire would refuse the key or the
// options; nil if they would take both. It does no I/O. For a nil or zero Quorum it returns
// ErrClosed.
func (q *Quorum) Validate(key string, opts ...LeaseOption) error {
	_, err := q.newAcquisition(key, opts)
	return err
}
