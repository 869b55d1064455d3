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
	// tryTimeout bounds an attempt to take a lease, and endTimeout what is written after it.
	tryTimeout = time.Second
	endTimeout = 10 * time.Second
)

// errTooOld is why a tick is not run that was asked for in time.
var errTooOld = errors.New("scheduler: the tick is too old")

// ask takes the lease, decides under it, and runs what is owed at a time, which may be ahead.
func (j *job) ask(ctx context.Context, v joblog.Verdict, at time.Time) time.Time {
	limit := j.s.limit
	placed := v.Due && limit.try() // whoever asks for the sake of a write runs nothing, and says so
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
		return j.s.now() // another replica may have run it meanwhile
	}
	ahead := at.After(j.s.now())
	if ahead {
		j.triedAhead = v.Tick
	}
	lease, err := j.acquire(ctx, v, ahead)
	if err != nil {
		return j.refused(ctx, v, ahead, err)
	}
	if !waited { // what waits for a place does not age
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
	// Its task was not called, and another replica has the tick.
	e := newSkipError(j.name, due, err)
	if e.Reason == SkipPaused || e.Reason == SkipMissed {
		return j.s.now() // the log says what becomes of it
	}
	n := j.refusals
	j.refusals++
	if e.Pending = true; n == 0 || e.Reason == SkipRefused {
		j.skip(ctx, e)
	}
	return j.s.now().Add(min(leastPause<<min(n, 12), time.Minute))
}

// during returns a context that ends also with the lease, whose values it has, and with the
// leadership under which ticks are run.
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

// acquire takes the lease for a tick, or to settle what was left out. It waits for a holder where
// the tick may come back, but not in a place that other jobs of this replica could have.
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

// leaseOptions are those of all leases, and what tells others what the lease is for. The record
// keeps a tick from being run twice: with a minimum hold the next one would come too late.
func (j *job) leaseOptions(payload string) []redlock.LeaseOption {
	opts := j.s.cfg.lease
	return append(opts[:len(opts):len(opts)], redlock.WithPayload(payload), redlock.WithMinHold(0))
}

// payloadOf is what a lease's owner says of the tick that it runs; zero for a run that is none.
func payloadOf(tick time.Time) string {
	if tick.IsZero() {
		return "run"
	}
	return fmt.Sprintf("tick %d", tick.UnixMilli())
}

// isBrief reports whether a lease is held by an owner that has only something to write.
func isBrief(err error) bool {
	var held *redlock.HeldError
	return errors.As(err, &held) && held.Holder.Payload == joblog.Brief
}

// refused is the next step after a lease was not taken.
func (j *job) refused(ctx context.Context, v joblog.Verdict, ahead bool, err error) time.Time {
	now := j.s.now()
	var held *redlock.HeldError
	switch {
	case ctx.Err() != nil:
		return time.Time{}
	case errors.Is(err, errTooOld):
		return now.Add(time.Millisecond) // the log says what becomes of it; at its last moment, no earlier
	case ahead && errors.As(err, &held) && held.Holder.Payload == payloadOf(v.Tick):
		return v.Tick.Add(j.ahead()) // that replica runs it: what came of it is seen once all have begun
	case ahead:
		return v.Tick // nothing is late yet, and the run before may just end
	case isBrief(err):
		return now.Add(pauseAfter(0))
	case !errors.As(err, &held):
		return j.retry(ctx, &v, err)
	}
	if v.Due {
		e := newSkipError(j.name, j.s.local(v.Tick), err)
		e.Pending = e.Reason == SkipOverlap // the holder tells what its run has overlapped
		j.skip(ctx, e)
	}
	// Until the holder's lease has run out only a later tick is of interest.
	at := now.Add(min(max(held.Holder.TTL, leastPause), lookEvery))
	if table := j.known().table; !isChain(table) {
		at = earliest(at, table.Next(now))
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
	_ = lease.Release(ctx) // what it does not reach runs out
}
