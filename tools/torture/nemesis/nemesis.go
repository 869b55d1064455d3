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

// effect is what a fault does to a client, or to all, and what puts it right. A fault without one
// is of servers.
type effect struct {
	do   func(n *Nemesis, number int) (struck bool, err error)
	undo func(n *Nemesis, number int) error
}

var (
	kill   = effect{func(n *Nemesis, number int) (bool, error) { return n.Clients.Kill(number), nil }, start}
	freeze = effect{func(n *Nemesis, number int) (bool, error) { return n.Clients.Freeze(number), nil }, thaw}
	roll   = effect{func(n *Nemesis, number int) (bool, error) { return true, n.Clients.Stop(number) }, start}
)

var effects = map[plan.Kind]effect{
	plan.Kill: kill, plan.KillHolder: kill, plan.Freeze: freeze, plan.FreezeHolder: freeze, plan.Roll: roll, plan.RollAtTick: roll,
	plan.Blackout: {
		func(n *Nemesis, _ int) (bool, error) { n.Clients.KillAll(); return true, nil },
		func(n *Nemesis, _ int) error { return n.Clients.StartAll() },
	},
	plan.OtherList: {
		func(n *Nemesis, _ int) (bool, error) { return true, start(n, n.Clients.Count) },
		func(n *Nemesis, _ int) error { return n.Clients.Stop(n.Clients.Count) },
	},
}

func start(n *Nemesis, number int) error { return n.Clients.Start(number) }

func thaw(n *Nemesis, number int) error { n.Clients.Thaw(number); return nil }

// inject makes a fault happen, when its turn comes, and puts it right when it is over or ctx ends.
func (n *Nemesis) inject(ctx context.Context, f plan.Fault, turns []*sync.Mutex) error {
	switch f.Kind {
	case plan.Deploy:
		return n.deploy(ctx, f, turns)
	case plan.TakenBack:
		return n.takeBack(ctx, f, turns)
	}
	for _, t := range turns {
		t.Lock()
		defer t.Unlock()
	}
	switch e, known := effects[f.Kind]; {
	case f.Kind == plan.Pause:
		return n.pause(ctx, f)
	case known:
		return n.client(ctx, f, e)
	}
	s := history.Strike{Kind: f.Kind, From: history.Now()}
	switch f.Kind {
	case plan.ClockForward:
		s.Jump = f.Amount
	case plan.ClockBack:
		s.Jump = -f.Amount
	}
	if err := n.Cluster.Strike(f); err != nil {
		return err
	}
	s.Done = history.Now()
	n.wait(ctx, f)
	s.Heal = history.Now()
	err := n.Cluster.Heal(f)
	for _, s.Server = range f.Targets {
		n.note(s)
	}
	return err
}

// wait waits until a fault is to be put right.
func (n *Nemesis) wait(ctx context.Context, f plan.Fault) {
	clients.Sleep(ctx, time.Until(n.begun.Add(f.At+f.For)))
}

// client strikes one client, or all, whose turn it is.
func (n *Nemesis) client(ctx context.Context, f plan.Fault, e effect) error {
	s, number := history.Strike{Kind: f.Kind, Server: -1}, f.Targets[0]
	if f.Kind.On() == plan.Holder {
		if number = n.Holder(number); number < 0 {
			n.note(s)
			return nil
		}
	}
	if f.Kind == plan.RollAtTick {
		clients.Sleep(ctx, n.untilTick(number, f.Amount))
	}
	life := ""
	if on := f.Kind.On(); on == plan.Client || on == plan.Holder {
		life = n.Clients.Life(number)
	}
	s.From = history.Now()
	struck, err := e.do(n, number)
	if err != nil {
		return err
	}
	if struck {
		s.Life = life
	}
	n.wait(ctx, f)
	err = e.undo(n, number)
	n.note(s)
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

// deploy rolls all clients to the next version, each a moment after the one before, and waits for
// none of them meanwhile.
func (n *Nemesis) deploy(ctx context.Context, f plan.Fault, turns []*sync.Mutex) error {
	s := history.Strike{Kind: f.Kind, Server: -1, From: history.Now()}
	n.Version.Add(1)
	err := clients.All(len(turns), func(number int) error {
		turns[number].Lock()
		defer turns[number].Unlock()
		clients.Sleep(ctx, plan.DeployTakes*time.Duration(number)/time.Duration(len(turns)))
		return n.client(ctx, plan.Fault{Kind: plan.Roll, Targets: []int{number}}, roll)
	})
	n.note(s)
	return err
}

// takeBack rolls two clients to the next version, and back when it is over.
func (n *Nemesis) takeBack(ctx context.Context, f plan.Fault, turns []*sync.Mutex) error {
	for _, t := range turns {
		t.Lock()
		defer t.Unlock()
	}
	s := history.Strike{Kind: f.Kind, Server: -1, From: history.Now()}
	rollTwo := func(by int64) (err error) {
		n.Version.Add(by)
		for number := range 2 {
			err = errors.Join(err, n.client(ctx, plan.Fault{Kind: plan.Roll, Targets: []int{number}}, roll))
		}
		return err
	}
	err := rollTwo(1)
	n.wait(ctx, f)
	err = errors.Join(err, rollTwo(-1))
	n.note(s)
	return err
}

// pause pauses a job and resumes it. An order that cannot be given within its time is given again,
// because a pause that failed may stand; the last time when all servers vote again.
func (n *Nemesis) pause(ctx context.Context, f plan.Fault) error {
	const again, patience = 500 * time.Millisecond, 10 * time.Second
	call := func(do func(context.Context, int) error) error {
		within, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return do(within, f.Targets[0])
	}
	s := history.Strike{Kind: f.Kind, Server: -1, Job: n.Job(f.Targets[0]), From: history.Now()}
	if call(n.Pause) == nil {
		s.Done = history.Now()
	}
	n.wait(ctx, f)
	s.Heal = history.Now()
	err := call(n.Resume)
	for err != nil && clients.Sleep(ctx, again) {
		err = call(n.Resume)
	}
	for end := time.Now().Add(plan.Recovery + patience); err != nil && time.Now().Before(end); {
		clients.Sleep(context.Background(), again)
		err = call(n.Resume)
	}
	if err != nil {
		s.Failed = err.Error()
	}
	n.note(s)
	return nil
}
