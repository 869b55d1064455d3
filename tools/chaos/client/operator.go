package client

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

const (
	// markPatience is how long a pause or its end may take.
	markPatience = 8 * time.Second
	// all names the pause of all keys.
	all = ""
	// again is after how long what failed is tried again.
	again = 200 * time.Millisecond
)

// operator pauses and resumes ticks of one key or of all, mostly for a few seconds each.
type operator struct {
	*client
	dice
}

// run works until ctx ends. The operator before it may have died in a pause, hence it may begin
// with the end of all.
func (o *operator) run(ctx context.Context) {
	if o.IntN(4) == 0 {
		for _, key := range o.marked() {
			_ = o.resume(ctx, key)
		}
	}
	for clients.Sleep(ctx, o.between(500*time.Millisecond, 3*time.Second)) {
		key := all
		if o.IntN(5) > 0 {
			key = o.Ticks[o.IntN(len(o.Ticks))].Name
		}
		var until time.Time
		if o.IntN(3) == 0 {
			until = time.Now().Add(o.between(time.Second, 6*time.Second))
		}
		limit := markPatience
		if o.IntN(10) == 0 {
			limit = o.between(0, 2*time.Second)
		}
		patience, cancel := context.WithTimeout(ctx, limit)
		o.pause(patience, key, until)
		cancel()
		hold := o.between(0, 4*time.Second)
		if o.IntN(5) == 0 {
			hold = o.between(10*time.Second, 25*time.Second) // as long as it takes to restart a quorum one after the other
		}
		if !clients.Sleep(ctx, hold) {
			return
		}
		if o.IntN(10) == 0 {
			continue // another one follows, or the same is paused once more
		}
		for range 10 {
			patience, cancel := context.WithTimeout(ctx, markPatience)
			err := o.resume(patience, key)
			cancel()
			if err == nil || !clients.Sleep(ctx, o.between(0, 2*again)) {
				break
			}
		}
	}
}

// marked are the keys that may be paused.
func (c *client) marked() []string {
	keys := []string{all}
	for _, key := range c.Ticks {
		keys = append(keys, key.Name)
	}
	return keys
}

// pause pauses a key.
func (c *client) pause(ctx context.Context, key string, until time.Time) {
	r := record.Record{Kind: record.Pause, Lease: c.next(), Key: key, Floor: millisecond(until)}
	_ = c.mark(ctx, r, func() (pause.Pause, error) {
		is, _, err := pause.Set(ctx, c.quorum, key, pause.Pause{Until: until, By: c.Name})
		return is, err
	})
}

// resume ends a pause.
func (c *client) resume(ctx context.Context, key string) error {
	r := record.Record{Kind: record.Resume, Lease: c.next(), Key: key}
	return c.mark(ctx, r, func() (pause.Pause, error) {
		is, _, err := pause.Resume(ctx, c.quorum, key, c.Name, "")
		return is, err
	})
}

// millisecond is the floor of a pause that ends then.
func millisecond(until time.Time) int64 {
	if until.IsZero() {
		return record.Forever
	}
	return until.UnixMilli()
}

// mark does either, and notes what came of it.
func (c *client) mark(ctx context.Context, begin record.Record, do func() (pause.Pause, error)) error {
	begin.At = history.Now()
	c.Append(begin)
	p, err := do()
	r := record.Record{Kind: record.Marked, At: history.Now(), Lease: begin.Lease, Text: redlock.ErrorType(err)}
	if errors.Is(err, register.ErrUnknown) {
		r.Text = record.Unknown
	}
	if p.Ballot != 0 {
		r.Token, r.Floor = p.Ballot, 0
		if !p.Since.IsZero() {
			r.Floor = millisecond(p.Until)
		}
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
		defer cancel()
		if found, err := pause.Read(within, c.quorum, begin.Key); err == nil && found[0].Ballot == p.Ballot {
			r.Nodes = found[0].Nodes
		}
	}
	c.Append(r)
	return err
}

// resumeAll ends the pauses of keys. Whoever waits for the answer knows how long that may take.
func (c *client) resumeAll(names []string) error {
	for _, key := range names {
		if key == All {
			key = all
		}
		for c.resume(context.Background(), key) != nil {
			time.Sleep(again)
		}
	}
	return nil
}
