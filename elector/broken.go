package elector

import (
	"errors"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// errBrokenOff is the cause of the end of a term that the goroutine of Run has left.
var errBrokenOff = errors.New("elector: a tracer or the logger panicked, or ended the goroutine of Run")

// breakOff ends a term after a tracer or the logger panicked in the goroutine of Run. It calls
// neither of them. The lease is released unless lead runs under it; then it is left to run out. led
// is nil if lead has not begun.
func (e *Elector) breakOff(t *Term, led <-chan verdict) {
	t.cancel(errBrokenOff)
	t.lease.StopExtending()
	end := Change{Kind: Resigned, Term: t.Number(), At: time.Now(), Reason: ReasonFailed, Err: errBrokenOff}
	if err := t.lease.Err(); errors.Is(err, redlock.ErrLost) {
		end.Kind, end.Reason, end.Err = Lost, lossReason(err), err
	}
	runs := false
	if led != nil && !t.returned.Load() {
		_, runs = t.abandon(led)
	}
	if runs {
		end.Kind = Lost
		e.unreturned = led
		if !isClosed(t.overran) {
			close(t.overran) // Healthy returns ErrDrainTimeout until lead returns
		}
	}
	defer func() { // a tracer of the release may panic, too
		if isClosed(t.over) {
			return // the end was announced, and a tracer or the logger panicked in that
		}
		t.ended = end
		e.post(t, end)
		if elected, _ := e.feed.subscribe(); elected != nil && elected.Term == end.Term {
			e.feed.publish(end)
		}
		close(t.over)
	}()
	if !runs {
		_ = t.lease.Release(t.ctx)
	}
}
