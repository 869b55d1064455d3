// Package leases is the workload with leases: a client process takes leases, holds them, works with
// them and gives them back or not, and keeps a journal of it.
package leases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// What all clients agree on.
const (
	Clients = 8
	Prefix  = "leases"

	workers = 3 // leases that each holds or wants at a time
	// grace is how much longer than its TTL a key may take to be acquired once the faults are over.
	grace = 2 * time.Second
	// StopPatience is how long a client may take to stop in order, what it does last included.
	StopPatience = 30 * time.Second
)

// Settings tell a client what to do.
type Settings struct {
	URLs    []string `json:"urls"`
	Holders string   `json:"holders"` // the journal of who holds what, of all clients
	Seed    uint64   `json:"seed"`    // of this life
	NoGate  bool     `json:"no_gate"` // redlock.WithoutRestartGate, to see that the weakness is found
}

// Key is a key and the TTL of its leases.
type Key struct {
	Name string
	TTL  time.Duration
}

// Keys are those that all clients want. The TTLs are short, so that much happens.
var Keys = []Key{{"a", time.Second}, {"b", 1500 * time.Millisecond}, {"c", MaxTTL}, {"d", time.Second}}

// MaxTTL is the longest.
const MaxTTL = 2 * time.Second

// Recovery is for how long a restarted server does not vote, at most: the longest TTL or twice the
// skew, and the skew, by clocks that may be fast, rounded up twice; and a second until every client
// has noticed. It only spaces the faults; what the library does is seen. Without the gate a server
// votes at once, and the faults come closer.
func Recovery(noGate bool) time.Duration {
	if noGate {
		return MaxTTL
	}
	return max(MaxTTL, 2*plan.Skew) + plan.Skew + 3*time.Second
}

// client is one life of a client.
type client struct {
	*clients.Process
	Settings
	quorum  *redlock.Quorum
	holders *history.Writer
	calls   atomic.Int64
}

// Begin begins, for clients.Main. What it returns closes everything in order.
func Begin(p *clients.Process) (end func() error, err error) {
	c := &client{Process: p}
	if err := p.Settings(&c.Settings); err != nil {
		return nil, err
	}
	if c.holders, err = history.Share(c.Holders); err != nil {
		return nil, err
	}
	opts := []redlock.Option{
		redlock.WithTTL(MaxTTL), redlock.WithMaxTTL(MaxTTL), redlock.WithClockSkew(plan.Skew),
		redlock.WithPrefix(Prefix), redlock.WithIdentity(c.Name), redlock.WithLogger(c.Logger),
	}
	if c.NoGate {
		opts = append(opts, redlock.WithoutRestartGate())
	}
	if c.quorum, err = redlock.Open(c.URLs, opts...); err != nil {
		return nil, errors.Join(err, c.holders.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for i := range workers {
		working.Go(func() { (&worker{c, c.newDice(i)}).run(ctx) })
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

// conclude waits until a quorum of servers votes, and acquires this client's part of the keys once
// more. A failure is in the journal. Weakened clients do not.
func (c *client) conclude() error {
	if c.NoGate {
		return nil // it is to be found by what it did
	}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	limit := time.Now().Add(Recovery(false) + 2*MaxTTL)
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
	c.Append(history.Record{Kind: history.Votes, At: history.Now()})
	for i, key := range Keys {
		if i%Clients != c.Number {
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
