package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// holding is a lease and what the journal says of it. It belongs to one goroutine.
type holding struct {
	c     *client
	lease *redlock.Lease
	id    string
}

// next names the next acquisition, or another call that the journal is to tell of.
func (c *client) next() string { return fmt.Sprintf("%s/%d", c.Name, c.calls.Add(1)) }

// acquire acquires a key in one of the ways: "try", "wait" or "probe". The holding is nil if that
// failed.
func (c *client) acquire(ctx context.Context, key Key, way string) *holding {
	return c.ask(ctx, record.Record{Key: key.Name, TTL: key.TTL, Text: way})
}

// acquireTick acquires a tick if that is free.
func (c *client) acquireTick(ctx context.Context, key Key, tick, due time.Time) *holding {
	return c.ask(ctx, record.Record{Key: key.Name, TTL: key.TTL, Text: "tick", Tick: tick.UnixMilli(), Due: due.UnixMilli()},
		redlock.WithTick(tick, redlock.AtMostOnce, keepTicks), redlock.WithDue(due))
}

// ask acquires what the record says.
func (c *client) ask(ctx context.Context, want record.Record, opts ...redlock.LeaseOption) *holding {
	id := c.next()
	acquire := c.quorum.Acquire
	if want.Text == "try" || want.Text == "tick" {
		acquire = c.quorum.TryAcquire
	}
	want.Kind, want.Lease, want.At = record.Want, id, history.Now()
	c.Append(want)
	lease, err := acquire(ctx, want.Key, append(opts, redlock.WithTTL(want.TTL))...)
	at := history.Now()
	if err != nil {
		c.Append(record.Record{Kind: record.Fail, At: at, Lease: id, Text: redlock.ErrorType(err)})
		return nil
	}
	h := &holding{c: c, lease: lease, id: id}
	c.Append(record.Record{Kind: record.Grant, At: at, Lease: id, Token: lease.FencingToken(), Deadline: h.deadline()})
	return h
}

// deadline is the lease's deadline on the journal's clock. It is never later than the true one, and
// by chance earlier by as long as it takes to read three clocks.
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

// look asks the lease whether it is valid. Its deadline is read after that: it only ever moves
// away.
func (h *holding) look() {
	at := history.Now()
	if h.lease.Err() == nil {
		h.c.Append(record.Record{Kind: record.Valid, At: at, Lease: h.id, Deadline: h.deadline()})
	}
}

// lost notes that the lease's context ended by itself.
func (h *holding) lost() {
	r := record.Record{Kind: record.Lost, At: history.Now(), Lease: h.id, Text: "other"}
	var why *redlock.LostError
	if errors.As(context.Cause(h.lease.Context()), &why) {
		r.Text = string(why.Reason)
	}
	h.c.Append(r)
}

// release gives the lease back.
func (h *holding) release(ctx context.Context) { h.finish(ctx, h.lease.Release) }

// complete does that too, and says that the tick is done.
func (h *holding) complete(ctx context.Context) { h.finish(ctx, h.lease.Complete) }

func (h *holding) finish(ctx context.Context, finish func(context.Context) error) {
	h.c.Append(record.Record{Kind: record.Release, At: history.Now(), Lease: h.id})
	err := finish(ctx)
	h.c.Append(record.Record{Kind: record.Released, At: history.Now(), Lease: h.id, Text: redlock.ErrorType(err)})
}
