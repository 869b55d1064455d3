package scheduler

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/agenda"
)

// Each replica repeats one sentence for each job: take the lease, read the record, run what the log
// owes now, write how it ended. docs/scheduling.md draws the states. A job sleeps in the agenda; a
// goroutine exists for it from when it wakes until it sleeps again.

const (
	// A tick is asked for ahead of its time, at a moment that job and identity spread, so that runs
	// spread over replicas. It is time for four round trips to nodes 40 ms away.
	leastAhead  = 200 * time.Millisecond
	spreadAhead = 150 * time.Millisecond
	// apart is how far a tick must be from the one before it to be asked for ahead of its time.
	apart = 2 * time.Second
	// pauseFresh is how long before its run the pauses of a job are read. pause.Set waits for as
	// long, so nothing begins after it has returned.
	pauseFresh = pause.Fresh
	// A replica that fails asks again after a pause between these, which doubles.
	leastPause, mostPause = 50 * time.Millisecond, time.Second
	// tryTimeout bounds an attempt to take a lease, and endTimeout what is written after it.
	tryTimeout = time.Second
	endTimeout = 10 * time.Second
)

// wake is called by the agenda: it begins a turn, unless one goes on or there is nothing to do.
func (j *job) wake(agenda.Why) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.ctx == nil: // it is stopped
	case j.busy:
		j.again = true
	default:
		if at, ok := j.asleep(j.s.now()); ok {
			j.s.agenda.Set(&j.entry, at)
			return
		}
		j.busy = true
		ctx := j.ctx
		j.s.work.Go(func() { j.turn(ctx) })
	}
}

// kick has the job think at once, or again after what it does now.
func (j *job) kick() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.again = j.busy; !j.busy && j.ctx != nil {
		j.s.agenda.Set(&j.entry, time.Time{})
	}
}

// asleep returns until when there is nothing to do, from what is known. Called with mu held.
func (j *job) asleep(now time.Time) (at time.Time, ok bool) {
	if !j.known || !j.adopted {
		return at, false
	}
	v := joblog.Owed(j.rec, j.table, j.cfg.policy, now)
	if v.Due || v.Settles || v.Over {
		return at, false
	}
	at = j.nextLook(j.askAt(v))
	return at, at.After(now)
}

// nextLook is the time to wake for a tick, or earlier to look at the record. Called with mu held.
func (j *job) nextLook(at time.Time) time.Time {
	look := j.readAt.Add(lookEvery)
	if at.IsZero() || look.Before(at) {
		return look
	}
	return at
}

// askAt is when a tick is to be asked for that is not due yet, which may be ahead of its time.
// Called with mu held.
func (j *job) askAt(v joblog.Verdict) time.Time {
	if v.At.IsZero() || !v.At.Equal(v.Tick) || j.triedAhead.Equal(v.Tick) || j.unlocked {
		return v.At
	}
	if before := j.table.Next(v.Tick.Add(-apart)); before.Before(v.Tick) {
		return v.At
	}
	return v.Tick.Add(-j.ahead)
}

// aheadOf spreads the replicas over the moments before a tick at which they ask for it.
func aheadOf(job, identity string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job + "\x00" + identity))
	return leastAhead + time.Duration(h.Sum32())%spreadAhead
}

// turn does what there is to do, until the job sleeps.
func (j *job) turn(ctx context.Context) {
	for {
		at := j.step(ctx)
		j.mu.Lock()
		if ctx.Err() == nil && (j.again || !at.IsZero() && !at.After(j.s.now())) {
			j.again = false
			j.mu.Unlock()
			continue
		}
		j.busy, j.again = false, false
		if j.ctx != nil && ctx.Err() != nil {
			at = j.s.now() // it was stopped and started again meanwhile
		}
		if j.ctx != nil && !at.IsZero() {
			j.s.agenda.Set(&j.entry, at)
		}
		j.mu.Unlock()
		return
	}
}

// step is one state of the loop. It returns when the next one is to be entered: the zero time if
// something else will wake the job.
func (j *job) step(ctx context.Context) time.Time {
	if err := j.s.unfit(ctx); err != nil {
		return j.standBy(ctx, err)
	}
	now := j.s.now()
	if j.toRead(now) {
		if err := j.read(ctx); err != nil {
			return j.retry(ctx, nil, err)
		}
	}
	if !j.isAdopted() {
		if err := j.adopt(ctx); err != nil {
			return j.retry(ctx, nil, err)
		}
	}
	v, due := j.owed(j.s.now())
	switch {
	case v.Over:
		return j.over(ctx)
	case !v.Due && !v.Settles:
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.nextLook(j.askAt(v))
	case j.isOld(v):
		if err := j.read(ctx); err != nil {
			return j.retry(ctx, &v, err)
		}
		j.tellTaken(ctx, v)
		return j.s.now()
	}
	return j.ask(ctx, v, due)
}

