package redlock

import (
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// proof says until when a node is known to have a lease's key, and what is to be done there.
type proof struct {
	until clock.Instant // the key is there until then at least, less the drift; 0 if it is not known to be there

	pause   time.Duration // from the node's last answer that it does not have the key, until it is asked again
	lacking bool          // a timer is set, after which the node is asked again
}

// prove takes the answers to the round that granted the lease, and has Late take those that come
// later. A quorum has the key. For as long as no other node has it, the lease does not survive if a
// node of that quorum forgets it. So the other nodes are asked again. Where all nodes grant, that
// costs nothing.
func (l *Lease) prove(rd *operation) {
	for _, c := range rd.LeaveTo(l, func(i int, rep *vote.Reply) bool {
		if rep.Verdict == wire.OK {
			l.proofs[i].until = clock.Instant(l.deadline.Load())
		}
		return rep.Verdict == wire.Refused || wire.FaultOf(rep.Err).IsAny(wire.Damaged)
	}) {
		l.Late(c.Slot, c.Reply)
	}
}

// Late takes a node's answer to the round that granted the lease: the node has the key too, another
// owner has or had the key there, or the node's data of the key is damaged.
func (l *Lease) Late(i int, rep *vote.Reply) {
	switch {
	case rep.Verdict == wire.OK:
		l.hears(i, wire.InPlace, l.attempt.since, l.attempt.since)
		return
	case rep.Verdict == wire.Refused, wire.FaultOf(rep.Err).IsAny(wire.Damaged):
		l.mu.Lock()
		l.lacks(i)
		l.mu.Unlock()
	}
	l.q.nodes[i].standing(l.attempt.keys, rep)
}

// hears takes a node's answer to an extension that was sent at that time. If the key is there, that
// counts from the sending, however late the answer comes. If it is not there, the node's proof
// ends. The deadline is what a quorum proves: if that has passed now, the lease is lost.
//
// It returns how long the lease would have been valid without the answer, 0 if it has ended. It
// also returns whether the lease was extended: for the first time to a full validity from start on.
// The clock is read with mu held, under which the lease also ends: so nothing can move the deadline
// between its passing and the loss.
func (l *Lease) hears(i int, said wire.Extended, sent, start clock.Instant) (margin time.Duration, extended bool) {
	l.mu.Lock()
	now := l.q.clock.Now()
	margin = clock.Instant(l.deadline.Load()).Sub(now)
	if margin <= 0 || l.final.Load() != nil {
		l.mu.Unlock()
		return 0, false
	}
	validity := l.q.cfg.validity(l.TTL())
	p := &l.proofs[i]
	if said == wire.InPlace || said == wire.Refilled {
		p.until, p.pause = max(p.until, sent.Add(validity)), 0
	} else {
		if p.until > now && l.q.nodes[i].Status().Reason() == nil { // the server was not restarted
			defer l.q.news.is(matter{trouble: flushed, node: l.q.nodes[i]}, "", "", "key", l.Key()) // no caller asks for the key here
		}
		p.until = 0
	}
	next := l.proven()
	if next <= now {
		tell := l.loses(LostRefused)
		l.mu.Unlock()
		tell()
		return 0, false
	}
	before := clock.Instant(l.deadline.Swap(int64(next)))
	if next < before && l.timer != nil {
		l.timer.Reset(next.Sub(now))
	}
	if p.until == 0 {
		l.lacks(i)
	}
	if extended = next >= start.Add(validity) && (l.told < start || l.lastErr != nil); extended {
		l.told, l.lastErr = start, nil
	}
	l.mu.Unlock()
	return margin, extended
}

// proven returns until when a quorum of nodes is known to have the key; 0 if none is. Called with
// mu held.
func (l *Lease) proven() (until clock.Instant) {
	for i := range l.proofs {
		at, nodes := l.proofs[i].until, 0
		for k := range l.proofs {
			if l.proofs[k].until >= at {
				nodes++
			}
		}
		if nodes >= l.q.need {
			until = max(until, at)
		}
	}
	return until
}

// misses reports, once, that an extension that began at that time cannot move the deadline any
// more, because too many nodes failed or lack the key. The error is kept in case the lease is lost.
func (l *Lease) misses(start clock.Instant, replies []vote.Reply) (margin time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	agreed, missed := 0, 0
	for i := range replies {
		switch rep := &replies[i]; {
		case rep.Verdict == wire.Pending:
		case rep.Verdict == wire.Failed || l.proofs[i].until == 0:
			missed++
		default:
			agreed++
		}
	}
	margin = l.remaining()
	if missed <= len(replies)-l.q.need || l.told >= start || l.final.Load() != nil || margin <= 0 {
		return 0, nil
	}
	l.told = start
	l.lastErr = l.q.quorumError(OpExtend, l.Key(), vote.Outcome{Tally: vote.Tally{Agreed: agreed}, Replies: replies})
	return margin, l.lastErr
}

// lacksAfter is how soon a node that does not have the key is asked again. The attempt of a rival
// that was in the way there is taken back within a round trip or two. If a quorum has lost the key,
// its answers have come by then.
const lacksAfter = 50 * time.Millisecond

// lacks has a node that does not have the key asked again after a pause. The pause doubles with
// each such answer, up to the interval: the rival may be far away. From then on the lease is
// extended alone. So all that costs a handful of requests, whatever nodes say. A node that does not
// vote is not asked, as it could not put the key back. Called with mu held.
func (l *Lease) lacks(i int) {
	p, cfg := &l.proofs[i], l.attempt.cfg
	if p.lacking || cfg.manual || l.unextended.Load() || l.q.nodes[i].Status().Reason() != nil {
		return
	}
	if p.pause = min(max(2*p.pause, lacksAfter), cfg.interval); p.pause == cfg.interval {
		return
	}
	p.lacking = true
	time.AfterFunc(node.Jitter(p.pause, pauseJitter), func() {
		l.mu.Lock()
		l.proofs[i].lacking = false
		l.mu.Unlock()
		if l.extends() {
			l.q.extender.ask(i, l.q.extendAlone(l, l.q.clock.Now(), nil))
		}
	})
}

// isAlone reports whether the lease is to be extended alone. An extension of several leases may
// reach a node after the release of one of them. A release with a minimum hold leaves the key, and
// such an extension would revive it.
func (l *Lease) isAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempt.cfg.minHold > 0 || slices.ContainsFunc(l.proofs, func(p proof) bool { return p.pause == l.attempt.cfg.interval })
}

// extends reports whether the lease is to be extended.
func (l *Lease) extends() bool { return !l.unextended.Load() && l.Err() == nil }

// extendCall returns the call that renews the key on a node, and raises the counter there to the
// lease's token. If the node is not known to have the key, the call also puts it back.
func (l *Lease) extendCall(i int) *wire.Call {
	call := l.attempt.call(wire.Extend)
	call.TTL = l.attempt.cfg.ttlText
	l.mu.Lock()
	defer l.mu.Unlock()
	call.Refill = l.proofs[i].until == 0
	return &call
}
