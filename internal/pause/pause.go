// Package pause keeps the pauses of jobs: a register for each job, and one for all jobs of a
// prefix. Operators write them, schedulers read them.
//
// A tick that is due before the end of a pause is left out, and is not run later. Once Set has
// returned nil, no replica begins such a tick any more. The reason: a quorum of nodes has the
// pause, a scheduler begins a run at most Fresh after it sent a read that found no pause, and Set
// waits for Fresh after its write.
package pause

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	// Fresh is the maximum time from sending a read of the pauses to the beginning of the run, by
	// the monotonic clock. It covers the 350 ms by which a scheduler of few jobs asks for a tick
	// ahead of its time. A scheduler of more than 150 jobs asks earlier, and reads again.
	Fresh = 400 * time.Millisecond
	// MaxText bounds the name of the operator and the reason, in bytes each.
	MaxText = 256
	// kept is how long the nodes keep a pause after its end: longer than any tick may be late.
	kept = 400 * 24 * time.Hour
	// otherWithin is how long to wait for another operator who pauses or resumes the same.
	otherWithin = 10 * time.Second
	// forever is how long the nodes keep a pause without an end.
	forever = 100 * 365 * 24 * time.Hour
)

// Pause is a pause, or the end of the last one. The zero Pause means that there was none.
type Pause struct {
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"` // ticks due before it are left out; zero: all ticks
	By      string    `json:"by,omitempty"`   // the operator who paused, or resumed
	Why     string    `json:"why,omitempty"`
	Resumed bool      `json:"resumed,omitempty"` // Until is when an operator ended it

	Now    time.Time `json:"-"` // when it was read, by the nodes' clocks
	Nodes  int       `json:"-"` // nodes that are known to have it
	Ballot uint64    `json:"-"` // the fencing token of its write; later writes have larger ones
}

// never is later than any tick.
var never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Floor returns the time up to which ticks are left out; zero for none.
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

// Stands reports whether ticks that were due when the pause was read are left out.
func (p Pause) Stands() bool { return !p.Resumed && p.Active(p.Now) }

// Of returns the register of a job's pause, by the key of the job's lease. The empty key is the
// pause of all jobs.
func Of(q *redlock.Quorum, key string) register.Register { return register.Of(q, name(key), kept) }

func name(key string) string {
	if key == "" {
		return "pause"
	}
	return "pause/" + key
}

// Parse reads a pause from the state of its register.
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

// version is the first byte of a pause's value.
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
	return ParseAll(states)
}

// ParseAll reads pauses from the states of their registers.
func ParseAll(states []register.State) ([]Pause, error) {
	pauses := make([]Pause, len(states))
	for i, s := range states {
		var err error
		if pauses[i], err = Parse(s); err != nil {
			return nil, err
		}
	}
	return pauses, nil
}

// Set pauses a job, or all jobs with the empty key: p says until when, by whom and why. It returns
// the pause that stands, which begins at the nodes' time, and the pause before. It returns when no
// run can begin any more that has not seen the pause. If ctx ends while it waits for that, the
// pause stands, and the error is the cause of ctx.
//
// Errors: ErrPassed, and those of Quorum.TryAcquire and of register. After register.ErrUnknown the
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
	return is, was, clock.Sleep(ctx, Fresh)
}

// ErrPassed means that a pause would leave no tick out: its end has passed by the nodes' clocks.
var ErrPassed = errors.New("pause: its end has passed")

// Resume ends a pause: ticks that are due from now on are run. It returns the pause that stands and
// the pause before; if that was not active, there was nothing to end. Resume writes even then,
// because the write refuses the write of a Set that is still under way.
func Resume(ctx context.Context, q *redlock.Quorum, key, by, why string) (is, was Pause, err error) {
	return change(ctx, Of(q, key), q, key, func(was Pause, now time.Time) (Pause, error) {
		if !was.Active(now) {
			return was, nil
		}
		return Pause{Since: was.Since, Until: now, By: by, Why: why, Resumed: true}, nil
	})
}

// change writes the pause that to makes of the old one, under a lease of its own.
func change(ctx context.Context, r register.Register, q *redlock.Quorum, key string, to func(was Pause, now time.Time) (Pause, error)) (is, was Pause, err error) {
	free := redlock.WithMinHold(0) // the next change need not wait
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
