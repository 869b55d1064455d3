// Package leases is the workload with leases: a client process takes leases, holds them, works with
// them and gives them back or not, and keeps a journal of it.
package leases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// What all clients agree on.
const (
	Prefix = "leases"

	workers = 3 // leases that each holds or wants at a time
	// grace is how much longer than its TTL a key may take to be acquired once the faults are over.
	grace = 2 * time.Second
	// StopPatience is how long a client may take to stop in order, what it does last included.
	StopPatience = 30 * time.Second
)

// Settings tell a client what to do.
type Settings struct {
	URLs    []string      `json:"urls"`
	Trusted string        `json:"trusted"` // the file of certificates that it trusts
	Holders string        `json:"holders"` // the journal of who holds what, of all clients
	Clients int           `json:"clients"` // how many there are; one with a greater number has another list of nodes
	Seed    uint64        `json:"seed"`    // of this life
	Ahead   time.Duration `json:"ahead"`   // of its wall clock
}

// Key is a key and the TTL of its leases.
type Key struct {
	Name string
	TTL  time.Duration
}

// Keys are those that all clients want. The TTLs are short, so that much happens.
var Keys = [plan.Keys]Key{{"a", time.Second}, {"b", 1500 * time.Millisecond}, {"c", plan.LeaderTTL}, {"d", time.Second}}

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
	if c.holders, err = history.Create(c.Holders); err != nil {
		return nil, err
	}
	clock.Wall = func() time.Time { return time.Now().Add(c.Ahead) }
	// As a service and the command have it.
	for name, value := range map[string]string{"TENURE_NODES": strings.Join(c.URLs, ","), "TENURE_TLS_CA": c.Trusted, "TENURE_PREFIX": Prefix} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	c.quorum, err = redlock.FromEnv(redlock.WithTTL(plan.LeaderTTL), redlock.WithMaxTTL(plan.LeaderTTL), redlock.WithClockSkew(plan.Skew),
		redlock.WithIdentity(c.Name), redlock.WithLogger(c.Logger))
	if err != nil {
		return nil, errors.Join(err, c.holders.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for i := range workers {
		working.Go(func() { (&worker{c, plan.NewDice(c.Seed, uint64(i))}).run(ctx) })
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
// more. A failure is in the journal.
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
