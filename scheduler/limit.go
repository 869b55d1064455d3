package scheduler

import (
	"context"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// limit implements gocron.WithLimitConcurrentJobs. A replica takes a place before it asks for a
// tick. If no place is free, it leaves the tick to other replicas. A nil limit has no bound.
type limit struct {
	ages    bool          // gocron.LimitModeReschedule: a tick that waits for a place ages
	places  chan struct{} // holds a value for each place that is taken
	waiting atomic.Int32  // ticks that wait for a place and do not age
}

func newLimit(s *gocronx.Settings) *limit {
	if s.Limit == 0 {
		return nil
	}
	return &limit{ages: s.LimitMode == gocron.LimitModeReschedule, places: make(chan struct{}, s.Limit)}
}

// try takes a place if one is free.
func (l *limit) try() bool {
	if l == nil {
		return true
	}
	select {
	case l.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// isFull reports whether no place is free.
func (l *limit) isFull() bool { return l != nil && len(l.places) == cap(l.places) }

// take takes a place as soon as one is free.
func (l *limit) take(ctx context.Context) error {
	if !l.ages {
		l.waiting.Add(1)
		defer l.waiting.Add(-1)
	}
	select {
	case l.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// giveBack frees a place.
func (l *limit) giveBack() {
	if l != nil {
		<-l.places
	}
}
