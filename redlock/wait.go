package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/waitqueue"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// When a holder's keys expire, several waiters wake. Their attempts are spread over expirySpread,
// so that most of the time the first has its votes before the second asks. expiryMargin covers the
// servers' resolution.
const (
	expiryMargin = time.Millisecond
	expirySpread = 10 * time.Millisecond
)

const (
	// rankStep is the time between two waiters when keys expire. It is more than a round takes
	// where the network is good.
	rankStep = 2 * time.Millisecond
	// Waiters up to maxRank ask when the keys expire. Waiters up to lastRank ask a turn later, in
	// case the first have all died. All others wait to be called, or ask about once a TTL, as every
	// waiter does.
	maxRank  = 4
	lastRank = 64
	// maxTurn bounds for how long a key is reserved.
	maxTurn = time.Second
	// queueLives is how many of its waiters' TTLs a queue lives: they ask once in each.
	queueLives = 3
)

// pollJitter spreads the polls of waiters, of which there is about one a TTL.
const pollJitter = 0.1

// vacancy is how, and since when, a key is free that was waited for.
type vacancy struct {
	by    FreedBy // empty while it is held, as far as is known
	since clock.Instant
}

// wait tries until it has the lease, ctx ends, the Quorum is closed or an attempt fails for good.
func (a *acquisition) wait(ctx context.Context) (l *Lease, err error) {
	var w *waitqueue.Ticket
	if a.q.queue.IsHeard() {
		w = a.join(false)
	}
	defer func() {
		if w == nil {
			return
		}
		if a.q.queue.Leave(w); err != nil && !a.q.isClosed() {
			a.leave(ctx)
		}
	}()
	defer a.starves(false)
	var backoff time.Duration   // after several attempts in a row that neither won nor met a holder
	var unreached clock.Instant // since when no quorum has answered; 0 while one does
	var last error              // the error of the attempt before
	for {
		l, err = a.try(ctx)
		if err == nil {
			a.reached()
			return l, nil
		}
		if ctx.Err() != nil {
			var own *contextError
			if errors.As(err, &own) && own.last == nil { // ctx has ended in the middle of an attempt
				err = newContextError(ctx, a.keys.Name, last)
			} else if !errors.Is(err, ctx.Err()) {
				err = newContextError(ctx, a.keys.Name, err)
			}
			return nil, err
		}
		last = err
		a.q.lines.met(a.keys.Name, err)
		var held *HeldError
		var pause time.Duration
		failing := false
		switch {
		case errors.As(err, &held):
			a.reached()
			unreached, backoff = 0, 0
			a.occupied(held.Holder.Identity)
			if w == nil {
				w = a.join(true)
			}
			pause = min(a.untilExpiry(), node.Jitter(a.cfg.ttl, pollJitter))
			failing = held.Holder.Nodes < a.q.need // it may have the rest on nodes that do not answer
		case errors.Is(err, ErrSplit):
			if w == nil {
				w = a.join(true)
			}
			pause = min(a.contest.beforeReturning()+fullJitter(backoff), node.MaxPause)
			backoff = longer(backoff) // a rival that splits the vote may stand for long
		case errors.Is(err, ErrNoQuorum), errors.Is(err, ErrTimeout):
			if a.missed = a.q.clock.Now(); unreached == 0 {
				unreached = a.missed
			} else if a.missed >= unreached.Add(a.cfg.ttl) {
				a.starves(true)
				a.q.news.is(matter{trouble: noQuorum}, "", a.keys.Name, "error", err)
			}
			failing = true
			backoff = longer(backoff)
			pause = fullJitter(backoff)
		default:
			return nil, err
		}
		if !a.sleep(ctx, w, pause, failing) {
			if ctx.Err() == nil {
				return nil, ErrClosed
			}
			return nil, newContextError(ctx, a.keys.Name, err)
		}
	}
}

// starves notes whether this waiter has had no quorum for a TTL.
func (a *acquisition) starves(does bool) {
	switch {
	case does && !a.starving:
		a.q.starving.Add(1)
	case !does && a.starving:
		a.q.starving.Add(-1)
	}
	a.starving = does
}

