package redlock

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Lease is a key that is held. It begins with the round that acquired it and ends, once and for
// good, when it is released or lost; a lapsed lease never comes back, whatever a late reply says.
//
// While Err returns nil no other lease on the key is live, under the conditions of the package
// documentation. That is not enough to protect a resource from a process that was paused between
// asking and acting: for that the resource must check FencingToken.
//
// Release it. Otherwise it is extended for as long as the process lives, also when the program has
// dropped it, unless it is lost or was acquired WithoutAutoExtend.
//
// A Lease is safe for concurrent use.
//
// A nil Lease, which comes with an error, and a zero one are no lease. Their methods do not panic.
// Release does nothing and returns nil, so that a deferred Release may stand before the check of
// the error. Err and Extend return an error that matches ErrNotHeld, and Context has ended.
type Lease struct {
	q       *Quorum
	attempt *attempt
	token   uint64
	granted clock.Instant // start of the last round that acquired it
	vacant  time.Duration // for how long the key had been free; 0 if the caller had not waited for it
	values  detached      // the values of ctx

	deadline atomic.Int64          // clock.Instant
	final    atomic.Pointer[final] // set once, when the lease ends

	mu      sync.Mutex
	ctx     context.Context         // guarded by mu; nil until Context is called
	cancel  context.CancelCauseFunc // guarded by mu; of ctx
	timer   *time.Timer             // guarded by mu; fires at the deadline; nil until it is needed, see arm
	lastErr error                   // guarded by mu; of the last extension, if that failed

	releasing bool           // guarded by mu; a call of Release has begun
	released  sync.WaitGroup // it has ended
	outcome   error          // of the release; read once released has ended

	proofs []proof       // guarded by mu; one a node
	few    [5]proof      // memory of proofs, where it is enough
	told   clock.Instant // guarded by mu; start of the last extension whose outcome was told

	group *group // guarded by extender.mu; nil while the extender does not have the lease
	place int    // guarded by extender.mu; in the group

	unextended atomic.Bool // StopExtending was called
}

// final is how a lease ended.
type final struct {
	err error
	at  clock.Instant
}

// newLease starts a lease. The last round that set its keys, rd, began at start. It returns nil if
// the Quorum is closed.
func newLease(ctx context.Context, q *Quorum, at *attempt, token uint64, start clock.Instant, rd *operation) *Lease {
	l := &Lease{q: q, attempt: at, token: token, granted: start}
	l.values.values = ctx
	l.deadline.Store(int64(at.since.Add(q.cfg.validity(at.cfg.ttl))))
	if l.proofs = l.few[:min(len(q.nodes), len(l.few))]; len(q.nodes) > len(l.few) {
		l.proofs = make([]proof, len(q.nodes))
	}
	l.prove(rd)
	if !q.extender.add(l) {
		// No caller has ever had it, so the tracer is not told of a loss.
		l.mu.Lock()
		defer l.mu.Unlock()
		l.end(&LostError{Key: l.Key(), Reason: LostClosed})
		return nil
	}
	if at.cfg.manual {
		l.arm()
	}
	return l
}

// arm starts the timer that ends the lease at its deadline, unless it runs. The timer is needed
// once a caller has the context, or from the first extension on, which is due long before the
// deadline. Before that a caller cannot see whether there is one. Most leases that are held for a
// moment need none.
func (l *Lease) arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil && l.final.Load() == nil {
		l.timer = time.AfterFunc(max(l.remaining(), clock.AtOnce), l.expire)
	}
}

// errNoLease is what a nil or zero Lease says.
var errNoLease = fmt.Errorf("redlock: no lease: it is nil, as it is beside an error: %w", ErrNotHeld)

// noLease stands for a nil or zero Lease: it has ended, and all else of it is zero.
var noLease = func() *Lease {
	l := &Lease{attempt: &attempt{keys: &wire.Keys{}, cfg: &leaseConfig{}}}
	l.final.Store(&final{err: errNoLease})
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.cancel(errNoLease)
	return l
}()

// none reports whether the lease is nil or zero.
func (l *Lease) none() bool { return l == nil || l.q == nil }

// self returns the lease, or noLease in place of a nil or zero one.
func (l *Lease) self() *Lease {
	if l.none() {
		return noLease
	}
	return l
}

// Key returns the key as it was given to Acquire.
func (l *Lease) Key() string { return l.self().attempt.keys.Name }

// Identity returns the holder's name, see WithIdentity.
func (l *Lease) Identity() string { return l.self().attempt.cfg.identity }

// TTL returns the expiry that the lease's keys get on the servers.
func (l *Lease) TTL() time.Duration { return l.self().attempt.cfg.ttl }

// FencingToken returns a number that is strictly greater than that of every earlier lease on this
// key. Pass it with every write to the resource, and let the resource refuse a number below the
// highest it has seen.
func (l *Lease) FencingToken() uint64 { return l.self().token }

// Context returns a context that carries the values of the context the lease was acquired with and
// is cancelled when the lease ends: at the deadline at the latest, by a timer that waits for
// nothing else. context.Cause gives the *LostError or ErrReleased.
//
// Timers stand still while the machine is suspended, so after that the context ends late: when the
// next extension would have been due, or for a lease WithoutAutoExtend when the rest of its
// validity has passed once more. Err is exact, and a call of it ends the context.
func (l *Lease) Context() context.Context {
	l = l.self()
	l.arm()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(&l.values)
		if f := l.final.Load(); f != nil {
			l.cancel(f.err)
		}
	}
	return l.ctx
}

