package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

const (
	// tryTimeout bounds an attempt to take a lease, and endTimeout the writes that follow it.
	tryTimeout = time.Second
	endTimeout = 10 * time.Second
)

// errTooOld is the reason why a tick that was asked for in time is not run.
var errTooOld = errors.New("scheduler: the tick is too old")

// ask takes the lease, decides under it, and runs what is owed at a time, which may lie ahead. It
// returns the time of the next step.
func (j *job) ask(ctx context.Context, v joblog.Verdict, at time.Time) time.Time {
	limit := j.s.limit
	placed := v.Due && limit.try() // a turn that only settles ticks runs nothing, and its payload says so
	waited := v.Due && !placed
	if waited {
		if limit.ages {
			j.s.monitor.ConcurrencyLimitReached("limit", j)
			j.skip(ctx, &SkipError{Job: j.name, Tick: j.s.local(v.Tick), Count: 1, Reason: SkipLimit, Pending: true})
		}
		if err := limit.take(ctx); err != nil {
			return j.standBy(ctx, err)
		}
	}
	if placed = placed || waited; placed {
		defer limit.giveBack()
	}
	if waited && limit.ages {
		return j.s.now() // another replica may have run the tick meanwhile
	}
	ahead := at.After(j.s.now())
	if ahead {
		j.triedAhead = v.Tick
	}
	lease, err := j.acquire(ctx, v, ahead)
	if err != nil {
		return j.refused(ctx, v, ahead, err)
	}
	if !waited { // a tick that waits for a place does not age
		at = joblog.Later(at, j.s.now())
	}
	r, err := j.begin(ctx, lease, at, "", placed)
	if err != nil {
		return j.retry(ctx, &v, err)
	}
	if j.failures = 0; r == nil {
		j.tellTaken(ctx, v)
		return j.s.now()
	}
	due := r.public().Due
	err = r.carryOut(ctx, at)
	switch {
	case ctx.Err() != nil:
		return time.Time{}
	case err == nil:
		j.refusals = 0
		return j.s.now()
	}
	// The task was not called. The tick is owed again, and any replica may run it.
	e := newSkipError(j.name, due, err)
	if e.Reason == SkipPaused || e.Reason == SkipMissed {
		return j.s.now() // the next verdict says what becomes of the tick
	}
	n := j.refusals
	j.refusals++
	if e.Pending = true; n == 0 || e.Reason == SkipRefused {
		j.skip(ctx, e)
	}
	return j.s.now().Add(min(leastPause<<min(n, 12), time.Minute))
}

// during returns a context that ends with ctx, with the lease, and with the term in which ticks are
// run. If there is a lease, it has the values of the lease's context.
func (j *job) during(ctx context.Context, lease *redlock.Lease) (context.Context, context.CancelCauseFunc) {
	var also []context.Context
	if t := j.s.leader.term(); t != nil && !j.unlocked {
		also = append(also, t.Context())
	}
	if lease != nil {
		ctx, also = lease.Context(), append(also, ctx)
	}
	return gocronx.EndWith(ctx, also...)
}

// acquire takes the lease to run a tick, or to settle ticks that were left out. If the tick may
// come back, acquire waits for the holder. It does not wait under a limit of concurrent jobs,
// because it would keep a place from other jobs of this replica.
func (j *job) acquire(ctx context.Context, v joblog.Verdict, ahead bool) (*redlock.Lease, error) {
	if j.unlocked {
		return nil, nil
	}
	ctx, cancel := j.during(ctx, nil)
	defer cancel(nil)
	payload := joblog.Brief
	if v.Due {
		payload = payloadOf(v.Tick)
		ctx = j.traceTick(ctx, v.Tick, v.Why)
	}
	lease, err := j.try(ctx, payload)
	if err == nil || ahead || !v.Due || !j.comesBack() || j.s.limit != nil || !errors.Is(err, redlock.ErrHeld) || isBrief(err) {
		return lease, err
	}
	e := newSkipError(j.name, j.s.local(v.Tick), err)
	e.Pending = true
	j.skip(ctx, e)
	if !v.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, v.Until.Sub(j.s.now()), errTooOld)
		defer cancel()
	}
	lease, err = j.s.q.Acquire(ctx, j.key, j.leaseOptions(payload)...)
	if err != nil && errors.Is(context.Cause(ctx), errTooOld) {
		err = errTooOld
	}
	return lease, err
}

func (j *job) traceTick(ctx context.Context, tick time.Time, why joblog.Why) context.Context {
	if t := j.s.cfg.tracer.Tick; t != nil {
		return t(ctx, TickTrace{Job: j.name, Key: j.key, Due: j.s.local(tick), Why: string(why)})
	}
	return ctx
}

// try makes one attempt to take the lease.
func (j *job) try(ctx context.Context, payload string) (*redlock.Lease, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryTimeout, redlock.ErrTimeout)
	defer cancel()
	return j.s.q.TryAcquire(ctx, j.key, j.leaseOptions(payload)...)
}

// leaseOptions returns the options of all leases, and the payload that tells other replicas what
// the lease is for. There is no minimum hold: the record keeps a tick from running twice, and with
// a minimum hold the next tick would come too late.
func (j *job) leaseOptions(payload string) []redlock.LeaseOption {
	opts := j.s.cfg.lease
	return append(opts[:len(opts):len(opts)], redlock.WithPayload(payload), redlock.WithMinHold(0))
}

// payloadOf returns the payload of the lease of a run. tick is zero for a run that is no tick.
func payloadOf(tick time.Time) string {
	if tick.IsZero() {
		return "run"
	}
	return fmt.Sprintf("tick %d", tick.UnixMilli())
}

// isBrief reports whether a lease was refused because its holder runs nothing and only writes.
func isBrief(err error) bool {
	var held *redlock.HeldError
	return errors.As(err, &held) && held.Holder.Payload == joblog.Brief
}

// refused returns the time of the next step after a lease was not taken.
func (j *job) refused(ctx context.Context, v joblog.Verdict, ahead bool, err error) time.Time {
	now := j.s.now()
	var held *redlock.HeldError
	switch {
	case ctx.Err() != nil:
		return time.Time{}
	case errors.Is(err, errTooOld):
		return now.Add(time.Millisecond) // after its last moment the next verdict says what becomes of the tick
	case ahead && errors.As(err, &held) && held.Holder.Payload == payloadOf(v.Tick):
		return v.Tick.Add(j.ahead()) // that replica runs it; read the record once all runs have begun
	case ahead:
		return v.Tick // the tick is not late yet, and the earlier run may just end
	case isBrief(err):
		return now.Add(pauseAfter(0))
	case !errors.As(err, &held):
		return j.retry(ctx, &v, err)
	}
	// Until the holder's lease has run out this replica waits only for a later tick.
	at := now.Add(min(max(held.Holder.TTL, leastPause), lookEvery))
	if v.Due {
		e := newSkipError(j.name, j.s.local(v.Tick), err)
		e.Pending = e.Reason == SkipOverlap // the holder tells what its run has overlapped
		j.skip(ctx, e)
		if e.Reason == SkipHeld { // read the record soon, which has a young run then: see isYoung
			at = joblog.Earlier(at, now.Add(max(leastAhead, now.Sub(v.Tick))))
			j.lookBy(at)
		}
	}
	if table := j.known().table; !isChain(table) {
		at = joblog.Earlier(at, table.Next(now))
	}
	return at
}

// release releases a lease under which nothing was run.
func (j *job) release(ctx context.Context, lease *redlock.Lease) {
	if lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	_ = lease.Release(ctx) // on nodes that it does not reach the lease runs out
}
