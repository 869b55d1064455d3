package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// restartPause lets the output show the take-over before the killed replica comes back.
	restartPause = 500 * time.Millisecond
	// stopPatience is how long replicas may take to stop before they are killed.
	stopPatience = 3 * time.Second
)

// supervisor starts the replicas, follows what they do, and harms them. It belongs to one goroutine.
type supervisor struct {
	cfg     *config
	out     *console
	fleet   *fleet
	reports chan report
	alive   map[string]*process
	ledger  *ledger

	leader    *process  // as the replicas say; nil when nobody leads
	elected   time.Time // the last time that somebody was
	resigns   time.Time // the last time that somebody began to
	armed     bool      // the next run is to be killed
	victim    *process
	killed    time.Time
	takenOver time.Time
	failures  []error
}

// supervise tells the whole story. It returns when every replica it started is gone.
func supervise(ctx context.Context, cfg *config, out *console) error {
	nodes, err := openFleet(ctx, cfg, out)
	if err != nil {
		return err
	}
	defer nodes.close()
	s := &supervisor{
		cfg: cfg, out: out, fleet: nodes,
		reports: make(chan report),
		alive:   make(map[string]*process),
		ledger:  newLedger(),
	}
	defer s.endAll()
	return s.tell(ctx)
}

// tell is the story. It ends early when ctx ends.
func (s *supervisor) tell(ctx context.Context) error {
	begin := time.Now()
	end := begin.Add(s.cfg.duration)
	s.out.say("starts %d replicas: mode %s, name %q, TTL %v, a job every second", s.cfg.replicas, s.cfg.mode, s.fleet.name, s.cfg.ttl)
	for i := range s.cfg.replicas {
		if err := s.start(string(rune('a' + i))); err != nil {
			return err
		}
	}
	s.watch(ctx, begin.Add(s.cfg.duration/3), nil)

	s.armed = true
	if s.watch(ctx, end, func() bool { return s.victim != nil }) &&
		s.watch(ctx, end, func() bool { return !s.takenOver.IsZero() }) {
		s.explainTakeOver()
		s.watch(ctx, time.Now().Add(restartPause), nil)
		if ctx.Err() == nil {
			if err := s.start(s.victim.name); err != nil {
				return err
			}
		}
	}
	s.armed = false
	s.watch(ctx, end, nil)
	s.stopInOrder(ctx)
	s.endAll()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.conclude()
}

// start starts a replica.
func (s *supervisor) start(name string) error {
	p, err := startProcess(assignment{Replica: name, Mode: s.cfg.mode, Name: s.fleet.name, Nodes: s.fleet.urls, TTL: s.cfg.ttl}, s.reports, s.out)
	if err != nil {
		return err
	}
	s.alive[name] = p
	s.out.event(time.Now(), p.who(), "started", 0)
	return nil
}

