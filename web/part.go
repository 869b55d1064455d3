package web

import (
	"context"
	"sync/atomic"
	"time"
)

// part is a part of the cluster that is read separately, so that a node that hangs, or a thousand
// jobs, do not delay the other parts.
type part int

// The parts.
const (
	partNodes part = iota
	partReplicas
	partElections
	partJobs
	partOrders
	parts
)

var partNames = [parts]string{"nodes", "replicas", "elections", "jobs", "orders"}

func (p part) String() string { return partNames[p] }

// reading is the last read of a part.
type reading struct {
	At    time.Time // beginning of the last successful read; zero for never
	Tried time.Time // end of the last read, successful or not; zero for never
	Err   error     // of the last read; nil if it succeeded
}

// loop reads a part periodically, while a page is looked at.
type loop struct {
	part  part
	every time.Duration // time from the end of a read to the next; wake shortens it, a rest may prolong it
	most  time.Duration // bound of a read
	share int           // reads take at most 1/share of the time, unless a read is slow
	read  func(ctx context.Context) (news bool, err error)
	wake  chan struct{} // holds a token if something has happened
	began atomic.Int64  // beginning of the present read in Unix milliseconds; 0 for none
}

// longestRest bounds a rest, because the state of nodes that were slow for a moment may have
// changed.
const longestRest = 15 * time.Second

// rest returns how long a loop rests after a read that took this long, so that reads take 1/share
// of the time.
func rest(took time.Duration, share int) time.Duration {
	return min(time.Duration(share-1)*took, longestRest)
}

// soonest is the least time from a read to the next one, if an event asks for it.
const soonest = 200 * time.Millisecond

func newLoop(p part, every, most time.Duration, share int, read func(context.Context) (news bool, err error)) *loop {
	return &loop{part: p, every: every, most: most, share: share, read: read, wake: make(chan struct{}, 1)}
}

// hurry has the part read soon.
func (l *loop) hurry() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run reads until ctx ends, and calls done after each read.
func (l *loop) run(ctx context.Context, done func(p part, began time.Time, news bool, err error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.wake:
		}
		began := time.Now()
		l.began.Store(began.UnixMilli())
		within, cancel := context.WithTimeout(ctx, l.most)
		news, err := l.read(within)
		cancel()
		l.began.Store(0)
		if ctx.Err() != nil {
			return
		}
		done(l.part, began, news, err)
		took := time.Since(began)
		timer.Reset(max(l.every, rest(took, l.share)))
		select {
		case <-time.After(max(soonest, took)):
		case <-ctx.Done():
			return
		}
	}
}

// busy returns how long the present read has gone on; zero for none.
func (l *loop) busy(now time.Time) time.Duration {
	began := l.began.Load()
	if began == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(began))
}
