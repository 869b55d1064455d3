package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
)

// holding is a lease and what the journal says of it. It belongs to one goroutine.
type holding struct {
	c     *client
	lease *redlock.Lease
	id    string
}

// acquire acquires a key in one of the ways: "try", "wait" or "probe". The holding is nil if that failed; the error
// is the journal's.
func (c *client) acquire(ctx context.Context, key Key, way string) (*holding, error) {
	id := fmt.Sprintf("%s/%d", c.Name, c.attempts.Add(1))
	err := c.journal.Append(journal.Record{Kind: journal.Want, At: journal.Now(), Lease: id, Key: key.Name, TTL: key.TTL, Text: way})
	if err != nil {
		return nil, err
	}
	acquire := c.quorum.Acquire
	if way == "try" {
		acquire = c.quorum.TryAcquire
	}
	lease, failure := acquire(ctx, key.Name, redlock.WithTTL(key.TTL))
	at := journal.Now()
	if failure != nil {
		return nil, c.journal.Append(journal.Record{Kind: journal.Fail, At: at, Lease: id, Text: redlock.ErrorType(failure)})
	}
	h := &holding{c: c, lease: lease, id: id}
	return h, c.journal.Append(journal.Record{
		Kind: journal.Grant, At: at, Lease: id, Token: lease.FencingToken(), Deadline: h.deadline(),
	})
}

// deadline is the lease's deadline on the journal's clock. It is never later than the true one, and by chance earlier
// by as long as it takes to read three clocks.
func (h *holding) deadline() journal.Instant {
	const quick, tries = 50 * time.Microsecond, 10
	var best journal.Instant
	for range tries {
		before := journal.Now()
		left := time.Until(h.lease.Deadline())
		best = max(best, before.Add(left))
		if journal.Now().Sub(before) < quick {
			break
		}
	}
	return best
}

// look asks the lease whether it is valid. Its deadline is read after that: it only ever moves away.
func (h *holding) look() error {
	at := journal.Now()
	if h.lease.Err() != nil {
		return nil
	}
	return h.c.journal.Append(journal.Record{Kind: journal.Valid, At: at, Lease: h.id, Deadline: h.deadline()})
}

// lost notes that the lease's context ended by itself.
func (h *holding) lost() error {
	r := journal.Record{Kind: journal.Lost, At: journal.Now(), Lease: h.id, Text: "other"}
	var why *redlock.LostError
	if errors.As(context.Cause(h.lease.Context()), &why) {
		r.Text = string(why.Reason)
	}
	return h.c.journal.Append(r)
}

// release gives the lease back.
func (h *holding) release(ctx context.Context) error {
	if err := h.c.journal.Append(journal.Record{Kind: journal.Release, At: journal.Now(), Lease: h.id}); err != nil {
		return err
	}
	failure := h.lease.Release(ctx)
	return h.c.journal.Append(journal.Record{
		Kind: journal.Released, At: journal.Now(), Lease: h.id, Text: redlock.ErrorType(failure),
	})
}
