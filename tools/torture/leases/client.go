// Package leases is the workload with leases. A client process acquires leases, holds them, asks
// whether they are valid and releases most of them. It keeps a journal of that.
package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// All clients share these constants.
const (
	Prefix = "leases"

	workers = 3 // of a client; each holds or wants one lease at a time
	// grace is how much longer than its TTL the acquisition of a key may take once the faults are
	// over.
	grace = 2 * time.Second
	// StopPatience is how long a client may take to stop in order, with its conclusion.
	StopPatience = 30 * time.Second
)

// Key is a key and the TTL of its leases.
type Key struct {
	Name string
	TTL  time.Duration
}

// Keys are the keys that all clients want. Their TTLs are short, so that much happens.
var Keys = [plan.Keys]Key{{"a", time.Second}, {"b", 1500 * time.Millisecond}, {"c", plan.LeaderTTL}, {"d", time.Second}}

// Holder returns the client that holds a key or held it last, by the journal of grants; -1 for
// none.
func Holder(holders string, key int) (client int) {
	grants, _ := history.Read(holders)
	for _, g := range slices.Backward(grants) {
		if g.Key == Keys[key].Name {
			return clients.Number(g.Lease)
		}
	}
	return -1
}

// client is one life of a client.
type client struct {
	*clients.Process
	quorum  *redlock.Quorum
	holders *history.Writer
	calls   atomic.Int64
}

// Begin starts a client, for clients.Main. The function that it returns closes everything in order.
func Begin(p *clients.Process) (end func() error, err error) {
	c := &client{Process: p}
	if c.holders, err = history.Create(p.Holders); err != nil {
		return nil, err
	}
	if c.quorum, err = p.Open(Prefix); err != nil {
		return nil, errors.Join(err, c.holders.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for i := range workers {
		dice := plan.NewDice(p.Seed+uint64(p.Number)<<32+uint64(p.Life)<<16, uint64(i))
		working.Go(func() { (&worker{c, dice}).run(ctx) })
	}
	rest := func() {
		cancel()
		working.Wait()
	}
	p.Conclude = func() error {
		rest()
		return c.conclude()
	}
	return func() error {
		rest()
		return errors.Join(c.quorum.Close(), c.holders.Close())
	}, nil
}

// conclude waits until a quorum of servers votes, and then acquires this client's part of the keys
// once more. An acquisition that fails is recorded in the journal and is no error.
func (c *client) conclude() error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	limit := time.Now().Add(plan.Recovery + 2*plan.LeaderTTL)
	for votes := 0; votes <= len(c.URLs)/2; <-look.C {
		if time.Now().After(limit) {
			return fmt.Errorf("no quorum of servers votes: %d of %d", votes, len(c.URLs))
		}
		votes = 0
		for _, n := range c.quorum.Nodes(context.Background()) {
			if n.Votes {
				votes++
			}
		}
	}
	c.Append(history.Record{Kind: history.Votes})
	for i, key := range Keys {
		if i%c.Clients != c.Number {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), key.TTL+grace)
		if h := c.acquire(ctx, key, "probe"); h != nil {
			h.release(ctx)
		}
		cancel()
	}
	return nil
}

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

// hold uses a lease as clients do: mostly the worker works and then releases the lease.
func (w *worker) hold(ctx context.Context, h *holding, key Key) {
	d := w.Between(2*time.Millisecond, 40*time.Millisecond)
	switch n := w.IntN(40); {
	case n < 7:
		d = w.Between(40*time.Millisecond, key.TTL/2)
	case n < 11:
		d = w.Between(key.TTL/2, 3*key.TTL)
	case n == 11:
		// A holder that does not extend loses the lease at its deadline.
		h.lease.StopExtending()
		d = 2 * key.TTL
	}
	w.work(ctx, h, d)
	if h.lease.Err() != nil && w.IntN(3) == 0 {
		return // a client that lost its lease need not release it
	}
	h.release(ctx)
}

// work asks the lease regularly whether it is valid, until d is over, the lease is lost, or ctx
// ends.
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

// holding is a lease, with its name in the journal. It belongs to one goroutine.
type holding struct {
	c     *client
	lease *redlock.Lease
	id    string
}

const anotherList = string(redlock.ConditionAnotherList)

// acquire acquires a key in one of the ways: "try", "wait", "probe" or history.OtherList. It
// returns nil if that failed.
func (c *client) acquire(ctx context.Context, key Key, way string) *holding {
	id := fmt.Sprintf("%s/%d", c.Name, c.calls.Add(1))
	acquire := c.quorum.Acquire
	if way == "try" || way == history.OtherList {
		acquire = c.quorum.TryAcquire
	}
	c.Append(history.Record{Kind: history.Want, Lease: id, Key: key.Name, TTL: key.TTL, Text: way})
	lease, err := acquire(ctx, key.Name, redlock.WithTTL(key.TTL))
	at := history.Now()
	if err != nil {
		why := redlock.ErrorType(err)
		var none *redlock.QuorumError
		if errors.As(err, &none) && slices.ContainsFunc(none.Errs, func(err *redlock.NodeError) bool { return err.ErrorType() == anotherList }) {
			why = anotherList
		}
		c.Append(history.Record{Kind: history.Fail, At: at, Lease: id, Text: why})
		return nil
	}
	h := &holding{c: c, lease: lease, id: id}
	grant := history.Record{Kind: history.Grant, At: at, Lease: id, Token: lease.FencingToken(), Deadline: h.deadline()}
	c.Append(grant)
	grant.Key = key.Name
	_ = c.holders.Append(grant) // this journal only serves to choose a target
	return h
}

// deadline returns the lease's deadline on the journal's clock. It is never later than the true
// deadline, and may be earlier by the time that it takes to read three clocks.
func (h *holding) deadline() history.Instant {
	const quick, tries = 50 * time.Microsecond, 10
	var best history.Instant
	for range tries {
		before := history.Now()
		left := time.Until(h.lease.Deadline())
		best = max(best, before.Add(left))
		if history.Now().Sub(before) < quick {
			break
		}
	}
	return best
}

// look asks the lease whether it is valid. It reads the deadline after the answer: a deadline only
// moves away.
func (h *holding) look() {
	at := history.Now()
	if h.lease.Err() == nil {
		h.c.Append(history.Record{Kind: history.Valid, At: at, Lease: h.id, Deadline: h.deadline()})
	}
}

// lost notes that the lease's context ended by itself.
func (h *holding) lost() {
	r := history.Record{Kind: history.Lost, Lease: h.id, Text: "other"}
	var why *redlock.LostError
	if errors.As(context.Cause(h.lease.Context()), &why) {
		r.Text = string(why.Reason)
	}
	h.c.Append(r)
}

// release releases the lease. An error is not recorded: whether nodes have heard of the release
// shows in their next grants.
func (h *holding) release(ctx context.Context) {
	h.c.Append(history.Record{Kind: history.Release, Lease: h.id})
	_ = h.lease.Release(ctx)
}
