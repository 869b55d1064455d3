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
	at    history.Instant // when it had been acquired
	tick  *grant          // nil if it is none
}

// next names the next acquisition, or another call that the journal is to tell of.
func (c *client) next() string { return fmt.Sprintf("%s/%d", c.Name, c.calls.Add(1)) }

// acquire acquires a key in one of the ways: "try", "wait" or "probe". The holding is nil if that
// failed.
func (c *client) acquire(ctx context.Context, key Key, way string) *holding {
	h, deadline := c.ask(ctx, record.Record{Key: key.Name, TTL: key.TTL, Text: way})
	if h != nil {
		c.Append(record.Record{Kind: record.Grant, At: h.at, Lease: h.id, Token: h.lease.FencingToken(), Deadline: deadline})
	}
	return h
}

// ask acquires what the record says. That it was granted is for the caller to note.
func (c *client) ask(ctx context.Context, want record.Record) (h *holding, deadline history.Instant) {
	id := c.next()
	acquire := c.quorum.Acquire
	if want.Text == "try" || want.Text == "tick" {
		acquire = c.quorum.TryAcquire
	}
	want.Kind, want.Lease, want.At = record.Want, id, history.Now()
	c.Append(want)
	lease, err := acquire(ctx, want.Key, redlock.WithTTL(want.TTL))
	at := history.Now()
	if err != nil {
		c.fail(id, err)
		return nil, 0
	}
	h = &holding{c: c, lease: lease, id: id, at: at}
	return h, h.deadline()
}

// fail notes that nothing was granted.
func (c *client) fail(id string, err error) {
	c.Append(record.Record{Kind: record.Fail, At: history.Now(), Lease: id, Text: redlock.ErrorType(err)})
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

func (h *holding) finish(ctx context.Context, finish func(context.Context) error) {
	h.c.Append(record.Record{Kind: record.Release, At: history.Now(), Lease: h.id})
	err := finish(ctx)
	h.c.Append(record.Record{Kind: record.Released, At: history.Now(), Lease: h.id, Text: redlock.ErrorType(err)})
}
