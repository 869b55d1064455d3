package redlock

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// holding is a lease as the Quorum has it, which extends it. What users have is a Lease.
type holding struct {
	q       *Quorum
	handle  weak.Pointer[Lease]
	attempt *attempt
	token   uint64
	granted clock.Instant // start of the last round that acquired it
	values  detached      // what ctx carries

	last     atomic.Pointer[wire.Last] // the entry that its release makes; may be nil
	deadline atomic.Int64              // clock.Instant
	final    atomic.Pointer[final]     // set once, when the lease ends

	mu      sync.Mutex
	ctx     context.Context         // guarded by mu; nil until somebody asks for it
	cancel  context.CancelCauseFunc // guarded by mu; of ctx
	timer   *time.Timer             // guarded by mu; fires at the deadline; nil until it is needed, see arm
	lastErr error                   // guarded by mu; last extension, if it failed
	spread  clock.Instant           // guarded by mu; when the fencing token was last sent with an extension
	release release                 // guarded by mu

	due   clock.Instant // guarded by extender.mu; next extension
	place int           // guarded by extender.mu; in its heap, or -1

	unextended atomic.Bool   // StopExtending was called
	heals      atomic.Bool   // a node had a damaged counter when others granted it, and is to have its token
	lacking    atomic.Bool   // a node answered that it does not have the key, since the last extension began
	pause      time.Duration // guarded by extender.mu; from the last such answer to an extension
}

// final is how a lease ended.
type final struct {
	err error
	at  clock.Instant
}

// spreadEvery is how often an extension refreshes the fencing counter, whose lifetime is a day.
const spreadEvery = time.Hour

