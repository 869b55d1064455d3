package main

import (
	"context"
	"fmt"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// supervisor starts the replicas, follows what they do, and harms them. It belongs to one
// goroutine.
type supervisor struct {
	cfg       *config
	nodes     *replicas.Nodes
	group     *replicas.Group[event]
	addresses map[string]string // where the replicas serve metrics
	leader    *replicas.Process // of the election "poller"; nil when nobody leads
	armed     bool              // the next leader is to be killed
	node      int               // the next one to be killed
}

// supervise runs the replicas until ctx ends. It returns when every one that it started is gone.
func supervise(ctx context.Context, cfg *config) error {
	nodes, err := replicas.OpenNodes(cfg.nodes)
	if err != nil {
		return err
	}
	defer nodes.Close()
	s := &supervisor{cfg: cfg, nodes: nodes, addresses: make(map[string]string)}
	s.group = replicas.NewGroup(s.follow)
	replicas.Say("nodes: %s", nodes)
	s.run(ctx)
	replicas.Say("stops")
	return s.group.Stop()
}

// run is what happens between start and stop.
func (s *supervisor) run(ctx context.Context) {
	for i := range s.cfg.replicas {
		s.start(replicas.Name(i), s.cfg.address(i))
	}
	if !s.group.Watch(ctx, func() bool { return len(s.addresses) == s.cfg.replicas }) {
		return
	}
	if s.cfg.targets != "" {
		if err := writeTargets(s.cfg.targets, s.addresses); err != nil {
			s.group.Fail(err)
			return
		}
		replicas.Say("wrote the addresses to %s", s.cfg.targets)
	}
	if s.cfg.killLeader > 0 {
		s.group.After(s.cfg.killLeader, s.killLeader)
	}
	if s.cfg.restartNode > 0 {
		s.group.After(s.cfg.restartNode, s.killNode)
	}
	s.group.Watch(ctx, func() bool { return false })
}

func (s *supervisor) start(name, address string) {
	s.group.Start(name, settings{Replica: name, Nodes: s.nodes.URLs, TTL: s.cfg.ttl, Listen: address})
}

// follow takes note of what a replica did.
func (s *supervisor) follow(p *replicas.Process, e event) {
	switch e.Kind {
	case kindListens:
		s.addresses[p.Name] = e.Detail
		replicas.Say("%s serves http://%s/metrics", p, reachable(e.Detail))
	case kindElected:
		replicas.Say("%s leads %q, term %d", p, poller, e.Term)
		s.leader = p
		if s.armed {
			s.killLeader()
		}
	case kindEnded:
		replicas.Say("%s leads %q no more: %s", p, poller, e.Detail)
		if s.leader == p {
			s.leader = nil
		}
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
	replicas.Say("KILLS %s, which leads %q (SIGKILL)", victim, poller)
	s.group.Kill(victim)
	// Any free port was taken at the first start. The replica keeps it.
	s.group.After(restartPause, func() { s.start(victim.Name, s.addresses[victim.Name]) })
	s.group.After(s.cfg.killLeader, s.killLeader)
}

// killNode kills the next node, as a crash would, and has it started again without its data.
func (s *supervisor) killNode() {
	node, name := s.nodes.Fleet.Node(s.node), s.nodes.Host(s.node)
	s.node = (s.node + 1) % len(s.nodes.URLs)
	replicas.Say("KILLS node %s", name)
	if err := node.Kill(); err != nil {
		s.group.Fail(fmt.Errorf("cannot kill node %s: %w", name, err))
		return
	}
	s.group.After(restartPause, func() { s.restart(node, name) })
	s.group.After(s.cfg.restartNode, s.killNode)
}

func (s *supervisor) restart(node *redlocktest.Node, name string) {
	if err := node.Restart(false); err != nil {
		s.group.Fail(fmt.Errorf("cannot restart node %s: %w", name, err))
		return
	}
	replicas.Say("node %s is started again, without its data", name)
}
