package scheduler

import (
	"context"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// limit is gocron.WithLimitConcurrentJobs. A place is taken before a tick is asked for, so a
// replica that has none leaves the tick to others. A nil limit is none.
type limit struct {
	ages    bool          // gocron.LimitModeReschedule: what waits for a place ages
	places  chan struct{} // holds a value for each place that is taken
	waiting atomic.Int32  // ticks that wait for one and do not age
}

func newLimit(s *gocronx.Settings) *limit {
	if s.Limit == 0 {
		return nil
	}
	return &limit{ages: s.LimitMode == gocron.LimitModeReschedule, places: make(chan struct{}, s.Limit)}
}

// try takes a place if there is one.
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

// isFull reports whether there is none.
func (l *limit) isFull() bool { return l != nil && len(l.places) == cap(l.places) }

// take takes a place as soon as there is one.
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

// giveBack gives a place back.
func (l *limit) giveBack() {
	if l != nil {
		<-l.places
	}
}
