package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tenure-dev/tenure/internal/clock"
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

	proofs []proof       // guarded by mu; one a node
	few    [5]proof      // where that is enough they are here, and no object of their own
	since  clock.Instant // start of the first round that acquired it
	told   clock.Instant // guarded by mu; start of the last extension whose outcome was told

	group *group // guarded by extender.mu; nil before and after
	place int    // guarded by extender.mu; in the group

	unextended atomic.Bool // StopExtending was called
}

// proof is what is known of a lease's key on a node.
type proof struct {
	until clock.Instant // the key is there until then at least, less the drift; 0 for that it is not known to be

	pause   time.Duration // from the node's last answer that it does not have the key, until it is asked again
	lacking bool          // it is to be asked again by itself
	heals   bool          // it had a damaged counter when others granted the lease, and is to have its token
}

// final is how a lease ended.
type final struct {
	err error
	at  clock.Instant
}

// spreadEvery is how often an extension refreshes the fencing counter, whose lifetime is a day.
const spreadEvery = time.Hour

// newLease starts a lease whose keys were set by rounds of which the first began at since, and the
// last, rd, at start. It returns nil if the Quorum is closed.
func newLease(ctx context.Context, q *Quorum, at *attempt, token uint64, since, start clock.Instant, rd *operation) *holding {
	l := &holding{q: q, attempt: at, token: token, since: since, granted: start, spread: start.Add(-spreadEvery)}
	at.token = token
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

// prove takes what nodes have answered to the round that granted the lease, or will. A quorum has
// the key, and for as long as no other node has, the lease does not survive that one of the quorum
// forgets it. So the others are asked again. Where all nodes grant it costs nothing.
func (l *holding) prove(rd *operation) {
	for _, c := range rd.LeaveTo(l, func(i int, rep *vote.Reply) bool {
		if rep.Verdict == wire.OK {
			l.proofs[i].until = clock.Instant(l.deadline.Load())
		}
		return rep.Verdict == wire.Refused || isDamaged(rep)
	}) {
		l.Late(c.Slot, c.Reply)
	}
}

// Late takes a node's answer of the round that granted the lease: it has the key too, or another
// owner has or had it there, or it is damaged.
func (l *holding) Late(i int, rep *vote.Reply) {
	m := l.q.nodes[i]
	switch {
	case rep.Verdict == wire.OK:
		l.hears(i, wire.InPlace, l.since, l.since)
		return
	case rep.Verdict == wire.Refused, isDamaged(rep):
		l.mu.Lock()
		l.proofs[i].heals = rep.Verdict != wire.Refused
		l.lacks(i)
		l.mu.Unlock()
	}
	m.damage.standing(m, l.attempt.keys, rep)
}

// hears takes what a node has said to an extension that was sent at that time. That the key is there
// counts from then, however late the answer comes; that it is not ends what was known. The deadline
// is what a quorum proves: if that has passed now, the lease is lost.
//
// It returns how long the lease would have been valid otherwise, 0 if it has ended, and whether it
// was extended: for the first time to a full validity from start on. The clock is read with mu held,
// in which the lease also ends: between the deadline and a loss nothing can move the deadline.
func (l *holding) hears(i int, said wire.Extended, sent, start clock.Instant) (margin time.Duration, extended bool) {
	l.mu.Lock()
	now := l.q.clock.Now()
	margin = clock.Instant(l.deadline.Load()).Sub(now)
	if margin <= 0 || l.final.Load() != nil {
		l.mu.Unlock()
		return 0, false
	}
	validity := l.q.cfg.validity(l.TTL())
	p := &l.proofs[i]
	if said == wire.InPlace || said == wire.Refilled {
		p.until, p.pause = max(p.until, sent.Add(validity)), 0
	} else {
		p.until = 0
	}
	next := l.proven()
	if next <= now {
		tell := l.loses(LostRefused)
		l.mu.Unlock()
		tell()
		return 0, false
	}
	before := clock.Instant(l.deadline.Swap(int64(next)))
	if next < before && l.timer != nil {
		l.timer.Reset(next.Sub(now))
	}
	if p.until == 0 {
		l.lacks(i)
	}
	if extended = next >= start.Add(validity) && (l.told < start || l.lastErr != nil); extended {
		l.told, l.lastErr = start, nil
	}
	l.mu.Unlock()
	return margin, extended
}

// proven is until when a quorum of nodes has the key, by what is known. Called with mu held.
func (l *holding) proven() (until clock.Instant) {
	for i := range l.proofs {
		at, nodes := l.proofs[i].until, 0
		for k := range l.proofs {
			if l.proofs[k].until >= at {
				nodes++
			}
		}
		if nodes >= l.q.need {
			until = max(until, at)
		}
	}
	return until
}

// misses reports, once, that an extension that began at that time cannot move the deadline any more,
// because of what nodes have said to it. The error is kept for the day the lease is lost.
func (l *holding) misses(start clock.Instant, replies []vote.Reply) (margin time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	agreed, missed := 0, 0
	for i := range replies {
		switch rep := &replies[i]; {
		case rep.Verdict == wire.Pending:
		case rep.Verdict == wire.Failed || l.proofs[i].until == 0:
			missed++
		default:
			agreed++
		}
	}
	margin = l.remaining()
	if missed <= len(replies)-l.q.need || l.told >= start || l.final.Load() != nil || margin <= 0 {
		return 0, nil
	}
	l.told, l.spread = start, start.Add(-spreadEvery)
	l.lastErr = l.q.quorumError(OpExtend, l.Key(), vote.Outcome{Tally: vote.Tally{Agreed: agreed}, Replies: replies})
	return margin, l.lastErr
}

// lacksAfter is how soon a node is asked again that does not have the key. What was in the way
// there, an attempt of a rival, is taken back within a round trip or two. And a quorum that has lost
// the key has said so by then.
const lacksAfter = 50 * time.Millisecond

// lacks has a node asked again that has answered that it does not have the key. If it says so again,
// the next time is twice as late, and so on up to the interval: the rival may be far away. From then
// on the lease is extended alone, so all that costs a handful of requests, whatever nodes say. One
// that does not vote could not put the key back. Called with mu held.
func (l *holding) lacks(i int) {
	p, cfg := &l.proofs[i], l.attempt.cfg
	if p.lacking || cfg.manual || l.unextended.Load() || l.q.nodes[i].Status().Reason() != nil {
		return
	}
	if p.pause = min(max(2*p.pause, lacksAfter), cfg.interval); p.pause == cfg.interval {
		return
	}
	p.lacking = true
	time.AfterFunc(jitter(p.pause, pauseJitter), func() {
		l.mu.Lock()
		l.proofs[i].lacking = false
		l.mu.Unlock()
		if l.extends() {
			l.q.extender.ask(i, l.q.extendAlone(l, l.q.clock.Now(), nil))
		}
	})
}

// isAlone reports whether the lease is to be extended alone. With others, one with a minimum hold
// would revive what a release has left, which the extension may overtake.
func (l *holding) isAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempt.cfg.minHold > 0 || slices.ContainsFunc(l.proofs, func(p proof) bool { return p.pause == l.attempt.cfg.interval })
}

// extends reports whether the lease is to be extended.
func (l *holding) extends() bool { return !l.unextended.Load() && l.Err() == nil }

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

// spreads reports whether an extension that begins at that time is to spread the token, as one does
// once in a while.
func (l *holding) spreads(start clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if start.Sub(l.spread) < spreadEvery {
		return false
	}
	l.spread = start
	return true
}

// extendCall renews the key on a node. If the node is not known to have it, it also puts it back,
// and heals the counter there.
func (l *holding) extendCall(i int) *wire.Call {
	call := l.attempt.call(wire.Extend)
	call.TTL, call.Spread = l.q.texts.milliseconds(l.TTL()), "0"
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &l.proofs[i]
	if call.Refill = p.until == 0; p.heals {
		p.heals, call.Spread = false, strconv.FormatInt(l.q.clocks.Latest(time.Now()).Microseconds(), 10)
	}
	return &call
}