// newLease starts a lease whose keys were set by rounds of which the first began at since, and the
// last at start. It returns nil if the Quorum is closed.
func newLease(ctx context.Context, q *Quorum, at *attempt, token uint64, since, start clock.Instant) *holding {
	l := &holding{q: q, attempt: at, token: token, granted: start, place: -1, spread: start.Add(-spreadEvery)}
	at.token = token
	l.values.values = ctx
	l.deadline.Store(int64(since.Add(q.cfg.validity(at.cfg.ttl))))
	if at.cfg.manual {
		l.arm()
	}
	if !q.adopt(l) {
		// It has never been anybody's, so the tracer is not told of a loss.
		l.mu.Lock()
		defer l.mu.Unlock()
		l.end(&LostError{Key: l.Key(), Reason: LostClosed})
		return nil
	}
	if l.final.Load() != nil {
		q.forget(l) // it ran out before it was adopted
	}
	if !at.cfg.manual {
		q.extender.add(l, since.Add(jitter(at.cfg.interval, extendJitter)))
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

// strengthen has nodes get the key that have answered the round that granted it without a grant, or
// will. A quorum has it, and for as long as no other node has, the lease does not survive that one
// of the quorum forgets it. Where all nodes grant it costs nothing.
func (l *holding) strengthen(rd *operation) {
	for _, c := range rd.LeaveTo(l, func(rep *vote.Reply) bool { return rep.Verdict == wire.Refused || isDamaged(rep) }) {
		l.Late(c.Slot, c.Reply)
	}
}

// Late takes a node's answer of the round that granted the lease: another owner has or had the key
// there, or it is damaged.
func (l *holding) Late(node int, rep *vote.Reply) {
	switch {
	case rep.Verdict == wire.Refused:
		l.q.extender.lacks(l)
	case isDamaged(rep):
		l.heals.Store(true)
	}
	m := l.q.nodes[node]
	m.damage.standing(m, l.attempt.keys, rep)
}

// isDamaged reports whether a node has answered that what it has of the key is damaged.
func isDamaged(rep *vote.Reply) bool {
	if rep.Err == nil {
		return false
	}
	why := wire.FaultOf(rep.Err)
	return why != nil && why.Condition == wire.Damaged
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

// expire runs at the deadline, or before it where the deadline was moved meanwhile.
func (l *holding) expire() {
	if l.final.Load() != nil {
		return
	}
	l.mu.Lock()
	if left := l.remaining(); left > 0 {
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.lose(LostDeadline)
}

// lose ends the lease without releasing it. The context is cancelled first.
func (l *holding) lose(reason LostReason) {
	l.mu.Lock()
	err := &LostError{Key: l.Key(), Reason: reason, Err: l.lastErr}
	ended := l.end(err)
	l.mu.Unlock()
	if !ended {
		return
	}
	if t := l.q.cfg.tracers.lost; t != nil {
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
	l.q.forget(l)
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
	if err := checkContext(ctx); err != nil {
		return err
	}
	result := make(chan error, 1)
	x := l.startExtend(result, false)
	if x == nil {
		return l.Err()
	}
	timeout := time.NewTimer(l.q.cfg.timeout(l.TTL()))
	defer timeout.Stop()
	select {
	case err := <-result:
		return err
	case <-l.Context().Done():
		return l.Err()
	case <-ctx.Done():
		// The round still needs its end, for nodes that never answer.
		time.AfterFunc(l.q.cfg.timeout(l.TTL()), x.expire)
		return newContextError(ctx, l.Key(), nil)
	case <-timeout.C:
		x.expire()
		return <-result
	}
}

func (l *holding) StopExtending() {
	if !l.none() {
		l.unextended.Store(true)
		l.arm()
		l.q.extender.remove(l)
	}
}

// group is that of the lease's extension at that time; false if it is to be extended by itself.
func (l *holding) group(start clock.Instant) (g group, ok bool) {
	switch {
	case l.lacking.Load(): // its key would not be found there
		return g, false
	case l.heals.Load():
		return g, false
	case l.attempt.cfg.minHold > 0:
		return g, false // it would revive what a release has left, which it may overtake
	case clock.Instant(l.deadline.Load()).Sub(start) < l.q.cfg.timeout(l.TTL()):
		return g, false // all would have to be sent before its end
	}
	return group{l.TTL(), l.spreads(start)}, true
}

// spreads reports whether an extension that begins at that time is to spread the token: once in a
// while, and where a counter is to be healed.
func (l *holding) spreads(start clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heals.Load() || start.Sub(l.spread) >= spreadEvery
}

// startExtend sends an extension of the lease by itself to all nodes. Its outcome is applied to the
// lease when it is certain, by any goroutine. It returns nil, and nothing happens, if the lease has
// ended.
func (l *holding) startExtend(result chan<- error, beside bool) *extension {
	if l.Err() != nil {
		return nil
	}
	x := &extension{q: l.q, start: l.q.clock.Now(), alone: true, key: l.Key(), result: result, beside: beside, oneLease: [1]*holding{l}}
	x.leases, x.tallies = x.oneLease[:], x.oneTally[:]
	l.lacking.Store(false)
	call := l.attempt.call(wire.Extend)
	call.TTL = l.q.texts.milliseconds(l.TTL())
	if l.spreads(x.start) {
		call.Spread = "0"
		if l.heals.Swap(false) {
			call.Spread = strconv.FormatInt(l.q.clocks.Latest(time.Now()).Microseconds(), 10)
		}
		l.hasSpread(x.start)
	}
	x.call = &call
	x.send(&l.values, node.Request{Expires: clock.Instant(l.deadline.Load()), Ended: &l.attempt.ended}, 0)
	return x
}

// hasSpread notes when the token was spread.
func (l *holding) hasSpread(at clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spread = at
}

// apply moves the deadline, or keeps the error for the day the lease is lost. The new deadline
// counts from the start of the extension. An outcome that comes after the deadline changes nothing:
// the lease was lost then. The clock is read with mu held, in which the lease also ends: between
// the deadline and a loss nothing can move the deadline.
func (l *holding) apply(e ending, start clock.Instant) (margin time.Duration, err error) {
	l.mu.Lock()
	margin = l.remaining()
	if margin <= 0 || l.final.Load() != nil {
		l.mu.Unlock()
		return 0, l.Err()
	}
	defer l.mu.Unlock()
	if !e.success {
		l.lastErr = l.q.quorumError(OpExtend, l.Key(), e.as.Outcome)
		l.spread = start.Add(-spreadEvery)
		return margin, l.lastErr
	}
	l.lastErr = nil
	if next := start.Add(l.q.cfg.validity(l.TTL())); next > clock.Instant(l.deadline.Load()) {
		l.deadline.Store(int64(next))
		if l.timer != nil {
			l.timer.Reset(next.Sub(l.q.clock.Now())) // or the timers of many leases would wake the process all the time, for nothing
		}
	}
	return margin, nil
}

func (l *holding) traceExtend(as *standing, began time.Time, margin time.Duration, err error) {
	t := l.q.cfg.tracers.extend
	if t == nil {
		return
	}
	data := TraceExtendData{Key: l.Key(), Lease: l.shown(), Start: began, Margin: margin, Answers: as.answers, Err: err}
	data.Duration, data.Shared = as.told(began, margin <= 0)
	for i := range as.Replies {
		switch rep := &as.Replies[i]; {
		case rep.Verdict == wire.OK && rep.Extended == wire.InPlace:
			data.Extended++
		case rep.Extended == wire.Refilled:
			data.Refilled++
		}
	}
	t.TraceExtend(&l.values, data)
}
