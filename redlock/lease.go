package redlock

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tenure-dev/tenure/internal/clock"
)

// holding is a lease as the Quorum has it, which extends it. What users have is a Lease.
type holding struct {
	q       *Quorum
	handle  weak.Pointer[Lease] // guarded by mu
	attempt *attempt
	token   uint64
	granted clock.Instant // start of the last round that acquired it
	vacant  time.Duration // for how long nobody had had the key; 0 where its caller had not waited
	values  detached      // what ctx carries

	deadline atomic.Int64          // clock.Instant
	final    atomic.Pointer[final] // set once, when the lease ends

	mu      sync.Mutex
	ctx     context.Context         // guarded by mu; nil until somebody asks for it
	cancel  context.CancelCauseFunc // guarded by mu; of ctx
	timer   *time.Timer             // guarded by mu; fires at the deadline; nil until it is needed, see arm
	lastErr error                   // guarded by mu; last extension, if it failed
	spread  clock.Instant           // guarded by mu; when the fencing token was last sent with an extension
	release release                 // guarded by mu

	proofs []proof       // guarded by mu; one a node
	few    [5]proof      // where that is enough they are here, and no object of their own
	since  clock.Instant // start of the first round that acquired it
	told   clock.Instant // guarded by mu; start of the last extension whose outcome was told

	group *group // guarded by extender.mu; nil before and after
	place int    // guarded by extender.mu; in the group

	unextended atomic.Bool // StopExtending was called
}

// final is how a lease ended.
type final struct {
	err error
	at  clock.Instant
}

// newLease starts a lease whose keys were set by rounds of which the first began at since, and the
// last, rd, at start. It returns nil if the Quorum is closed.
func newLease(ctx context.Context, q *Quorum, at *attempt, token uint64, since, start clock.Instant, rd *operation) *holding {
	l := &holding{q: q, attempt: at, token: token, since: since, granted: start, spread: start.Add(-spreadEvery)}
	l.values.values = ctx
	l.deadline.Store(int64(since.Add(q.cfg.validity(at.cfg.ttl))))
	if l.proofs = l.few[:min(len(q.nodes), len(l.few))]; len(q.nodes) > len(l.few) {
		l.proofs = make([]proof, len(q.nodes))
	}
	l.prove(rd)
	if !q.extender.add(l) {
		// It has never been anybody's, so the tracer is not told of a loss.
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

// arm has a timer end the lease at its deadline, unless one does. Before that is needed nobody can
// see whether there is one: before somebody has the context, and before the first extension, which
// is due long before the deadline. Most leases that are held for a moment need none.
func (l *holding) arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil && l.final.Load() == nil {
		l.timer = time.AfterFunc(max(l.remaining(), clock.AtOnce), l.expire)
	}
}

// errNoLease is what a nil or zero Lease says.
var errNoLease = fmt.Errorf("redlock: no lease: it is nil, as it is beside an error: %w", ErrNotHeld)

// noContext is the context of a nil or zero Lease.
var noContext = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLease)
	return ctx
}()

// none reports whether the lease is nil or zero.
func (l *holding) none() bool { return l == nil || l.q == nil }

func (l *holding) Key() string {
	if l.none() {
		return ""
	}
	return l.attempt.keys.Name
}

func (l *holding) Identity() string {
	if l.none() {
		return ""
	}
	return l.attempt.cfg.identity
}

func (l *holding) TTL() time.Duration {
	if l.none() {
		return 0
	}
	return l.attempt.cfg.ttl
}

func (l *holding) FencingToken() uint64 {
	if l.none() {
		return 0
	}
	return l.token
}

func (l *holding) Context() context.Context {
	if l.none() {
		return noContext
	}
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

func (l *holding) Deadline() time.Time {
	if l.none() {
		return time.Time{}
	}
	return time.Now().Add(l.remaining())
}

// remaining is the validity that is left; negative after the deadline.
func (l *holding) remaining() time.Duration {
	return clock.Instant(l.deadline.Load()).Sub(l.q.clock.Now())
}

func (l *holding) Err() error {
	if l.none() {
		return errNoLease
	}
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
func (l *holding) expire() {
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
func (l *holding) lose(reason LostReason) {
	l.mu.Lock()
	tell := l.loses(reason)
	l.mu.Unlock()
	tell()
}

// loses is called with mu held, and what it returns without.
func (l *holding) loses(reason LostReason) (tell func()) {
	err := &LostError{Key: l.Key(), Reason: reason, Err: l.lastErr}
	t := l.q.cfg.tracers.lost
	if !l.end(err) || t == nil {
		return func() {}
	}
	return func() {
		t.TraceLost(&l.values, TraceLostData{Key: l.Key(), Lease: l.shown(), Held: l.held(), Reason: reason, Err: err})
	}
}

// end makes err final, once. Called with mu held, so that no extension can come between. Cancelling
// a context runs nobody's code: context.AfterFunc uses goroutines of its own.
func (l *holding) end(err error) bool {
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
func (l *holding) held() time.Duration {
	if f := l.final.Load(); f != nil {
		return f.at.Sub(l.granted)
	}
	return l.q.clock.Now().Sub(l.granted)
}

func (l *holding) Extend(ctx context.Context) error {
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
	waited := rd.Wait(wait, timeout, &q.waits)
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

func (l *holding) StopExtending() {
	if !l.none() {
		l.unextended.Store(true)
		l.arm()
	}
}
