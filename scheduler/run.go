package scheduler

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// MaxReport bounds the text that Run.Report keeps, in bytes.
const MaxReport = 256

// Run is what a task may know of its run; see RunFromContext.
type Run struct {
	Job     string
	Due     time.Time // the tick's time, the same for each attempt; zero for a run that RunNow asked for
	Attempt int       // 1, or more if the tick was begun before (AtLeastOnce, WithRetry)
	// Why is one of on_time, late (by more than Grace), queued (an earlier run overlapped it),
	// again (an earlier run of the tick was cut short), ordered (RunNow) and backfill.
	Why string
	run *run
}

// FencingToken returns a number that is greater than that of every earlier run of the job on any
// replica. Pass it with every write, and let the resource refuse a number below the largest it has
// seen.
func (r Run) FencingToken() uint64 { return r.Lease().FencingToken() }

// Deadline returns until when no other replica runs the job, as known now; extensions move it.
// Compare it with time.Now in this process.
func (r Run) Deadline() time.Time { return r.Lease().Deadline() }

// Lease returns the run's lease. Do not release it: the Scheduler does that when the task has
// returned.
func (r Run) Lease() *redlock.Lease {
	if r.run == nil {
		return nil
	}
	return r.run.lease
}

// Report keeps a line about the run, such as "1,204 invoices", for people who read the history of
// runs. A later call replaces the line. It is cut to MaxReport bytes.
func (r Run) Report(text string) {
	if r.run == nil {
		return
	}
	text = strings.ToValidUTF8(text[:min(len(text), MaxReport)], "")
	r.run.mu.Lock()
	defer r.run.mu.Unlock()
	r.run.report = text
}

type runKey struct{}

// RunFromContext returns the run that a task was called for, from the context that the task got or
// a context made of it. It returns false outside of a run of a Scheduler, and for jobs with
// gocron.WithDisabledDistributedJobLocker, which run everywhere.
func RunFromContext(ctx context.Context) (Run, bool) {
	if ctx == nil {
		return Run{}, false
	}
	r, ok := ctx.Value(runKey{}).(Run)
	return r, ok
}

// run is a run on this replica, from its grant to the write of its end.
type run struct {
	job   *job
	lease *redlock.Lease // nil of a job that runs everywhere
	turn  *register.Turn // likewise
	order string         // the order that asked for it; empty for none
	table joblog.Table
	sent  time.Duration // when the read of the pauses that it may begin by was sent, see Scheduler.steady
	read  time.Time     // when the record was read, by the nodes' clocks
	own   time.Time     // when the record was read, by the wall clock
	since time.Duration // when the record was read, by Scheduler.steady
	due   time.Duration // when its task is to be called, by Scheduler.steady; at most leastAhead+mostSpread after sent
	until time.Time     // the tick is too old after this; zero if it does not age

	begins func() // called when its task is about to be called; nil for nothing

	peers *peers

	before joblog.Record // the record without this run

	writing chan struct{} // a lock of one place for writes of the record, which wait for nodes: no mutex, and never under mu

	mu        sync.Mutex
	rec       joblog.Record           // guarded by mu; the record as it is to stand on the nodes
	state     runState                // guarded by mu
	began     time.Time               // guarded by mu; when the task was called first
	took      time.Duration           // guarded by mu; from began until the task returned
	err       error                   // guarded by mu; the task's error, or a *PanicError
	told      bool                    // guarded by mu; the task was told to end before it returned, or its lease had ended
	trace     string                  // guarded by mu
	report    string                  // guarded by mu
	calls     []call                  // guarded by mu; the attempts
	stop      context.CancelCauseFunc // guarded by mu; ends the task's context
	cancelled error                   // guarded by mu; the cause that cancel gave to stop
}

// call is a call of the task that has returned.
type call struct {
	began time.Time
	took  time.Duration
	err   error
}

// peers are the runs of this replica that are to begin at the same time.
type peers struct {
	at      time.Time
	waiting int           // guarded by Scheduler.mu; runs whose tasks have not been called
	begun   chan struct{} // closed when waiting is zero
}

// mostHeld bounds for how long the write of a run's end waits for the run's peers to begin.
const mostHeld = 200 * time.Millisecond

type runState int

const (
	waiting runState = iota // the task has not begun
	working                 // the task has begun
	ended                   // the task has returned
)

// public returns the run as its task sees it.
func (r *run) public() Run {
	of := r.record().Run
	return Run{Job: r.job.name, Due: r.job.s.local(of.Tick), Attempt: of.Attempt, Why: string(of.Why), run: r}
}

// write changes the record with to, and has a quorum of nodes take it. If that fails the changed
// record is kept, because it may be in force.
func (r *run) write(ctx context.Context, to func(joblog.Record) joblog.Record) error {
	r.writing <- struct{}{}
	defer func() { <-r.writing }()
	rec := to(r.record())
	r.mu.Lock()
	r.rec = rec
	r.mu.Unlock()
	return r.send(ctx, rec)
}

