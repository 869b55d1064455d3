package redlock

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Release ends the lease and frees the key on all nodes, or with WithMinHold shortens its life to
// what is left of the minimum. The lease's context is cancelled before anything is sent, so no work
// may depend on it any more when Release is called.
//
// Release works with a cancelled ctx: it uses only ctx's values, for tracing, and takes nil for
// context.Background. It waits until a quorum of nodes has answered, at most the node timeout
// (WithNodeTimeout). The rest is sent in the background, and repeated until the key would have
// expired.
//
// Release may be called any number of times and concurrently; every call returns the same. It
// returns nil when a quorum has freed the key, a *LostError when the lease was lost before (its
// keys are still cleaned up), or a *QuorumError when too few nodes confirmed, in which case the key
// expires by itself at the latest.
func (l *Lease) Release(ctx context.Context) error {
	if l.none() {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	l.mu.Lock()
	if l.releasing {
		l.mu.Unlock()
		l.released.Wait()
		return l.outcome
	}
	l.releasing = true
	l.released.Add(1)
	ended := l.end(ErrReleased)
	l.mu.Unlock()
	ctx = l.q.detach(ctx)
	t := l.q.cfg.tracers.release
	func() {
		defer l.released.Done() // a tracer may panic
		if t != nil {
			ctx = t.TraceReleaseStart(ctx, TraceReleaseStartData{Key: l.Key(), Lease: l})
		}
		if l.outcome = l.free(ctx); !ended {
			l.outcome = l.final.Load().err
		}
	}()
	if t != nil {
		t.TraceReleaseEnd(ctx, TraceReleaseEndData{Key: l.Key(), Lease: l, Held: l.held(), Lost: !ended, Err: l.outcome})
	}
	return l.outcome
}

// free sends the release and waits for a quorum of answers.
func (l *Lease) free(ctx context.Context) error {
	keep := max(l.attempt.cfg.minHold-l.q.clock.Now().Sub(l.granted), 0)
	call := l.attempt.call(wire.Release)
	call.Keep = milliseconds(keep.Round(time.Millisecond))
	call.Turn, call.Channel = l.attempt.cfg.turn, l.q.cfg.channel
	rd := l.q.sendRelease(ctx, l.attempt, call, nil)
	defer rd.drop()
	_ = rd.Wait(context.Background(), l.q.cfg.timeout(l.TTL()))
	t := rd.Tally()
	switch {
	case t.Refused >= l.q.need:
		return &LostError{Key: l.Key(), Reason: LostRefused}
	case t.Agreed+t.Refused >= l.q.need:
		return nil
	default:
		return l.q.quorumError(OpRelease, l.Key(), rd.Outcome())
	}
}

// releaseCertain reports whether further answers cannot change the result of a release. A node that
// refuses does not have the key, which is as good as having freed it.
func (q *Quorum) releaseCertain(replies []vote.Reply) bool {
	failed, pending := vote.Count(replies, wire.Failed), vote.Count(replies, wire.Pending)
	return len(replies)-failed-pending >= q.need || failed > len(replies)-q.need
}

// sendRelease ends an attempt and queues its release on the nodes that want selects.
func (q *Quorum) sendRelease(ctx context.Context, at *attempt, call wire.Call, want func(int) bool) *operation {
	at.ended.Store(true)
	rd := q.newOperation(OpRelease, q.need)
	rd.Decided = q.releaseCertain
	expired := q.clock.Now().Add(at.cfg.ttl + at.cfg.ttl/10) // by then the key has expired on every node that works, and nothing is sent any more
	rd.send(ctx, at, call, expired, want)
	return rd
}
