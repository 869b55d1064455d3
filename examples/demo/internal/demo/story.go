package demo

import (
	"fmt"
	"slices"
	"time"
)

// A story harms things at moments that no reader of the page could choose by hand, and says what it
// waits for. One is told at a time.

// patience is by how much a busy machine may delay what a story waits for.
const patience = 60 * time.Second

// begin begins a story, unless one is being told.
func (d *Demo) begin(name string, story func(*Demo) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.story != nil {
		return refused("the story %q is still being told", d.story.Name)
	}
	d.story = &Story{Name: name}
	go func() {
		err := story(d)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.story = nil
		if err != nil {
			d.say(Bad, "the story %q ends early: %v", name, err)
		}
		d.changed()
	}()
	return nil
}

// step is the text of a story from now on.
func (d *Demo) step(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	d.story = &Story{Name: d.story.Name, Text: text}
	d.say(Info, "%s", text)
}

// deploy replaces one replica after the other.
func deploy(d *Demo) error {
	for i, r := range d.replicas {
		if d.stateOf(&r.state) == Dead {
			continue // it stays as it is
		}
		d.step("%s is replaced (%d of %d): it stops in order, and hands over first", r.name, i+1, len(d.replicas))
		if err := d.stop(r); err != nil {
			return err
		}
		if err := d.start(r); err != nil {
			return err
		}
		if err := d.await(patience, r.name+" did not start", func() bool { return r.state != Starting }); err != nil {
			return err
		}
		if err := d.awaitTick("no tick ran"); err != nil {
			return err
		}
	}
	d.step("every replica has been replaced")
	return nil
}

// regate stops all replicas and starts them again: their restart gate was switched.
func regate(d *Demo) error {
	d.step("every replica stops, and is started again with the gate switched, as a service that begins anew")
	for _, r := range d.replicas {
		if err := d.stop(r); err != nil {
			return err
		}
	}
	d.mu.Lock()
	d.flips++
	d.leaver = nil // nobody takes over: none is there
	d.mu.Unlock()
	for _, r := range d.replicas {
		if err := d.start(r); err != nil {
			return err
		}
	}
	return d.awaitTick("no tick ran")
}

// paused is a replica that stands still in the middle of a run.
type paused struct {
	*replica
	token uint64
	until int64
}

// freezeRun freezes a replica in the middle of a run: when the store has seen its token, and not
// its write.
func (d *Demo) freezeRun() (p paused, err error) {
	err = d.await(patience, "no replica runs the job", func() bool {
		for _, r := range d.replicas {
			if s := r.run; s != nil && s.item.Token == d.seen && r.wrote < d.seen && d.freeze(r) == nil {
				p = paused{r, s.item.Token, s.item.Until}
				return true
			}
		}
		return false
	})
	return p, err
}

// late pauses a holder past its deadline. Its write comes after another one's.
func late(d *Demo) error {
	d.step("waits for a run, to stop its replica in the middle of it")
	p, err := d.freezeRun()
	if err != nil {
		return err
	}
	name := p.name
	d.step("%s stands still in the middle of a run, about to write with token %d; its lease runs out at %s", name, p.token, clock(p.until))
	err = d.await(2*ttl+patience, "nobody else ran the job", func() bool { return d.seen > p.token })
	if err != nil {
		return err
	}
	d.mu.Lock()
	seen := d.seen
	d.mu.Unlock()
	d.step("another replica holds the lease now, and the store has seen its token %d; %s goes on, and writes with the token it has", seen, name)
	if err := d.thaw(p.replica); err != nil {
		return err
	}
	return d.await(patience, name+" did not write", func() bool { return p.wrote >= p.token })
}

// amnesia pauses a holder, and has a quorum of nodes forget its lease. Without the restart gate
// they grant it to another replica, while the first one may still rely on it.
func amnesia(d *Demo) error {
	d.step("waits for a run, to stop its replica in the middle of it")
	p, err := d.freezeRun()
	if err != nil {
		return err
	}
	name, need := p.name, len(d.nodes)/2+1
	d.step("%s stands still, and may rely on its lease until %s; now %d nodes restart WITHOUT THEIR DATA, and forget it", name, clock(p.until), need)
	for _, n := range d.nodes[:need] {
		if err := d.harmNode(n, Order{Do: "restart"}, nil); err != nil {
			return err
		}
	}
	other := d.replicas[(p.number+1)%len(d.replicas)]
	d.kill(other) // a process that starts asks at once
	if err := d.start(other); err != nil {
		return err
	}
	runs := func(r *replica) bool {
		return r != p.replica && r.run != nil && r.run.item.Token != 0 && r.run.item.Tick != 0
	}
	tooSoon := false
	err = d.await(2*ttl+patience, "the lease did not run out", func() bool {
		tooSoon = slices.ContainsFunc(d.replicas, runs)
		return tooSoon || time.Now().UnixMilli() > p.until
	})
	if err != nil {
		return err
	}
	if tooSoon {
		d.step("another replica runs the job ALREADY: the nodes that forgot the lease have granted it again; %s goes on, and relies on its own", name)
	} else {
		d.step("nobody was granted the lease before it ran out: nodes that may have forgotten it do not vote; %s goes on", name)
	}
	if err := d.thaw(p.replica); err != nil {
		return err
	}
	d.step("waits until the job runs again: a node votes when every lease that it may have forgotten is over")
	return d.awaitTick("the job does not run")
}

// awaitTick waits until another tick has run.
func (d *Demo) awaitTick(text string) error {
	d.mu.Lock()
	ticks := d.ledger.counters.Ticks
	d.mu.Unlock()
	return d.await(patience, text, func() bool { return d.ledger.counters.Ticks > ticks })
}

// await waits until done, which is called with mu held, and after each change. It fails with the
// text if that takes longer.
func (d *Demo) await(patience time.Duration, text string, done func() bool) error {
	limit := time.After(patience)
	for {
		d.mu.Lock()
		ok, more := done(), d.more
		d.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-more:
		case <-limit:
			return fmt.Errorf("%s within %v", text, patience)
		}
	}
}
