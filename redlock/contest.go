package redlock

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Several that ask for a key at once may each be granted it by some nodes, and none of them by a
// quorum. Such a split vote ends by a rule that needs no messages between the rivals. Each of them
// ranks the owner values that it has seen and its own. The first one stays: it keeps what it was
// granted and asks the other nodes again, with the same owner value. All others take back at once
// what they were granted, pause, and ask again as new owners. So nodes become free for the one that
// stays, and only for it are grants added up. Rivals may see different votes in one round, and then
// two of them stay; in the next round both see what the other one has kept, and rank it alike.
//
// A rival may be a holder that has the rest of its quorum on nodes that do not answer. Such a rival
// does not go away. Nor does one that died between two rounds, until its keys expire. So a rival
// that stands for several rounds on end is passed over in the ranking, and is reported as the
// holder if it may be it.
//
// For a holder a candidate that stays is what several attempts in a row are: on a node that has
// lost the holder's key it is in the way of putting that back, for these rounds, and the holder's
// extension counts that node as another's. A holder has a quorum without it, and tries again.
const (
	// maxRounds bounds how often one call of TryAcquire asks.
	maxRounds = 8
	// A rival that was seen in that many rounds on end is passed over in favor of those that come
	// and go.
	passedOver = 3
	// One that was seen in that many, and may have a quorum, is a holder.
	holderAfter = 4
	// minTrip is what a round is taken to last at least. It covers what the machine adds to the
	// network.
	minTrip = 500 * time.Microsecond
	// maxBackoff bounds how many rounds long a pause is.
	maxBackoff = 8
)

// contest is what an acquisition has seen of its rivals in the rounds of one try.
type contest struct {
	rounds   int            // that ended without a winner
	yields   int            // after how many of them what was granted was taken back
	trip     time.Duration  // how long the answers of the last one took
	silent   []bool         // nodes that did not answer it; nil for none
	standing map[string]int // for each owner seen in it, in how many rounds on end
}

// note takes what a round that began at that time has shown.
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
		// A node that timed out says nothing of the way to the others.
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

// isSilent reports whether nobody should wait for the node.
func (c *contest) isSilent(node int) bool { return c.silent != nil && c.silent[node] }

// leads reports whether the attempt with that owner value is the one that stays.
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

// stander returns the rival that was seen on most nodes of those that may be the holder.
func (c *contest) stander(o vote.Outcome, silent, need int) (claim, bool) {
	var holder claim
	for owner, rounds := range c.standing {
		if rival := votesOf(owner, o.Replies); rounds >= holderAfter && rival.votes+silent >= need && (holder.votes == 0 || rival.compare(holder) < 0) {
			holder = rival
		}
	}
	return holder, holder.votes > 0
}

// beforeStaying is how long the one that stays waits before it asks again: a moment, in which what
// the others take back arrives, and longer each time, because another's round may be much longer
// than its own.
func (c *contest) beforeStaying(asked int) time.Duration {
	return min(c.trip<<(asked-1)/4, maxBackoff*c.trip)
}

// beforeReturning is how long one that has yielded waits: long enough for the first to get what it
// lacks. Others have yielded too, so it is random.
func (c *contest) beforeReturning() time.Duration {
	c.yields++
	return time.Duration((1 + rand.Float64()) * float64(min(c.trip<<(c.yields-1), maxBackoff*c.trip)))
}

// claim is an owner value and on how many nodes it is.
type claim struct {
	owner string
	votes int
}

func votesOf(owner string, replies []vote.Reply) claim {
	c := claim{owner: owner}
	for i := range replies {
		if rep := &replies[i]; isRival(rep) && rep.More().Owner == owner {
			c.votes++
		}
	}
	return c
}

// compare is negative if c ranks before the other one. Those for whom the key is reserved are
// first: they do not yield, and come soon. Then come those with more votes, who lack less. Among
// equals the random part of the owner value decides, so that no identity is always first.
func (c claim) compare(other claim) int {
	_, reserved := wire.MemberIdentity(c.owner)
	_, otherReserved := wire.MemberIdentity(other.owner)
	switch {
	case reserved != otherReserved && reserved:
		return -1
	case reserved != otherReserved:
		return 1
	default:
		return cmp.Or(cmp.Compare(other.votes, c.votes), cmp.Compare(wire.ParseOwner(c.owner).Random, wire.ParseOwner(other.owner).Random), cmp.Compare(c.owner, other.owner))
	}
}
