package leases

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// lookEvery is how often a holder asks its lease whether it is valid.
const lookEvery = 20 * time.Millisecond

// worker takes one key after the other.
type worker struct {
	*client
	plan.Dice
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		key := Keys[w.IntN(len(Keys))]
		way := "wait"
		switch {
		case w.Number >= w.Clients:
			way = history.OtherList
		case w.IntN(4) == 0:
			way = "try"
		}
		patience, cancel := context.WithTimeout(ctx, w.Between(500*time.Millisecond, 5*time.Second))
		h := w.acquire(patience, key, way)
		cancel()
		if h == nil {
			clients.Sleep(ctx, w.Between(0, 100*time.Millisecond))
			continue
		}
		w.hold(ctx, h, key)
	}
}

// hold does with a lease what clients do: mostly they work and release it.
func (w *worker) hold(ctx context.Context, h *holding, key Key) {
	d := w.Between(2*time.Millisecond, 40*time.Millisecond)
	switch n := w.IntN(40); {
	case n < 7:
		d = w.Between(40*time.Millisecond, key.TTL/2)
	case n < 11:
		d = w.Between(key.TTL/2, 3*key.TTL)
	case n == 11:
		// Whoever does not extend loses the lease at its deadline.
		h.lease.StopExtending()
		d = 2 * key.TTL
	}
	w.work(ctx, h, d)
	if h.lease.Err() != nil && w.IntN(3) == 0 {
		return // a client that lost its lease need not release it
	}
	h.release(ctx)
}

// work asks for the lease until d is over, the lease is lost, or ctx ends.
func (w *worker) work(ctx context.Context, h *holding, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		h.look()
		select {
		case <-look.C:
		case <-over.C:
			h.look()
			return
		case <-ctx.Done():
			return
		case <-h.lease.Context().Done():
			h.lost()
			h.look()
			return
		}
	}
}
