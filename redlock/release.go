package redlock

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// Release ends the lease and frees the key on all nodes, or with WithMinHold shortens its life to what is left
// of the minimum. The lease's context is cancelled before anything is sent, so no work may depend on it any
// more when Release is called.
//
// It works with a cancelled ctx: ctx lends its values for tracing, its cancellation is ignored. It waits until a
// quorum of nodes has answered, at most the node timeout (WithNodeTimeout); what is left is sent in the
// background, and repeated until it would have expired.
//
// Release may be called any number of times and concurrently; every call returns the same. It returns nil when
// a quorum has freed the key, a *LostError when the lease was lost before (its keys are still cleaned up), or a
// *QuorumError when too few nodes confirmed, in which case the key expires by itself at the latest.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	if done := l.releasing; done != nil {
		l.mu.Unlock()
		<-done
		return l.outcome
	}
	l.releasing = make(chan struct{})
	ended := l.end(ErrReleased)
	l.mu.Unlock()
	defer close(l.releasing)

	ctx = context.WithoutCancel(ctx)
	t := l.q.cfg.tracers.release
	if t != nil {
		ctx = t.TraceReleaseStart(ctx, TraceReleaseStartData{Key: l.Key(), Lease: l})
	}
	err := l.free(ctx)
	if lost := l.final.Load().err; !ended {
		err = lost
	}
	l.outcome = err
	if t != nil {
		t.TraceReleaseEnd(ctx, TraceReleaseEndData{Key: l.Key(), Lease: l, Held: l.held(), Err: err})
	}
	return err
}

// free sends the release and waits for a quorum of answers.
func (l *Lease) free(ctx context.Context) error {
	keep := max(l.attempt.cfg.minHold-l.q.clock.Now().Sub(l.granted), 0)
	args := &arguments{keep: milliseconds(keep.Round(time.Millisecond)), notice: l.attempt.keys.notice}
	rd := l.q.sendRelease(ctx, l.attempt, args, nil)
	_ = rd.wait(context.Background(), l.q.cfg.timeout(OpRelease, l.TTL()))
	o := rd.outcome()
	gone := count(o.replies, refused)
	switch {
	case gone >= l.q.need:
		return &LostError{Key: l.Key(), Reason: LostRefused}
	case o.agreed+gone >= l.q.need:
		return nil
	default:
		return l.q.quorumError(OpRelease, l.Key(), o)
	}
}

// releaseCertain: a node that refuses does not have the key, which is as good as having freed it.
func (q *Quorum) releaseCertain(replies []reply) bool {
	return count(replies, agreed)+count(replies, refused) >= q.need || count(replies, failed) > len(replies)-q.need
}

// rollBack frees what an unsuccessful attempt may have been granted, in the background: on every node but those
// that answered that another owner has the key. It follows the attempt's own requests on each node. The
// caller's cancellation does not reach it.
func (q *Quorum) rollBack(ctx context.Context, at *attempt, o outcome) {
	q.sendRelease(context.WithoutCancel(ctx), at, &arguments{keep: "0"}, func(i int) bool {
		return o.replies[i].verdict != refused
	})
}

// sendRelease ends an attempt and queues its release on the nodes that want selects.
func (q *Quorum) sendRelease(ctx context.Context, at *attempt, args *arguments, want func(int) bool) *round {
	at.ended.Store(true)
	rd := newRound(OpRelease, len(q.nodes), q.need)
	rd.decided = q.releaseCertain
	q.broadcast(ctx, rd, at, args, q.releaseUntil(at), want)
	return rd
}

// releaseUntil is when the keys of an attempt that sends nothing more have expired on every node that works.
func (q *Quorum) releaseUntil(at *attempt) clock.Instant {
	return q.clock.Now().Add(at.cfg.ttl + at.cfg.ttl/10)
}
