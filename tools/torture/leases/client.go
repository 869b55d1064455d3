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

	"github.com/tenure-dev/tenure/internal/clock"
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

// client is one life of a client.
type client struct {
	*clients.Process
	quorum *redlock.Quorum
	calls  atomic.Int64
}

// Begin starts a client, for clients.Main.
func Begin(p *clients.Process) (end func(conclude bool) error, err error) {
	c := &client{Process: p}
	if c.quorum, err = p.Open(Prefix, redlock.WithIdentity(p.Name), redlock.WithLogger(p.Logger)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for i := range workers {
		dice := plan.NewDice(p.Seed+uint64(p.Number)<<32+uint64(p.Life)<<16, uint64(i))
		working.Go(func() { (&worker{client: c, Dice: dice}).run(ctx) })
	}
	return func(conclude bool) (err error) {
		cancel()
		working.Wait()
		if conclude {
			err = c.conclude()
		}
		return errors.Join(err, c.quorum.Close())
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
		if w := (&worker{client: c}); w.acquire(ctx, key, "probe") {
			w.release(ctx)
		}
		cancel()
	}
	return nil
}

// lookEvery is how often a holder asks its lease whether it is valid.
const lookEvery = 20 * time.Millisecond

// worker takes one key after the other. It belongs to one goroutine.
type worker struct {
	*client
	plan.Dice
	lease *redlock.Lease // that it holds, or held last
	id    string         // of the lease, in the journal
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
		held := w.acquire(patience, key, way)
		cancel()
		if held {
			w.hold(ctx, key)
		} else {
			_ = clock.Sleep(ctx, w.Between(0, 100*time.Millisecond))
		}
	}
}

// hold uses the lease as clients do: mostly the worker works and then releases the lease.
func (w *worker) hold(ctx context.Context, key Key) {
	d := w.Between(2*time.Millisecond, 40*time.Millisecond)
	switch n := w.IntN(40); {
	case n < 7:
		d = w.Between(40*time.Millisecond, key.TTL/2)
	case n < 11:
		d = w.Between(key.TTL/2, 3*key.TTL)
	case n == 11:
		// A holder that does not extend loses the lease at its deadline.
		w.lease.StopExtending()
		d = 2 * key.TTL
	}
	w.work(ctx, d)
	if w.lease.Err() != nil && w.IntN(3) == 0 {
		return // a client that lost its lease need not release it
	}
	w.release(ctx)
}

// work asks the lease regularly whether it is valid, until d is over, the lease is lost, or ctx
// ends.
func (w *worker) work(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		w.look()
		select {
		case <-look.C:
		case <-over.C:
			w.look()
			return
		case <-ctx.Done():
			return
		case <-w.lease.Context().Done():
			w.lost()
			w.look()
			return
		}
	}
}

const anotherList = string(redlock.ConditionAnotherList)

// acquire acquires a key in one of the ways: "try", "wait", "probe" or history.OtherList. It
// reports whether the worker has the lease.
func (w *worker) acquire(ctx context.Context, key Key, way string) bool {
	w.id = fmt.Sprintf("%s/%d", w.Name, w.calls.Add(1))
	acquire := w.quorum.Acquire
	if way == "try" || way == history.OtherList {
		acquire = w.quorum.TryAcquire
	}
	w.Append(history.Record{Kind: history.Want, Lease: w.id, Key: key.Name, TTL: key.TTL, Text: way})
	lease, err := acquire(ctx, key.Name, redlock.WithTTL(key.TTL))
	at := history.Now()
	if err != nil {
		why := redlock.ErrorType(err)
		var none *redlock.QuorumError
		if errors.As(err, &none) && slices.ContainsFunc(none.Errs, func(err *redlock.NodeError) bool { return err.ErrorType() == anotherList }) {
			why = anotherList
		}
		w.Append(history.Record{Kind: history.Fail, At: at, Lease: w.id, Text: why})
		return false
	}
	w.lease = lease
	w.Append(history.Record{Kind: history.Grant, At: at, Lease: w.id, Token: lease.FencingToken(), Deadline: w.deadline()})
	return true
}

// deadline returns the lease's deadline on the journal's clock. It is never later than the true
// deadline, and may be earlier by the time that it takes to read three clocks.
func (w *worker) deadline() history.Instant {
	const quick, tries = 50 * time.Microsecond, 10
	var best history.Instant
	for range tries {
		before := history.Now()
		left := time.Until(w.lease.Deadline())
		best = max(best, before.Add(left))
		if history.Now().Sub(before) < quick {
			break
		}
	}
	return best
}

// look asks the lease whether it is valid. It reads the deadline after the answer: a deadline only
// moves away.
func (w *worker) look() {
	at := history.Now()
	if w.lease.Err() == nil {
		w.Append(history.Record{Kind: history.Valid, At: at, Lease: w.id, Deadline: w.deadline()})
	}
}

// lost notes that the lease's context ended by itself.
func (w *worker) lost() {
	r := history.Record{Kind: history.Lost, Lease: w.id, Text: "other"}
	var why *redlock.LostError
	if errors.As(context.Cause(w.lease.Context()), &why) {
		r.Text = string(why.Reason)
	}
	w.Append(r)
}

// release releases the lease. An error is not recorded: whether nodes have heard of the release
// shows in their next grants.
func (w *worker) release(ctx context.Context) {
	w.Append(history.Record{Kind: history.Release, Lease: w.id})
	_ = w.lease.Release(ctx)
}