// owed is what is owed now, or at the time of a tick that is to be asked for ahead.
func (j *job) owed(now time.Time) (joblog.Verdict, time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := joblog.Owed(j.rec, j.table, j.cfg.policy, now)
	if !v.Due && !v.Settles && v.At.Equal(v.Tick) && !v.Tick.IsZero() && !j.askAt(v).After(now) {
		return joblog.Owed(j.rec, j.table, j.cfg.policy, v.Tick), v.Tick
	}
	return v, now
}

// isOld reports whether the record was read before what it is to be acted on for: another replica
// may have done that. A tick that is asked for ahead can hardly have been taken.
func (j *job) isOld(v joblog.Verdict) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := v.Tick
	if n := len(v.Left); n > 0 && !v.Due {
		last = v.Left[n-1].Last
	}
	return !j.unlocked && (v.Due || len(v.Left) > 0) && j.readAt.Before(last) && !last.After(j.s.now())
}

// tellTaken tells of a tick that was to be asked for, and that another replica has.
func (j *job) tellTaken(ctx context.Context, v joblog.Verdict) {
	if !v.Due {
		return
	}
	j.mu.Lock()
	rec := j.rec
	j.mu.Unlock()
	if !rec.Run.Tick.Equal(v.Tick) || rec.Run.Attempt < v.Attempt {
		return
	}
	e := &SkipError{Job: j.name, Tick: j.s.local(v.Tick), Count: 1, Reason: SkipDone, By: rec.Run.By}
	if _, unended := rec.Unended(); unended {
		e.Reason, e.Pending = SkipHeld, j.comesBack()
	}
	j.skip(ctx, e)
}

// comesBack reports whether a tick that another replica runs may have to be run again.
func (j *job) comesBack() bool {
	p := j.cfg.policy
	return p.Delivery == joblog.AtLeastOnce || p.Overlap != joblog.OverlapSkip || p.CatchUp != joblog.CatchUpNone
}

// ask takes the lease, decides under it, and runs what is owed.
func (j *job) ask(ctx context.Context, v joblog.Verdict, due time.Time) time.Time {
	waited := false
	if v.Due && !j.s.limit.take(j) {
		if !j.s.limit.waits {
			j.skip(ctx, &SkipError{Job: j.name, Tick: j.s.local(v.Tick), Count: 1, Reason: SkipLimit, Pending: true})
			return time.Time{} // a place that is given back kicks the job
		}
		if err := j.s.limit.wait(ctx); err != nil {
			return j.standBy(ctx, err)
		}
		waited = true // what waits for a place does not age
	}
	if v.Due {
		defer j.s.limit.giveBack()
	}
	ahead := due.After(j.s.now())
	if ahead {
		j.mu.Lock()
		j.triedAhead = v.Tick
		j.mu.Unlock()
	}
	held, cancel := j.s.leader.during(ctx)
	defer cancel(nil)
	lease, err := j.acquire(held, v, ahead)
	if err != nil {
		return j.refused(ctx, v, ahead, err)
	}
	if !waited {
		due = later(due, j.s.now()) // it may have waited for the lease
	}
	return j.decide(ctx, lease, v, due)
}

// acquire takes the lease for a tick, or to settle what was left out. It waits for a holder where
// the tick may come back, but not in a place that other jobs of this replica could have.
func (j *job) acquire(ctx context.Context, v joblog.Verdict, ahead bool) (*redlock.Lease, error) {
	if j.unlocked {
		return nil, nil
	}
	if t := j.s.cfg.tracer.Tick; t != nil && v.Due {
		ctx = t(ctx, TickTrace{Job: j.name, Key: j.key, Due: j.s.local(v.Tick), Why: string(v.Why)})
	}
	payload := logPayload
	if v.Due {
		payload = payloadOf(v.Tick)
	}
	lease, err := j.try(ctx, payload)
	if err == nil || ahead || !v.Due || !j.comesBack() || j.s.limit != nil || !errors.Is(err, redlock.ErrHeld) || isBrief(err) {
		return lease, err
	}
	j.skip(ctx, j.pending(newSkipError(j.name, j.s.local(v.Tick), err)))
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

// errTooOld ends the wait for the lease of a tick.
var errTooOld = errors.New("scheduler: the tick is too old")

func (j *job) pending(e *SkipError) *SkipError { e.Pending = true; return e }

// try makes one attempt to take the lease.
func (j *job) try(ctx context.Context, payload string) (*redlock.Lease, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryTimeout, redlock.ErrTimeout)
	defer cancel()
	return j.s.q.TryAcquire(ctx, j.key, j.leaseOptions(payload)...)
}

