package demo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A story harms things at moments that no reader of the page could choose by hand, and says what it
// waits for. One is told at a time.

// patience is by how much a busy machine may delay what a story waits for.
const patience = 60 * time.Second

// tries is how often a story tries to freeze a replica in the middle of a run.
const tries = 20

// tell returns the order that begins a story.
func tell(name string, story func(context.Context, *Demo) error) func(*Demo, Order) error {
	return func(d *Demo, _ Order) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.begin(name, story)
	}
}

// begin begins a story, unless one is being told. It is called with mu held.
func (d *Demo) begin(name string, story func(context.Context, *Demo) error) error {
	if d.story != nil {
		return refused("the story %q is still being told", d.story.Name)
	}
	d.story = &Story{Name: name}
	d.work.Go(func() {
		err := story(d.ctx, d)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.story, d.watching = nil, nil
		if err != nil && d.ctx.Err() == nil {
			d.say(Bad, fmt.Sprintf("the story %q ends early: %v", name, err))
		}
		d.changedLocked()
	})
	return nil
}

// step is the text of a story from now on.
func (d *Demo) step(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	d.story = &Story{Name: d.story.Name, Text: text}
	d.say(Info, text)
	d.changedLocked()
}

// deploy replaces one replica after the other.
func deploy(ctx context.Context, d *Demo) error {
	for i, r := range d.replicas {
		if d.stateOf(&r.state) == Dead {
			continue // it stays as it is
		}
		d.step("%s is replaced (%d of %d): it stops in order, and hands over first", r.name, i+1, len(d.replicas))
		if err := d.stopOne(r); err != nil {
			return err
		}
		if err := d.start(r); err != nil {
			return err
		}
		ticks := 0
		err := d.await(ctx, patience, r.name+" did not start", func() bool {
			ticks = d.ledger.counters.Ticks
			return r.state != Starting
		})
		if err != nil {
			return err
		}
		err = d.await(ctx, patience, "no tick ran", func() bool { return d.ledger.counters.Ticks > ticks })
		if err != nil {
			return err
		}
	}
	d.step("every replica has been replaced")
	return nil
}

// regate stops all replicas and starts them again: their restart gate was switched.
func regate(ctx context.Context, d *Demo) error {
	d.step("every replica stops, and is started again with the gate switched, as a service that begins anew")
	if err := d.stopEach(); err != nil {
		return err
	}
	d.mu.Lock()
	d.leaver = nil // nobody takes over: none is there
	d.mu.Unlock()
	for _, r := range d.replicas {
		if err := d.start(r); err != nil {
			return err
		}
	}
	ticks := d.ticks()
	return d.await(ctx, patience, "no tick ran", func() bool { return d.ledger.counters.Ticks > ticks })
}

// watch has a story told of the next run that is in its middle.
type watch struct{ begun chan run }

// run is one that has begun.
type run struct {
	of    *replica
	token uint64
	until int64
}

// run is called with the Demo's mutex held.
func (w *watch) run(r *replica, s *span) {
	select {
	case w.begun <- run{r, s.item.Token, s.item.Until}:
	default:
	}
}

// inTheMiddle tells the story that watches if a replica's run has begun and the store has seen its
// token. It is called with the Demo's mutex held.
func (d *Demo) inTheMiddle(r *replica) {
	if s := r.run; d.watching != nil && s != nil && s.item.Token != 0 && s.item.Token == d.claimed {
		d.watching.run(r, s)
	}
}

var errFast = errors.New("no run could be frozen in its middle")

// freezeRun freezes a replica in the middle of a run: when the store has seen its token, and not
// its write.
func (d *Demo) freezeRun(ctx context.Context) (run, error) {
	for range tries {
		w := &watch{make(chan run, 1)}
		d.mu.Lock()
		d.watching = w
		d.mu.Unlock()
		var begun run
		limit := time.NewTimer(patience)
		select {
		case begun = <-w.begun:
			limit.Stop()
		case <-limit.C:
			return run{}, errors.New("no replica runs the job")
		case <-ctx.Done():
			return run{}, context.Cause(ctx)
		}
		if err := freezeReplica(d, begun.of, Order{}); err != nil {
			continue
		}
		d.mu.Lock()
		inTime := begun.of.wrote < begun.token
		if s := begun.of.run; inTime && s != nil {
			begun.until = s.item.Until
		}
		d.watching = nil
		d.mu.Unlock()
		if inTime {
			return begun, nil
		}
		if err := thawReplica(d, begun.of, Order{}); err != nil {
			return run{}, err
		}
	}
	return run{}, errFast
}

// late pauses a holder past its deadline. Its write comes after another one's.
func late(ctx context.Context, d *Demo) error {
	d.step("waits for a run, to stop its replica in the middle of it")
	paused, err := d.freezeRun(ctx)
	if err != nil {
		return err
	}
	name := paused.of.name
	d.step("%s stands still in the middle of a run, about to write with token %d; its lease runs out at %s", name, paused.token, clock(paused.until))
	ttl := d.cfg.Service.TTL
	err = d.await(ctx, 2*ttl+patience, "nobody else ran the job", func() bool { return d.claimed > paused.token })
	if err != nil {
		return err
	}
	d.mu.Lock()
	claimed := d.claimed
	d.mu.Unlock()
	d.step("another replica holds the lease now, and the store has seen its token %d; %s goes on, and writes with the token it has", claimed, name)
	if err := thawReplica(d, paused.of, Order{}); err != nil {
		return err
	}
	return d.await(ctx, patience, name+" did not write", func() bool { return paused.of.wrote >= paused.token })
}

// amnesia pauses a holder, and has a quorum of nodes forget its lease. Without the restart gate
// they grant it to another replica, while the first one may still rely on it.
func amnesia(ctx context.Context, d *Demo) error {
	d.step("waits for a run, to stop its replica in the middle of it")
	paused, err := d.freezeRun(ctx)
	if err != nil {
		return err
	}
	name, need := paused.of.name, len(d.nodes)/2+1
	d.step("%s stands still, and may rely on its lease until %s; now %d nodes restart WITHOUT THEIR DATA, and forget it", name, clock(paused.until), need)
	for _, n := range d.nodes[:need] {
		if err := restartNode(d, n, Order{}); err != nil {
			return err
		}
	}
	other := d.replicas[(paused.of.number+1)%len(d.replicas)]
	if err := d.kill(other); err != nil { // a process that starts asks at once
		return err
	}
	if err := d.start(other); err != nil {
		return err
	}
	another := func() bool {
		for _, r := range d.replicas {
			if r != paused.of && r.run != nil && r.run.item.Token != 0 && r.run.item.Tick != 0 {
				return true
			}
		}
		return false
	}
	tooSoon := false
	err = d.await(ctx, 2*d.cfg.Service.TTL+patience, "the lease did not run out", func() bool {
		tooSoon = another()
		return tooSoon || time.Now().UnixMilli() > paused.until
	})
	if err != nil {
		return err
	}
	if tooSoon {
		d.step("another replica runs the job ALREADY: the nodes that forgot the lease have granted it again; %s goes on, and relies on its own", name)
	} else {
		d.step("nobody was granted the lease before it ran out: nodes that may have forgotten it do not vote; %s goes on", name)
	}
	if err := thawReplica(d, paused.of, Order{}); err != nil {
		return err
	}
	d.step("waits until the job runs again: a node votes when every lease that it may have forgotten is over")
	ticks := d.ticks()
	return d.await(ctx, patience, "the job does not run", func() bool { return d.ledger.counters.Ticks > ticks })
}

func (d *Demo) ticks() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ledger.counters.Ticks
}
