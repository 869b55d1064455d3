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

// take takes a place for a job. If there is none the job is kicked when one is given back; a nil
// one is a run that does not wait.
func (l *limit) take(j *job) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	if !l.waits && j != nil {
		l.without = append(l.without, j)
	}
	return false
}

// wait waits for a place.
func (l *limit) wait(ctx context.Context) error {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	select {
	case l.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
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
