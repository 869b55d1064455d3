package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/joblog"
)

// A Scheduler writes on the board of the nodes, for people, what it does: its jobs, the runs that
// go on, how runs ended, and which ticks were not run. Package admin reads the board. The writes
// are best effort: a failed one changes nothing here. The release of a run's lease waits for the
// run's entry; no tick waits for a write.

// tellEvery is how often a replica writes the card of a job again, if nothing has changed and no
// node may have forgotten the card. It is less than bulletin.JobLifetime.
const tellEvery = 10 * time.Minute

// skipped is the key under which skips are counted together.
type skipped struct {
	job    string
	reason Reason
}

// maxSkips bounds the number of skips that wait for the next report.
const maxSkips = 256

// granted notes a run that is to begin at a time.
func (s *Scheduler) granted(r *run, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.peers = s.due[at]; r.peers == nil {
		r.peers = &peers{at: at, begun: make(chan struct{})}
		s.due[at] = r.peers
	}
	r.peers.waiting++
}

// decided notes, once, that a run is no longer about to begin: its task is called (is), or will not
// be.
func (s *Scheduler) decided(r *run, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.peers.waiting--; r.peers.waiting == 0 {
		close(r.peers.begun)
		delete(s.due, r.peers.at)
	}
	if is {
		r.job.cardAt = time.Time{} // the next report has the job's card
		s.running[r] = struct{}{}
	}
}

// ended notes that a run is over.
func (s *Scheduler) ended(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, r)
}

// runs returns the wanted ones of the runs whose tasks are at work.
func (s *Scheduler) runs(wanted func(*run) bool) (found []*run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.running {
		if wanted(r) {
			found = append(found, r)
		}
	}
	return found
}

// tellSkip counts skipped ticks that an operator should know of. A run that was cut short is told
// as a run.
func (s *Scheduler) tellSkip(e *SkipError) {
	told := !e.Expected() && e.Reason != SkipCutShort || slices.Contains([]Reason{SkipOverlap, SkipPaused, SkipRefused}, e.Reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	if told && !e.Pending && s.started != nil && !s.cfg.tell.NoHistory && !s.cfg.tell.NoCard {
		s.count(SkipError{Job: e.Job, Tick: e.Tick, Count: max(1, e.Count), Reason: e.Reason, By: e.By})
	}
}

// count adds e to the skips of its key: the last tick is kept, and the counts are added. The caller
// holds mu.
func (s *Scheduler) count(e SkipError) {
	k := skipped{e.Job, e.Reason}
	is, known := s.skips[k]
	if known && is.Tick.After(e.Tick) {
		e, is = is, e
	}
	if e.Count += is.Count; known || len(s.skips) < maxSkips {
		s.skips[k] = e
	}
}

// milliseconds returns the time since 1970 in ms; 0 for the zero time.
func milliseconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// report returns what is to be written now. If no node takes it, the next report has it again: in
// an outage of the nodes ticks are skipped because of the outage.
func (s *Scheduler) report() board.Report {
	var report board.Report
	var defined []*job
	jobs, now, anew := s.all(), time.Now(), s.opened()
	s.mu.Lock()
	for r := range s.running {
		if r.lease != nil {
			report.Process.Running = append(report.Process.Running, r.bulletin())
		}
	}
	for _, j := range jobs {
		report.Process.Jobs = append(report.Process.Jobs, j.name)
		if soon := now.Add(rand.N(bulletin.ProcessLifetime)); anew && soon.Before(j.cardAt) {
			j.cardAt = soon
		}
		if !j.unlocked && !now.Before(j.cardAt) {
			j.cardAt = now.Add(tellEvery/2 + rand.N(tellEvery)) // the cards of many jobs at different times
			defined = append(defined, j)
		}
	}
	told := s.skips
	s.skips = make(map[skipped]SkipError)
	s.mu.Unlock()
	for _, e := range told {
		skip := bulletin.Skip{Job: e.Job, Tick: milliseconds(e.Tick), Reason: string(e.Reason), By: s.q.Identity(), Holder: e.By}
		if entry, ok := skip.Entry(KeyPrefix+e.Job, e.Count); ok {
			report.Entries = append(report.Entries, entry)
		}
	}
	for _, j := range defined {
		if card, ok := j.card(false); ok {
			report.Cards = append(report.Cards, card)
		}
	}
	report.Lost = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range told {
			s.count(e)
		}
		for _, j := range defined {
			j.cardAt = time.Time{}
		}
	}
	return report
}

// opened reports whether the gate of a node has opened anew since the last call: the node's server
// may have forgotten what it was told. Only one goroutine calls opened.
func (s *Scheduler) opened() (anew bool) {
	opened, _ := bridge.Of(s.q).Gates()
	for node, n := range opened {
		if was := s.gates[node]; n != 0 && n != was {
			anew = anew || was != 0
			s.gates[node] = n
		}
	}
	return anew
}

