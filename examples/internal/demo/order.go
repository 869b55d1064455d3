package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/demo/service"
)

// ErrRefused is matched by the error of an order that cannot be carried out as things are, such as
// to thaw what is not frozen. Other errors of Demo.Do are of orders that make no sense.
var ErrRefused = errors.New("refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// maxJump bounds by how much a clock jumps at once.
const maxJump = 24 * time.Hour

// order is a kind of order. What it does not apply to is nil.
type order struct {
	do        string
	toReplica func(*Demo, *replica, Order) error
	toNode    func(*Demo, *node, Order) error // to one in this process
	toLink    func(*Demo, Order) error        // between a replica and a node, or all of one of them
	toAll     func(*Demo, Order) error
}

// orders are all kinds, in the order in which people read them.
func orders() []order {
	return []order{
		{do: "kill", toReplica: killReplica, toNode: killNode},
		{do: "freeze", toReplica: freezeReplica, toNode: freezeNode},
		{do: "thaw", toReplica: thawReplica, toNode: thawNode},
		{do: "restart", toReplica: restartReplica, toNode: restartNode},
		{do: "stop", toReplica: stopReplica},
		{do: "partition", toLink: func(d *Demo, o Order) error { return d.setLinks(o, true) }},
		{do: "heal", toLink: func(d *Demo, o Order) error { return d.setLinks(o, false) }},
		{do: "jump", toNode: jumpNode},
		{do: "deploy", toAll: tell("deploy", deploy)},
		{do: "late", toAll: tell("late", late)},
		{do: "amnesia", toAll: tell("amnesia", amnesia)},
		{do: "mend", toAll: mend},
		{do: "switch", toAll: flip},
		{do: "speed", toAll: setSpeed},
	}
}

// orderNames are the orders that there are here.
func (d *Demo) orderNames() (names []string) {
	for _, o := range orders() {
		switch {
		case o.do == "speed" && d.cfg.Speed == nil,
			o.do == "amnesia" && d.cfg.Fleet == nil,
			o.toNode != nil && o.toReplica == nil && d.cfg.Fleet == nil:
		default:
			names = append(names, o.do)
		}
	}
	return names
}

// Do carries out an order, and returns when that is done; a story has then begun. An error matches
// ErrRefused, or says what is wrong with the order.
func (d *Demo) Do(o Order) error {
	d.orders.Lock()
	defer d.orders.Unlock()
	if d.ctx.Err() != nil {
		return refused("the demonstration has ended")
	}
	all := orders()
	at := slices.IndexFunc(all, func(known order) bool { return known.do == o.Do })
	if at < 0 || !slices.Contains(d.orderNames(), o.Do) {
		return fmt.Errorf("there is no order %.20q here", o.Do)
	}
	known := all[at]
	r, n, err := d.target(o)
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.changedLocked()
	}()
	switch {
	case err != nil:
		return err
	case known.toAll != nil:
		return known.toAll(d, o)
	case r == nil && n == nil:
		return fmt.Errorf("%s: name a replica or a node", o.Do)
	case known.toLink != nil:
		return known.toLink(d, o)
	case r != nil && n != nil:
		return fmt.Errorf("%s: name a replica or a node, not both", o.Do)
	case r != nil && known.toReplica != nil:
		return known.toReplica(d, r, o)
	case n != nil && known.toNode != nil && d.cfg.Fleet == nil:
		return refused("node %d is a server that the demonstration does not own; it can be partitioned", n.number)
	case n != nil && known.toNode != nil:
		return known.toNode(d, n, o)
	}
	return fmt.Errorf("%s: does not apply to that", o.Do)
}

// target is what an order names; nil for none.
func (d *Demo) target(o Order) (r *replica, n *node, err error) {
	if o.Replica != "" {
		at := slices.IndexFunc(d.replicas, func(r *replica) bool { return r.name == o.Replica })
		if at < 0 {
			return nil, nil, fmt.Errorf("there is no replica %.20q", o.Replica)
		}
		r = d.replicas[at]
	}
	if o.Node != 0 {
		if o.Node < 1 || o.Node > len(d.nodes) {
			return nil, nil, fmt.Errorf("there is no node %d, but 1 to %d", o.Node, len(d.nodes))
		}
		n = d.nodes[o.Node-1]
	}
	return r, n, nil
}

// Settings are those of the replicas that are started from now on.
func (d *Demo) Settings() service.Settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settings()
}

