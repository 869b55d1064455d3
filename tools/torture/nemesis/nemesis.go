// Package nemesis makes the faults of a plan happen, each at its time, and writes down when they
// did.
package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Nemesis is used once. Of Holder, Clock, and Pause and Resume, only what the plan needs is set.
type Nemesis struct {
	Cluster *cluster.Cluster
	Clients *clients.Group
	Strikes *history.Writer

	Holder        func(key int) (client int)       // who holds a key, or held it last; -1 for nobody
	Clock         func(client int) time.Time       // what a client's clock shows
	Pause, Resume func(context.Context, int) error // of a job
	Job           func(job int) string             // its name

	begun time.Time
}

// turn is a place in the queue of a target.
type turn struct {
	before <-chan struct{} // closed when the faults before it are over; nil for the first
	over   chan struct{}
}

// take waits until the faults before are done with the target. The next ones wait until leave is
// called.
func (t turn) take() (leave func()) {
	if t.before != nil {
		<-t.before
	}
	return func() { close(t.over) }
}

// Run prints each fault and makes it happen in a goroutine of its own, when its time has come. It
// returns when all have been put right, which is soon after ctx has ended. The first error ends it.
func (n *Nemesis) Run(ctx context.Context, out io.Writer, faults []plan.Fault) error {
	n.begun = time.Now()
	return schedule(ctx, out, faults, n.inject)
}

func schedule(ctx context.Context, out io.Writer, faults []plan.Fault, inject func(context.Context, plan.Fault, []turn) error) error {
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
		if !clients.Sleep(ctx, time.Until(begun.Add(f.At))) {
			break
		}
		fmt.Fprintln(out, f)
		var turns []turn
		for _, target := range f.Targets() {
			t := turn{before: last[target], over: make(chan struct{})}
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

// inject makes a fault happen, when its turn comes, and puts it right when it is over or ctx ends.
func (n *Nemesis) inject(ctx context.Context, f plan.Fault, turns []turn) error {
	if f.Kind == plan.Deploy {
		return n.deploy(ctx, turns)
	}
	for _, t := range turns {
		defer t.take()()
	}
	strike := history.Strike{Kind: f.Kind, Server: -1}
	switch {
	case f.Kind == plan.Blackout:
		return n.note(ctx, f, strike, func() error { n.Clients.KillAll(); return nil }, n.Clients.StartAll)
	case f.Kind == plan.Pause:
		return n.pause(ctx, f, strike)
	case f.Kind.OnHolder(), f.Kind.OnOne():
		return n.client(ctx, f, strike)
	}
	switch f.Kind {
	case plan.ClockForward:
		strike.Jump = f.Amount
	case plan.ClockBack:
		strike.Jump = -f.Amount
	}
	return n.note(ctx, f, strike, func() error { return n.Cluster.Strike(f) }, func() error { return n.Cluster.Heal(f) })
}

// note makes a fault happen, puts it right when it is over, and keeps when that was, of each server.
func (n *Nemesis) note(ctx context.Context, f plan.Fault, s history.Strike, do, heal func() error) error {
	s.From = history.Now()
	err := do()
	s.Done = history.Now()
	if err == nil {
		n.wait(ctx, f)
		s.Heal = history.Now()
		err = heal()
	}
	s.To = history.Now()
	for _, s.Server = range f.Servers {
		err = errors.Join(err, n.Strikes.Append(s))
	}
	if len(f.Servers) == 0 {
		err = errors.Join(err, n.Strikes.Append(s))
	}
	return err
}

// wait waits until a fault is to be put right.
func (n *Nemesis) wait(ctx context.Context, f plan.Fault) {
	clients.Sleep(ctx, time.Until(n.begun.Add(f.At+f.For)))
}

// client strikes one client, whose turn it is.
func (n *Nemesis) client(ctx context.Context, f plan.Fault, s history.Strike) error {
	number := f.Client
	if f.Kind.OnHolder() {
		if number = n.Holder(f.Key); number < 0 {
			return n.Strikes.Append(s)
		}
	}
	if f.Kind == plan.RollAtTick {
		clients.Sleep(ctx, n.untilTick(f))
	}
	s.Life, s.From = n.Clients.Life(number), history.Now()
	var err error
	switch f.Kind {
	case plan.Kill, plan.KillHolder:
		if !n.Clients.Kill(number) {
			s.Life = ""
		}
		n.wait(ctx, f)
		err = n.Clients.Start(number)
	case plan.Freeze, plan.FreezeHolder:
		struck := n.Clients.Freeze(number)
		n.wait(ctx, f)
		if struck {
			n.Clients.Thaw(number)
		} else {
			s.Life = ""
		}
	default:
		if err = n.Clients.Stop(number); err == nil {
			err = n.Clients.Start(number)
		}
	}
	s.To = history.Now()
	return errors.Join(err, n.Strikes.Append(s))
}

// untilTick is how long it is until the first beat of the jobs, by a replica's clock, that the
// fault can still be timed to, and the fault's offset from it.
func (n *Nemesis) untilTick(f plan.Fault) time.Duration {
	now := n.Clock(f.Client)
	at := now.Truncate(plan.Beat).Add(f.Amount)
	for at.Before(now) {
		at = at.Add(plan.Beat)
	}
	return at.Sub(now)
}

// deploy rolls all clients, each a moment after the one before, and waits for none of them
// meanwhile.
func (n *Nemesis) deploy(ctx context.Context, turns []turn) error {
	errs := make([]error, len(turns))
	var all sync.WaitGroup
	strike := history.Strike{Kind: plan.Deploy, Server: -1, From: history.Now()}
	for number, t := range turns {
		all.Go(func() {
			defer t.take()()
			clients.Sleep(ctx, plan.DeployTakes*time.Duration(number)/time.Duration(len(turns)))
			errs[number] = n.client(ctx, plan.Fault{Kind: plan.Roll, Client: number}, history.Strike{Kind: plan.Roll, Server: -1})
		})
	}
	all.Wait()
	strike.To = history.Now()
	return errors.Join(append(errs, n.Strikes.Append(strike))...)
}

// pause pauses a job and resumes it, which is tried again: a pause that failed may stand.
func (n *Nemesis) pause(ctx context.Context, f plan.Fault, s history.Strike) error {
	const tries, again, patience = 10, 500 * time.Millisecond, 10 * time.Second
	call := func(do func(context.Context, int) error) error {
		within, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return do(within, f.Key)
	}
	s.Job, s.From = n.Job(f.Key), history.Now()
	if call(n.Pause) == nil {
		s.Done = history.Now()
	}
	n.wait(ctx, f)
	s.Heal = history.Now()
	err := call(n.Resume)
	for i := 1; err != nil && i < tries; i++ {
		clients.Sleep(context.Background(), again)
		err = call(n.Resume)
	}
	s.To = history.Now()
	return errors.Join(err, n.Strikes.Append(s))
}
