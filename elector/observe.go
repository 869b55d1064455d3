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
	// observeBurst bounds how often Observe reads: so many times in as many seconds. A hand-over
	// is two to four reads.
	observeBurst = 5
	// observeIdle is after how long Observe reads while nobody leads, or while the nodes do not
	// say.
	observeIdle = redlock.DefaultTTL
	// observeSoon is after how long it reads again at first, because it has not heard what happened
	// before a node took its subscription; and after a failure, or what it heard.
	observeSoon = time.Second
	// observeSettled is how long after it heard of a change it reads again that it did not see: the
	// first node that tells a release is not a quorum.
	observeSettled = 20 * time.Millisecond
	// observeMargin is how long after a lease would have expired it reads.
	observeMargin = 5 * time.Millisecond
)

// Observe returns who leads, as Leader reads it, and then each change: another leader or another
// term, or nobody, which is the zero Leader. It is for a process that takes no part in the
// election. TTL is as it was when the Leader was read; that it grows is no change.
//
// It reads the nodes when it hears that a term has begun or ended, on one more connection to each
// node, which those who wait for leases in this process use too. A leader that crashes says
// nothing, and messages may be lost: so it reads also when the lease that it saw last would have
// expired, which is about once a TTL, and every 10 s while nobody leads. It reads at most five
// times in five seconds, whatever it hears. A resignation is seen at once, a crash when the lease
// expires; changes that follow each other quickly may be seen as one. It is information, and may be
// out of date when it arrives.
//
// A failure to read is yielded with the zero Leader: once until the failure is another one
// (ErrorType), or who leads was read, which is yielded then. Observe goes on with pauses of 1 s to
// 10 s. Failures are a *redlock.QuorumError in the main.
//
// The sequence ends when ctx ends, when the Quorum is closed, and after an
// *OptionError, for an argument that cannot be used. It may be ranged over any number of times,
// also at the same time, and starts no goroutine.
func Observe(ctx context.Context, q *redlock.Quorum, election string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := checkObserved(ctx, q, election); err != nil {
			yield(Leader{}, err)
			return
		}
		o := &observer{q: q, election: election, news: make(chan struct{}, 1), again: []time.Duration{observeSoon}}
		defer board.Of(q).Hear(bulletin.Terms, o.hear)()
		o.observe(ctx, yield)
	}
}

func checkObserved(ctx context.Context, q *redlock.Quorum, election string) error {
	if err := cmp.Or(checkContext(ctx), checkElection(q, election)); err != nil {
		return err
	}
	if err := q.Validate(KeyPrefix + election); err != nil {
		return invalidLease(err)
	}
	return nil
}

// observer is a range over Observe.
type observer struct {
	q        *redlock.Quorum
	election string
	news     chan struct{} // capacity 1; a term has begun or ended

	reads [observeBurst]time.Time // a ring of when it read
	next  int                     // in reads
	again []time.Duration         // after which it reads again, at the most
}

// hear takes an entry of any election, from anybody.
func (o *observer) hear(e bulletin.Entry) {
	if t, ok := bulletin.ParseTerm(e.Text); !ok || !isCutOf(t.Election, o.election) {
		return
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// isCutOf reports whether an entry with that name may be of the election: long names are cut.
func isCutOf(name, election string) bool {
	return name == election || len(name) > 250 && strings.HasPrefix(election, name)
}

func (o *observer) observe(ctx context.Context, yield func(Leader, error) bool) {
	var last Leader
	known := false // last has been yielded
	failure := ""  // that has been yielded
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
				o.again = o.again[len(o.again)/2:] // it has seen what it heard of
			}
			wait = o.untilNext(l)
		}
		if !o.sleep(ctx, wait, o.news) {
			return
		}
	}
}

// untilNext is how long to wait after who leads was read, if nothing is heard.
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

// heard has it read again also if it sees no change now.
func (o *observer) heard() {
	o.again = []time.Duration{observeSettled, observeSoon}
}

func (l Leader) same(other Leader) bool {
	return l.Identity == other.Identity && l.Term == other.Term && l.Payload == other.Payload
}

// mayRead waits until it may read again; false when there is no more to read.
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

// sleep returns true after d, or when there are news, and false when ctx ends or the Quorum is
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
