package redlock

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Several attempts that ask for a key at once may each be granted it by some nodes, and none of
// them by a quorum. Such a split vote ends by a rule that needs no messages between the rivals.
// Each attempt ranks its own owner value and those that it has seen. The first of them stays: it
// keeps what it was granted and asks the other nodes again, with the same owner value. All other
// attempts take back at once what they were granted, pause, and ask again as new owners. So nodes
// become free for the attempt that stays, and grants of several rounds are added up for that
// attempt only. Rivals may see different votes in one round, and then two of them stay. In the next
// round each sees what the other has kept, and both rank alike.
//
// A rival may be a holder that has the rest of its quorum on nodes that do not answer. Such a rival
// does not go away. A rival that died between two rounds stays until its keys expire. So a rival
// that is seen in several rounds on end is passed over in the ranking. It is reported as the holder
// if it may have a quorum.
//
// To a holder a candidate that stays looks like several attempts in a row. On a node that has lost
// the holder's key, the candidate keeps the holder from putting the key back for these rounds, and
// the holder's extension counts that node as another owner's. The holder has a quorum without that
// node, and tries again.
const (
	// maxRounds bounds how often one call of TryAcquire asks.
	maxRounds = 8
	// passedOver is the number of rounds on end after which a rival is passed over in favor of
	// rivals that come and go.
	passedOver = 3
	// holderAfter is the number of rounds on end after which a rival that may have a quorum counts
	// as a holder.
	holderAfter = 4
	// minTrip is the shortest that a round is taken to last. It covers the delays that the machine
	// adds to those of the network.
	minTrip = 500 * time.Microsecond
	// maxBackoff bounds a pause, in rounds.
	maxBackoff = 8
)

// contest has the rivals that an acquisition has seen in the rounds of one try.
type contest struct {
	rounds   int            // rounds that ended without a winner
	yields   int            // how many of them ended with taking back what was granted
	trip     time.Duration  // how long the answers of the last round took
	silent   []bool         // which nodes did not answer the last round; nil before the first
	standing map[string]int // for each owner seen in the last round: in how many rounds on end
}

// note records a round without a winner, which began at that time.
func (c *contest) note(o vote.Outcome, began clock.Instant) {
	c.rounds++
	standing := make(map[string]int, len(c.standing))
	c.silent = make([]bool, len(o.Replies))
	trip := minTrip
	for i, rep := range o.Replies {
		switch {
		case rep.Verdict == wire.Pending:
			c.silent[i] = o.Expired
		case rep.Verdict == wire.Failed:
			c.silent[i] = isTimeout(&rep)
		case isRival(&rep):
			standing[rep.More().Owner] = c.standing[rep.More().Owner] + 1
		}
		// The time that a node took to fail says nothing of the way to the others.
		if rep.Verdict != wire.Failed && rep.At > began {
			trip = max(trip, rep.At.Sub(began))
		}
	}
	c.trip, c.standing = trip, standing
}

// isRival reports whether the node refused because of another owner.
func isRival(rep *vote.Reply) bool {
	return rep.Verdict == wire.Refused && rep.More().Owner != ""
}

// isSilent reports whether a round should not wait for the node.
func (c *contest) isSilent(node int) bool { return c.silent != nil && c.silent[node] }

// leads reports whether the attempt with that owner value ranks first, and so may stay.
func (c *contest) leads(owner string, o vote.Outcome) bool {
	mine := claim{owner, o.Agreed}
	if mine.votes == 0 {
		return false // it has nothing to keep
	}
	fresh, first, firstOfAll := false, true, true
	for rival := range c.standing {
		before := votesOf(rival, o.Replies).compare(mine) < 0
		firstOfAll = firstOfAll && !before
		if c.standing[rival] < passedOver {
			fresh, first = true, first && !before
		}
	}
	if fresh {
		return first
	}
	return firstOfAll
}

// stander returns the rival that may be the holder: it was seen in holderAfter rounds on end, and
// may have a quorum with the silent nodes. Among several it is the first in the ranking.
func (c *contest) stander(o vote.Outcome, silent, need int) (claim, bool) {
	var holder claim
	for owner, rounds := range c.standing {
		if rival := votesOf(owner, o.Replies); rounds >= holderAfter && rival.votes+silent >= need && (holder.votes == 0 || rival.compare(holder) < 0) {
			holder = rival
		}
	}
	return holder, holder.votes > 0
}

// beforeStaying is how long an attempt that stays waits before it asks again. In that time the
// others' releases arrive. It waits longer each time, because another's round may be much longer
// than its own.
func (c *contest) beforeStaying(asked int) time.Duration {
	return min(c.trip<<(asked-1)/4, maxBackoff*c.trip)
}

// beforeReturning is how long an attempt that has yielded waits before it asks again: long enough
// for the first to get what it lacks. The pause is random, because others have yielded too.
func (c *contest) beforeReturning() time.Duration {
	c.yields++
	return time.Duration((1 + rand.Float64()) * float64(min(c.trip<<(c.yields-1), maxBackoff*c.trip)))
}

// claim is an owner value and the number of nodes that have it.
type claim struct {
	owner string
	votes int
}

func votesOf(owner string, replies []vote.Reply) claim {
	c := claim{owner: owner}
	for i := range replies {
		if rep := &replies[i]; rep.Verdict == wire.Refused && rep.More().Owner == owner {
			c.votes++
		}
	}
	return c
}

// compare is negative if c ranks before other. An owner for whom the key is reserved ranks first:
// it does not yield, and comes soon. Next is the owner with more votes, which lacks less. Among
// equals the random part of the owner value decides, so that no identity is always first.
func (c claim) compare(other claim) int {
	_, reserved := wire.ReservedFor(c.owner)
	_, otherReserved := wire.ReservedFor(other.owner)
	switch {
	case reserved != otherReserved && reserved:
		return -1
	case reserved != otherReserved:
		return 1
	default:
		return cmp.Or(cmp.Compare(other.votes, c.votes), cmp.Compare(wire.ParseOwner(c.owner).Random, wire.ParseOwner(other.owner).Random), cmp.Compare(c.owner, other.owner))
	}
}