// leaseOptions are those of all leases, and what tells others what the lease is for.
func (j *job) leaseOptions(payload string) []redlock.LeaseOption {
	opts := j.s.cfg.lease
	if payload == "" {
		return opts
	}
	return append(opts[:len(opts):len(opts)], redlock.WithPayload(payload))
}

// refused is the next step after a lease was not taken.
func (j *job) refused(ctx context.Context, v joblog.Verdict, ahead bool, err error) time.Time {
	now := j.s.now()
	var held *redlock.HeldError
	switch {
	case ctx.Err() != nil:
		return time.Time{}
	case errors.Is(err, errTooOld):
		return now // the log says what becomes of it
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
	j.mu.Lock()
	defer j.mu.Unlock()
	// Until the holder's lease has run out only a later tick is of interest.
	at := now.Add(min(max(held.Holder.TTL, leastPause), lookEvery))
	if next := j.table.Next(now); !next.IsZero() && next.Before(at) && !j.isChain() {
		at = next
	}
	return at
}

// retry is the next step after the nodes could not be asked, or two replicas asked at once.
func (j *job) retry(ctx context.Context, v *joblog.Verdict, err error) time.Time {
	if ctx.Err() != nil {
		return time.Time{}
	}
	j.mu.Lock()
	n := j.failures
	j.failures++
	j.mu.Unlock()
	if v != nil && v.Due && n == 0 {
		e := newSkipError(j.name, j.s.local(v.Tick), err)
		e.Pending = true
		j.skip(ctx, e)
	}
	if v == nil && n == 0 && newSkipError(j.name, time.Time{}, err).Reason == SkipOther {
		j.s.cfg.logger.WarnContext(ctx, "scheduler: how far a job has come could not be read: it is not run until that can be done", "job", j.name,
			"error.type", redlock.ErrorType(err), "error", err)
	}
	return j.s.now().Add(pauseAfter(n))
}

// pauseAfter is the pause after a number of failures in a row.
func pauseAfter(n int) time.Duration {
	pause := min(leastPause<<min(n, 10), mostPause)
	return pause/2 + rand.N(pause)
}

// standBy is the state of a replica that may run no ticks.
func (j *job) standBy(ctx context.Context, err error) time.Time {
	j.mu.Lock()
	j.known = false                      // what was missed meanwhile is in the record
	j.adopted = j.adopted && !j.unlocked // or nowhere
	j.mu.Unlock()
	j.pauses.forget(ctx)
	if isAhead(err) {
		return j.s.now().Add(clockEvery)
	}
	return time.Time{}
}

// toRead reports whether the record is to be read before anything else.
func (j *job) toRead(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.unlocked && (!j.known || !now.Before(j.readAt.Add(lookEvery)))
}

// read reads the record and the pauses without a lease.
func (j *job) read(ctx context.Context) error {
	states, err := j.s.reader.read(ctx, j)
	if err != nil {
		return err
	}
	rec, err := joblog.Parse(states[0].Value)
	if err != nil {
		return err
	}
	if _, err := j.floor(ctx, states[1:]); err != nil {
		return err
	}
	j.succeeded()
	j.know(rec, states[0].Ballot, false)
	j.watch(ctx, rec)
	return nil
}

// floor is the end of the pauses, which it notes.
func (j *job) floor(ctx context.Context, states []register.State) (time.Time, error) {
	own, err := pause.Parse(states[0])
	if err != nil {
		return time.Time{}, err
	}
	all, err := pause.Parse(states[1])
	if err != nil {
		return time.Time{}, err
	}
	j.pauses.are(ctx, own, all)
	if f := all.Floor(); f.After(own.Floor()) {
		return f, nil
	}
	return own.Floor(), nil
}

// stillRuns reads the pauses again, and returns an error if a tick is paused.
func (j *job) stillRuns(ctx context.Context, tick time.Time) error {
	states, err := j.pause.Read(ctx, j.s.pauseAll)
	if err != nil {
		return err
	}
	floor, err := j.floor(ctx, states)
	if err == nil && !tick.After(floor) {
		return &SkipError{Job: j.name, Tick: j.s.local(tick), Count: 1, Reason: SkipPaused}
	}
	return err
}

// know takes over a record, unless it was read without the lease and is older than what is known:
// it was asked for before that was written, or the nodes were emptied. The next lease has the
// truth.
func (j *job) know(rec joblog.Record, ballot uint64, held bool) {
	j.mu.Lock()
	if held || ballot >= j.ballot {
		j.rec, j.ballot = rec, ballot
	}
	j.known, j.readAt = true, j.s.now()
	j.mu.Unlock()
	j.tellLog(context.Background())
}

// learn is know for what this replica has read or written under a lease.
func (j *job) learn(rec joblog.Record, lease *redlock.Lease) {
	var ballot uint64
	if lease != nil {
		ballot = lease.FencingToken()
	}
	j.know(rec, ballot, true)
}

func (j *job) succeeded() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failures = 0
}

