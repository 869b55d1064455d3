// Package pause keeps the pauses of jobs: a register for each job, and one for all jobs of a
// prefix. Operators write them, schedulers read them.
//
// A tick that is due before the end of a pause is left out, and is not run later. Once Set has
// returned nil no such tick is begun any more, by no replica: a quorum of nodes has the pause, a
// scheduler begins a run at most Fresh after it sent a read that found none, and Set waits for as
// long.
package pause

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	// Fresh is for how long a read of a pause is good enough to begin a run, by the monotonic
	// clock. It covers the 350 ms by which a scheduler of few jobs asks for a tick ahead of its
	// time; one of more than 150 asks earlier, and reads again.
	Fresh = 400 * time.Millisecond
	// MaxText bounds who pauses and why, in bytes each.
	MaxText = 256
	// kept is for how long a pause is remembered after its end: longer than any tick may be late.
	kept = 400 * 24 * time.Hour
	// otherWithin is for how long another one is waited for who pauses or resumes the same.
	otherWithin = 10 * time.Second
	// forever is for how long one without an end is.
	forever = 100 * 365 * 24 * time.Hour
)

// Pause is a pause, or how the last one ended. The zero Pause is none.
type Pause struct {
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"` // ticks due before it are left out; zero for all
	By      string    `json:"by,omitempty"`   // who paused, or resumed
	Why     string    `json:"why,omitempty"`
	Resumed bool      `json:"resumed,omitempty"` // Until is when it was ended

	Now    time.Time `json:"-"` // by the nodes' clocks, when it was read
	Nodes  int       `json:"-"` // that are known to have it
	Ballot uint64    `json:"-"` // the fencing token that it was written with; later ones are larger
}

// never is later than any tick.
var never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Floor is the time up to which ticks are left out; zero for none.
func (p Pause) Floor() time.Time {
	switch {
	case p.Since.IsZero():
		return time.Time{}
	case p.Until.IsZero():
		return never
	}
	return p.Until.Add(-1)
}

// Active reports whether a tick that is due now is left out.
func (p Pause) Active(now time.Time) bool { return !p.Floor().Before(now) }

// Stands reports whether ticks that were due when it was read are left out.
func (p Pause) Stands() bool { return !p.Resumed && p.Active(p.Now) }

// Of returns the register of the pause of a job, by the key of its lease; of an empty key that of
// the pause of all jobs.
func Of(q *redlock.Quorum, key string) register.Register { return register.Of(q, name(key), kept) }

func name(key string) string {
	if key == "" {
		return "pause"
	}
	return "pause/" + key
}

// Parse reads the value of such a register.
func Parse(s register.State) (Pause, error) {
	p := Pause{Now: s.Now, Nodes: s.Nodes, Ballot: s.Ballot}
	if len(s.Value) == 0 {
		return p, nil
	}
	if s.Value[0] != version {
		return p, s.Unreadable(fmt.Errorf("pause: %.20q is no pause of version %c", s.Value, version))
	}
	if err := json.Unmarshal(s.Value[1:], &p); err != nil {
		return Pause{}, s.Unreadable(fmt.Errorf("pause: %w", err))
	}
	return p, nil
}

// version is the first byte of a value.
const version = '1'

// Read reads the pauses of jobs, by the keys of their leases. Errors are those of register.Read.
func Read(ctx context.Context, q *redlock.Quorum, keys ...string) ([]Pause, error) {
	registers := make([]register.Register, len(keys))
	for i, key := range keys {
		registers[i] = Of(q, key)
	}
	states, err := registers[0].Read(ctx, registers[1:]...)
	if err != nil {
		return nil, err
	}
	pauses := make([]Pause, len(keys))
	for i, s := range states {
		if pauses[i], err = Parse(s); err != nil {
			return nil, err
		}
	}
	return pauses, nil
}

// Set pauses a job, or all: p says until when, by whom and why. It returns the pause that stands,
// with the nodes' time as its beginning, and the one before. It waits until no run can begin any
// more that has not seen it; if ctx ends in that time the pause stands, and the error is ctx's.
//
// Errors: ErrPassed; those of Quorum.TryAcquire and of register; register.ErrUnknown says that the
// pause may stand or not.
func Set(ctx context.Context, q *redlock.Quorum, key string, p Pause) (is, was Pause, err error) {
	keep := forever
	if !p.Until.IsZero() {
		keep = min(kept+min(max(0, time.Until(p.Until)), forever), forever)
	}
	is, was, err = change(ctx, register.Of(q, name(key), keep), q, key, func(_ Pause, now time.Time) (Pause, error) {
		if p.Since, p.Resumed = now, false; !p.Active(now) {
			return p, ErrPassed
		}
		return p, nil
	})
	if err != nil {
		return is, was, err
	}
	select {
	case <-time.After(Fresh):
		return is, was, nil
	case <-ctx.Done():
		return is, was, context.Cause(ctx)
	}
}

// ErrPassed means that a pause would have no tick left out: by the nodes' clocks its end has
// passed.
var ErrPassed = errors.New("pause: its end has passed")

// Resume ends a pause: ticks that are due from now on are run. It writes in any case, because that
// is what refuses a pause which is still on its way. It returns what stands and what was before:
// if that was not active, there was nothing to end.
func Resume(ctx context.Context, q *redlock.Quorum, key, by, why string) (is, was Pause, err error) {
	return change(ctx, Of(q, key), q, key, func(was Pause, now time.Time) (Pause, error) {
		if !was.Active(now) {
			return was, nil
		}
		return Pause{Since: was.Since, Until: now, By: by, Why: why, Resumed: true}, nil
	})
}

// change writes what a pause becomes, under a lease of its own.
func change(ctx context.Context, r register.Register, q *redlock.Quorum, key string, to func(was Pause, now time.Time) (Pause, error)) (is, was Pause, err error) {
	free := redlock.WithMinHold(0) // the next one need not wait
	lease, err := q.TryAcquire(ctx, name(key), free)
	if errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrSplit) {
		within, cancel := context.WithTimeout(ctx, otherWithin)
		lease, err = q.Acquire(within, name(key), free)
		cancel()
	}
	if err != nil {
		return is, was, err
	}
	err = r.Change(ctx, lease, func(s register.State) (value []byte, err error) {
		if was, err = Parse(s); err != nil {
			return nil, err
		}
		if is, err = to(was, s.Now.UTC().Truncate(time.Millisecond)); err != nil {
			return nil, err
		}
		is.Ballot = lease.FencingToken()
		if is.Since.IsZero() {
			return nil, nil
		}
		text, err := json.Marshal(is)
		return append([]byte{version}, text...), err
	})
	if err != nil {
		return Pause{}, was, err
	}
	return is, was, nil
}
