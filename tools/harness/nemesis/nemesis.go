// Package nemesis makes the faults of a plan happen, each at its time.
package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/clients"
)

// Fault is one of a plan.
type Fault interface {
	fmt.Stringer
	Begins() time.Duration // from the start
	Targets() []string     // that it strikes: it waits for the faults of these before it
}

// Turns are the places of a fault in the queues of its targets, in their order.
type Turns []Turn

// Turn is a place in a queue.
type Turn struct {
	before <-chan struct{} // closed when the faults before it are over; nil for the first
	over   chan struct{}
}

// Take waits until the faults before are done with the targets. The next ones wait until leave is
// called.
func (t Turns) Take() (leave func()) {
	for _, turn := range t {
		if turn.before != nil {
			<-turn.before
		}
	}
	return func() {
		for _, turn := range t {
			close(turn.over)
		}
	}
}

// Run prints each fault and injects it in a goroutine of its own, when its time has come. It
// returns when all have been injected and put right, which inject does soon after ctx has ended.
// The first error ends it.
func Run[F Fault](ctx context.Context, out io.Writer, faults []F, inject func(context.Context, F, Turns) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		begun   = time.Now()
		last    = make(map[string]chan struct{})
		running sync.WaitGroup
		mu      sync.Mutex
		errs    []error // guarded by mu
	)
	for _, f := range faults {
		if !clients.Sleep(ctx, time.Until(begun.Add(f.Begins()))) {
			break
		}
		fmt.Fprintln(out, f)
		var turns Turns
		for _, target := range f.Targets() {
			t := Turn{before: last[target], over: make(chan struct{})}
			last[target] = t.over
			turns = append(turns, t)
		}
		running.Go(func() {
			if err := inject(ctx, f, turns); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("fault %s: %w", f, err))
				mu.Unlock()
				cancel()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
