package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/redlock"
)

// job is what a Scheduler keeps about a job, beside gocron.
type job struct {
	s        *Scheduler
	name     string
	key      string
	cfg      jobConfig
	schedule gocron.JobSchedule // what NewJob was asked for
	kind     string             // the same in words
	zone     string             // of its times; empty if it has none
	ticks    *ticker
	unlocked bool          // runs everywhere: gocron.WithDisabledDistributedJobLocker
	made     chan struct{} // closed when gocron is set
	gocron   gocron.Job    // read after made is closed

	claims  *claims
	history *history
	backlog *backlog
	labels  *labels
	pauses  *pauses
	told    definitions

	offered runQueue // runs whose lease is held, for the next Lock: late ticks, and RunNow's
	begun   runQueue // runs that Lock began, for their tasks
}

type jobKey struct{}

// jobFrom returns the job from the context that gocron gives to Lock and to the task.
func jobFrom(ctx context.Context) *job {
	j, _ := ctx.Value(jobKey{}).(*job)
	return j
}

// newJob checks what gocron is going to be asked for, and returns the definition and the options to
// ask it with. id is that of the job that is updated.
func newJob(s *Scheduler, id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (*job, gocron.JobDefinition, []gocron.JobOption, error) {
	now := s.cfg.clock.Now()
	set, err := checkJobOptions(opts, len(s.cfg.global), now)
	if err != nil {
		return nil, nil, nil, err
	}
	cfg, err := newJobConfig(s, set)
	if err != nil {
		return nil, nil, nil, err
	}
	unlocked := set.has(fieldDisabledLocker)
	if !unlocked {
		opts = without(opts, now, fieldSingleton) // the lease does it, on all replicas
	}
	p, err := newProbe(definition, task, opts, now)
	if err != nil {
		return nil, nil, nil, err
	}
	start, end := set.time(fieldStartTime), set.time(fieldStopTime)
	key, err := s.newKey(p.name, id)
	if err != nil {
		return nil, nil, nil, err
	}
	schedule, err := newSchedule(p.schedule, set, s.leader != nil)
	if err != nil {
		return nil, nil, nil, err
	}
	var table timetable
	if p.ownCron {
		own := &ownCron{definition: definition, options: timeless(opts, now), zone: s.cfg.location}
		if err := own.check(now); err != nil {
			return nil, nil, nil, err
		}
		table = own
	} else if table, err = schedule.times(set.daylightSaving(), s.cfg.location); err != nil {
		return nil, nil, nil, err
	}
	of := table // what gocron asks for times; nil if it computes them itself
	if p.ownCron {
		of = nil
	}
	origin := start
	if origin.IsZero() {
		origin = now
	}
	kind, zone, label := schedule.String(), zoneOf(table), newLabel(schedule, table)
	if every, regular := p.schedule.(gocron.DurationJobSchedule); !end.IsZero() && !unlocked && (table != nil || regular) {
		// gocron removes a job with its last tick, which may still be run late, and ends its run.
		opts = without(opts, now, fieldStopTime)
		if table != nil {
			table = bounded{table, end}
			of = table
		} else {
			of = bounded{interval{every.Duration, origin}, end}
		}
	}
	if of != nil {
		definition = gocron.CronJob(kind, true)
		opts = append(opts, gocron.WithCronImplementation(cron{of, s.cfg.location}), gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeDefault))
	}
	j := &job{
		s: s, name: p.name, key: key, cfg: cfg, schedule: p.schedule, ticks: newTicker(p.schedule, table, start, end),
		kind: kind, zone: zone, unlocked: unlocked, made: make(chan struct{}),
	}
	j.claims, j.history, j.backlog = &claims{job: j}, &history{job: j}, &backlog{job: j}
	j.pauses = &pauses{job: j}
	j.labels = &labels{job: j, own: label, began: now}
	return j, definition, slices.Concat([]gocron.JobOption{recovering()}, opts, []gocron.JobOption{
		gocron.WithContext(context.WithValue(s.cfg.context, jobKey{}, j)),
	}), nil
}

// checkJobOptions returns what gocron's options set, or an error for those that do not fit. The
// first ones are global.
func checkJobOptions(opts []gocron.JobOption, global int, now time.Time) (settings, error) {
	if i := slices.IndexFunc(opts, func(o gocron.JobOption) bool { return o == nil }); i >= 0 {
		return settings{}, &OptionError{Option: "gocron.JobOption", Reason: fmt.Sprintf("option %d is nil", i-global)}
	}
	set, err := jobSettings(opts, now)
	if err != nil {
		return set, err
	}
	return set, set.check(jobRefusals)
}

