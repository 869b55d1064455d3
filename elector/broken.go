package elector

import (
	"errors"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// errBrokenOff is why a term ends that the goroutine of Run has left.
var errBrokenOff = errors.New("elector: a tracer or the logger panicked, or ended the goroutine of Run")

// breakOff ends a term that nobody serves any more, because a tracer or the logger panicked in the
// goroutine of Run. It calls neither. The lease is released unless lead runs under it: then it is
// left to run out. led is nil if lead has not begun.
func (e *Elector) breakOff(t *Term, led <-chan verdict) {
	t.stepDown(errBrokenOff)
	t.lease.StopExtending()
	end := Change{Kind: Resigned, Term: t.Number(), Reason: ReasonFailed, Err: errBrokenOff}
	if err := t.lease.Err(); errors.Is(err, redlock.ErrLost) {
		end.Kind, end.Reason, end.Err = Lost, lossReason(err), err
	}
	runs := false
	if led != nil && !t.returned.Load() {
		if _, runs = t.abandon(led); runs {
			end.Kind = Lost
			e.unreturned = led
		}
	}
	defer e.endBroken(t, end, runs) // a tracer of the release may panic, too
	if !runs {
		_ = t.lease.Release(t.ctx)
	}
}

// endBroken has those hear of the end who wait for it, and tells people.
func (e *Elector) endBroken(t *Term, end Change, runs bool) {
	if runs {
		select {
		case <-t.overran:
		default:
			close(t.overran) // Healthy says so until lead returns
		}
	}
	select {
	case <-t.over:
		return
	default:
	}
	if t.ended.Kind == "" {
		t.ended = end
		e.post(t, end)
	}
	if elected, _ := e.feed.subscribe(); elected != nil && elected.Term == end.Term {
		end = t.ended
		end.Term, end.At = elected.Term, time.Now()
		e.feed.publish(end)
	}
	close(t.over)
}
