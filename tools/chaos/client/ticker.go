package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

const (
	// tickEvery is how far the ticks of a key are apart.
	tickEvery = 50 * time.Millisecond
	// keepTicks is for how long servers remember ticks: longer than a run.
	keepTicks = 24 * time.Hour
	// lateness is how late a tick is granted at most.
	lateness = 20 * time.Second
	// tickPatience is for how long a tick is asked for.
	tickPatience = 2 * time.Second
	// writePatience is how long it may take to write that a tick is over, or was not begun.
	writePatience = time.Second
	// TickGrace is how long it may take until a tick of a key is granted once everything is
	// resumed: a pause ends by the servers' clocks, which may be ahead.
	TickGrace = 5 * time.Second
)

// What keeps a client from a tick besides the errors of redlock and of registers.
var (
	errDone   = refusal("done")   // all ticks that are due are settled
	errPaused = refusal("paused") // all others are paused
	errStale  = refusal("stale")  // the pauses were asked for too long ago
)

// refusal is an error with its type.
type refusal string

func (r refusal) Error() string     { return "client: the tick is refused: " + string(r) }
func (r refusal) ErrorType() string { return string(r) }

// timetable is when ticks are due: always.
type timetable struct{}

// Next implements joblog.Table.
func (timetable) Next(after time.Time) time.Time { return after.Truncate(tickEvery).Add(tickEvery) }

// From implements joblog.Table.
func (timetable) From() time.Time { return time.Time{} }

// ticker asks for ticks of a key, as a scheduler does: others ask for the same.
type ticker struct {
	*client
	dice
	key Key
}

// run works until ctx ends.
func (t *ticker) run(ctx context.Context) {
	register.Keep(ctx, t.quorum, t.ticks(t.key.Name), pause.Of(t.quorum, t.key.Name), pause.Of(t.quorum, ""))
	for clients.Sleep(ctx, t.between(0, 6*tickEvery)) {
		policy := joblog.Policy{CatchUp: joblog.CatchUpAll, Window: t.between(tickEvery, lateness)}
		if t.IntN(8) == 0 {
			policy = joblog.Policy{} // the newest, and those before it are settled
		}
		patience, cancel := context.WithTimeout(ctx, tickPatience)
		h := t.acquireTick(patience, t.key, policy)
		cancel()
		if h != nil {
			t.hold(ctx, h)
		}
	}
}

// hold runs the tick: mostly for a moment, and now and then for so long that the lease is extended.
func (t *ticker) hold(ctx context.Context, h *holding) {
	d := t.between(0, 20*time.Millisecond)
	if t.IntN(20) == 0 {
		d = t.between(t.key.TTL/4, t.key.TTL)
	}
	over := time.NewTimer(d)
	defer over.Stop()
	h.look()
	select {
	case <-over.C:
		h.look()
	case <-ctx.Done():
	case <-h.lease.Context().Done():
		h.lost()
	}
	h.complete(ctx)
}

// ticks is the register that says how far a key has come.
func (c *client) ticks(key string) register.Register { return register.Of(c.quorum, key, keepTicks) }

// grant is a tick that is granted to a holding.
type grant struct {
	turn   *register.Turn
	record joblog.Record
	policy joblog.Policy
	at     history.Instant // when it was
}

// acquireTick acquires the key if it is free, and has the log grant the tick that it owes.
func (c *client) acquireTick(ctx context.Context, key Key, policy joblog.Policy) *holding {
	h, deadline := c.ask(ctx, record.Record{Key: key.Name, TTL: key.TTL, Text: "tick"})
	if h == nil {
		return nil
	}
	err := h.begin(ctx, key.Name, policy)
	if err != nil {
		c.fail(h.id, err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
		defer cancel()
		_ = h.lease.Release(ctx)
		return nil
	}
	c.Append(record.Record{
		Kind: record.Grant, At: h.tick.at, Lease: h.id, Token: h.lease.FencingToken(), Deadline: deadline,
		Tick: h.tick.record.Run.Tick.UnixMilli(),
	})
	return h
}

// begin reads the log under the lease and then has a quorum take the grant, as a scheduler does. A
// tick whose grant was not taken, or not begun in time, is given back.
func (h *holding) begin(ctx context.Context, key string, policy joblog.Policy) error {
	own, all := pause.Of(h.c.quorum, key), pause.Of(h.c.quorum, "")
	sent := history.Now()
	turn, states, err := h.c.ticks(key).Begin(ctx, h.lease, own, all)
	if err != nil {
		return err
	}
	before, err := joblog.Parse(states[0].Value)
	if err != nil {
		return err
	}
	if policy.Floor, err = floor(states[1:]); err != nil {
		return err
	}
	now := time.Now()
	v := joblog.Owed(before, timetable{}, policy, now)
	if !v.Due {
		if slices.ContainsFunc(v.Left, func(l joblog.Left) bool { return l.Reason == joblog.Paused }) {
			return errPaused
		}
		return errDone
	}
	h.tick = &grant{turn: turn, policy: policy}
	h.tick.record = joblog.Begin(before, timetable{}, policy, v, joblog.Grant{Token: h.lease.FencingToken(), By: h.c.Name, At: now})
	if err = h.tick.write(ctx, h.tick.record); err == nil {
		err = h.stillRuns(ctx, sent, v.Tick, own, all)
	}
	if err == nil {
		err = h.lease.Err()
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
		defer cancel()
		_ = h.tick.write(ctx, before) // the grant may be in force
	}
	return err
}

// stillRuns reads the pauses again if they were asked for too long ago. What it leaves in the grant
// is a time at which that was not so.
func (h *holding) stillRuns(ctx context.Context, sent history.Instant, tick time.Time, own, all register.Register) error {
	const tries = 3
	for range tries {
		if h.tick.at = history.Now(); h.tick.at.Sub(sent) <= pause.Fresh {
			return nil
		}
		sent = history.Now()
		states, err := own.Read(ctx, all)
		if err != nil {
			return err
		}
		end, err := floor(states)
		if err != nil {
			return err
		}
		if !tick.After(end) {
			return errPaused
		}
	}
	return errStale
}

// floor is the later end of two pauses.
func floor(states []register.State) (end time.Time, err error) {
	for _, s := range states {
		p, err := pause.Parse(s)
		if err != nil {
			return end, err
		}
		if p.Floor().After(end) {
			end = p.Floor()
		}
	}
	return end, nil
}

func (g *grant) write(ctx context.Context, r joblog.Record) error {
	value, err := r.Encode()
	if err != nil {
		return err
	}
	return g.turn.Write(ctx, value)
}

// complete says that the tick is done, and gives the lease back.
func (h *holding) complete(ctx context.Context) {
	h.finish(ctx, func(ctx context.Context) error {
		now := time.Now()
		done, _ := joblog.End(h.tick.record, timetable{}, h.tick.policy, joblog.Ending{
			Outcome: joblog.Succeeded, At: now, Took: history.Now().Sub(h.tick.at),
		})
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
		defer cancel()
		return errors.Join(h.tick.write(within, done), h.lease.Release(ctx))
	})
}

// probeTicks has a tick of each key granted, one after the other. A failure is in the journal.
func (c *client) probeTicks(names []string) error {
	for _, key := range c.Ticks {
		if !slices.Contains(names, key.Name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), TickGrace)
		var h *holding
		for h == nil && clients.Sleep(ctx, tickEvery) {
			h = c.acquireTick(ctx, key, joblog.Policy{})
		}
		if h != nil {
			h.complete(ctx)
		}
		cancel()
	}
	return nil
}
