package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// A Scheduler tells people what it does, on the board of the nodes: which jobs it has, what it
// runs, how runs ended, and which ticks were not run. Package admin reads it. It is best effort,
// and nothing here waits for it.

// tellEvery is how often a replica tells again what a job is, if nothing has changed: less than
// bulletin.JobLifetime.
const tellEvery = 10 * time.Minute

// teller is what a Scheduler is to tell with the next report.
type teller struct {
	s *state

	mu      sync.Mutex
	stop    func()                // guarded by mu; ends the reports; nil while the Scheduler is stopped
	running map[*runLock]struct{} // guarded by mu
	skips   map[skipKey]*skipped  // guarded by mu; at most maxSkips
}

type skipKey struct {
	key    string
	reason Reason
}

type skipped struct {
	bulletin.Skip
	count int
}

// maxSkips bounds what is told of skips at a time.
const maxSkips = 256

func newTeller(s *state) *teller {
	return &teller{s: s, running: make(map[*runLock]struct{}), skips: make(map[skipKey]*skipped)}
}

// start tells what there is from now on.
func (t *teller) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil && !t.s.cfg.tell.noCard {
		t.stop = t.s.q.Board().Report(t.report)
	}
}

// end ends that.
func (t *teller) end() {
	t.mu.Lock()
	stop := t.stop
	t.stop = nil
	t.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// begun notes that the task of a run is called.
func (t *teller) begun(r *runLock) {
	r.job.told.changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[r] = struct{}{}
}

// ended notes that a run is over.
func (t *teller) ended(r *runLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, r)
}

// find returns the run of a job that goes on here with that token, or nil.
func (t *teller) find(job string, token uint64) *runLock {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.running {
		if r.Job == job && r.FencingToken() == token {
			return r
		}
	}
	return nil
}

// isTold reports whether an operator is to know of ticks that are skipped for a reason.
func isTold(reason Reason) bool {
	switch reason {
	case SkipHeld, SkipDone, SkipNotLeader, SkipSuperseded, SkipStopped:
		return false
	}
	return true
}

// skip counts a tick that was skipped.
func (t *teller) skip(e *SkipError) {
	if e.Pending || !isTold(e.Reason) || t.s.cfg.tell.noHistory {
		return
	}
	holder := e.By
	var paused *redlock.PausedError
	if errors.As(e.Err, &paused) {
		holder = paused.Pause.By
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := skipKey{t.s.cfg.keyPrefix + e.Job, e.Reason}
	is := t.skips[k]
	if is == nil {
		if len(t.skips) >= maxSkips || t.stop == nil {
			return
		}
		is = &skipped{}
		t.skips[k] = is
	}
	is.count++
	is.Skip = bulletin.Skip{Job: e.Job, Tick: milliseconds(e.Tick), Reason: string(e.Reason), By: t.s.q.Identity(), Holder: holder}
}

// tellAgain has the next report tell of skips of which no node has heard: in an outage of the nodes
// ticks are skipped because of it.
func (t *teller) tellAgain(skips map[skipKey]*skipped) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, was := range skips {
		switch is := t.skips[k]; {
		case is != nil:
			is.count += was.count
		case len(t.skips) < maxSkips:
			t.skips[k] = was
		}
	}
}

// milliseconds is a time since 1970; 0 for none.
func milliseconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// report is what is told now.
func (t *teller) report() redlock.Report {
	var report redlock.Report
	t.mu.Lock()
	var running []any
	for r := range t.running {
		running = append(running, r.told())
	}
	told := t.skips
	for k, is := range told {
		if e, ok := is.Entry(k.key, is.count); ok {
			report.Entries = append(report.Entries, e)
		}
	}
	t.skips = make(map[skipKey]*skipped)
	t.mu.Unlock()
	var defined []*job
	report.Lost = func() {
		t.tellAgain(told)
		for _, j := range defined {
			j.told.changed()
		}
	}
	t.s.mu.Lock()
	jobs := t.s.list()
	t.s.mu.Unlock()
	var names []any
	for _, j := range jobs {
		names = append(names, j.name)
		if !j.unlocked && j.told.due() {
			if card, ok := j.definition(); ok {
				report.Cards = append(report.Cards, card)
				defined = append(defined, j)
			}
		}
	}
	slices.SortFunc(names, func(a, b any) int { return compareStrings(a, b) })
	report.About = map[string][]any{bulletin.Running: running, bulletin.HasJobs: names}
	return report
}

