package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// Turn is a lease's turn to write a register. It is not for concurrent use.
type Turn struct {
	reading *reading
	lease   *redlock.Lease
	step    uint64
}

// Pauses before a write that too few nodes took is repeated: 50 ms, 100 ms, ..., at most a second.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Write has a quorum of nodes take the value, in place of the value of Begin or of the Write
// before. It retries while the lease lives and ctx has not ended. After the lease has ended it
// tries once, and succeeds unless a later holder has begun.
//
// After nil all later reads find the value, until the next Write of this or of a later Turn. After
// ErrUnknown they may find it, now or later. After any error another Write may follow, for example
// of the old value. Its result then holds for both, because a later Write of a Turn replaces the
// earlier one.
//
// Errors: ErrUnknown, with the reason. If no node can have taken the value, it is the reason alone:
// ErrSuperseded, *redlock.QuorumError, ctx's own error, or an *redlock.OptionError for a value that
// is too long.
func (t *Turn) Write(ctx context.Context, value []byte) error {
	if len(value) > MaxValue {
		return &redlock.OptionError{Option: "value", Reason: fmt.Sprintf("has %d bytes, more than %d", len(value), MaxValue)}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.step++
	maybe := false // a node may have taken it
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		w, err := t.ask(ctx, string(value))
		maybe = maybe || err != nil || w.maybe
		switch {
		case err == nil && w.taken >= t.reading.q.Need():
			return nil
		case err != nil:
		case w.refused > t.reading.q.Nodes()-t.reading.q.Need(), w.refused > 0 && t.lease.Err() != nil:
			err = ErrSuperseded
		case t.lease.Err() != nil:
			err = w.err
		default:
			if err = t.wait(ctx, pause); err == nil {
				continue
			}
		}
		if maybe {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return err
	}
}

// Change reads the register under the lease, writes the value that to returns for the state, and
// releases the lease. If to fails, nothing is written and its error is returned. Other errors are
// those of Begin and Write.
func (r Register) Change(ctx context.Context, l *redlock.Lease, to func(State) ([]byte, error)) error {
	defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
	turn, states, err := r.Begin(ctx, l)
	if err != nil {
		return err
	}
	value, err := to(states[0])
	if err != nil {
		return err
	}
	return turn.Write(ctx, value)
}

// wait waits before another round, until the pause, the lease or ctx ends. It returns ctx's error.
func (t *Turn) wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
	case <-t.lease.Context().Done():
	case <-ctx.Done():
	}
	return ctx.Err()
}

// writing is the result of one round of a write.
type writing struct {
	taken, refused int
	maybe          bool // a node has taken the value, or may have
	err            *redlock.QuorumError
}

// ask asks all nodes to take a value, in one round.
func (t *Turn) ask(ctx context.Context, value string) (w writing, err error) {
	rd := t.reading
	q, reg, began := rd.q, rd.registers[0], rd.q.Now()
	rd.hear(len(rd.registers), rd.late()) // to restore also a node that answered late that it does not know
	outcome := func(answers []*bridge.Answer) (w writing) {
		w.err = &redlock.QuorumError{Op: opWrite, Key: reg.key, Need: q.Need(), Nodes: q.Nodes()}
		for node, a := range answers {
			var v view
			if len(a.Texts) == 2 {
				v = parseView(a.Texts[0], a.Texts[1])
			}
			err := a.Err
			switch intime := a.At-began <= roundLimit(q); {
			case v.says == takes && intime:
				w.taken, w.maybe = w.taken+1, true
				continue
			case v.says == refused:
				w.refused++
				continue
			case v.says == takes:
				w.maybe, err = true, redlock.ErrTimeout
			case v.says == unknown:
				err = errUnknowing{}
			case v.says == version:
				err = v.why
			case a.Texts != nil:
				w.maybe, err = true, errNoAnswer
			default:
				w.maybe = w.maybe || !a.Undone
			}
			w.err.Errs = append(w.err.Errs, nodeError(q, node, opWrite, err)...)
		}
		w.err.Succeeded = w.taken
		return w
	}
	answers, err := q.Ask(ctx, &bridge.Question{
		Op: opWrite, Key: reg.key,
		Call: func(node int) *bridge.Call {
			restores := ""
			if has := &rd.views[0][node]; has.says == unknown {
				restores = has.process
			}
			return &bridge.Call{Script: writeScript, Keys: rd.names[:1], Args: []string{
				decimal(rd.ballot), decimal(t.step), value, milliseconds(reg.keep), restores,
			}}
		},
		Decided: func(answers []*bridge.Answer) bool {
			w := outcome(answers)
			return w.taken >= q.Need() || w.refused > q.Nodes()-q.Need()
		},
	})
	if err != nil {
		return writing{}, err
	}
	return outcome(answers()), nil
}

// nodeError returns an error of a node as a list; an empty one for nil.
func nodeError(q bridge.Quorum, node int, op redlock.Op, err error) []*redlock.NodeError {
	var known *redlock.NodeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &known):
		known = &redlock.NodeError{Node: q.Address(node), Op: op, Err: err}
	}
	return []*redlock.NodeError{known}
}
