package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopPatience is how long replicas may take to stop before they are killed: longer than they give themselves.
const stopPatience = stopLimit + 2*time.Second

// supervisor starts the replicas, follows what they do, and harms them. It belongs to one goroutine.
type supervisor struct {
	cfg       *config
	nodes     *nodes
	reports   chan report
	due       chan func() // what was planned for later and is to be done now
	ended     chan struct{}
	alive     map[string]*process
	addresses map[string]string // where the replicas serve metrics
	leader    *process          // of the election "poller"; nil when nobody leads
	armed     bool              // the next leader is to be killed
	failures  []error
}

// supervise runs the replicas until ctx ends. It returns when every one that it started is gone.
func supervise(ctx context.Context, cfg *config) error {
	nodes, err := openNodes(cfg)
	if err != nil {
		return err
	}
	defer nodes.close()
	s := &supervisor{
		cfg: cfg, nodes: nodes,
		reports:   make(chan report),
		due:       make(chan func()),
		ended:     make(chan struct{}),
		alive:     make(map[string]*process),
		addresses: make(map[string]string),
	}
	defer close(s.ended)
	say("nodes: %s", nodes.names())
	s.run(ctx)
	say("stops")
	s.endAll()
	return errors.Join(s.failures...)
}

func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

func (s *supervisor) failed(err error) { s.failures = append(s.failures, err) }

// run is what happens between start and stop.
func (s *supervisor) run(ctx context.Context) {
	for i := range s.cfg.replicas {
		name := string(rune('a' + i))
		s.addresses[name] = s.cfg.address(i)
		s.start(name)
	}
	if !s.watch(ctx, s.allListen) {
		return
	}
	if s.cfg.targets != "" {
		if err := writeTargets(s.cfg.targets, s.addresses); err != nil {
			s.failed(err)
			return
		}
		say("wrote the addresses to %s", s.cfg.targets)
	}
	if s.cfg.killLeader > 0 {
		s.after(s.cfg.killLeader, s.killLeader)
	}
	if s.cfg.restartNode > 0 {
		s.after(s.cfg.restartNode, s.killNode)
	}
	s.watch(ctx, func() bool { return false })
}

func (s *supervisor) start(name string) {
	p, err := startProcess(assignment{Replica: name, Nodes: s.nodes.urls, TTL: s.cfg.ttl, Listen: s.addresses[name]}, s.reports)
	if err != nil {
		s.failed(err)
		return
	}
	s.alive[name] = p
	say("%s started", p.who())
}

// allListen tells whether every replica serves metrics, so that its address is known.
func (s *supervisor) allListen() bool {
	for _, p := range s.alive {
		if !p.listens {
			return false
		}
	}
	return true
}

// after has something done by watch.
func (s *supervisor) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		select {
		case s.due <- do:
		case <-s.ended:
		}
	})
}

// watch follows the replicas, and does what was planned, until done returns true, which it reports, or ctx ends or something failed.
func (s *supervisor) watch(ctx context.Context, done func() bool) bool {
	for ctx.Err() == nil && len(s.failures) == 0 {
		if done() {
			return true
		}
		select {
		case r := <-s.reports:
			s.follow(r)
		case do := <-s.due:
			do()
		case <-ctx.Done():
		}
	}
	return false
}

// follow takes note of what a replica did.
func (s *supervisor) follow(r report) {
	if r.exited {
		s.bury(r)
		return
	}
	switch e := r.event; e.Kind {
	case kindListens:
		r.from.listens = true
		// Any free port was taken at the first start; a replica that is started again keeps it.
		s.addresses[r.from.name] = e.Detail
		say("%s serves http://%s/metrics", r.from.who(), reachable(e.Detail))
	case kindElected:
		say("%s leads %q, term %d", r.from.who(), poller, e.Term)
		s.leader = r.from
		if s.armed {
			s.killLeader()
		}
	case kindEnded:
		say("%s leads %q no more: %s", r.from.who(), poller, e.Detail)
		if s.leader == r.from {
			s.leader = nil
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
	case r.from.killed:
		say("%s is gone: %v", r.from.who(), r.err)
	case r.err != nil:
		s.failed(fmt.Errorf("%s failed: %w", r.from.who(), r.err))
	default:
		say("%s exited", r.from.who())
	}
}

// killLeader kills who leads, at once or when somebody does, and has it started again.
func (s *supervisor) killLeader() {
	s.armed = s.leader == nil
	if s.armed {
		return
	}
	victim := s.leader
	s.leader = nil
	say("KILLS %s, which leads %q (SIGKILL)", victim.who(), poller)
	if err := victim.kill(); err != nil {
		s.failed(fmt.Errorf("cannot kill %s: %w", victim.who(), err))
		return
	}
	s.after(restartPause, func() { s.start(victim.name) })
	s.after(s.cfg.killLeader, s.killLeader)
}

// killNode kills a node and has it started again without its data.
func (s *supervisor) killNode() {
	name, err := s.nodes.kill()
	if err != nil {
		s.failed(fmt.Errorf("cannot kill node %s: %w", name, err))
		return
	}
	say("KILLS node %s", name)
	s.after(restartPause, func() {
		name, err := s.nodes.restart()
		if err != nil {
			s.failed(fmt.Errorf("cannot restart node %s: %w", name, err))
			return
		}
		say("node %s is started again, without its data", name)
	})
	s.after(s.cfg.restartNode, s.killNode)
}

// endAll stops what is still alive, kills what does not stop, and returns when everything is gone.
func (s *supervisor) endAll() {
	for _, p := range s.alive {
		p.stop()
	}
	patience := time.After(stopPatience)
	for len(s.alive) > 0 {
		select {
		case r := <-s.reports:
			s.follow(r)
		case <-patience:
			for _, p := range s.alive {
				s.failed(fmt.Errorf("%s did not stop within %v", p.who(), stopPatience))
				_ = p.kill()
			}
		}
	}
}