// definitions is when what a job is has to be told.
type definitions struct {
	mu   sync.Mutex
	next time.Time // guarded by mu; zero for at once
}

// changed has it told with the next report.
func (d *definitions) changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = time.Time{}
}

// due reports whether it is to be told now, and plans the next time: those of many jobs at
// different ones.
func (d *definitions) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.Before(d.next) {
		return false
	}
	d.next = now.Add(tellEvery/2 + rand.N(tellEvery))
	return true
}

// definition is what a job is.
func (j *job) definition() (redlock.Card, bool) {
	cfg := j.s.cfg
	b := bulletin.Job{
		Job: j.name, Key: j.key, Schedule: j.kind, Zone: j.zone, Program: program(), Election: cfg.election,
		Delivery: j.cfg.delivery.String(), CatchUp: j.cfg.catchUp.String(), Overlap: j.cfg.overlap.String(),
		Next: milliseconds(j.next()), By: j.s.q.Identity(), Orders: !cfg.tell.noOrders,
	}
	return b.Card()
}

// next is the job's next tick; zero if there is none, or it is not known.
func (j *job) next() time.Time {
	if j.ticks.table != nil {
		if next := j.ticks.table.next(j.s.cfg.clock.Now()); next.Before(never) {
			return next
		}
		return time.Time{}
	}
	j.s.asking.RLock() // gocron hangs if it is asked while it is stopped
	defer j.s.asking.RUnlock()
	j.s.mu.Lock()
	started := j.s.started
	j.s.mu.Unlock()
	if started == nil {
		return time.Time{}
	}
	next, err := j.gocron.NextRun()
	if err != nil || !next.Before(never) {
		return time.Time{}
	}
	return next
}

// told is the run as the card of its process has it. Called while it goes on.
func (r *runLock) told() bulletin.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bulletin.Run{
		Job: r.Job, Tick: milliseconds(r.Tick), By: r.lease.Identity(), Began: milliseconds(r.began),
		Attempt: r.Attempt, Late: r.CatchUp, Token: r.FencingToken(), Order: r.order,
	}
}

// tell has the release of the run's lease tell how it ended.
func (r *runLock) tell(state runState) {
	cfg := r.job.s.cfg
	if cfg.tell.noHistory || state == waiting && r.order == "" {
		return
	}
	run := r.told()
	r.mu.Lock()
	run.Trace, run.Took = r.trace, r.took.Microseconds()
	err, panicked, cancelled, began := r.err, r.panicked, r.cancelled, r.began
	r.mu.Unlock()
	lost := r.lease.Err()
	switch {
	case state == waiting:
		run.Outcome = bulletin.NotBegun
	case state == working:
		run.Outcome, run.Took = bulletin.Panicked, time.Since(began).Microseconds()
		if err = panicked; err == nil {
			err = &PanicError{Job: r.Job, Value: "the task ended its goroutine"}
		}
	case lost != nil:
		run.Outcome, err = bulletin.Lost, lost
	case cancelled:
		run.Outcome = bulletin.Cancelled
	case err != nil:
		run.Outcome = bulletin.Failed
	default:
		run.Outcome = bulletin.OK
	}
	if err != nil {
		run.Error = errorTold(err, cfg.tell.errorTexts)
	}
	if e, ok := run.Entry(r.job.key); ok {
		_ = r.lease.EndWith(e)
	}
}

// errorTold is what is told of an error: its error.type, or if it has none its Go type, or that of
// the one that fmt.Errorf wrapped, or its text where the program wants that. A method of the error
// that panics, as one of a nil pointer does, leaves the Go type.
func errorTold(err error, texts bool) (told string) {
	inner := err
	for fmt.Sprintf("%T", inner) == "*fmt.wrapError" {
		wrapped := errors.Unwrap(inner)
		if wrapped == nil {
			break
		}
		inner = wrapped
	}
	kind := fmt.Sprintf("%T", inner)
	defer func() {
		if recover() != nil {
			told = kind
		}
	}()
	if texts {
		return err.Error()
	}
	if told = elector.ErrorType(err); told == "_OTHER" {
		return kind
	}
	return told
}

// compareStrings orders strings in lists of anything.
func compareStrings(a, b any) int {
	x, _ := a.(string)
	y, _ := b.(string)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// TraceIdentifier is a RunTracer that knows under which trace a run is found, for the history of
// runs (WithoutHistory).
type TraceIdentifier interface {
	// TraceID is called before the task, with the context that TraceRunStart returned. It returns
	// an empty string for a run without a trace.
	TraceID(ctx context.Context) string
}
