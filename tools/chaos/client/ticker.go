package client

import (
	"context"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/clients"
)

const (
	// tickEvery is how far the ticks of a key are apart.
	tickEvery = 50 * time.Millisecond
	// keepTicks is for how long servers remember ticks: longer than a run.
	keepTicks = 24 * time.Hour
	// lateness is how late a tick is asked for at most.
	lateness = 20 * time.Second
	// tickPatience is for how long a tick is asked for.
	tickPatience = 2 * time.Second
	// TickGrace is how long it may take until a tick of a key is granted once everything is
	// resumed: a pause ends by the servers' clocks, which may be ahead.
	TickGrace = 5 * time.Second
)

// ticker asks for ticks of a key, as a scheduler does: others ask for the same.
type ticker struct {
	*client
	dice
	key Key
}

// run works until ctx ends.
func (t *ticker) run(ctx context.Context) {
	defer t.quorum.KeepSequence(t.key.Name)()
	for clients.Sleep(ctx, t.between(0, 6*tickEvery)) {
		tick, late := time.Now().Truncate(tickEvery), t.between(0, lateness)
		due := tick
		switch t.IntN(8) {
		case 0: // a tick of an interval, which has a number of its own
			due = due.Add(-late)
		case 1:
			tick = tick.Add(-late.Truncate(tickEvery))
			due = tick
		}
		patience, cancel := context.WithTimeout(ctx, tickPatience)
		h := t.acquireTick(patience, t.key, tick, due)
		cancel()
		if h != nil {
			t.hold(ctx, h)
		}
	}
}

// hold runs the tick: mostly for a moment, and now and then for so long that the lease is extended.
func (t *ticker) hold(ctx context.Context, h *holding) {
	d := t.between(0, 20*time.Millisecond)
	if t.IntN(20) == 0 {
		d = t.between(t.key.TTL/4, t.key.TTL)
	}
	over := time.NewTimer(d)
	defer over.Stop()
	h.look()
	select {
	case <-over.C:
		h.look()
	case <-ctx.Done():
	case <-h.lease.Context().Done():
		h.lost()
	}
	h.complete(ctx)
}

// probeTicks has a tick of each key granted, one after the other. A failure is in the journal.
func (c *client) probeTicks(names []string) error {
	for _, key := range c.Ticks {
		if !slices.Contains(names, key.Name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), TickGrace)
		var h *holding
		for h == nil && clients.Sleep(ctx, tickEvery) {
			tick := time.Now().Truncate(tickEvery)
			h = c.acquireTick(ctx, key, tick, tick)
		}
		if h != nil {
			h.complete(ctx)
		}
		cancel()
	}
	return nil
}