// newJobConfig is the Scheduler's, with the options of With and what gocron's singleton mode asks
// for.
func newJobConfig(s *Scheduler, set settings) (jobConfig, error) {
	cfg := s.cfg.job
	for i, o := range s.with {
		if o == nil {
			return cfg, &OptionError{Option: "With", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		if err := o.applyJob(&cfg); err != nil {
			return cfg, err
		}
	}
	if overlap, asked := set.overlap(); asked {
		cfg.overlap = overlap
	}
	return cfg, cfg.check()
}

// begin returns the run that a call of Lock is for: one that was offered, or that of the tick that
// is due, for which it acquires the lease.
func (j *job) begin(ctx context.Context) (*runLock, *SkipError) {
	if r := j.offered.take(func(r *runLock) bool { return r.lease.Err() == nil }); r != nil {
		close(r.taken)
		j.claims.keep()
		j.begun.add(r)
		return r, nil
	}
	due, skip := j.due(ctx)
	if skip != nil {
		return nil, skip
	}
	tick := j.ticks.of(due.scheduled)
	if err := sleep(ctx, due.scheduled.Sub(j.s.cfg.clock.Now())); err != nil { // it was set back
		return nil, j.skip(due.scheduled, err)
	}
	queued := &SkipError{Job: j.name, Tick: tick, Reason: SkipOverlap, Pending: true}
	if j.backlog.queueBehind(due.scheduled) {
		return nil, queued
	}
	lease, err := j.tryLeading(j.traced(ctx, due.scheduled, false), append(j.tickOptions(tick), redlock.WithDue(due.scheduled))...)
	j.pauses.asked(ctx, err)
	if err != nil {
		return nil, j.skip(due.scheduled, err)
	}
	late := newLateTick(j, due.scheduled, SkipMissed)
	if j.backlog.overtakes(ctx, lease, late, due.before) {
		return nil, queued
	}
	j.history.began(tick)
	r := newRunLock(j, lease, late, Run{Attempt: lease.Attempt()})
	j.begun.add(r)
	return r, nil
}

// due returns the tick that is due, unless this replica runs none.
func (j *job) due(ctx context.Context) (claim, *SkipError) {
	due, err := j.claims.next(ctx)
	if err != nil {
		return due, &SkipError{Job: j.name, Reason: SkipOther, Err: err}
	}
	unfit := cmp.Or(j.s.clock.ahead(ctx), j.s.leader.check(ctx))
	j.backlog.addPassedOver(ctx, due.missed, unfit)
	if unfit != nil {
		return due, j.skip(due.scheduled, unfit)
	}
	return due, nil
}

// skip explains why a tick, scheduled for a time, is not run now, and adds it to the backlog if the
// job's policies say so.
func (j *job) skip(scheduled time.Time, err error) *SkipError {
	e := j.history.explain(j.ticks.of(scheduled), err, true)
	e.Pending = j.backlog.addSkipped(scheduled, e.Reason)
	if e.Expected() {
		j.labels.ask()
	}
	return e
}

// runsLate reports whether the job's policies have a tick run late that was skipped for a reason.
func (j *job) runsLate(reason Reason) bool {
	if j.ticks.random {
		return reason == SkipOverlap && j.cfg.overlap == OverlapQueue // it waits, and is not caught up
	}
	switch reason {
	case SkipOverlap:
		// That run may be an orphan, or be late itself. If it has really taken the tick's time, the
		// tick is skipped after all: see overlapped.
		return j.cfg.overlap == OverlapQueue || j.cfg.catchUp != CatchUpNone
	case SkipHeld:
		// Its holder may die, or give the tick back because it is shut down.
		return j.cfg.catchUp != CatchUpNone
	case SkipNotLeader, SkipSplit, SkipNoQuorum, SkipTimeout, SkipQuarantined:
		return true
	}
	return false
}

// expiry is when a tick is too old to be caught up. That of a duration job may be run at any time
// of its interval, so its age counts from the end.
func (j *job) expiry(tick time.Time) time.Time { return tick.Add(j.ticks.every + j.cfg.window) }

// tickOptions make a lease that of a tick. The nodes remember it for a day after the job should
// have run again, twice.
func (j *job) tickOptions(tick time.Time) []redlock.LeaseOption {
	keep := minKeep + 2*min(j.ticks.gap(tick), MaxSpan) + j.cfg.window // far below redlock.MaxKeep
	return []redlock.LeaseOption{redlock.WithTick(tick, j.cfg.delivery, keep), redlock.WithLabel(j.labels.own)}
}

// leaseOptions adds to the options that all leases have.
func (j *job) leaseOptions(opts ...redlock.LeaseOption) []redlock.LeaseOption {
	return slices.Concat(j.s.cfg.lease, opts)
}

// traced tells the tracer that the lease of a tick, or with a zero one of another run, is asked
// for, and returns the context to do that with.
func (j *job) traced(ctx context.Context, tick time.Time, late bool) context.Context {
	if t := j.s.cfg.tracer.tick; t != nil {
		return t.TraceTick(ctx, TraceTickData{Job: j.name, Key: j.key, Tick: tick, Late: late})
	}
	return ctx
}

// try makes one attempt within the try timeout.
func (j *job) try(ctx context.Context, opts ...redlock.LeaseOption) (*redlock.Lease, error) {
	timeout := j.s.cfg.tryTimeout
	late := fmt.Errorf("the attempt took longer than %v (WithTryTimeout): %w", timeout, redlock.ErrTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	lease, err := j.s.q.TryAcquire(ctx, j.key, j.leaseOptions(opts...)...)
	j.labels.observe(ctx, lease, err)
	return lease, err
}

// tryLeading is try on a replica that leads before and after it.
func (j *job) tryLeading(ctx context.Context, opts ...redlock.LeaseOption) (*redlock.Lease, error) {
	if err := j.s.leader.check(ctx); err != nil {
		return nil, err
	}
	lease, err := j.try(ctx, opts...)
	if err != nil {
		return nil, err
	}
	if err := j.s.leader.check(ctx); err != nil {
		_ = lease.Abandon(ctx) // the leadership was lost meanwhile
		return nil, err
	}
	return lease, nil
}

// runNow acquires the lease of a run that is no tick, and has gocron begin it. order is the id of
// an operator's order, or empty.
func (j *job) runNow(ctx context.Context, order string) (*runLock, error) {
	lease, err := j.tryLeading(j.traced(ctx, time.Time{}, false))
	if err != nil {
		return nil, err
	}
	r := newRunLock(j, lease, lateTick{}, Run{Attempt: 1})
	r.order = order
	if err = j.offer(ctx, r); err != nil {
		_ = lease.Abandon(ctx)
		return nil, err
	}
	return r, nil
}

// offer has gocron begin a run whose lease is held, and returns when gocron has called Lock for it,
// or an error if it has not within the try timeout. The lease is then still held.
func (j *job) offer(ctx context.Context, r *runLock) error {
	r.taken = make(chan struct{})
	j.s.asking.RLock() // gocron hangs if it is asked while it is stopped
	if ctx.Err() != nil {
		j.s.asking.RUnlock()
		return context.Cause(ctx)
	}
	j.offered.add(r)
	err := j.gocron.RunNow()
	j.s.asking.RUnlock()
	asked := err == nil
	if asked {
		err = j.waitTaken(ctx, r)
	}
	if !j.offered.remove(r) {
		return nil // Lock has it
	}
	if asked {
		j.claims.withdraw()
	}
	return err
}

// waitTaken waits until Lock has taken an offered run. It does, unless gocron is busy
// (gocron.WithLimitConcurrentJobs) or stopping.
func (j *job) waitTaken(ctx context.Context, r *runLock) error {
	late := min(r.lease.TTL(), j.s.cfg.tryTimeout)
	select {
	case <-r.taken:
		return nil
	case <-r.lease.Context().Done():
		return context.Cause(r.lease.Context())
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(late):
		return fmt.Errorf("gocron did not begin the run within %v: it has as many as it may (gocron.WithLimitConcurrentJobs), or is being stopped: %w",
			late, gocron.ErrJobRunNowFailed)
	}
}

// local returns times in the Scheduler's location: see cron.Next.
func (j *job) local(times []time.Time) []time.Time {
	local := make([]time.Time, len(times))
	for i, at := range times {
		local[i] = at.In(j.s.cfg.location)
	}
	return local
}