func (j *job) isAdopted() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.adopted && !j.unlocked && j.rec.Words == j.def.Words && !j.rec.Since.IsZero() {
		j.rec, j.table = joblog.Adopt(j.rec, j.def, j.rec.Since)
		j.adopted, j.since = true, j.rec.Since
	}
	return j.adopted
}

// adopt makes this replica's definition the job's, once after its start. A replica of an older
// version goes on with its own.
func (j *job) adopt(ctx context.Context) error {
	if j.unlocked {
		j.mu.Lock()
		j.rec, j.table = joblog.Adopt(joblog.Record{}, j.def, j.s.now())
		j.known, j.adopted, j.readAt, j.since = true, true, j.s.now(), j.rec.Since
		j.mu.Unlock()
		return nil
	}
	lease, err := j.s.q.Acquire(ctx, j.key, j.leaseOptions(logPayload)...)
	if err != nil {
		return err
	}
	defer j.release(ctx, lease)
	turn, states, err := j.record.Begin(ctx, lease)
	if err != nil {
		return err
	}
	rec, err := joblog.Parse(states[0].Value)
	if err != nil {
		return err
	}
	replaced, since := rec.Words, j.adoptedAt()
	rec, table := joblog.Adopt(rec, j.def, states[0].Now)
	if !since.IsZero() { // it is written back, see watch
		rec.Since, table = since, j.def.Table(since)
	}
	if replaced != j.def.Words {
		value, err := rec.Encode()
		if err != nil {
			return err
		}
		if err := turn.Write(ctx, value); err != nil {
			return err
		}
		if replaced != "" && since.IsZero() {
			j.s.cfg.logger.InfoContext(ctx, "scheduler: the schedule of a job has changed: its ticks count from now on", "job", j.name, "schedule", j.def.Words, "before", replaced)
		}
	}
	j.mu.Lock()
	if replaced == j.def.Words {
		replaced = ""
	}
	j.table, j.adopted, j.replaced, j.since = table, true, replaced, rec.Since
	j.mu.Unlock()
	j.learn(rec, lease)
	return nil
}

// decide reads the record under the lease, and runs what it owes, or releases.
func (j *job) decide(ctx context.Context, lease *redlock.Lease, asked joblog.Verdict, asOf time.Time) time.Time {
	r, v, err := j.begin(ctx, lease, asOf, "")
	if err != nil {
		j.release(ctx, lease)
		return j.retry(ctx, &asked, err)
	}
	j.succeeded()
	j.tellVerdict(ctx, v)
	if r == nil {
		j.release(ctx, lease)
		return j.s.now()
	}
	if err := j.carryOut(ctx, r, asOf); err != nil {
		return j.takenBack(ctx, r, err)
	}
	return j.s.now()
}

