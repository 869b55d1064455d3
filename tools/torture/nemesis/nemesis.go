// Package nemesis makes the faults of a plan happen, each at its time, and records when they
// happened.
package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Nemesis makes the faults of one plan happen, and is used once. Holder, Clock, Job, Pause and
// Resume need to be set only if the plan has a fault that calls them.
type Nemesis struct {
	Cluster *cluster.Cluster
	Clients *clients.Group
	Version atomic.Int64 // of new client processes, from zero

	Holder        func(key int) (client int)       // the client that holds a key or held it last; -1 for none
	Clock         func(client int) time.Time       // what a client's clock shows
	Pause, Resume func(context.Context, int) error // of a job
	Job           func(job int) string             // its name

	begun   time.Time
	mu      sync.Mutex
	strikes []history.Strike // guarded by mu
}

// Run prints each fault and makes it happen at its time, in a goroutine of its own. The first error
// ends Run early. Run returns when all faults have been put right, soon after ctx ends.
func (n *Nemesis) Run(ctx context.Context, out io.Writer, faults []plan.Fault) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.begun = time.Now()
	targets := make(map[string]*sync.Mutex) // each is held while a fault goes on
	errs := make([]error, len(faults))
	var running sync.WaitGroup
	for i, f := range faults {
		if clock.Sleep(ctx, time.Until(n.begun.Add(f.At))) != nil {
			break
		}
		fmt.Fprintln(out, f)
		var turns []*sync.Mutex
		for _, target := range f.Turns() {
			if targets[target] == nil {
				targets[target] = new(sync.Mutex)
			}
			turns = append(turns, targets[target])
		}
		running.Go(func() {
			if err := n.inject(ctx, f, turns); err != nil {
				errs[i] = fmt.Errorf("fault %s: %w", f, err)
				cancel()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Strikes returns the faults that have happened.
func (n *Nemesis) Strikes() []history.Strike {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.strikes)
}

// note records that a fault has happened and is put right now.
func (n *Nemesis) note(s history.Strike) {
	s.To = history.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.strikes = append(n.strikes, s)
}

// effect returns two functions: do makes the fault happen and reports whether there was a target to
// strike, and undo puts the fault right.
func (n *Nemesis) effect(ctx context.Context, f plan.Fault) (do func() (struck bool, err error), undo func() error) {
	number := f.Targets[0]
	always := func(do func() error) func() (bool, error) { return func() (bool, error) { return true, do() } }
	start, stop := func() error { return n.Clients.Start(number) }, func() error { return n.Clients.Stop(number) }
	switch f.Kind {
	case plan.Kill, plan.KillHolder:
		return func() (bool, error) { return n.Clients.Kill(number), nil }, start
	case plan.Freeze, plan.FreezeHolder:
		return func() (bool, error) { return n.Clients.Freeze(number), nil }, func() error { n.Clients.Thaw(number); return nil }
	case plan.Roll, plan.RollAtTick:
		return always(stop), start
	case plan.OtherList:
		number = n.Clients.Count // the number of the spare client
		return always(start), stop
	case plan.Blackout:
		return always(func() error { n.Clients.KillAll(); return nil }), n.Clients.StartAll
	case plan.Deploy:
		return always(func() error { return n.deploy(ctx, f.Targets) }), func() error { return nil }
	case plan.TakenBack:
		return always(func() error { return n.rollTwo(ctx, 1) }), func() error { return n.rollTwo(ctx, -1) }
	case plan.Pause:
		return func() (bool, error) { return order(n.Pause, number) == nil, nil }, func() error { return n.resume(ctx, number) }
	default:
		return always(func() error { return n.Cluster.Strike(f) }), func() error { return n.Cluster.Heal(f) }
	}
}

// inject makes a fault happen when its turn comes. It puts the fault right when it is over or ctx
// ends.
func (n *Nemesis) inject(ctx context.Context, f plan.Fault, turns []*sync.Mutex) error {
	for _, t := range turns {
		t.Lock()
		defer t.Unlock()
	}
	s, life := history.Strike{Kind: f.Kind, Server: -1, Jump: f.Jump()}, ""
	switch f.Kind.On() {
	case plan.Holder:
		if f.Targets = []int{n.Holder(f.Targets[0])}; f.Targets[0] < 0 {
			n.note(s)
			return nil
		}
		life = n.Clients.Life(f.Targets[0])
	case plan.Client:
		life = n.Clients.Life(f.Targets[0])
	case plan.Job:
		s.Job = n.Job(f.Targets[0])
	}
	if f.Kind == plan.RollAtTick {
		_ = clock.Sleep(ctx, n.untilTick(f.Targets[0], f.Amount))
	}
	do, undo := n.effect(ctx, f)
	s.From = history.Now()
	struck, err := do()
	if err != nil {
		return err
	}
	if struck {
		s.Done, s.Life = history.Now(), life
	}
	_ = clock.Sleep(ctx, time.Until(n.begun.Add(f.At+f.For)))
	s.Heal = history.Now()
	if err = undo(); err != nil && f.Kind == plan.Pause {
		s.Failed, err = err.Error(), nil
	}
	if on := f.Kind.On(); on != plan.Server && on != plan.Links {
		n.note(s)
		return err
	}
	for _, s.Server = range f.Targets {
		n.note(s)
	}
	return err
}

// untilTick returns the time, by a client's clock, until the next instant with this offset from a
// beat of the jobs.
func (n *Nemesis) untilTick(number int, offset time.Duration) time.Duration {
	now := n.Clock(number)
	at := now.Truncate(plan.Beat).Add(offset)
	for at.Before(now) {
		at = at.Add(plan.Beat)
	}
	return at.Sub(now)
}

// roll rolls a client as part of a larger fault.
func (n *Nemesis) roll(ctx context.Context, number int) error {
	return n.inject(ctx, plan.Fault{Kind: plan.Roll, Targets: []int{number}}, nil)
}

// deploy rolls all clients to the next version, each a moment after the one before, without waiting
// for any of them meanwhile.
func (n *Nemesis) deploy(ctx context.Context, all []int) error {
	n.Version.Add(1)
	return clients.All(len(all), func(i int) error {
		_ = clock.Sleep(ctx, plan.DeployTakes*time.Duration(i)/time.Duration(len(all)))
		return n.roll(ctx, all[i])
	})
}

// rollTwo rolls two clients to the next version, or back.
func (n *Nemesis) rollTwo(ctx context.Context, by int64) error {
	n.Version.Add(by)
	return errors.Join(n.roll(ctx, 0), n.roll(ctx, 1))
}

// patience is how long one order to pause or resume a job may take.
const patience = 10 * time.Second

func order(do func(context.Context, int) error, job int) error {
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return do(within, job)
}

// resume resumes a job that was paused. A pause that failed may stand, so an order to resume that
// fails is given again until ctx ends, and after that until all servers must vote again.
func (n *Nemesis) resume(ctx context.Context, job int) error {
	const again, atLast = 500 * time.Millisecond, plan.Recovery + patience
	for end := time.Now().Add(atLast); ; time.Sleep(again) {
		if ctx.Err() == nil {
			end = time.Now().Add(atLast)
		}
		if err := order(n.Resume, job); err == nil || time.Now().After(end) {
			return err
		}
	}
}
