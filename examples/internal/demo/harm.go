package demo

import (
	"fmt"
	"time"
)

// Orders to one replica or one node.

func killReplica(d *Demo, r *replica, _ Order) error {
	if d.stateOf(&r.state) == Dead {
		return refused("%s is not running", r.name)
	}
	d.fault("KILL %s (SIGKILL)", r.name)
	return d.kill(r)
}

func stopReplica(d *Demo, r *replica, _ Order) error {
	if d.stateOf(&r.state) == Dead {
		return refused("%s is not running", r.name)
	}
	d.fault("%s is told to stop, in order", r.name)
	return d.stopOne(r)
}

func restartReplica(d *Demo, r *replica, _ Order) error {
	switch d.stateOf(&r.state) {
	case Dead:
		d.fault("%s is started", r.name)
	case Frozen:
		d.fault("KILL %s (SIGKILL), and start it again", r.name)
		if err := d.kill(r); err != nil {
			return err
		}
	default:
		d.fault("%s is told to stop, in order, and started again", r.name)
		if err := d.stopOne(r); err != nil {
			return err
		}
	}
	return d.start(r)
}

func freezeReplica(d *Demo, r *replica, _ Order) error {
	d.mu.Lock()
	proc, state := r.proc, r.state
	d.mu.Unlock()
	if state != Running {
		return refused("%s is %s", r.name, state)
	}
	if err := proc.Freeze(); err != nil {
		return refused("%s cannot be frozen: %v", r.name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.proc != proc {
		return refused("%s has ended meanwhile", r.name)
	}
	d.say(Fault, fmt.Sprintf("FREEZE %s (SIGSTOP): nothing of it runs", r.name))
	r.state = Frozen
	d.harmedLocked(r, "freeze", time.Now())
	d.beginOutage(&r.outage, Item{Replica: r.name, Text: "frozen"})
	return nil
}

func thawReplica(d *Demo, r *replica, _ Order) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.state != Frozen {
		return refused("%s is not frozen", r.name)
	}
	if err := r.proc.Thaw(); err != nil {
		return refused("%s cannot be thawed: %v", r.name, err)
	}
	r.state = Running
	d.say(Fault, fmt.Sprintf("%s goes on (SIGCONT)", r.name))
	d.endOutage(&r.outage)
	if r.term != nil && r.term.item.Until > time.Now().UnixMilli() {
		d.unharmed(r)
	}
	d.partitions(false)
	return nil
}

func killNode(d *Demo, n *node, _ Order) error {
	return d.harmNode(n, Dead, "killed", "KILL", d.cfg.Fleet.Node(n.number-1).Kill, Running, Frozen)
}

func freezeNode(d *Demo, n *node, _ Order) error {
	return d.harmNode(n, Frozen, "frozen", "FREEZE", d.cfg.Fleet.Node(n.number-1).Freeze, Running)
}

func thawNode(d *Demo, n *node, _ Order) error {
	return d.harmNode(n, Running, "", "thaw", d.cfg.Fleet.Node(n.number-1).Thaw, Frozen)
}

func restartNode(d *Demo, n *node, o Order) error {
	how := "restart WITHOUT DATA:"
	if o.Data {
		how = "restart with its data:"
	}
	return d.harmNode(n, Running, "", how, func() error { return d.cfg.Fleet.Node(n.number - 1).Restart(o.Data) }, Running, Frozen, Dead)
}

// harmNode does something to a node that is in one of the states, after which it is in another one.
func (d *Demo) harmNode(n *node, after, outage, text string, do func() error, states ...string) error {
	state := d.stateOf(&n.state)
	able := false
	for _, s := range states {
		able = able || s == state
	}
	if !able {
		return refused("node %d is %s", n.number, state)
	}
	if err := do(); err != nil {
		return refused("node %d: %v", n.number, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n.state = after
	d.say(Fault, fmt.Sprintf("%s node %d", text, n.number))
	if outage == "" {
		d.endOutage(&n.outage)
		if state == Running { // it was restarted
			d.addItem(Item{Kind: KindOutage, Node: n.number, From: time.Now().UnixMilli(), To: time.Now().UnixMilli(), Text: "restarted"})
		}
		return nil
	}
	d.beginOutage(&n.outage, Item{Node: n.number, Text: outage})
	return nil
}

func jumpNode(d *Demo, n *node, o Order) error {
	by, ok := seconds(o.Seconds)
	if !ok {
		return fmt.Errorf("jump: %v seconds make no sense: use up to %v, forward or back", o.Seconds, maxJump)
	}
	if state := d.stateOf(&n.state); state == Dead {
		return refused("node %d is dead, and has no clock", n.number)
	}
	d.cfg.Fleet.Node(n.number - 1).JumpClock(by)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now().UnixMilli()
	d.addItem(Item{Kind: KindOutage, Node: n.number, From: now, To: now, Text: fmt.Sprintf("clock %+v", by)})
	d.say(Fault, fmt.Sprintf("the clock of node %d JUMPS by %+v", n.number, by))
	return nil
}

func (d *Demo) fault(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.say(Fault, fmt.Sprintf(format, args...))
}
