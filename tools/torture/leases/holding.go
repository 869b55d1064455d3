package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// holding is a lease and what the journal says of it. It belongs to one goroutine.
type holding struct {
	c     *client
	lease *redlock.Lease
	id    string
}

const anotherList = string(redlock.ConditionAnotherList)

// acquire acquires a key in one of the ways: "try", "wait", "probe" or history.OtherList. The
// holding is nil if that failed.
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
	_ = c.holders.Append(grant) // it only finds whom to strike
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

// release gives the lease back. Whether nodes hear of it shows in whom they grant it next.
func (h *holding) release(ctx context.Context) {
	h.c.Append(history.Record{Kind: history.Release, Lease: h.id})
	_ = h.lease.Release(ctx)
}