// settings is called with mu held. Processes with the restart gate and without do not go together,
// so a service whose gate was switched has another name on the nodes: it begins anew.
func (d *Demo) settings() service.Settings {
	s := d.cfg.Service
	s.Gate = d.switches.Gate
	if d.flips > 0 {
		s.Prefix = fmt.Sprintf("%s-%d", s.Prefix, d.flips+1)
	}
	return s
}

// setLinks cuts or heals links: between one replica and one node, or all of one of them.
func (d *Demo) setLinks(o Order, cut bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := 0
	for i, r := range d.replicas {
		for n, l := range d.links[i] {
			if (o.Replica == "" || o.Replica == r.name) && (o.Node == 0 || o.Node == n+1) && l.set(cut) {
				changed++
			}
		}
	}
	if changed == 0 {
		return refused("nothing is changed by that")
	}
	who, whom := cmp.Or(o.Replica, "every replica"), "every node"
	if o.Node != 0 {
		whom = fmt.Sprintf("node %d", o.Node)
	}
	if cut {
		d.say(Fault, fmt.Sprintf("PARTITION between %s and %s", who, whom))
	} else {
		d.say(Fault, fmt.Sprintf("the partition between %s and %s is healed", who, whom))
	}
	d.partitions(cut)
	return nil
}

// partitions puts those that reach no quorum on the timeline. It is called with mu held.
func (d *Demo) partitions(cut bool) {
	leader := d.leader(time.Now())
	for i, r := range d.replicas {
		away := 0
		for _, l := range d.links[i] {
			if l.isCut() {
				away++
			}
		}
		apart := away > 0 && len(d.links[i])-away <= len(d.links[i])/2
		switch {
		case apart && r.outage == nil:
			d.beginOutage(&r.outage, Item{Replica: r.name, Text: "partitioned"})
			if r == leader && cut {
				d.harmedLocked(r, "partition", time.Now())
			}
		case !apart && r.outage != nil && r.outage.Text == "partitioned":
			d.endOutage(&r.outage)
			d.unharmed(r)
		}
	}
}

// unharmed takes note that a leader was harmed to no effect. It is called with mu held.
func (d *Demo) unharmed(r *replica) {
	if d.leaver != nil && d.leaver.name == r.name && r.term != nil {
		d.leaver = nil
	}
}

// mend ends all harm.
func mend(d *Demo, _ Order) error {
	var failed []error
	for _, r := range d.replicas {
		switch d.stateOf(&r.state) {
		case Frozen:
			failed = append(failed, thawReplica(d, r, Order{}))
		case Dead:
			failed = append(failed, restartReplica(d, r, Order{}))
		}
	}
	for _, n := range d.nodes {
		switch d.stateOf(&n.state) {
		case Frozen:
			failed = append(failed, thawNode(d, n, Order{}))
		case Dead:
			failed = append(failed, restartNode(d, n, Order{Data: true}))
		}
	}
	if err := d.setLinks(Order{}, false); err != nil && !errors.Is(err, ErrRefused) {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (d *Demo) stateOf(state *string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *state
}

// flip flips a switch. The restart gate is a replica's, so all replicas are started again.
func flip(d *Demo, o Order) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	which, text := &d.switches.Gate, "the restart gate"
	switch {
	case o.Name == "fence":
		which, text = &d.switches.Fence, "the store's check of fencing tokens"
	case o.Name != "gate":
		return fmt.Errorf("there is no switch %.20q", o.Name)
	}
	switch {
	case *which == o.On:
		return refused("%s is so already", text)
	case o.Name == "gate":
		if err := d.begin("gate", regate); err != nil {
			return err
		}
		d.flips++
	}
	*which = o.On
	d.unguarded = d.unguarded || !o.On
	d.say(Fault, fmt.Sprintf("%s is %s", text, map[bool]string{true: "on", false: "OFF"}[o.On]))
	return nil
}

func setSpeed(d *Demo, o Order) error {
	if !(o.Factor >= 0 && o.Factor <= 4) {
		return fmt.Errorf("speed: %v is not from 0 to 4", o.Factor)
	}
	if err := d.cfg.Speed(o.Factor); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.speed = o.Factor
	return nil
}

// seconds is a duration of an order, and false if it is none that makes sense.
func seconds(s float64) (time.Duration, bool) {
	if math.IsNaN(s) || s == 0 || math.Abs(s) > maxJump.Seconds() {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}

// await waits until done, which is called with mu held, and after each change. It fails with the
// text if that takes longer.
func (d *Demo) await(ctx context.Context, patience time.Duration, text string, done func() bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		d.mu.Lock()
		ok, more := done(), d.feed.more
		d.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-more:
		case <-limit.C:
			return fmt.Errorf("%s within %v", text, patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
