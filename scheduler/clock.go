package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// clockEvery is how often a clock that is ahead is looked at: that costs no I/O.
const clockEvery = time.Second

// clockWatch compares this replica's clock with the nodes'. A replica whose clock is too far ahead
// takes its ticks before their time, so it runs none, and does not lead. One whose clock is behind
// comes to ticks that the others have run.
type clockWatch struct {
	s *state

	mu   sync.Mutex
	said string // guarded by mu; the type of the error that was logged last; empty for none
}

// error is what is wrong with the clock; nil for nothing, or if the nodes' are not known.
func (w *clockWatch) error() error { return w.s.q.CheckClock(w.s.now()) }

// ahead returns what is wrong with the clock if it is ahead, and says it when the clock is wrong,
// or right again.
func (w *clockWatch) ahead(ctx context.Context) error {
	err := w.error()
	is := ""
	if err != nil {
		is = redlock.ErrorType(err)
	}
	w.mu.Lock()
	was := w.said
	w.said = is
	w.mu.Unlock()
	log := w.s.cfg.logger
	switch {
	case is == was:
	case isAhead(err):
		log.WarnContext(ctx, "scheduler: this replica's clock is ahead of the nodes': it runs no ticks, and does not lead, until that is set right", "error", err)
	case err != nil:
		log.WarnContext(ctx, "scheduler: this replica's clock is behind the nodes': ticks that it runs are late, set it right", "error", err)
	default:
		log.InfoContext(ctx, "scheduler: this replica's clock is right again")
	}
	if !isAhead(err) {
		return nil
	}
	w.s.leader.giveUp(err)
	return err
}

func isAhead(err error) bool {
	var wrong *redlock.ClockError
	return errors.As(err, &wrong) && wrong.Ahead > 0
}
