package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A record must be known for as long as its sequence goes on, and a server may lose it, or come
// back with what it had long ago. So a record says for which server process it is complete (p, see
// wire/lib/record.lua). A process whose record is absent or another's does not know the sequence:
// it has no vote for it, and leases without a number never wait for that.
//
// Another quorum may have been granted a number meanwhile, with the help of the process before this
// one. Hence whoever meets a process that does not know restores the record, in this order: the
// quarantine of the process is over, and its run_id is known, both of which its answer shows; then
// the records of other nodes are read, and only of nodes that know; the largest is written to that
// process if it still does not know. Every quorum that granted a number before that, with the
// process before this one, has a node in common with any Q of the others, if its round ended within
// the quarantine, and that is sure: see tooLate.
//
// If Q others do not answer that they know, Q - 1 are enough, so that one node that is dead and one
// that was emptied do not stop all ticks: it is lost then what no other of them has. And if not
// even those know, the sequence is new, or a quorum has been emptied. Then what any Q nodes have is
// taken, old or not, and an error is logged if that is anything. Those whose record was on disk
// have lost nothing.
//
// What releases and extensions write to a process that does not know is kept: writing merges. It
// does not become known by it.
//
// A number that is recorded by an attempt under way may be copied, and stay on the restored node
// although the attempt fails and takes it back everywhere else. It is in nobody's way while a
// quorum of the others votes. An attempt that restores leaves its own grant out: either it has
// failed, or its quorum is without the nodes that it restores, and its holder may still give the
// number back.

// unknowing is a node that does not know a sequence.
type unknowing struct {
	node    int
	process string       // its run_id, from an answer that came before others are read
	has     *wire.Record // nil for nothing
	left    time.Duration
	knows   bool // the outcome
}

// restoration is that of one sequence, on the nodes that do not know it.
type restoration struct {
	keys    *wire.Keys
	nodes   []unknowing
	except  string        // the owner value of the attempt that restores: its own grant is left out
	keep    time.Duration // for how long, where no node says
	nothing bool          // the outcome: no node has anything, so there is nothing to know
}

// which tells of which record a node is asked: that of the key, or that of all keys, or either.
type which func(*vote.Reply) (unknown bool, has *wire.Record)

func ofKey(rep *vote.Reply) (bool, *wire.Record) { return rep.More().UnknownKey, rep.More().Record }
func ofAll(rep *vote.Reply) (bool, *wire.Record) { return rep.More().UnknownAll, rep.More().All }
func ofEither(rep *vote.Reply) (bool, *wire.Record) {
	return rep.More().UnknownKey || rep.More().UnknownAll, nil
}

// unknowingIn returns the nodes that answered that they do not know.
func unknowingIn(replies []vote.Reply, of which) (nodes []unknowing) {
	for i := range replies {
		if unknown, has := of(&replies[i]); unknown {
			nodes = append(nodes, unknowing{node: i, process: replies[i].More().Unknown, has: has, left: replies[i].More().PTTL})
		}
	}
	return nodes
}

// restorations are those of the records that nodes of an attempt do not know.
func (q *Quorum) restorations(at *attempt, keep time.Duration, replies []vote.Reply) (all []*restoration) {
	if nodes := unknowingIn(replies, ofKey); len(nodes) > 0 {
		all = append(all, &restoration{keys: at.keys, nodes: nodes, except: at.owner, keep: keep})
	}
	if nodes := unknowingIn(replies, ofAll); len(nodes) > 0 {
		all = append(all, &restoration{keys: &q.all, nodes: nodes, keep: keepPause})
	}
	return all
}

// maxRestores is how often an acquisition restores.
const maxRestores = 2

// recall asks the nodes that want selects for what they know of a key's sequence, until so many
// know it.
func (q *Quorum) recall(ctx context.Context, keys *wire.Keys, enough int, want func(int) bool) *operation {
	rd := q.newOperation(OpRecall, enough)
	rd.Decided = func(replies []vote.Reply) bool { return vote.Count(replies, wire.OK) >= enough }
	for i := range q.nodes {
		if !want(i) {
			rd.Skip(i, wire.Refused)
		}
	}
	timeout := q.cfg.timeout(q.cfg.lease.ttl)
	at := q.question(keys)
	rd.send(ctx, at, at.call(wire.Recall), q.clock.Now().Add(timeout), want)
	return rd
}

