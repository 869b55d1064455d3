package demo

import (
	"fmt"
	"slices"
	"time"
)

// A story does harm at exact moments that a reader of the page could not hit by hand, and says what
// it waits for. Only one story is told at a time.

// patience is how long a busy machine may delay an event that a story waits for.
const patience = 60 * time.Second

// begin starts a story. It refuses while another story is told.
func (d *Demo) begin(name string, story func(*Demo) error) error {
	if d.story != nil {
		return refused("the story %q is still being told", d.story.Name)
	}
	d.story = &Story{Name: name}
	go func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		err := story(d)
		d.story = nil
		if err != nil {
			d.say(Bad, "the story %q ends early: %v", name, err)
		}
	}()
	return nil
}

// step sets the text of the current story.
func (d *Demo) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.story = &Story{Name: d.story.Name, Text: text}
	d.say(Info, "%s", text)
}

// deploy replaces one replica after the other.
func deploy(d *Demo) error {
	for i, r := range d.replicas {
		if r.state == Dead {
			continue // a dead replica stays dead
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

// regate restarts all replicas after their restart gate was switched.
func regate(d *Demo) error {
	d.step("every replica stops, and is started again with the gate switched, as a service that begins anew")
	for _, r := range d.replicas {
		if err := d.stop(r); err != nil {
			return err
		}
	}
	d.flips++
	d.leaver = nil // this is no take-over, because all replicas are stopped
	for _, r := range d.replicas {
		if err := d.start(r); err != nil {
			return err
		}
	}
	return d.awaitTick("no tick ran")
}

// paused is a replica that is frozen in the middle of a run.
type paused struct {
	*replica
	token uint64
	until int64
}

// freezeRun freezes a replica in the middle of a run: the store has seen the token of the run, and
// the run has not written.
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

// late freezes a holder until its lease has expired and another replica has run the job. The write
// of the first holder then comes late.
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
	d.step("another replica holds the lease now, and the store has seen its token %d; %s goes on, and writes with the token it has", d.seen, name)
	if err := d.thaw(p.replica); err != nil {
		return err
	}
	return d.await(patience, name+" did not write", func() bool { return p.wrote >= p.token })
}

// amnesia freezes a holder, and restarts a quorum of nodes without their data, so that they forget
// its lease. Without the restart gate they grant the lease to another replica while the first
// holder may still rely on it.
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
	d.kill(other) // a replica that starts asks for the lease at once
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

// awaitTick waits until another tick has run. It fails with the text.
func (d *Demo) awaitTick(text string) error {
	ticks := d.ledger.counters.Ticks
	return d.await(patience, text, func() bool { return d.ledger.counters.Ticks > ticks })
}

// await waits until done returns true. It calls done now and after each change, and gives the mutex
// up meanwhile. It fails with the text when patience has passed.
func (d *Demo) await(patience time.Duration, text string, done func() bool) error {
	late := false
	defer time.AfterFunc(patience, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		late = true
		d.more.Broadcast()
	}).Stop()
	for !done() {
		if late {
			return fmt.Errorf("%s within %v", text, patience)
		}
		d.more.Wait()
	}
	return nil
}
