package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// ProbeGrace is how much longer than its TTL a key may take to be acquired once the faults are
// over.
const ProbeGrace = 2 * time.Second

// client is one life of a client.
type client struct {
	*clients.Process
	Settings
	quorum *redlock.Quorum
	calls  atomic.Int64
}

// Begin begins, for clients.Main. What it returns closes everything in order.
func Begin(p *clients.Process) (end func() error, err error) {
	c := &client{Process: p}
	if err := p.Settings(&c.Settings); err != nil {
		return nil, err
	}
	if c.quorum, err = c.open(c.Name, c.Logger); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	failed := make(chan error, c.Workers)
	rest := sync.OnceValue(func() error {
		cancel()
		working.Wait()
		close(failed)
		return <-failed // nil if none has
	})
	p.Handle(Settle, func([]string) error { return errors.Join(rest(), c.settle()) })
	p.Handle(Probe, c.probe)
	p.Handle(Resume, c.resumeAll)
	p.Handle(Tick, c.probeTicks)
	end = func() error { return errors.Join(rest(), c.quorum.Close()) }
	for i := range c.Workers {
		w, err := c.newWorker(i)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		working.Go(func() {
			defer w.conn.Close()
			if err := w.run(ctx); err != nil {
				failed <- err
			}
		})
	}
	for i, key := range c.Ticks {
		t := &ticker{client: c, dice: c.newDice(c.Workers + i), key: key}
		working.Go(func() { t.run(ctx) })
	}
	if c.Operator {
		o := &operator{client: c, dice: c.newDice(c.Workers + len(c.Ticks))}
		working.Go(func() { o.run(ctx) })
	}
	return end, nil
}

// settle waits until a quorum of servers votes. Whoever waits for the answer knows how long that
// may take.
func (c *client) settle() error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for ; ; <-look.C {
		votes := 0
		for _, n := range c.quorum.Nodes(context.Background()) {
			if n.Votes {
				votes++
			}
		}
		if votes > len(c.URLs)/2 {
			c.Append(record.Record{Kind: record.Votes, At: history.Now()})
			return nil
		}
	}
}

// probe acquires and releases keys, one after the other. A failure is in the journal.
func (c *client) probe(names []string) error {
	for _, key := range c.Keys {
		if !slices.Contains(names, key.Name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), key.TTL+ProbeGrace)
		if h := c.acquire(ctx, key, "probe"); h != nil {
			h.release(ctx)
		}
		cancel()
	}
	return nil
}