// card returns the card of the job. over says that no tick is left.
func (j *job) card(over bool) (bulletin.Card, bool) {
	cfg := j.s.cfg
	schedule, rest, _ := strings.Cut(j.def.Words, ", ")
	b := bulletin.Job{
		Job: j.name, Key: j.key, Schedule: cmp.Or(j.Definition.Spec.Text, schedule), Program: program(), Election: cfg.election,
		Delivery: j.cfg.policy.Delivery.String(), CatchUp: j.cfg.policy.CatchUp.String(), Overlap: j.cfg.policy.Overlap.String(),
		By: j.s.q.Identity(), Orders: !cfg.tell.NoOrders, Within: j.cfg.within.Milliseconds(),
		Window: j.cfg.policy.Window.Milliseconds(), Runbook: j.cfg.runbook,
	}
	if strings.Contains(rest, "zone ") {
		b.Zone = zoneName(cfg.location)
		if own, is := strings.CutPrefix(strings.TrimPrefix(b.Schedule, "CRON_"), "TZ="); is {
			b.Zone, _, _ = strings.Cut(own, " ")
		}
	}
	known, limited := j.known(), j.cfg.policy.Limit > 0
	unread := known.readAt.IsZero()
	if next := j.next(known, 1); len(next) > 0 && !(limited && unread) {
		b.Next = milliseconds(next[0])
	} else if over || unread && (limited || !isChain(j.def.Table(j.s.now()))) { // no tick may be left
		b.Within = 0 // the job is not overdue then
	}
	return b.Card()
}

// tellOver writes the card of a job of which no tick is left, because the last card names a tick.
func (j *job) tellOver() {
	if card, ok := j.card(true); ok && !j.s.cfg.tell.NoCard {
		_ = board.Of(j.s.q).Post(context.Background(), []bulletin.Card{card})
	}
}

// program returns the path of the main package, which differs between services.
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

// bulletin returns the run for the card of its process.
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

// tell writes how a run ended. It does so before the run's lease is released, so that a reader that
// sees the lease released finds the end. unwritten is the error of the write of the record, which
// the nodes may not have.
func (r *run) tell(ctx context.Context, unwritten error) {
	cfg, e, b := r.job.s.cfg, r.outcome(), r.bulletin()
	r.mu.Lock()
	b.Trace, b.Took, b.Report = r.trace, r.took.Microseconds(), r.report
	called, err, calls := r.state != waiting, r.err, slices.Clone(r.calls)
	r.mu.Unlock()
	if cfg.tell.NoHistory || !called && b.Order == "" {
		return
	}
	b.Outcome = string(e.Outcome)
	switch lost := r.lease.Err(); {
	case !called:
		b.Outcome = bulletin.NotBegun
	case e.Outcome == joblog.Panicked:
	case lost != nil && (unwritten != nil || e.Outcome == joblog.Stopped):
		b.Outcome, err = bulletin.Lost, lost
	}
	b.Error = errorTold(err, cfg.tell.ErrorTexts)
	for _, c := range calls {
		a := bulletin.Attempt{Began: milliseconds(c.began), Took: c.took.Microseconds(), Error: errorTold(c.err, cfg.tell.ErrorTexts)}
		if a.Error == b.Error {
			a.Error = ""
		}
		b.Attempts = append(b.Attempts, a)
	}
	_ = board.Of(r.job.s.q).Post(ctx, nil, b.Entries(r.job.key)...)
}

// tellCut writes the end of a run that was cut short, in place of its replica.
func (j *job) tellCut(of joblog.Run) {
	if j.s.cfg.tell.NoHistory || j.unlocked {
		return
	}
	b := bulletin.Run{
		Job: j.name, Tick: milliseconds(of.Tick), By: of.By, Began: milliseconds(of.Began), Outcome: bulletin.CutShort,
		Attempt: of.Attempt, Why: string(of.Why), Token: of.Token,
	}
	j.s.run(func() { _ = board.Of(j.s.q).Post(context.Background(), nil, b.Entries(j.key)...) })
}

// tellLeft tells of ticks that are left out, after the record without them is written.
func (j *job) tellLeft(ctx context.Context, left []joblog.Left) {
	for _, l := range left {
		e := &SkipError{Job: j.name, Tick: j.s.local(l.Last), Count: l.Count, Reason: Reason(l.Reason)}
		if e.Reason == SkipPaused {
			e.By = j.known().pause.By
		}
		j.skip(ctx, e)
	}
}

// calls names the innermost calls of a task that panicked, without paths: ", in main.report
// (report.go:41), in main.build (build.go:7)". Each call has two lines of the stack. The task's
// calls begin below the call of panic, and end with the call by package reflect.
func calls(stack []byte) (text string) {
	_, below, _ := strings.Cut(string(stack), "\npanic(")
	lines := strings.Split(below, "\n")
	for i := 2; i+1 < len(lines) && !strings.HasPrefix(lines[i], "reflect."); i += 2 {
		function := lines[i][:max(strings.LastIndexByte(lines[i], '('), 0)]
		place, _, _ := strings.Cut(path.Base(lines[i+1]), " ")
		if !strings.HasPrefix(function, "runtime.") {
			text += fmt.Sprintf(", in %s (%s)", path.Base(function), place)
		}
	}
	return text
}

// errorTold returns the text that is written of an error: with texts, the error's own text; else
// its error.type, or, if it has none, its Go type, or that of the error which fmt.Errorf wrapped.
// If a method of the error panics, as one of a nil pointer does, it returns the Go type.
func errorTold(err error, texts bool) (told string) {
	if err == nil {
		return ""
	}
	kind := fmt.Sprintf("%T", err)
	for inner := err; inner != nil && kind == "*fmt.wrapError"; kind = fmt.Sprintf("%T", inner) {
		inner = errors.Unwrap(inner)
	}
	defer func() {
		if recover() != nil {
			told = kind
		}
	}()
	if p, ok := err.(*PanicError); ok && texts {
		return p.Error() + calls(p.Stack)
	}
	if texts {
		return err.Error()
	}
	if told = elector.ErrorType(err); told == "_OTHER" {
		return kind
	}
	return told
}
