package client

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

const (
	// markPatience is how long a pause or its end may take.
	markPatience = 8 * time.Second
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
		key := redlock.AllKeys
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
	keys := []string{redlock.AllKeys}
	for _, key := range c.Ticks {
		keys = append(keys, key.Name)
	}
	return keys
}

// pause pauses a key.
func (c *client) pause(ctx context.Context, key string, until time.Time) {
	floor := record.Forever
	if !until.IsZero() {
		floor = until.UnixMilli()
	}
	r := record.Record{Kind: record.Pause, Lease: c.next(), Key: key, Floor: floor}
	_ = c.mark(r, func() (redlock.Pause, error) {
		return c.quorum.Pause(ctx, key, redlock.PauseOptions{Until: until, By: c.Name})
	})
}

// resume ends a pause.
func (c *client) resume(ctx context.Context, key string) error {
	r := record.Record{Kind: record.Resume, Lease: c.next(), Key: key}
	return c.mark(r, func() (redlock.Pause, error) {
		return c.quorum.Resume(ctx, key, redlock.PauseOptions{By: c.Name})
	})
}

// mark does either, and notes what came of it.
func (c *client) mark(begin record.Record, do func() (redlock.Pause, error)) error {
	begin.At = history.Now()
	c.Append(begin)
	p, err := do()
	r := record.Record{Kind: record.Marked, At: history.Now(), Lease: begin.Lease, Text: redlock.ErrorType(err)}
	if errors.Is(err, admin.ErrUnknown) {
		r.Text = record.Unknown
	}
	if p.Version != 0 {
		r.Token, r.Nodes, r.Floor = p.Version, p.Nodes, record.Forever
		if !p.Until.IsZero() {
			r.Floor = p.Until.UnixMilli()
		}
	}
	c.Append(r)
	return err
}

// resumeAll ends the pauses of keys. Whoever waits for the answer knows how long that may take.
func (c *client) resumeAll(names []string) error {
	for _, key := range names {
		if key == All {
			key = redlock.AllKeys
		}
		for c.resume(context.Background(), key) != nil {
			time.Sleep(again)
		}
	}
	return nil
}
