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

// MaxReport bounds what Run.Report keeps, in bytes.
const MaxReport = 256

// Run is what a task may know of its run, see RunFromContext.
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
// replica. Pass it with every write, and let the resource refuse a smaller one than the largest it
// has seen.
func (r Run) FencingToken() uint64 { return r.Lease().FencingToken() }

// Deadline returns until when no other replica runs the job, as known now; extensions move it. To
// be compared with time.Now.
func (r Run) Deadline() time.Time { return r.Lease().Deadline() }

// Lease returns the run's lease. Do not release it: that is done when the task has returned.
func (r Run) Lease() *redlock.Lease {
	if r.run == nil {
		return nil
	}
	return r.run.lease
}

// Report keeps a line about what the run has done, such as "1,204 invoices", for people who read
// the history of runs. The last one counts; it is cut to MaxReport bytes.
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
// one made of it. It returns false outside of a run of a Scheduler, and for jobs with
// gocron.WithDisabledDistributedJobLocker, which run everywhere.
func RunFromContext(ctx context.Context) (Run, bool) {
	if ctx == nil {
		return Run{}, false
	}
	r, ok := ctx.Value(runKey{}).(Run)
	return r, ok
}

// run is a run on this replica, from the grant in the register to how it ended.
type run struct {
	job   *job
	lease *redlock.Lease // nil of a job that runs everywhere
	turn  *register.Turn // likewise
	order string         // the order that asked for it; empty for none
	table joblog.Table
	sent  time.Duration // when the pauses were asked for that it may begin by, see Scheduler.steady
	read  time.Time     // when the record was read, by the nodes' clocks
	own   time.Time     // the same by the wall clock
	since time.Duration // and by Scheduler.steady
	due   time.Duration // when its task is to be called, likewise. No tick is asked for longer ahead than it waits at most
	until time.Time     // the tick is too old after this; zero if it does not age

	begins func() // called when its task is about to be called; nil for nothing

	peers   *peers
	decided bool // guarded by Scheduler.mu; it is none of those that are about to begin any more

	before joblog.Record // without this run

	writing chan struct{} // has room for who writes the record, which waits for nodes: no mutex, and never under mu

	mu        sync.Mutex
	rec       joblog.Record           // guarded by mu; as it is to stand on the nodes
	state     runState                // guarded by mu
	began     time.Time               // guarded by mu; when the task was called first
	took      time.Duration           // guarded by mu; until it returned
	err       error                   // guarded by mu; that it returned, or a *PanicError
	told      bool                    // guarded by mu; it was told to end before it returned
	trace     string                  // guarded by mu
	report    string                  // guarded by mu
	stop      context.CancelCauseFunc // guarded by mu; ends the task's context
	cancelled error                   // guarded by mu; why
}

// peers are the runs of this replica that are to begin at one time.
type peers struct {
	at      time.Time
	waiting int           // guarded by Scheduler.mu; whose tasks have not been called
	begun   chan struct{} // closed when there is none
}

// mostHeld is how long the end of a run is not written at most, so that its peers begin first.
const mostHeld = 200 * time.Millisecond

type runState int

const (
	waiting runState = iota // the task has not begun
	working                 // it has
	ended                   // it has returned
)

// public is the run as its task sees it.
func (r *run) public() Run {
	of := r.record().Run
	return Run{Job: r.job.name, Due: r.job.s.local(of.Tick), Attempt: of.Attempt, Why: string(of.Why), run: r}
}

// write has a quorum of nodes take what to makes of the record. The record is kept if that fails:
// it may be in force.
func (r *run) write(ctx context.Context, to func(joblog.Record) joblog.Record) error {
	r.writing <- struct{}{}
	defer func() { <-r.writing }()
	rec := to(r.record())
	r.mu.Lock()
	r.rec = rec
	r.mu.Unlock()
	return r.send(ctx, rec)
}

// send is called by who has the place in writing.
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

// wrote has the job know what was written. Where nothing excludes it, a run that is no tick goes on
// beside ticks, and is no part of the log.
func (r *run) wrote(ctx context.Context, rec joblog.Record) {
	if r.lease != nil || r.order == "" {
		r.job.wrote(ctx, rec, r.lease)
	}
}

// record is what stands on the nodes, as far as this replica has written.
func (r *run) record() joblog.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rec
}

// ending is an end now, by the nodes' clocks, and by this replica's as it was when the run began:
// that may have been set since, and an interval from completion counts from the end.
func (r *run) ending(outcome joblog.Outcome, took time.Duration) joblog.Ending {
	since := r.job.s.steady() - r.since
	return joblog.Ending{Outcome: outcome, At: r.read.Add(since), Own: r.own.Add(since), Took: took}
}

// outcome is how the run ended.
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

// cancel ends the run for an operator, or for a later tick: the nodes have it as complete before
// its task is told, so that nobody runs the tick again, whatever becomes of this replica. It
// returns false for a run whose task has not been called, or has returned.
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
	if err := r.send(ctx, rec); err != nil { // it is not kept: the end tells what the run has overlapped
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != working {
		return false, nil // its end is written next
	}
	r.cancelled = why
	r.stop(why)
	return true, nil
}

// end writes how a run ended whose task was called, tells it, and releases the lease.
func (r *run) end(ctx context.Context) {
	r.job.s.ended(r)
	select {
	case <-r.peers.begun:
	case <-time.After(mostHeld):
	}
	var left []joblog.Left
	tries := endTimeout
	if r.lease != nil {
		tries = max(tries, time.Until(r.lease.Deadline())) // nobody else can run the tick until then
	}
	within, cancel := context.WithTimeout(ctx, tries)
	err := r.write(within, func(rec joblog.Record) joblog.Record {
		rec, left = joblog.End(rec, r.table, r.job.cfg.policy, r.outcome())
		return rec
	})
	cancel()
	if err == nil {
		r.wrote(ctx, r.record())
	} else if left = nil; !errors.Is(err, register.ErrSuperseded) { // else whoever has superseded this run says what becomes of them
		r.warn(ctx, "scheduler: how a run ended could not be written: it counts as cut short", err)
	}
	r.release(ctx, err)
	r.job.tellLeft(ctx, left)
}

// release tells how the run ended, and releases the lease. unwritten says that the nodes may not
// know.
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

// attrs are those of what is logged of a run.
func (r *run) attrs(of Run) []any {
	if r.lease == nil {
		return []any{"job", of.Job}
	}
	return []any{"job", of.Job, "tick", of.Due, "attempt", of.Attempt, "fencing_token", of.FencingToken()}
}
