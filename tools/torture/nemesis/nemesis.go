// Package nemesis makes the faults of a plan happen, each at its time, and keeps when they did.
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

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Nemesis is used once. Of Holder, Clock, and Pause and Resume, only what the plan needs is set.
type Nemesis struct {
	Cluster *cluster.Cluster
	Clients *clients.Group
	Version atomic.Int64 // that new processes of clients have, from zero

	Holder        func(key int) (client int)       // who holds a key, or held it last; -1 for nobody
	Clock         func(client int) time.Time       // what a client's clock shows
	Pause, Resume func(context.Context, int) error // of a job
	Job           func(job int) string             // its name

	begun   time.Time
	mu      sync.Mutex
	strikes []history.Strike // guarded by mu
}

// Run prints each fault and makes it happen in a goroutine of its own, when its time has come. It
// returns when all have been put right, which is soon after ctx has ended. The first error ends it.
func (n *Nemesis) Run(ctx context.Context, out io.Writer, faults []plan.Fault) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.begun = time.Now()
	var (
		targets = make(map[string]*sync.Mutex) // each is held while a fault goes on
		running sync.WaitGroup
		mu      sync.Mutex
		errs    []error // guarded by mu
	)
	for _, f := range faults {
		if !clients.Sleep(ctx, time.Until(n.begun.Add(f.At))) {
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

// Strikes are the faults that have happened.
func (n *Nemesis) Strikes() []history.Strike {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.strikes)
}

// note keeps that a fault happened.
func (n *Nemesis) note(s history.Strike) {
	s.To = history.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.strikes = append(n.strikes, s)
}

// effect returns what a fault does, which reports whether there was something to strike, and what
// puts it right.
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
		number = n.Clients.Count // it comes after all others
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

// inject makes a fault happen, when its turn comes, and puts it right when it is over or ctx ends.
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
		clients.Sleep(ctx, n.untilTick(f.Targets[0], f.Amount))
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
	clients.Sleep(ctx, time.Until(n.begun.Add(f.At+f.For)))
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

// untilTick is how long it is until the first beat of the jobs, by a client's clock, that a fault
// can still be timed to, and the fault's offset from it.
func (n *Nemesis) untilTick(number int, offset time.Duration) time.Duration {
	now := n.Clock(number)
	at := now.Truncate(plan.Beat).Add(offset)
	for at.Before(now) {
		at = at.Add(plan.Beat)
	}
	return at.Sub(now)
}

// roll rolls a client as part of a greater fault.
func (n *Nemesis) roll(ctx context.Context, number int) error {
	return n.inject(ctx, plan.Fault{Kind: plan.Roll, Targets: []int{number}}, nil)
}

// deploy rolls all clients to the next version, each a moment after the one before, and waits for
// none of them meanwhile.
func (n *Nemesis) deploy(ctx context.Context, all []int) error {
	n.Version.Add(1)
	return clients.All(len(all), func(i int) error {
		clients.Sleep(ctx, plan.DeployTakes*time.Duration(i)/time.Duration(len(all)))
		return n.roll(ctx, all[i])
	})
}

// rollTwo rolls two clients to the next version, or back.
func (n *Nemesis) rollTwo(ctx context.Context, by int64) error {
	n.Version.Add(by)
	return errors.Join(n.roll(ctx, 0), n.roll(ctx, 1))
}

// patience is how long an order may take to be given.
const patience = 10 * time.Second

func order(do func(context.Context, int) error, job int) error {
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return do(within, job)
}

// resume resumes a job that was paused. An order that cannot be given within its time is given
// again, because a pause that failed may stand; the last time when all servers vote again.
func (n *Nemesis) resume(ctx context.Context, job int) error {
	const again = 500 * time.Millisecond
	err := order(n.Resume, job)
	for err != nil && clients.Sleep(ctx, again) {
		err = order(n.Resume, job)
	}
	for end := time.Now().Add(plan.Recovery + patience); err != nil && time.Now().Before(end); {
		clients.Sleep(context.Background(), again)
		err = order(n.Resume, job)
	}
	return err
}
