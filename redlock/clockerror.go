package redlock

import (
	"fmt"
	"time"
)

// tickSlack is how much more than the skew a clock may differ from the servers' clocks, see
// CheckClock.
const tickSlack = time.Second

// ClockError reports a clock of this process that differs from the servers' by more than ticks
// allow, see CheckClock.
type ClockError struct {
	Ahead time.Duration // by how much it is ahead of the median of the servers' clocks, at least; negative if it is behind
}

func (e *ClockError) Error() string {
	by, way := e.Ahead, "ahead of"
	if by < 0 {
		by, way = -by, "behind"
	}
	return fmt.Sprintf("redlock: this machine's clock is %v %s the servers' clocks: set it right", by.Round(time.Millisecond), way)
}

// ErrorType returns the stable value "clock_ahead" or "clock_behind".
func (e *ClockError) ErrorType() string {
	if e.Ahead < 0 {
		return "clock_behind"
	}
	return "clock_ahead"
}

// CheckClock compares a clock that shows now with the median of the servers' clocks, as it is known
// from their answers. It returns a *ClockError if they differ by more than the allowance for clock
// skew (WithClockSkew, the largest of all processes) and a second. Otherwise, and where fewer than
// a quorum of the servers' clocks are known, it returns nil. It does no I/O, and may be called
// concurrently.
func (q *Quorum) CheckClock(now time.Time) error {
	if q.none() {
		return nil
	}
	is, known := q.clocks.Time(q.clock.Now())
	if !known {
		return nil
	}
	at, limit := time.Duration(now.UnixNano()), q.cfg.skew()+tickSlack
	switch {
	case at-is.Hi > limit:
		return &ClockError{Ahead: at - is.Hi}
	case is.Lo-at > limit:
		return &ClockError{Ahead: at - is.Lo}
	}
	return nil
}
