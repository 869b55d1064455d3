package demo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// errRefused is matched by the error of an order that cannot be carried out in the current state,
// such as to thaw a replica that is not frozen.
var errRefused = errors.New("refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errRefused, fmt.Sprintf(format, args...))
}

// Do carries out an order, and returns when that is done. For a story it returns when the story has
// begun.
func (d *Demo) Do(o Order) error {
	d.orders.Lock()
	defer d.orders.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	var r *replica
	if at := slices.IndexFunc(d.replicas, func(r *replica) bool { return r.name == o.Replica }); at >= 0 {
		r = d.replicas[at]
	}
	if o.Node < 0 || o.Node > len(d.nodes) || o.Replica != "" && r == nil {
		return fmt.Errorf("there is no replica %.20q or no node %d", o.Replica, o.Node)
	}
	unknown := fmt.Errorf("there is no such order: %+v", o)
	switch {
	case o.Do == "partition" || o.Do == "heal":
		return d.setLinks(o, o.Do == "partition")
	case r != nil && o.Node == 0:
		return d.harmReplica(r, o, unknown)
	case r == nil && o.Node != 0:
		return d.harmNode(d.nodes[o.Node-1], o, unknown)
	case r != nil:
		return unknown
	}
	switch o.Do {
	case "deploy":
		return d.begin(o.Do, deploy)
	case "late":
		return d.begin(o.Do, late)
	case "amnesia":
		return d.begin(o.Do, amnesia)
	case "mend":
		return d.mend()
	case "switch":
		return d.flip(o)
	case "speed":
		if !(o.Factor >= 0 && o.Factor <= 4) {
			return fmt.Errorf("speed: %v is not from 0 to 4", o.Factor)
		}
		d.cfg.Speed(o.Factor)
		d.speed = o.Factor
		return nil
	}
	return unknown
}

func (d *Demo) harmReplica(r *replica, o Order, unknown error) error {
	switch {
	case o.Do == "freeze":
		return d.freeze(r)
	case o.Do == "thaw":
		return d.thaw(r)
	case o.Do == "restart" && r.state == Frozen:
		d.say(Fault, "KILL %s (SIGKILL), and start it again", r.name)
		d.kill(r)
		return d.start(r)
	case o.Do == "restart":
		d.say(Fault, "%s is started, after an orderly stop if it was running", r.name)
		return errors.Join(d.stop(r), d.start(r))
	case o.Do != "kill" && o.Do != "stop":
		return unknown
	case r.state == Dead:
		return refused("%s is not running", r.name)
	case o.Do == "kill":
		d.say(Fault, "KILL %s (SIGKILL)", r.name)
		d.kill(r)
		return nil
	}
	d.say(Fault, "%s is told to stop, in order", r.name)
	return d.stop(r)
}

func (d *Demo) freeze(r *replica) error {
	if r.state != Running {
		return refused("%s is %s", r.name, r.state)
	}
	r.proc("freeze")
	d.say(Fault, "FREEZE %s (SIGSTOP): nothing of it runs", r.name)
	r.state = Frozen
	d.harmed(r, "freeze", time.Now())
	d.beginOutage(&r.outage, Item{Replica: r.name, Text: "frozen"})
	return nil
}

func (d *Demo) thaw(r *replica) error {
	if r.state != Frozen {
		return refused("%s is not frozen", r.name)
	}
	r.proc("thaw")
	r.state = Running
	d.say(Fault, "%s goes on (SIGCONT)", r.name)
	d.endOutage(&r.outage)
	if r.term != nil && r.term.item.Until > time.Now().UnixMilli() {
		d.unharmed(r)
	}
	d.partitions(false)
	return nil
}