// reached reports that a quorum has answered, unless other waiters have none: the quorum may be
// missing for their keys.
func (a *acquisition) reached() {
	if a.starves(false); a.q.starving.Load() == 0 {
		a.q.news.over(matter{trouble: noQuorum}, a.keys.Name)
	}
}

// occupied notes that the key is held, and free when its keys expire. A key that was free counts as
// free still if the holder may be an attempt of this acquisition that nodes had not answered: it
// has arrived late and is being rolled back. The identity alone does not tell, because other leases
// of this process have it, too.
func (a *acquisition) occupied(identity string) {
	now := a.q.clock.Now()
	late := identity == a.cfg.identity && a.hasMissed()
	if v := a.vacancy; v.by == "" || v.since > now || !late {
		a.vacancy, a.awaited = vacancy{by: FreedByExpiry, since: now.Add(a.freeIn)}, identity
	}
}

// hasMissed reports whether an attempt of this waiter has found too few nodes within a TTL.
func (a *acquisition) hasMissed() bool {
	return a.missed != 0 && a.q.clock.Now() < a.missed.Add(a.cfg.ttl)
}

// untilExpiry is how long to sleep until the keys in the way have expired, and the waiters before
// this one have had their turn.
func (a *acquisition) untilExpiry() time.Duration {
	switch {
	case a.rank < 0:
		return a.freeIn + expiryMargin + fullJitter(expirySpread)
	case a.rank > lastRank:
		return maxMaxTTL // it polls
	case a.rank > maxRank:
		turn := min(a.q.cfg.timeout(a.cfg.ttl), maxTurn)
		return a.freeIn + expiryMargin + turn + fullJitter(turn)
	default:
		return a.freeIn + expiryMargin + time.Duration(a.rank)*rankStep + fullJitter(rankStep)
	}
}

// join has further attempts queue for the key. refused says that an attempt was refused before.
func (a *acquisition) join(refused bool) *waitqueue.Ticket {
	if a.came == 0 {
		a.came = a.q.queue.Place()
	}
	w := a.q.queue.Join(a.came, a.cfg.identity, refused)
	a.member = w.Member
	return w
}

// leave takes this acquisition, which has given up, out of the queue.
func (a *acquisition) leave(ctx context.Context) {
	at := a.attempt("")
	call := at.call(wire.Leave)
	call.Lock, call.Keep, call.Turn, call.Channel = a.member, "0", a.cfg.turn, a.q.cfg.channel
	a.q.newOperation(OpLeave, a.q.need).send(a.q.detach(ctx), at, call, a.q.clock.Now().Add(a.cfg.ttl), nil)
}

// sleep returns true after pause, or when w is called, and false when ctx ends or the Quorum is
// closed. While nodes are failing, no call cuts a pause short: no holder can have released the key,
// or none is seen on a quorum. Such a call comes from a waiter that tried, failed, and takes back
// what it may have been granted. A waiter that tried at once would do the same, and call others, or
// itself.
func (a *acquisition) sleep(ctx context.Context, w *waitqueue.Ticket, pause time.Duration, failing bool) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	poll := time.Now().Add(max(pause, node.Jitter(a.cfg.ttl, pollJitter))) // no call puts the next attempt off beyond that
	var notices <-chan waitqueue.Notice
	if w != nil {
		notices = w.Notices
	}
	for {
		select {
		case <-timer.C:
			return true
		case u := <-notices:
			if now := a.q.clock.Now(); u.Released && (a.vacancy.by == "" || a.vacancy.since > now) {
				a.vacancy = vacancy{by: FreedByRelease, since: now.Add(u.FreeIn)}
			} // else an attempt was taken back, and the key was free already
			switch {
			case failing:
				continue
			case u.FreeIn == 0:
				return true
			}
			// Released with a minimum hold, or others are called first.
			a.freeIn, a.rank = u.FreeIn, 0
			timer.Reset(max(min(a.untilExpiry(), time.Until(poll)), clock.AtOnce))
		case <-ctx.Done():
			return false
		case <-a.q.done:
			return false
		}
	}
}

// longer returns the bound of the pause after one with that bound; that of the first for 0.
func longer(backoff time.Duration) time.Duration {
	return min(max(2*backoff, node.MinPause), node.MaxPause)
}

// fullJitter returns a random time up to d. So attempts that wait for the same thing are spread
// over all of it (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
func fullJitter(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d) + 1)) }
