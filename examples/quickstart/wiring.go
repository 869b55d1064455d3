package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// wiring is what makes a gocron scheduler run its jobs on one replica.
type wiring struct {
	option gocron.SchedulerOption
	token  func() uint64 // the fencing token of the run that is beginning
	end    func() error  // gives up what is held; to be called when the jobs have ended
}

func wire(q *redlock.Quorum, job assignment, events *reporter) (*wiring, error) {
	if job.Mode == modeLocker {
		return wireLocker(q)
	}
	return wireElector(q, job.Name, events)
}

// wireElector lets the leader run every job.
func wireElector(q *redlock.Quorum, name string, events *reporter) (*wiring, error) {
	e, err := elector.New(q, name)
	if err != nil {
		return nil, err
	}
	var background sync.WaitGroup
	campaigning, resign := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var campaign error // read it when ended is closed
	background.Go(func() {
		defer close(ended)
		campaign = e.Run(campaigning, nil)
	})
	watching, stopWatching := context.WithCancel(context.Background())
	changes := e.Changes(watching)
	background.Go(func() {
		for c := range changes {
			events.reportChange(c)
		}
	})
	return &wiring{
		option: gocron.WithDistributedElector(e),
		token:  func() uint64 { return termOf(e) },
		end: func() error {
			if e.IsLeader(context.Background()) == nil {
				events.report(event{Kind: kindResigns})
			}
			resign()
			<-ended
			stopWatching() // what has happened is still reported
			background.Wait()
			return campaign
		},
	}, nil
}

// termOf returns the number of the term in which this replica leads. The first of an Elector's changes is that it was
// elected, if it leads; it comes at once unless this replica has just ceased to lead.
func termOf(e *elector.Elector) uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), work)
	defer cancel()
	for c := range e.Changes(ctx) {
		if c.Kind == elector.Elected {
			return c.Term
		}
	}
	return 0
}

// minHold fits a job that is due every second on replicas that share a clock.
const minHold = 500 * time.Millisecond

// wireLocker lets whoever gets the lease of a tick run it.
func wireLocker(q *redlock.Quorum) (*wiring, error) {
	locker, err := scheduler.NewLocker(q, scheduler.WithMinHold(minHold))
	if err != nil {
		return nil, err
	}
	l := &tokenLocker{Locker: locker}
	return &wiring{
		option: gocron.WithDistributedLocker(l),
		token:  l.token.Load,
		end:    func() error { return nil },
	}, nil
}

// tokenLocker keeps the fencing token of the latest lock. There is one job, and it never overlaps itself, so that is
// the token of the run.
type tokenLocker struct {
	*scheduler.Locker
	token atomic.Uint64
}

func (l *tokenLocker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	lock, err := l.Locker.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	l.token.Store(lock.(*scheduler.Lock).Lease().FencingToken())
	return lock, nil
}
