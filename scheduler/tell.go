package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/joblog"
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
	stop    func()               // guarded by mu; ends the reports; nil while the Scheduler is stopped
	running map[*run]struct{}    // guarded by mu
	skips   map[skipKey]*skipped // guarded by mu; at most maxSkips
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
	return &teller{s: s, running: make(map[*run]struct{}), skips: make(map[skipKey]*skipped)}
}

// start tells what there is from now on.
func (t *teller) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil && !t.s.cfg.tell.NoCard {
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
func (t *teller) begun(r *run) {
	r.job.told.changed()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[r] = struct{}{}
}

// ended notes that a run is over.
func (t *teller) ended(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, r)
}

// find returns the run of a job that goes on here with that token, or nil.
func (t *teller) find(job string, token uint64) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.running {
		if r.job.name == job && r.lease != nil && r.lease.FencingToken() == token {
			return r
		}
	}
	return nil
}

// jobs are the names of those whose tasks are at work.
func (t *teller) jobs() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.running {
		names = append(names, r.job.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isTold reports whether an operator is to know of ticks that are skipped for a reason.
func isTold(reason Reason) bool {
	switch reason {
	case SkipHeld, SkipDone, SkipNotLeader, SkipLimit, SkipSuperseded, SkipStopped:
		return false
	}
	return true
}

// skip counts a tick that was skipped.
func (t *teller) skip(e *SkipError) {
	if e.Pending || !isTold(e.Reason) || t.s.cfg.tell.NoHistory {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := skipKey{KeyPrefix + e.Job, e.Reason}
	is := t.skips[k]
	if is == nil {
		if len(t.skips) >= maxSkips || t.stop == nil {
			return
		}
		is = &skipped{}
		t.skips[k] = is
	}
	is.count += max(1, e.Count)
	is.Skip = bulletin.Skip{Job: e.Job, Tick: milliseconds(e.Tick), Reason: string(e.Reason), By: t.s.q.Identity(), Holder: e.By}
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
		if r.lease != nil {
			running = append(running, r.bulletin())
		}
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
	var names []any
	for _, j := range t.s.all() {
		names = append(names, j.name)
		if !j.unlocked && j.told.due() {
			if card, ok := j.definition(); ok {
				report.Cards = append(report.Cards, card)
				defined = append(defined, j)
			}
		}
	}
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
		Job: j.name, Key: j.key, Schedule: j.spec.String(), Program: program(), Election: cfg.election,
		Delivery: j.cfg.policy.Delivery.String(), CatchUp: j.cfg.policy.CatchUp.String(), Overlap: j.cfg.policy.Overlap.String(),
		By: j.s.q.Identity(), Orders: !cfg.tell.NoOrders, Within: j.cfg.within.Milliseconds(),
	}
	if j.spec.ZoneMatters() {
		b.Zone = zoneName(cfg.location)
	}
	if next := j.next(1); len(next) > 0 {
		b.Next = milliseconds(next[0])
	}
	return b.Card()
}

// program returns the path of the main package, which two services do not share.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case !ok:
		return ""
	case info.Path == "command-line-arguments":
		return info.Main.Path
	}
	return info.Path
})

// bulletin is the run as the card of its process has it.
func (r *run) bulletin() bulletin.Run {
	of := r.public()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := bulletin.Run{
		Job: of.Job, Tick: milliseconds(of.Due), By: r.lease.Identity(), Began: milliseconds(r.began),
		Attempt: of.Attempt, Why: of.Why, Token: of.FencingToken(),
	}
	if r.order != ownOrder {
		b.Order = r.order
	}
	return b
}

// tell has the release of the run's lease tell how it ended. unwritten says that the nodes may not
// know.
func (r *run) tell(unwritten error) {
	cfg, e := r.job.s.cfg, r.outcome()
	called := !r.is(waiting)
	if cfg.tell.NoHistory || !called && (r.order == "" || r.order == ownOrder) {
		return
	}
	b := r.bulletin()
	r.mu.Lock()
	b.Trace, b.Took, b.Report = r.trace, r.took.Microseconds(), r.report
	err := r.err
	r.mu.Unlock()
	lost := r.lease.Err()
	switch {
	case !called:
		b.Outcome = bulletin.NotBegun
	case e.Outcome == joblog.Panicked:
		b.Outcome = bulletin.Panicked
	case lost != nil && (unwritten != nil || e.Outcome == joblog.Stopped):
		b.Outcome, err = bulletin.Lost, lost
	case e.Outcome == joblog.Cancelled:
		b.Outcome = bulletin.Cancelled
	case err != nil:
		b.Outcome = bulletin.Failed
	default:
		b.Outcome = bulletin.OK
	}
	if err != nil {
		b.Error = errorTold(err, cfg.tell.ErrorTexts)
	}
	if e, ok := b.Entry(r.job.key); ok {
		_ = r.lease.EndWith(e)
	}
}

// tellLeft tells of ticks that are left out, once that is written.
func (j *job) tellLeft(ctx context.Context, left []joblog.Left) {
	for _, l := range left {
		e := &SkipError{Job: j.name, Tick: j.s.local(l.Last), Count: l.Count, Reason: Reason(l.Reason)}
		if e.Reason == SkipPaused {
			e.By = j.pauses.now().By
		}
		j.skip(ctx, e)
	}
}

// state is how far the job has come, for people: nothing on a replica that does not run it, because
// what that knows is old.
func (j *job) state() LogTrace {
	t, known := LogTrace{Job: j.name}, j.known()
	if known.readAt.IsZero() || known.table == nil {
		return t
	}
	if next := j.next(1); len(next) > 0 {
		t.Next = next[0]
	}
	t.Succeeded = known.rec.OK.Ended
	if j.cfg.within > 0 {
		t.OverdueAt = later(t.Succeeded, known.since).Add(j.cfg.within)
	}
	return t
}

// tellLog tells the tracer how far the job has come, if that has changed.
func (j *job) tellLog(ctx context.Context) {
	if j.s.cfg.tracer.Log != nil {
		j.logged.become(ctx, j.state())
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
