package redlock

import (
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// acquireCertain reports whether further answers cannot change the result of an acquisition's
// round: it is granted, too many nodes failed, an owner with a quorum holds the key, or the vote
// was split.
func (q *Quorum) acquireCertain(replies []vote.Reply, c *contest) bool {
	granted, open, silent := 0, 0, 0
	for i := range replies {
		switch replies[i].Verdict {
		case wire.OK:
			granted++
		case wire.Failed:
			silent++
		case wire.Pending:
			if c.isSilent(i) {
				silent++
			} else {
				open++
			}
		}
	}
	switch {
	case granted >= q.need:
		return true
	case granted+open >= q.need:
		return false
	case silent > len(replies)-q.need:
		return true
	}
	most := leading(replies).votes
	return most >= q.need || most+silent+open < q.need || open == 0
}

// leading returns the owner that most of the refusing nodes name; no votes if none refuses.
func leading(replies []vote.Reply) (most claim) {
	for i := range replies {
		if rep := &replies[i]; rep.Verdict == wire.Refused {
			if c := votesOf(rep.More().Owner, replies); c.votes > most.votes {
				most = c
			}
		}
	}
	return most
}

// refusal explains a round without a quorum of grants, which began at that time. The nodes failed
// if too many did for any quorum, and an owner holds the key if it is seen on a quorum. Otherwise
// the vote was split, unless a rival stands that may have the rest of its quorum on the nodes that
// did not answer.
func (a *acquisition) refusal(o vote.Outcome, began clock.Instant) (err error, split bool) {
	most := leading(o.Replies)
	a.q.saw(above(o.Replies))
	for i := range o.Replies {
		if rep := &o.Replies[i]; rep.Verdict == wire.Refused && rep.More().PTTL > maxMaxTTL {
			a.q.nodes[i].standing(&a.keys, rep)
		}
	}
	silent := vote.Count(o.Replies, wire.Failed)
	if o.Expired {
		silent += vote.Count(o.Replies, wire.Pending)
	}
	switch {
	case most.votes == 0 || silent > len(o.Replies)-a.q.need:
		return a.q.quorumError(OpAcquire, a.keys.Name, o), false
	case most.votes >= a.q.need:
		return a.held(most, o), false
	}
	a.contest.note(o, began)
	if holder, ok := a.contest.stander(o, silent, a.q.need); ok {
		err := a.held(holder, o)
		a.freeIn = min(a.freeIn, node.MaxPause) // the holder may be an attempt that is taken back without an announcement
		return err, false
	}
	rival := newHolder(a.keys.Name, most.owner)
	rival.Nodes = most.votes
	return &SplitError{Key: a.keys.Name, Rounds: a.contest.rounds, Rival: rival}, true
}

// held returns the error of an attempt that was refused because of a holder.
func (a *acquisition) held(by claim, o vote.Outcome) *HeldError {
	holder := newHolder(a.keys.Name, by.owner)
	holder.Nodes = by.votes
	for _, rep := range o.Replies {
		if rep.Verdict == wire.Refused && rep.More().Owner == by.owner {
			holder.TTL = max(holder.TTL, rep.More().PTTL)
		}
	}
	a.q.checkTTL(holder)
	a.freeIn, a.rank = a.untilFree(o), a.rankIn(o.Replies)
	return &HeldError{Key: a.keys.Name, Holder: holder, Self: holder.Identity == a.cfg.identity}
}

// untilFree returns how long it takes until the keys on enough refusing nodes have expired for a
// quorum. A key that outlives every lease, such as one without expiry, counts as a day: its waiters
// poll.
func (a *acquisition) untilFree(o vote.Outcome) time.Duration {
	var ttls []time.Duration
	for _, rep := range o.Replies {
		if rep.Verdict == wire.Refused {
			ttls = append(ttls, min(rep.More().PTTL, maxMaxTTL))
		}
	}
	wanted := min(max(a.q.need-o.Agreed, 1), len(ttls))
	slices.Sort(ttls)
	return ttls[wanted-1]
}

// rankIn returns how many waiters are before this one: the median of what the refusing nodes say.
// It returns -1 if fewer than a quorum say it.
func (a *acquisition) rankIn(replies []vote.Reply) int {
	if a.member == "" {
		return -1
	}
	var ranks []int
	for _, rep := range replies {
		switch {
		case rep.Verdict != wire.Refused:
		case rep.More().Rank >= 0:
			ranks = append(ranks, rep.More().Rank)
		case rep.More().Rank == wire.QueueFull:
			ranks = append(ranks, maxRank+1)
		}
	}
	if len(ranks) < a.q.need {
		return -1
	}
	slices.Sort(ranks)
	return ranks[len(ranks)/2]
}
