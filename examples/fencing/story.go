package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tenure-dev/tenure/redlock"
)

// story is told on nodes and the stores of a stage, and checks each step: a step that does not go
// as told is an error.
type story struct {
	out    io.Writer
	nodes  []string
	stores []namedStore
	guard  bool // the stores compare tokens
}

// What the holders deposit. The late write would leave first + late, because it was computed before
// B's deposit.
const (
	firstDeposit = 100 // by A, in time
	lateDeposit  = 50  // by A, after B's
	nextDeposit  = 25  // by B
)

func (s *story) say(who, format string, args ...any) {
	fmt.Fprintf(s.out, "  %-8s%s\n", who, fmt.Sprintf(format, args...))
}

// tell lets A lose its lease between its last check and its write, and B write in between.
func (s *story) tell(ctx context.Context) error {
	a, err := newHolder("A", s.nodes)
	if err != nil {
		return err
	}
	defer a.quorum.Close()
	b, err := newHolder("B", s.nodes)
	if err != nil {
		return err
	}
	defer b.quorum.Close()

	late, err := s.begin(ctx, a)
	if err != nil {
		return err
	}
	defer late.abandon()
	if err := s.succeed(ctx, a, b); err != nil {
		return err
	}
	if err := s.end(ctx, late); err != nil {
		return err
	}
	if err := b.lease.Release(ctx); err != nil && !errors.Is(err, redlock.ErrLost) {
		return fmt.Errorf("fencing: holder B cannot release its lease: %w", err)
	}
	return nil
}

// lateWrite is A's second deposit, which runs in a goroutine of its own.
type lateWrite struct {
	pause    *pause
	cancel   context.CancelFunc
	done     chan struct{}
	refusals []error // one for each store; read it when done is closed
	err      error   // likewise; nothing was written
}

// abandon ends it and waits for it.
func (w *lateWrite) abandon() {
	w.cancel()
	<-w.done
}

// start lets a holder begin a deposit that is late.
func (s *story) start(ctx context.Context, a *holder) *lateWrite {
	ctx, cancel := context.WithCancel(ctx)
	w := &lateWrite{pause: newPause(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.refusals, w.err = a.depositLate(ctx, s.stores, lateDeposit, w.pause)
	}()
	return w
}

// begin is the part until A stands still.
func (s *story) begin(ctx context.Context, a *holder) (*lateWrite, error) {
	if err := a.acquire(ctx); err != nil {
		return nil, err
	}
	s.say("A", "acquires the lease: token %d", a.lease.FencingToken())
	for _, st := range s.stores {
		if err := a.deposit(ctx, st, firstDeposit); err != nil {
			return nil, fmt.Errorf("fencing: A cannot deposit (%s): %w", st.name, err)
		}
		s.say("A", "deposits %d (%s)", firstDeposit, st.name)
	}
	for {
		w := s.start(ctx, a)
		select {
		case <-w.pause.begun:
			s.say("A", "reads %d to deposit %d more, asks its lease: it is valid", firstDeposit, lateDeposit)
			s.say("A", "... and stands still before it writes")
			return w, nil
		case <-w.done:
		}
		w.cancel()
		if !errors.Is(w.err, redlock.ErrLost) {
			return nil, fmt.Errorf("fencing: A cannot prepare its second deposit: %w", w.err)
		}
		// A machine so slow that the lease ran out before A asked: nothing has been written, A is
		// the next holder.
		if err := a.acquire(ctx); err != nil {
			return nil, err
		}
		s.say("A", "lost the lease too early, and acquires it again: token %d", a.lease.FencingToken())
	}
}

// succeed is B's part.
func (s *story) succeed(ctx context.Context, a, b *holder) error {
	if err := b.acquire(ctx); err != nil {
		return err
	}
	lost := new(redlock.LostError)
	if err := a.lease.Err(); !errors.As(err, &lost) || lost.Reason != redlock.LostDeadline {
		return fmt.Errorf("fencing: B has the lease, so A's should have run out at its deadline, but it says: %v", err)
	}
	if a.lease.FencingToken() >= b.lease.FencingToken() {
		return fmt.Errorf("fencing: B's token %d is not greater than A's %d", b.lease.FencingToken(), a.lease.FencingToken())
	}
	s.say("", "(A's lease has run out)")
	s.say("B", "acquires the lease: token %d", b.lease.FencingToken())
	for _, st := range s.stores {
		if err := b.deposit(ctx, st, nextDeposit); err != nil {
			return fmt.Errorf("fencing: B cannot deposit (%s): %w", st.name, err)
		}
		s.say("B", "deposits %d (%s)", nextDeposit, st.name)
	}
	return s.expect(ctx, firstDeposit+nextDeposit)
}

// end lets A go on.
func (s *story) end(ctx context.Context, w *lateWrite) error {
	s.say("A", "goes on, with the token it has, and writes %d", firstDeposit+lateDeposit)
	close(w.pause.over)
	<-w.done
	if w.err != nil {
		return fmt.Errorf("fencing: A could not go on: %w", w.err)
	}
	for i, refusal := range w.refusals {
		name := s.stores[i].name
		switch {
		case s.guard && errors.Is(refusal, errStale):
			s.say("", "%-7s refuses: %v", name, refusal)
		case !s.guard && refusal == nil:
			s.say("", "%-7s writes it", name)
		case refusal == nil:
			return fmt.Errorf("fencing: A's late write was not refused (%s)", name)
		default:
			return fmt.Errorf("fencing: A's late write failed (%s): %w", name, refusal)
		}
	}
	if s.guard {
		s.say("A", "stops: its lease is over")
		return s.expect(ctx, firstDeposit+nextDeposit)
	}
	if err := s.expect(ctx, firstDeposit+lateDeposit); err != nil {
		return err
	}
	s.say("", "B's deposit is gone, and nobody was told")
	return nil
}

// expect fails unless this is the balance in every store.
func (s *story) expect(ctx context.Context, want int64) error {
	for _, st := range s.stores {
		balance, err := st.balance(ctx, accountID)
		if err != nil {
			return err
		}
		if balance != want {
			return fmt.Errorf("fencing: the balance should be %d and is %d (%s)", want, balance, st.name)
		}
	}
	s.say("", "balance: %d", want)
	return nil
}
