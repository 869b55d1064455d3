package web

import (
	"context"
	"sync/atomic"
	"time"
)

// part names what is read by itself: a node that hangs, or a thousand jobs, keep nothing else from
// being read.
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

// reading is how a part was read last.
type reading struct {
	At    time.Time // when it was; zero for never
	Tried time.Time // when a read ended, with success or not; zero for never
	Err   error     // of that; nil for success
}

// loop reads a part again and again, while somebody looks.
type loop struct {
	part  part
	every time.Duration // from the end of a read to the next, at least
	most  time.Duration // that a read may take
	share int           // one in so many parts of the time is spent on it, unless a read takes long
	read  func(ctx context.Context) (news bool, err error)
	wake  chan struct{} // has one if something has happened
	began atomic.Int64  // when a read began that goes on, in Unix milliseconds; 0 for none
}

// longestRest bounds a rest: nodes that were slow for a moment may be in order now, or worse.
const longestRest = 15 * time.Second

// rest is for how long after a read that took so long there is none, so that it is one in so many
// parts of the time.
func rest(took time.Duration, share int) time.Duration {
	return min(time.Duration(share-1)*took, longestRest)
}

// soonest is how long after a read what has happened can have the next one begin.
const soonest = 200 * time.Millisecond

func newLoop(p part, every, most time.Duration, share int, read func(context.Context) (news bool, err error)) *loop {
	return &loop{part: p, every: every, most: most, share: share, read: read, wake: make(chan struct{}, 1)}
}

// hurry has the part be read soon.
func (l *loop) hurry() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run reads until ctx ends, and tells done of each read.
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

// busy is for how long a read has gone on; zero if none does.
func (l *loop) busy(now time.Time) time.Duration {
	began := l.began.Load()
	if began == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(began))
}
