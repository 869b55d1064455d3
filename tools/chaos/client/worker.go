package client

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness/clients"
)

// lookEvery is how often a holder asks its lease whether it is valid.
const lookEvery = 20 * time.Millisecond

// dice are what one goroutine of a client draws its decisions with.
type dice struct{ *rand.Rand }

func (c *client) newDice(number int) dice {
	name := fnv.New64()
	_, _ = name.Write([]byte(c.Name))
	return dice{rand.New(rand.NewPCG(c.Seed, name.Sum64()+uint64(number)))}
}

// between draws a duration.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)+1))
}

// worker takes one key after the other.
type worker struct {
	*client
	dice
	conn *resource.Conn
}

func (c *client) newWorker(number int) (*worker, error) {
	conn, err := resource.Dial(c.Resource)
	if err != nil {
		return nil, err
	}
	return &worker{client: c, conn: conn, dice: c.newDice(number)}, nil
}

// run works until ctx ends. Its error is the resource's.
func (w *worker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		key := w.Keys[w.IntN(len(w.Keys))]
		way := "wait"
		if w.IntN(4) == 0 {
			way = "try"
		}
		patience, cancel := context.WithTimeout(ctx, w.between(500*time.Millisecond, 5*time.Second))
		h := w.acquire(patience, key, way)
		cancel()
		if h == nil {
			clients.Sleep(ctx, w.between(0, 100*time.Millisecond))
			continue
		}
		if err := w.hold(ctx, h, key); err != nil {
			return err
		}
	}
	return nil
}

// hold does with a lease what clients do: mostly they work and release it; some work after its end.
func (w *worker) hold(ctx context.Context, h *holding, key Key) error {
	d := w.between(2*time.Millisecond, 40*time.Millisecond)
	switch n := w.IntN(40); {
	case n < 7:
		d = w.between(40*time.Millisecond, key.TTL/2)
	case n < 11:
		d = w.between(key.TTL/2, 3*key.TTL)
	case n == 11:
		// Whoever does not extend loses the lease at its deadline.
		h.lease.StopExtending()
		d = 2 * key.TTL
	}
	late := w.IntN(5) == 0
	if err := w.work(ctx, h, key, d); err != nil {
		return err
	}
	lapsed := h.lease.Err() != nil
	if late && lapsed {
		if err := w.writeLate(ctx, h, key); err != nil {
			return err
		}
	}
	if lapsed && w.IntN(3) == 0 {
		return nil // a client that lost its lease need not release it
	}
	h.release(ctx)
	if late && !lapsed {
		return w.writeLate(ctx, h, key)
	}
	return nil
}

// work writes and asks for the lease until d is over, the lease is lost, or ctx ends.
func (w *worker) work(ctx context.Context, h *holding, key Key, d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for n := 0; ; n++ {
		h.look()
		if n%5 == 0 {
			if err := w.write(h, key); err != nil {
				return err
			}
		}
		select {
		case <-look.C:
		case <-over.C:
			h.look()
			return nil
		case <-ctx.Done():
			return nil
		case <-h.lease.Context().Done():
			h.lost()
			h.look()
			return nil
		}
	}
}

func (w *worker) write(h *holding, key Key) error {
	_, err := w.conn.Write(h.id, key.Name, h.lease.FencingToken())
	return err
}

// writeLate writes with a lease that is over, as a process does that was paused between asking and
// writing.
func (w *worker) writeLate(ctx context.Context, h *holding, key Key) error {
	if !clients.Sleep(ctx, w.between(0, key.TTL)) {
		return nil
	}
	return w.write(h, key)
}