// restore restores sequences, all in two round trips. It returns an error for each that it could
// not restore, or nil; a node that did not take its record is no error. It returns ctx's error at
// once when ctx ends.
func (q *Quorum) restore(ctx context.Context, all ...*restoration) (errs []error) {
	errs = make([]error, len(all))
	rounds := make([]*operation, len(all))
	wait := func(op Op) error {
		deadline := q.clock.Now().Add(q.cfg.timeout(q.cfg.lease.ttl))
		for i, rd := range rounds {
			if rd == nil {
				continue
			}
			if rd.Wait(ctx, max(deadline.Sub(q.clock.Now()), clock.AtOnce), &q.waits) != nil {
				return newContextError(ctx, all[i].keys.Name, nil)
			}
		}
		return nil
	}
	others := min(q.need, len(q.nodes)-1)
	for i, r := range all {
		rounds[i] = q.recall(ctx, r.keys, others, func(node int) bool { return !r.has(node) && !q.nodes[node].onlyReads() })
	}
	err := wait(OpRecall)
	desperate := make([]*wire.Record, len(all))
	for i, r := range all {
		if err != nil {
			errs[i] = err
			continue
		}
		merged, keep, sure, ok := q.merged(r, rounds[i].Outcome().Replies)
		switch {
		case !ok:
			errs[i], rounds[i] = q.quorumError(OpRecall, r.keys.Name, rounds[i].Outcome()), nil
			continue
		case merged == nil && r.keep == 0:
			r.nothing, rounds[i] = true, nil
			continue
		case merged == nil:
			merged = &wire.Record{}
		case !sure:
			desperate[i] = merged
		}
		rounds[i] = q.write(ctx, r, merged, cmp.Or(keep, r.keep))
	}
	if err != nil {
		return errs
	}
	err = wait(OpRestore)
	for i, r := range all {
		if rounds[i] == nil {
			continue
		}
		errs[i] = err
		replies := rounds[i].Outcome().Replies
		for _, u := range r.nodes {
			if replies[u.node].Replaced {
				q.cfg.logger.WarnContext(ctx, "redlock: a node had something else in the place of a record, and has the record now",
					"node", q.nodes[u.node].addr, "name", r.keys.Record(), "key", r.keys.Name)
			}
		}
		if wrote := r.wrote(replies); wrote && desperate[i] != nil {
			q.cfg.logger.ErrorContext(ctx, "redlock: too few nodes know how far a sequence has come: it goes on from the largest numbers that were found",
				"key", r.keys.Name, "granted", desperate[i].Granted, "completed", desperate[i].Completed)
		}
	}
	return errs
}

// wrote takes the answers of nodes that were to know, and reports whether one has learnt something.
func (r *restoration) wrote(replies []vote.Reply) (any bool) {
	for i := range r.nodes {
		rep := replies[r.nodes[i].node]
		r.nodes[i].knows = rep.Verdict == wire.OK
		any = any || rep.Wrote
	}
	return any
}

// done reports whether the node knows now what there is to know.
func (r *restoration) done(node int) bool {
	for _, u := range r.nodes {
		if u.node == node {
			return u.knows || r.nothing
		}
	}
	return false
}

func (r *restoration) has(node int) bool {
	for _, u := range r.nodes {
		if u.node == node {
			return true
		}
	}
	return false
}

// merged is what nodes know together of a sequence: nil for nothing, and how long it is to be kept.
// sure reports whether Q of them know, or at least Q - 1; and ok whether there were enough answers
// for anything.
func (q *Quorum) merged(r *restoration, replies []vote.Reply) (all *wire.Record, keep time.Duration, sure, ok bool) {
	known, answered, unread := 0, len(r.nodes)-1, 0 // to each of these the others of them are others
	for i, rep := range replies {
		switch {
		case r.has(i):
		case rep.Verdict == wire.OK:
			known++
			answered++
		case rep.Verdict == wire.Refused:
			answered++
		case isOfAnotherVersion(rep.Err):
			unread++
		}
	}
	if unread > 0 && known < min(q.need, len(q.nodes)-1) {
		return nil, 0, false, false // it may be the one that knows
	}
	sure = known >= q.need-1
	if !sure && answered < q.need-1 {
		return nil, 0, false, false
	}
	marks := make([]wire.Mark, len(q.nodes))
	take := func(i int, rec *wire.Record, left time.Duration) {
		if rec == nil {
			return
		}
		marks[i] = rec.Mark
		if all == nil {
			all = &wire.Record{}
		}
		all.Merge(rec.Without(r.except))
		keep = max(keep, left)
	}
	few := known < q.need && known < max(len(q.nodes)-1, 1)
	for i, rep := range replies {
		if !r.has(i) && (rep.Verdict == wire.OK || rep.Verdict == wire.Refused && few) {
			take(i, rep.More().Record, rep.More().PTTL)
		}
	}
	if few {
		for _, u := range r.nodes {
			take(u.node, u.has, u.left)
		}
	}
	if all != nil {
		all.Mark = q.safest(marks)
	}
	return all, keep, sure, true
}