// send has a quorum of nodes take a record. The caller holds the place in writing.
func (r *run) send(ctx context.Context, rec joblog.Record) error {
	if r.turn == nil {
		return nil
	}
	value, err := rec.Encode()
	if err != nil {
		return err
	}
	return r.turn.Write(ctx, value)
}

// wrote tells the job which record was written. An ordered run of a job that runs everywhere is
// left out: it may go on beside ticks, and is no part of the log.
func (r *run) wrote(ctx context.Context, rec joblog.Record) {
	if r.lease != nil || r.order == "" {
		r.job.wrote(ctx, rec, r.lease)
	}
}

// record returns the record on the nodes, as far as this replica has written it.
func (r *run) record() joblog.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rec
}

// ending returns an end at this moment, by the nodes' clocks and by this replica's. Both times are
// those at the beginning of the run plus the steady time since, because this replica's clock may
// have been set meanwhile, and an interval from completion counts from the end.
func (r *run) ending(outcome joblog.Outcome, took time.Duration) joblog.Ending {
	since := r.job.s.steady() - r.since
	return joblog.Ending{Outcome: outcome, At: r.read.Add(since), Own: r.own.Add(since), Took: took}
}

// outcome returns how the run ended.
func (r *run) outcome() joblog.Ending {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.ending(joblog.Succeeded, r.took)
	_, panicked := r.err.(*PanicError)
	switch {
	case r.cancelled != nil:
		e.Outcome = joblog.Cancelled
	case panicked:
		e.Outcome = joblog.Panicked
	case r.err != nil && r.told:
		e.Outcome = joblog.Stopped
	case r.err != nil:
		e.Outcome = joblog.Failed
	}
	return e
}

// cancel ends the run for an operator, or for a later tick. The nodes first take the run as
// complete, and then its task is told to end. So no replica runs the tick again, even if this
// replica dies. It returns false for a run whose task has not been called, or has returned.
func (r *run) cancel(ctx context.Context, why error) (bool, error) {
	r.writing <- struct{}{}
	defer func() { <-r.writing }()
	r.mu.Lock()
	is, took := r.state, time.Since(r.began)
	r.mu.Unlock()
	if is != working {
		return false, nil
	}
	rec, _ := joblog.End(r.record(), r.table, r.job.cfg.policy, r.ending(joblog.Cancelled, took))
	if err := r.send(ctx, rec); err != nil { // rec is not kept: end tells what the run has overlapped
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != working {
		return false, nil // its end is being written
	}
	r.cancelled = why
	r.stop(why)
	return true, nil
}

// end writes how a run ended whose task was called, tells people, and releases the lease.
func (r *run) end(ctx context.Context) {
	r.job.s.ended(r)
	select {
	case <-r.peers.begun:
	case <-time.After(mostHeld):
	}
	var left []joblog.Left
	tries := endTimeout
	if r.lease != nil {
		tries = max(tries, time.Until(r.lease.Deadline())) // no other replica can run the tick until then
	}
	within, cancel := context.WithTimeout(ctx, tries)
	err := r.write(within, func(rec joblog.Record) joblog.Record {
		rec, left = joblog.End(rec, r.table, r.job.cfg.policy, r.outcome())
		return rec
	})
	cancel()
	if err == nil {
		r.wrote(ctx, r.record())
	} else if left = nil; !errors.Is(err, register.ErrSuperseded) { // a replica that has superseded this run tells of them
		r.warn(ctx, "scheduler: how a run ended could not be written: it counts as cut short", err)
	}
	r.release(ctx, err)
	r.job.tellLeft(ctx, left)
}

// release tells people how the run ended, and releases the lease. unwritten is the error of the
// write of the end, after which the nodes may not have the end.
func (r *run) release(ctx context.Context, unwritten error) {
	if r.lease == nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	r.tell(within, unwritten)
	switch err := r.lease.Release(within); {
	case err == nil:
	case errors.Is(err, redlock.ErrLost):
		r.warn(ctx, "scheduler: the lease was lost during the run: another replica may have begun the next one", err)
	default:
		r.warn(ctx, "scheduler: the run is over and its lease could not be released everywhere: it runs out by itself", err)
	}
}

func (r *run) warn(ctx context.Context, text string, err error) {
	r.job.s.cfg.logger.WarnContext(ctx, text, append(r.attrs(r.public()), "error.type", redlock.ErrorType(err), "error", err)...)
}

// attrs returns the attributes of log lines about a run.
func (r *run) attrs(of Run) []any {
	if r.lease == nil {
		return []any{"job", of.Job}
	}
	return []any{"job", of.Job, "tick", of.Due, "attempt", of.Attempt, "fencing_token", of.FencingToken()}
}
