package scheduler

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// limit is gocron.WithLimitConcurrentJobs. A place is taken before a tick is asked for, so a
// replica that has none leaves the tick to others. A nil limit is none.
type limit struct {
	waits  bool          // gocron.LimitModeWait: what is due waits for a place, and does not age
	places chan struct{} // holds a value for each place that is taken

	waiting atomic.Int32 // ticks that do

	mu      sync.Mutex
	without []*job // guarded by mu; that found no place and are to be told when there is one
}

func newLimit(s *gocronx.Settings) *limit {
	if s.Limit == 0 {
		return nil
	}
	return &limit{waits: s.LimitMode == gocron.LimitModeWait, places: make(chan struct{}, s.Limit)}
}

// errNoPlace is why a tick is left to other replicas.
var errNoPlace = &SkipError{Reason: SkipLimit}

// take takes a place for a job, and reports whether it has waited for one. Where it does not wait
// the error is errNoPlace, and the job is kicked when a place is given back; a nil one never waits.
func (l *limit) take(ctx context.Context, j *job) (waited bool, err error) {
	if l == nil {
		return false, nil
	}
	l.mu.Lock()
	select {
	case l.places <- struct{}{}:
		l.mu.Unlock()
		return false, nil
	default:
	}
	if j == nil || !l.waits {
		if j != nil {
			l.without = append(l.without, j)
		}
		l.mu.Unlock()
		return false, errNoPlace
	}
	l.mu.Unlock()
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	select {
	case l.places <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// waitingTicks is how many wait for a place.
func (l *limit) waitingTicks() int {
	if l == nil {
		return 0
	}
	return int(l.waiting.Load())
}

// giveBack gives a place back.
func (l *limit) giveBack() {
	if l == nil {
		return
	}
	<-l.places
	l.mu.Lock()
	jobs := l.without
	l.without = nil
	l.mu.Unlock()
	for _, j := range jobs {
		j.kick()
	}
}
