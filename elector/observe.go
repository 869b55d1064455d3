package elector

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	// observeBurst bounds how often Observe reads: this many times in as many seconds. A hand-over
	// takes two to four reads.
	observeBurst = 5
	// observeIdle is the longest pause between two reads while there is no leader, or while no
	// quorum answers.
	observeIdle = redlock.DefaultTTL
	// observeSoon is the pause after the first read: a change before a node took the subscription
	// is not heard. It is also the first pause after a failure, and the last after news.
	observeSoon = time.Second
	// observeSettled is the pause after a read that news caused and that saw no change: the first
	// node to announce a release is not a quorum.
	observeSettled = 20 * time.Millisecond
	// observeMargin is the pause from the expiry of the lease that was read to the next read.
	observeMargin = 5 * time.Millisecond
)

// Observe returns the leader, as Elector.Leader reads it, and then each change: another leader,
// another term, or no leader, which is the zero Leader. It is for a process that takes no part in
// the election. The answers may be out of date when they arrive. TTL is as it was at the read; a
// TTL that grows is no change.
//
// Observe reads the nodes when it hears that a term has begun or ended. For that it uses one more
// connection to each node, which it shares with this process's waits for leases. A leader that
// crashes announces nothing, and messages may be lost. So Observe also reads when the lease that it
// saw last would have expired, which is about once a TTL, and every 10 s while there is no leader.
// It reads at most five times in five seconds. So a resignation is seen at once and a crash when
// the lease expires. Changes that follow each other quickly may be seen as one.
//
// A failure to read, mostly a *redlock.QuorumError, is yielded with the zero Leader. It is yielded
// once, until a read fails in another way (ErrorType) or succeeds; the leader is yielded after a
// success. Observe goes on after failures, with pauses of 1 s to 10 s.
//
// The sequence ends when ctx ends and when the Quorum is closed. An argument that cannot be used
// ends it after an *OptionError. It may be ranged over any number of times, also at the same time,
// and starts no goroutine.
func Observe(ctx context.Context, q *redlock.Quorum, election string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := cmp.Or(checkContext(ctx), checkElection(q, election), invalidLease(q.Validate(KeyPrefix+election))); err != nil {
			yield(Leader{}, err)
			return
		}
		o := &observer{q: q, election: election, news: make(chan struct{}, 1), again: []time.Duration{observeSoon}}
		defer board.Of(q).Hear(bulletin.Terms, o.hear)()
		o.observe(ctx, yield)
	}
}

// observer is the state of one range over Observe.
type observer struct {
	q        *redlock.Quorum
	election string
	news     chan struct{} // capacity 1; a term has begun or ended

	reads [observeBurst]time.Time // a ring of the times of the last reads
	next  int                     // the oldest of reads
	again []time.Duration         // upper bounds of the next pauses, after news or at the start
}

// hear takes an entry of any election, from any process that may write to the nodes.
func (o *observer) hear(e bulletin.Entry) {
	if t, ok := bulletin.Parse[bulletin.Term](e.Text); !ok || !isCutOf(t.Election, o.election) {
		return
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// isCutOf reports whether an entry with that name may be of the election: entries cut long names.
func isCutOf(name, election string) bool {
	return name == election || len(name) > 250 && strings.HasPrefix(election, name)
}

func (o *observer) observe(ctx context.Context, yield func(Leader, error) bool) {
	var last Leader
	known := false // last has been yielded
	failure := ""  // the word of the failure that has been yielded
	pause := observeSoon
	for o.mayRead(ctx) {
		l, err := leader(ctx, o.q, o.election)
		if errors.Is(err, ErrNoLeader) {
			l, err = Leader{}, nil
		}
		var wait time.Duration
		switch {
		case ctx.Err() != nil || errors.Is(err, redlock.ErrClosed):
			return
		case err != nil:
			if word := ErrorType(err); word != failure {
				if known, failure = false, word; !yield(Leader{}, err) {
					return
				}
			}
			wait, pause = pause, min(2*pause, observeIdle)
		default:
			failure, pause = "", observeSoon
			if !known || !l.same(last) {
				if last, known = l, true; !yield(l, nil) {
					return
				}
				o.again = o.again[len(o.again)/2:] // the change that was heard of is seen
			}
			wait = o.untilNext(l)
		}
		if !o.sleep(ctx, wait, o.news) {
			return
		}
	}
}

// untilNext returns the pause after a read that returned l, if no news arrive.
func (o *observer) untilNext(l Leader) time.Duration {
	wait := observeIdle
	if l.Term != 0 && l.TTL < redlock.NoExpiry {
		wait = l.TTL + observeMargin
	}
	if len(o.again) > 0 {
		wait = min(wait, o.again[0])
		o.again = o.again[1:]
	}
	return wait
}

// heard plans two reads after the next one, for a change that the next read does not see.
func (o *observer) heard() {
	o.again = []time.Duration{observeSettled, observeSoon}
}

func (l Leader) same(other Leader) bool {
	return l.Identity == other.Identity && l.Term == other.Term && l.Payload == other.Payload
}

// mayRead waits until the next read is allowed, and returns false when Observe is to end.
func (o *observer) mayRead(ctx context.Context) bool {
	if wait := time.Until(o.reads[o.next].Add(observeBurst * time.Second)); wait > 0 {
		if !o.sleep(ctx, wait, nil) {
			return false
		}
		select {
		case <-o.news:
			o.heard()
		default:
		}
	}
	o.reads[o.next] = time.Now()
	o.next = (o.next + 1) % observeBurst
	return ctx.Err() == nil
}

// sleep returns true after d, or when news arrive. It returns false when ctx ends or the Quorum is
// closed.
func (o *observer) sleep(ctx context.Context, d time.Duration, news <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-o.q.Closed():
		return false
	case <-time.After(d):
		return true
	case <-news:
		o.heard()
		return true
	}
}