// harmNode kills, freezes, thaws or restarts a node, or sets its clock ahead. It refuses if the
// state of the node does not fit the order.
func (d *Demo) harmNode(n *node, o Order, unknown error) error {
	kinds := map[string]struct {
		from   []string
		to     string
		outage string
		text   string
		do     func() error
	}{
		"kill":    {[]string{Running, Frozen}, Dead, "killed", "KILL", n.Kill},
		"freeze":  {[]string{Running}, Frozen, "frozen", "FREEZE", n.Freeze},
		"thaw":    {[]string{Frozen}, Running, "", "thaw", n.Thaw},
		"restart": {[]string{Running, Frozen, Dead}, Running, "", "restart", func() error { return n.Restart(o.Data) }},
		"jump":    {[]string{Running, Frozen}, "", "", "", nil},
	}
	kind, known := kinds[o.Do]
	state := n.state
	switch {
	case !known:
		return unknown
	case !slices.Contains(kind.from, state):
		return refused("node %d is %s", n.number, state)
	case o.Do == "jump":
		n.JumpClock(5 * time.Second)
	default:
		if err := kind.do(); err != nil {
			return refused("node %d: %v", n.number, err)
		}
	}
	now := time.Now().UnixMilli()
	if o.Do == "jump" {
		d.add(Item{Kind: KindOutage, Node: n.number, From: now, To: now, Text: "clock +5s"})
		d.say(Fault, "the clock of node %d JUMPS by 5 s", n.number)
		return nil
	}
	n.state = kind.to
	if o.Do == "restart" {
		kind.text += map[bool]string{true: " with its data:", false: " WITHOUT DATA:"}[o.Data]
	}
	d.say(Fault, "%s node %d", kind.text, n.number)
	d.endOutage(&n.outage)
	switch {
	case kind.outage != "":
		d.beginOutage(&n.outage, Item{Node: n.number, Text: kind.outage})
	case state == Running: // a restart of a running node
		d.add(Item{Kind: KindOutage, Node: n.number, From: now, To: now, Text: "restarted"})
	}
	return nil
}

// setLinks cuts or heals links: between one replica and one node, all links of one of them, or all
// links.
func (d *Demo) setLinks(o Order, cut bool) error {
	changed := false
	for _, r := range d.replicas {
		for n, was := range r.cut {
			if (o.Replica == "" || o.Replica == r.name) && (o.Node == 0 || o.Node == n+1) && was != cut {
				r.cut[n], changed = cut, true
			}
		}
	}
	if !changed {
		return refused("nothing is changed by that")
	}
	who, whom := cmp.Or(o.Replica, "every replica"), "every node"
	if o.Node != 0 {
		whom = fmt.Sprintf("node %d", o.Node)
	}
	d.say(Fault, "%s between %s and %s", map[bool]string{true: "PARTITION", false: "no partition any more"}[cut], who, whom)
	d.partitions(cut)
	return nil
}

// partitions puts replicas that reach no quorum on the timeline, and ends the outage of those that
// reach one again.
func (d *Demo) partitions(cut bool) {
	leader := d.leader(time.Now())
	for _, r := range d.replicas {
		away := 0
		for _, isCut := range r.cut {
			if isCut {
				away++
			}
		}
		apart := len(d.nodes)-away <= len(d.nodes)/2
		switch {
		case apart && r.outage == nil:
			d.beginOutage(&r.outage, Item{Replica: r.name, Text: "partitioned"})
			if r == leader && cut {
				d.harmed(r, "partition", time.Now())
			}
		case !apart && r.outage != nil && r.outage.Text == "partitioned":
			d.endOutage(&r.outage)
			d.unharmed(r)
		}
	}
}

// unharmed records that harm to a leader had no effect: it still leads.
func (d *Demo) unharmed(r *replica) {
	if d.leaver != nil && d.leaver.name == r.name && r.term != nil {
		d.leaver = nil
	}
}

// mend undoes all harm: it thaws, restarts and reconnects replicas and nodes.
func (d *Demo) mend() error {
	var failed []error
	does := map[string]string{Frozen: "thaw", Dead: "restart"}
	for _, r := range d.replicas {
		if do := does[r.state]; do != "" {
			failed = append(failed, d.harmReplica(r, Order{Do: do}, nil))
		}
	}
	for _, n := range d.nodes {
		if do := does[n.state]; do != "" {
			failed = append(failed, d.harmNode(n, Order{Do: do, Data: true}, nil))
		}
	}
	_ = d.setLinks(Order{}, false) // it is an error if no link is cut
	return errors.Join(failed...)
}

// flip sets a switch. The restart gate is a setting of the replicas, so all replicas are restarted
// for it.
func (d *Demo) flip(o Order) error {
	which, text := &d.switches.Gate, "the restart gate"
	switch o.Name {
	case "fence":
		which, text = &d.switches.Fence, "the store's check of fencing tokens"
	case "gate":
	default:
		return fmt.Errorf("there is no switch %.20q", o.Name)
	}
	set := func(*Demo) error {
		*which = o.On
		d.say(Fault, "%s is %s", text, map[bool]string{true: "on", false: "OFF"}[o.On])
		return nil
	}
	if o.Name == "fence" {
		return set(d)
	}
	return d.begin("gate", func(d *Demo) error { return errors.Join(set(d), regate(d)) })
}
