package redlock

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
	"weak"
)

// Lease is a key that is held. It begins with the round that acquired it and ends, once and for
// good, when it is released or lost; a lapsed lease never comes back, whatever a late reply says.
//
// While Err returns nil no other lease on the key is live, under the conditions of the package
// documentation. That is not enough to protect a resource from a process that was paused between
// asking and acting: for that the resource must check FencingToken.
//
// A Lease is safe for concurrent use.
//
// A nil Lease, which comes with an error, and a zero one are no lease: nothing of them panics. To
// release one does nothing and returns nil, so that a deferred Release may stand before the check
// of the error. Whatever tells of a lease that is held says that there is none: Err and
// Extend return an error that matches ErrNotHeld, and Context has ended.
type Lease struct {
	holding *holding
	ctx     atomic.Pointer[context.Context] // of Context; nil until somebody asks for it
}

// newLeaseOf returns what users have of a lease, which is made once.
func newLeaseOf(h *holding) *Lease {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.handle.Value(); l != nil {
		return l
	}
	l := &Lease{holding: h}
	h.handle = weak.Make(l)
	if !h.attempt.cfg.manual {
		runtime.AddCleanup(l, (*holding).dropped, h)
	}
	return l
}

// shown is what tracers are shown of a lease: what its user has, while there is a user.
func (h *holding) shown() *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.handle.Value(); l != nil {
		return l
	}
	return &Lease{holding: h}
}

// dropped is called by the runtime when nobody has the lease any more, nor its context. If it is
// extended all the same nobody can end it.
func (h *holding) dropped() {
	if h.final.Load() != nil || h.unextended.Load() || h.remaining() <= 0 {
		return
	}
	h.q.cfg.logger.Warn("redlock: a Lease was dropped that is held: it is extended until this process ends, and nobody can release it; "+
		"keep it and call Release, or use Quorum.Do", "key", h.Key(), "fencing_token", h.token)
}

// of is the lease itself; nil for a nil or zero Lease.
func (l *Lease) of() *holding {
	if l == nil {
		return nil
	}
	return l.holding
}

type leaseKey struct{}

// Key returns the key as it was given to Acquire.
func (l *Lease) Key() string { return l.of().Key() }

// Identity returns the holder's name, see WithIdentity.
func (l *Lease) Identity() string { return l.of().Identity() }

// TTL returns the expiry that the lease's keys get on the servers.
func (l *Lease) TTL() time.Duration { return l.of().TTL() }

// FencingToken returns a number that is strictly greater than that of every earlier lease on this
// key. Pass it with every write to the resource, and let the resource refuse a number below the
// highest it has seen.
func (l *Lease) FencingToken() uint64 { return l.of().FencingToken() }

// Context returns a context that carries the values of the context the lease was acquired with and
// is cancelled when the lease ends: at the deadline at the latest, by a timer that waits for
// nothing else. context.Cause gives the *LostError or ErrReleased.
//
// Timers stand still while the machine is suspended, so after that the context ends late: when the
// next extension would have been due, or for a lease WithoutAutoExtend when the rest of its
// validity has passed once more. Err is exact, and ends the context if it is asked.
func (l *Lease) Context() context.Context {
	h := l.of()
	if h.none() {
		return noContext
	}
	if ctx := l.ctx.Load(); ctx != nil {
		return *ctx
	}
	ctx := context.WithValue(h.Context(), leaseKey{}, l) // whoever has it keeps the lease
	if !l.ctx.CompareAndSwap(nil, &ctx) {
		return *l.ctx.Load()
	}
	return ctx
}

// Deadline returns until when the lease may be relied on, as known now: for the TTL from when the
// nodes of a quorum were last asked that have the key, less the allowance for drift. Extensions
// move it, and a node that has lost the key may bring it nearer. It is to be compared with time.Now
// in this process; it means nothing on another machine.
func (l *Lease) Deadline() time.Time { return l.of().Deadline() }

// Err returns nil while the lease is valid, ErrReleased after Release, and a *LostError when it was
// lost. It compares the clock at the call, so a process that was paused or suspended learns the
// truth at its first question. It does no I/O and does not block.
func (l *Lease) Err() error { return l.of().Err() }

// Extend sets the keys' expiry to the full TTL again and moves the deadline. There is no need to
// call it unless the lease was acquired WithoutAutoExtend. It asks all nodes, and returns when a
// quorum has done so, or cannot. After a failure it may be tried again until the deadline. A node
// that has lost the key gets it back with the next call; if too many have, the lease is lost.
//
// Errors: *QuorumError, *LostError or ErrReleased when the lease has ended, *OptionError, or ctx's
// own error; after the last the extension may still take effect.
func (l *Lease) Extend(ctx context.Context) error { return l.of().Extend(ctx) }

// StopExtending leaves the lease to run out at its deadline, without releasing it. It is for a
// holder whose work cannot be stopped: releasing under it would let another begin, while the
// deadline still tells it when it must have ended. Extend by hand still works.
func (l *Lease) StopExtending() { l.of().StopExtending() }

// Release ends the lease and frees the key on all nodes, or with WithMinHold shortens its life to
// what is left of the minimum. The lease's context is cancelled before anything is sent, so no work
// may depend on it any more when Release is called.
//
// It works with a cancelled ctx: ctx lends its values for tracing, its cancellation is ignored, and
// a nil one is context.Background. It waits until a quorum of nodes has answered, at most the node
// timeout (WithNodeTimeout); what is left is sent in the background, and repeated until it would
// have expired.
//
// Release may be called any number of times and concurrently; every call returns the same. It
// returns nil when a quorum has freed the key, a *LostError when the lease was lost before (its
// keys are still cleaned up), or a *QuorumError when too few nodes confirmed, in which case the key
// expires by itself at the latest.
func (l *Lease) Release(ctx context.Context) error { return l.of().Release(ctx) }