// watch follows the replicas until done (if there is one) returns true, or time is over, or ctx ends. It reports
// whether done.
func (s *supervisor) watch(ctx context.Context, until time.Time, done func() bool) bool {
	over := time.NewTimer(time.Until(until))
	defer over.Stop()
	for done == nil || !done() {
		select {
		case r := <-s.reports:
			s.follow(r)
		case <-over.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// follow takes note of what a replica did.
func (s *supervisor) follow(r report) {
	if r.exited {
		s.bury(r)
		return
	}
	e := r.event
	switch e.Kind {
	case kindReady:
		s.out.event(e.At, r.from.who(), "ready", 0)
	case kindElected:
		s.out.event(e.At, r.from.who(), "elected leader", e.Token)
		s.leader, s.elected = r.from, e.At
		s.noteSuccessor(modeElector, r.from, e.At)
	case kindResigns:
		s.out.event(e.At, r.from.who(), "resigns", 0)
		s.resigns = e.At
	case kindEnded:
		s.out.event(e.At, r.from.who(), "leads no more: "+e.Detail, e.Token)
		if s.leader == r.from {
			s.leader = nil
		}
	case kindRun:
		s.out.event(e.At, r.from.who(), "runs tick "+e.Tick.Format(tickLayout), e.Token)
		if s.ledger.record(e.Tick) > 1 {
			s.out.note("TICK %s RUNS A SECOND TIME", e.Tick.Format(tickLayout))
		}
		s.noteSuccessor(modeLocker, r.from, e.At)
		if s.armed {
			s.kill(r.from, e.Tick)
		}
	}
}

// bury takes note of a replica's end.
func (s *supervisor) bury(r report) {
	if s.alive[r.from.name] == r.from {
		delete(s.alive, r.from.name)
	}
	if s.leader == r.from {
		s.leader = nil
	}
	switch {
	case r.err == nil:
		s.out.event(time.Now(), r.from.who(), "exited", 0)
	case r.from == s.victim:
		s.out.event(time.Now(), r.from.who(), "is gone: "+r.err.Error(), 0)
	default:
		s.out.event(time.Now(), r.from.who(), "FAILED: "+r.err.Error(), 0)
		s.failures = append(s.failures, fmt.Errorf("%s failed: %w", r.from.who(), r.err))
	}
}

// kill ends a replica in the middle of its run.
func (s *supervisor) kill(p *process, tick time.Time) {
	s.armed = false
	s.victim, s.killed = p, time.Now()
	if err := p.kill(); err != nil {
		s.failures = append(s.failures, fmt.Errorf("cannot kill %s: %w", p.who(), err))
		return
	}
	role := "the leader"
	if s.cfg.mode == modeLocker {
		role = "which holds the lease"
	}
	s.out.event(s.killed, "supervisor", fmt.Sprintf("KILLS %s, %s, in the middle of tick %s (SIGKILL)", p.who(), role, tick.Format(tickLayout)), 0)
}

// noteSuccessor notes when the first other replica has taken over from the one that was killed.
func (s *supervisor) noteSuccessor(m mode, p *process, at time.Time) {
	if m == s.cfg.mode && s.victim != nil && p != s.victim && s.takenOver.IsZero() && at.After(s.killed) {
		s.takenOver = at
	}
}

// explainTakeOver compares the measured take-over with what the TTL promises.
func (s *supervisor) explainTakeOver() {
	s.out.say("measured take-over: %v from the kill", s.takenOver.Sub(s.killed).Round(time.Millisecond))
	if s.cfg.mode == modeElector {
		s.out.note("promised: the dead leader's lease runs out a TTL (%v) after its last extension, which", s.cfg.ttl)
		s.out.note("is due every third of the TTL; the next leader is elected within milliseconds of that")
		return
	}
	s.out.note("promised: the dead run's lease runs out a TTL (%v) after the run began, and the first", s.cfg.ttl)
	s.out.note("tick after that runs again; the ticks before are refused on every replica")
}

// stopInOrder lets the leader resign first, which shows how quick a hand-over is that need not wait for the TTL.
// The others follow, and last the new leader, so that nobody is elected any more.
func (s *supervisor) stopInOrder(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	if last := s.leader; last != nil {
		s.out.say("stops %s, the leader, in order", last.who())
		s.resigns, s.elected = time.Time{}, time.Time{}
		last.stop()
		// The two replicas' reports may arrive in either order.
		if s.watch(ctx, time.Now().Add(s.cfg.ttl+time.Second), func() bool { return !s.resigns.IsZero() && !s.elected.IsZero() }) {
			s.out.say("measured hand-over: %v from the decision to resign", s.elected.Sub(s.resigns).Round(10*time.Microsecond))
		}
	}
	s.out.say("stops the replicas that are left")
	for _, p := range s.alive {
		if p != s.leader {
			p.stop()
		}
	}
	s.watch(ctx, time.Now().Add(stopPatience), func() bool { return len(s.alive) == 0 || len(s.alive) == 1 && s.leader != nil })
}

// endAll stops what is still alive, kills what does not stop, and returns when everything is gone.
func (s *supervisor) endAll() {
	for _, p := range s.alive {
		p.stop()
	}
	gone := func() bool { return len(s.alive) == 0 }
	if s.watch(context.Background(), time.Now().Add(stopPatience), gone) {
		return
	}
	for _, p := range s.alive {
		_ = p.kill()
	}
	for !gone() {
		s.follow(<-s.reports)
	}
}

// conclude prints the summary and returns what was wrong.
func (s *supervisor) conclude() error {
	a := s.ledger.close(s.killed, s.takenOver)
	if !s.ledger.ran() {
		return errors.Join(append(s.failures, errors.New("nothing ran"))...)
	}
	s.out.plain("\nsummary: %d ticks, %s to %s\n", a.ticks, a.first.Format(tickLayout), a.last.Format(tickLayout))
	s.out.plain("  ran once         %3d\n", a.once)
	s.out.plain("  ran twice        %3d  %s\n", len(a.repeated), clocks(a.repeated))
	s.out.plain("  in the take-over %3d  %s\n", len(a.takeOver), clocks(a.takeOver))
	if len(a.takeOver) > 0 {
		s.out.plain("    Nobody ran these, as expected: until the dead replica's lease has run out, nobody can know\n" +
			"    that it does not run any more. gocron does not make up for ticks that have passed.\n")
	}
	s.out.plain("  otherwise missed %3d  %s\n", len(a.missed), clocks(a.missed))
	if !s.takenOver.IsZero() {
		s.out.plain("  take-over        %v after the kill, TTL %v\n", s.takenOver.Sub(s.killed).Round(time.Millisecond), s.cfg.ttl)
	}
	if len(a.repeated) > 0 {
		s.failures = append(s.failures, fmt.Errorf("%d ticks ran more than once", len(a.repeated)))
	}
	if s.takenOver.IsZero() {
		s.failures = append(s.failures, errors.New("nobody took over"))
	}
	if err := errors.Join(s.failures...); err != nil {
		return err
	}
	s.out.plain("no tick ran twice\n")
	return nil
}