// isOfAnotherVersion reports whether a node's record was written by another version of this
// library.
func isOfAnotherVersion(err error) bool {
	why := wire.FaultOf(err)
	return why != nil && why.Condition == wire.OtherVersion
}

// write has the nodes of a restoration know the record.
func (q *Quorum) write(ctx context.Context, r *restoration, rec *wire.Record, keep time.Duration) *operation {
	rd := q.newOperation(OpRestore, len(r.nodes))
	rd.Decided = func([]vote.Reply) bool { return false } // until all have answered
	for i := range q.nodes {
		if !r.has(i) {
			rd.Skip(i, wire.Failed)
		}
	}
	at := q.question(r.keys)
	expires := q.clock.Now().Add(q.cfg.timeout(q.cfg.lease.ttl))
	for _, u := range r.nodes {
		call := at.call(wire.Restore)
		call.Write = &wire.Write{Process: u.process, Known: rec.Text(), Lifetime: milliseconds(keep)}
		rd.send(ctx, at, call, expires, func(i int) bool { return i == u.node })
	}
	return rd
}

// able is how many nodes have a vote for the sequence: they granted it, or refused it as done.
func able(replies []vote.Reply) (n int) {
	for _, rep := range replies {
		if rep.Verdict == wire.OK || rep.Verdict == wire.Refused && rep.More().Record != nil {
			n++
		}
	}
	return n
}

// unknowingCertain reports whether further answers cannot change how a round is taken, in which
// some nodes do not know the sequence (or else it is not ok): whether they are needed, and then,
// whether they are enough.
func (q *Quorum) unknowingCertain(replies []vote.Reply) (certain, ok bool) {
	unknowing := len(unknowingIn(replies, ofEither))
	able, open := able(replies), vote.Count(replies, wire.Pending)
	if unknowing == 0 || vote.Count(replies, wire.OK) >= q.need || able+unknowing+open < q.need {
		return false, false
	}
	return able+open < q.need && able+unknowing >= q.need, true
}

// noteUnknowing keeps which nodes did not know the sequence in a round that failed, if that is why
// it did.
func (a *acquisition) noteUnknowing(at *attempt, o vote.Outcome) {
	a.unknowing = nil
	if a.cfg.once == nil {
		return
	}
	if refused, completed := done(o.Replies, a.cfg.once.n); completed || refused > len(o.Replies)-a.q.need {
		return // that is certain
	}
	if n := len(unknowingIn(o.Replies, ofEither)); n > 0 && able(o.Replies)+n >= a.q.need {
		a.unknowing = a.q.restorations(at, a.cfg.once.keep, o.Replies)
	}
}

// restored restores what kept a round from a quorum, and reports whether it is worth to ask again.
func (a *acquisition) restored(ctx context.Context) bool {
	all := a.unknowing
	a.unknowing = nil
	return len(all) > 0 && errors.Join(a.q.restore(ctx, all...)...) == nil
}

// restoreLater has nodes that do not know the sequence restored in the background after a round
// that did without them, those that answer late included.
func (q *Quorum) restoreLater(rd *operation, at *attempt, keep time.Duration) {
	l := &laggards{q: q, at: at, keep: keep}
	l.restore(rd.LeaveTo(l, isUnknowing)...)
}

// laggards goes on with a round that had its quorum.
type laggards struct {
	q    *Quorum
	at   *attempt
	keep time.Duration
}

func (l *laggards) Late(_ *vote.Round, slot int, rep *vote.Reply) {
	if isUnknowing(rep) {
		l.restore(vote.Slot{Slot: slot, Reply: rep})
	}
}

func isUnknowing(rep *vote.Reply) bool { return rep.More().Unknown != "" }

func (l *laggards) restore(came ...vote.Slot) {
	replies := make([]vote.Reply, len(l.q.nodes))
	for _, c := range came {
		replies[c.Slot] = *c.Reply
	}
	all := l.q.restorations(l.at, l.keep, replies)
	if len(all) == 0 || !l.q.begin() {
		return
	}
	go func() {
		defer l.q.rounds.Done()
		l.q.restore(context.Background(), all...)
	}()
}
