package redlock

import (
	"context"
	"math"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Holder is who holds a key, as seen from the nodes that answered. It is information, not a
// guarantee: it may be out of date when it arrives.
type Holder struct {
	Key          string
	Identity     string        // see WithIdentity
	Payload      string        // see WithPayload; empty for none, and where something else wrote the key
	TTL          time.Duration // until the key expires unless it is extended; NoExpiry for one that does not
	FencingToken uint64        // in answers of Quorum.Holder only; zero where something else wrote the key
	Nodes        int           // nodes on which it was seen
}

// newHolder is the holder with that owner value. A member of the queue, whose turn it is, has no
// payload yet.
func newHolder(key, owner string) Holder {
	return Holder{Key: key, Identity: wire.OwnerIdentity(owner), Payload: wire.OwnerPayload(owner)}
}

// NoExpiry is the TTL of a holder whose key does not expire. No lease has such a key: something
// else wrote it, and it stays until it is deleted.
const NoExpiry time.Duration = math.MaxInt64

// Holder reads who holds the key on a quorum of nodes. It reports a lease that was released with
// time left of its minimum hold as held, which it is on the servers. The fencing token is the one
// that most of them have. Until the lease is extended, a node that granted it late may have a
// higher one; where nodes that could tell do not answer, the higher one is reported.
//
// Errors: ErrNotHeld when nobody can have a quorum, whatever the nodes that did not answer have, or
// that have nothing and may have forgotten it, as in a quarantine; *QuorumError when they could
// decide that; *OptionError, ErrClosed, or ctx's own error.
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
	o, err := q.observe(ctx, q.question(&keys), q.holderCertain)
	if err != nil {
		return Holder{}, err
	}
	holder, ok := q.holderIn(key, o.Replies)
	switch {
	case ok:
		return holder, nil
	case mostSeen(o.Replies)+len(o.Replies)-o.Agreed < q.need:
		return Holder{}, ErrNotHeld
	default:
		e := q.quorumError(OpObserve, key, o)
		if e.Succeeded >= q.need {
			e.Succeeded = mostSeen(o.Replies) // enough have answered, too few with the same
		}
		return Holder{}, e
	}
}

// observe asks all nodes for a key's state.
func (q *Quorum) observe(ctx context.Context, at *attempt, decided func([]vote.Reply) bool) (vote.Outcome, error) {
	timeout := q.cfg.timeout(q.cfg.lease.ttl)
	rd := q.newOperation(OpObserve, q.need)
	rd.Decided = decided
	rd.send(ctx, at, at.call(wire.Observe), q.clock.Now().Add(timeout), nil)
	if rd.Wait(ctx, timeout, &q.waits) != nil {
		return vote.Outcome{}, newContextError(ctx, at.keys.Name, nil)
	}
	return rd.Outcome(), nil
}

// holderCertain reports whether further answers cannot change how a round of Holder is taken: as an
// owner who has a quorum with the token that most nodes have, as nobody who can have one, or as a
// failure of the nodes that could decide it.
func (q *Quorum) holderCertain(replies []vote.Reply) bool {
	most, silent, open := mostSeen(replies), vote.Count(replies, wire.Failed), vote.Count(replies, wire.Pending)
	switch {
	case most >= q.need:
		same := mostAlike(replies, func(a *wire.Answer) owned { return owned{a.More().Owner, a.Token} })
		return same >= q.need || same+open < q.need
	case most+silent+open < q.need:
		return true
	default:
		return most+open < q.need && most+silent >= q.need
	}
}

// owned is what the nodes say of a key that is held.
type owned struct {
	owner string
	token uint64
}

// mostSeen is on how many nodes the owner is seen whom most of them name.
func mostSeen(replies []vote.Reply) int {
	return mostAlike(replies, func(a *wire.Answer) string { return a.More().Owner })
}

// mostAlike is how many answers that name an owner say the same.
func mostAlike[T comparable](replies []vote.Reply, says func(*wire.Answer) T) int {
	votes := make(map[T]int)
	most := 0
	for i := range replies {
		if a := &replies[i].Answer; a.Verdict == wire.OK && a.More().Owner != "" {
			said := says(a)
			votes[said]++
			most = max(most, votes[said])
		}
	}
	return most
}

// holderIn returns the owner that a quorum of answers names.
func (q *Quorum) holderIn(key string, replies []vote.Reply) (Holder, bool) {
	seen := make(map[string]*Holder)
	tokens := make(map[string]map[uint64]int)
	for _, rep := range replies {
		if rep.Verdict != wire.OK || rep.More().Owner == "" {
			continue
		}
		h := seen[rep.More().Owner]
		if h == nil {
			named := newHolder(key, rep.More().Owner)
			h = &named
			seen[rep.More().Owner] = h
			tokens[rep.More().Owner] = make(map[uint64]int)
		}
		h.Nodes++
		h.TTL = max(h.TTL, rep.More().PTTL)
		// Most nodes have the agreed token. One that granted late may have counted further. Where
		// too few answer to tell, it is the higher one.
		votes := tokens[rep.More().Owner]
		votes[rep.Token]++
		if best := votes[h.FencingToken]; votes[rep.Token] > best || (votes[rep.Token] == best && rep.Token > h.FencingToken) {
			h.FencingToken = rep.Token
		}
	}
	for _, h := range seen {
		if h.Nodes >= q.need {
			return *h, true
		}
	}
	return Holder{}, false
}

// Validate reports whether Acquire and TryAcquire would take the key and the options, as an
// *OptionError if not. It does no I/O.
func (q *Quorum) Validate(key string, opts ...LeaseOption) error {
	_, err := q.Settings(key, opts...)
	return err
}

// LeaseSettings are what a lease is acquired with, for those who acquire it with options that
// others chose.
type LeaseSettings struct {
	AutoExtend bool // unless the lease, or its Quorum, was given WithoutAutoExtend
}

// Settings returns with what Acquire and TryAcquire would acquire the key. It does no I/O. Errors
// are those of Validate.
func (q *Quorum) Settings(key string, opts ...LeaseOption) (LeaseSettings, error) {
	a, err := q.newAcquisition(key, opts)
	if err != nil {
		return LeaseSettings{}, err
	}
	return LeaseSettings{AutoExtend: !a.cfg.manual}, nil
}