// Deadline returns until when the lease may be relied on, as known now: the TTL less the allowance
// for drift, counted from when the nodes of a quorum that has the key were last asked. Extensions
// move it, and a node that has lost the key may bring it nearer. Of a lease that has ended it is no
// later than the end. Compare it with time.Now in this process; it means nothing on another
// machine.
func (l *Lease) Deadline() time.Time {
	if l.none() {
		return time.Time{}
	}
	return time.Now().Add(l.remaining())
}

// remaining is the validity that is left; negative after the deadline or an earlier end.
func (l *Lease) remaining() time.Duration {
	until := clock.Instant(l.deadline.Load())
	if f := l.final.Load(); f != nil {
		until = min(until, f.at)
	}
	return until.Sub(l.q.clock.Now())
}

// Err returns nil while the lease is valid, ErrReleased after Release, and a *LostError when it was
// lost. It compares the clock at the call, so a process that was paused or suspended learns of the
// loss at its first call. It does no I/O and does not block.
func (l *Lease) Err() error {
	l = l.self()
	if f := l.final.Load(); f != nil {
		return f.err
	}
	if l.q.clock.Now() < clock.Instant(l.deadline.Load()) {
		return nil
	}
	l.lose(LostDeadline)
	return l.final.Load().err
}

// expire runs at the deadline as it was when the timer was set, and sleeps on if it has moved.
func (l *Lease) expire() {
	if l.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final.Load() == nil {
		l.timer.Reset(max(l.remaining(), clock.AtOnce))
	}
}

// lose ends the lease without releasing it. The context is cancelled first.
func (l *Lease) lose(reason LostReason) {
	l.mu.Lock()
	tell := l.loses(reason)
	l.mu.Unlock()
	tell()
}

// loses is lose for a caller that has mu. The caller calls tell after it has unlocked mu.
func (l *Lease) loses(reason LostReason) (tell func()) {
	err := &LostError{Key: l.Key(), Reason: reason, Err: l.lastErr}
	t := l.q.cfg.tracers.lost
	if !l.end(err) || t == nil {
		return func() {}
	}
	return func() {
		t.TraceLost(&l.values, TraceLostData{Key: l.Key(), Lease: l, Held: l.held(), Reason: reason, Err: err})
	}
}

// end makes err final, once, and reports whether it did. Called with mu held, so that no extension
// can come between. It may cancel the context with mu held: that calls no foreign code, because
// context.AfterFunc uses goroutines of its own.
func (l *Lease) end(err error) bool {
	if !l.final.CompareAndSwap(nil, &final{err: err, at: l.q.clock.Now()}) {
		return false
	}
	if l.ctx != nil {
		l.cancel(err)
	}
	l.attempt.ended.Store(true)
	if l.timer != nil {
		l.timer.Stop()
	}
	l.q.extender.remove(l)
	return true
}

// held is how long the lease was or has been held.
func (l *Lease) held() time.Duration {
	if f := l.final.Load(); f != nil {
		return f.at.Sub(l.granted)
	}
	return l.q.clock.Now().Sub(l.granted)
}

// Extend sets the keys' expiry to the full TTL again and moves the deadline. There is no need to
// call it unless the lease was acquired WithoutAutoExtend. It asks all nodes, and returns when a
// quorum has done so, or cannot. After a failure it may be tried again until the deadline. A node
// that has lost the key gets it back with the next call; if too many have, the lease is lost.
//
// Errors: *QuorumError, *LostError or ErrReleased when the lease has ended, *OptionError, or ctx's
// own error. After ctx's error the extension may still take effect.
func (l *Lease) Extend(ctx context.Context) error {
	if l.none() {
		return errNoLease
	}
	if err := cmp.Or(checkContext(ctx), l.Err()); err != nil {
		return err
	}
	q, x, deadline := l.q, l.q.extendAlone(l, l.q.clock.Now(), nil), clock.Instant(l.deadline.Load())
	timeout := q.cfg.timeout(l.TTL())
	rd := q.newOperation(OpExtend, q.need)
	defer rd.drop()
	rd.lease = l
	for i := range q.nodes {
		rd.send(&l.values, l.attempt, *l.extendCall(i), x.start.Add(timeout), func(k int) bool { return k == i })
	}
	wait, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(l.Context(), stop)()
	waited := rd.Wait(wait, timeout)
	o, err := rd.Outcome(), l.Err()
	if err == nil && waited != nil {
		return newContextError(ctx, l.Key(), nil)
	}
	if err == nil {
		if !o.Success {
			err = q.quorumError(OpExtend, l.Key(), o)
		}
		l.mu.Lock()
		l.lastErr = err
		l.mu.Unlock()
	}
	if t := q.cfg.tracers.extend; t != nil {
		data := x.data(0, o.Replies)
		data.Margin, data.Err = max(deadline.Sub(q.clock.Now()), 0), err
		t.TraceExtend(&l.values, data)
	}
	return err
}

// StopExtending leaves the lease to run out at its deadline, without releasing it. It is for a
// holder whose work cannot be stopped. A release would let another holder begin under that work;
// the deadline still tells the work when it must have ended. Extend by hand still works.
func (l *Lease) StopExtending() {
	l = l.self()
	l.unextended.Store(true)
	l.arm()
}