// begin reads the record and the pauses under the lease, and has a quorum of nodes take the grant
// of what is owed, or of a run that was ordered. It returns no run where nothing is owed.
func (j *job) begin(ctx context.Context, lease *redlock.Lease, asOf time.Time, order string) (*run, joblog.Verdict, error) {
	r := &run{job: j, lease: lease, order: order, sent: time.Now(), before: j.last()}
	r.table = j.timetable()
	policy, identity, token := j.cfg.policy, j.s.q.Identity(), uint64(0)
	if lease != nil {
		identity, token = lease.Identity(), lease.FencingToken()
		turn, states, err := j.record.Begin(ctx, lease, j.pause, j.s.pauseAll)
		if err != nil {
			return nil, joblog.Verdict{}, err
		}
		if r.before, err = joblog.Parse(states[0].Value); err != nil {
			return nil, joblog.Verdict{}, err
		}
		if policy.Floor, err = j.floor(ctx, states[1:]); err != nil {
			return nil, joblog.Verdict{}, err
		}
		if err := j.s.q.CheckClock(asOf); isAhead(err) && !isOrdered(order) {
			return nil, joblog.Verdict{}, err
		}
		r.turn = turn
		r.before = j.withoutUnbegun(r.before)
		j.learn(r.before, lease)
	}
	v := joblog.Verdict{Why: joblog.Ordered}
	if !isOrdered(order) {
		v = joblog.Owed(r.before, r.table, policy, asOf)
	}
	r.rec = r.before
	switch {
	case !v.Due && !v.Settles && v.Why != joblog.Ordered:
		return nil, v, nil
	case !v.Due && v.Why != joblog.Ordered:
		err := r.write(ctx, func(rec joblog.Record) joblog.Record { return joblog.Settle(rec, r.table, v, asOf) })
		if err == nil {
			j.learn(r.record(), lease)
		}
		return nil, v, err
	}
	err := r.write(ctx, func(rec joblog.Record) joblog.Record {
		return joblog.Begin(rec, r.table, policy, v, joblog.Grant{Token: token, By: identity, At: asOf})
	})
	if err != nil {
		j.unbegun(r)
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_ = r.undo(after) // the grant may be in force
		return nil, v, err
	}
	j.learn(r.record(), lease)
	return r, v, nil
}

// carryOut waits for the due time and has gocron run the task. An error says that the task was not
// called.
func (j *job) carryOut(ctx context.Context, r *run, due time.Time) error {
	ending, cancel := j.s.leader.during(ctx)
	defer cancel(nil)
	if r.lease != nil {
		stop := context.AfterFunc(r.lease.Context(), func() { cancel(context.Cause(r.lease.Context())) })
		defer stop()
	}
	if err := sleep(ending, due.Sub(j.s.now())); err != nil {
		return err
	}
	if err := r.mayBegin(ending); err != nil {
		return err
	}
	over := j.endForNext(ctx, r)
	err := r.perform(ending)
	over()
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.refusals = 0
	j.mu.Unlock()
	r.end(context.WithoutCancel(ctx))
	return nil
}

// endForNext ends a run when the next tick comes, if the job's policy says so. over is to be called
// when gocron has done with the run.
func (j *job) endForNext(ctx context.Context, r *run) (over func()) {
	if j.cfg.policy.Overlap != joblog.OverlapCancel || j.isChain() {
		return func() {}
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		at := later(r.record().Run.Tick, j.s.now())
		for cancelled := false; !cancelled; {
			if at = r.table.Next(at); at.IsZero() || sleep(ctx, at.Sub(j.s.now())) != nil {
				return
			}
			ctx, timeout := context.WithTimeout(ctx, endTimeout)
			cancelled, _ = r.cancel(ctx, &CancelledError{Job: j.name, By: j.s.q.Identity(), Why: "the next tick has come (OverlapCancel)"})
			timeout()
		}
	}()
	return func() { end(); <-done }
}

// takenBack is the next step after a run whose task was not called: the nodes get the record of
// before, so that another replica has the tick.
func (j *job) takenBack(ctx context.Context, r *run, err error) time.Time {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	j.unbegun(r)
	if undone := r.undo(after); undone == nil {
		j.learn(r.record(), r.lease)
	}
	r.release(context.WithoutCancel(ctx), nil)
	if ctx.Err() != nil {
		return time.Time{}
	}
	e := newSkipError(j.name, r.public().Due, err)
	if e.Reason == SkipPaused {
		return j.s.now() // the log says what becomes of it
	}
	j.mu.Lock()
	n := j.refusals
	j.refusals++
	j.mu.Unlock()
	e.Pending = true
	if n == 0 || e.Reason == SkipRefused {
		j.skip(ctx, e)
	}
	return j.s.now().Add(min(leastPause<<min(n, 12), time.Minute))
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

// unbegun remembers a grant that this replica has not acted on, and that may be in force.
func (j *job) unbegun(r *run) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.never = r
}

// withoutUnbegun returns a record without such a grant.
func (j *job) withoutUnbegun(rec joblog.Record) joblog.Record {
	j.mu.Lock()
	r := j.never
	j.mu.Unlock()
	if r != nil && r.lease != nil && rec.Run.Token == r.lease.FencingToken() && rec.Run.Ended.IsZero() {
		return r.before
	}
	return rec
}

// over is the state of a job without further ticks: gocron forgets it.
func (j *job) over(ctx context.Context) time.Time {
	j.s.cfg.logger.InfoContext(ctx, "scheduler: a job is over: no tick is left", "job", j.name)
	j.s.isOver(j)
	return time.Time{}
}

func isOrdered(order string) bool { return order != "" }

// sleep waits, by the monotonic clock, and returns the cause if ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
