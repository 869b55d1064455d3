// Package nemesis makes the faults of a soak's plan happen to replicas and servers, and writes down
// when they did.
package nemesis

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/cluster"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/nemesis"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// Nemesis is used once.
type Nemesis struct {
	Cluster  *cluster.Cluster
	Replicas *clients.Group
	Strikes  *history.Writer
	// Clock is what a replica's clock shows.
	Clock func(replica int) time.Time

	begun time.Time
}

// Run prints all faults and makes them happen. It returns when all of them have been put right,
// which is soon after ctx has ended.
func (n *Nemesis) Run(ctx context.Context, out io.Writer, faults []plan.Fault) error {
	n.begun = time.Now()
	return nemesis.Run(ctx, out, faults, n.inject)
}

// inject makes a fault happen, when its turn comes, and puts it right when it is over or ctx ends.
func (n *Nemesis) inject(ctx context.Context, f plan.Fault, turns nemesis.Turns) error {
	if f.Kind == plan.Deploy {
		return n.deploy(ctx, turns)
	}
	defer turns.Take()()
	switch {
	case f.OnServer():
		return n.server(ctx, f)
	case f.Kind == plan.Blackout:
		return n.blackout(ctx, f)
	default:
		return n.replica(ctx, f)
	}
}

// wait waits until a fault is to be put right.
func (n *Nemesis) wait(ctx context.Context, f plan.Fault) {
	clients.Sleep(ctx, time.Until(n.begun.Add(f.At+f.For)))
}

func (n *Nemesis) server(ctx context.Context, f plan.Fault) error {
	struck := fault.Fault{Kind: f.Kind, Nodes: []int{f.Target}}
	strike := record.Strike{Kind: f.Kind, Replica: -1, Server: f.Target, From: history.Now()}
	if err := n.Cluster.Strike(struck); err != nil {
		return err
	}
	n.wait(ctx, f)
	err := n.Cluster.Heal(struck)
	strike.To = history.Now()
	return errors.Join(err, n.Strikes.Append(strike))
}

// replica strikes one replica, whose turn it is.
func (n *Nemesis) replica(ctx context.Context, f plan.Fault) (err error) {
	strike := record.Strike{Kind: f.Kind, Replica: f.Target, Server: -1, Life: n.Replicas.Life(f.Target), From: history.Now()}
	struck := true
	switch f.Kind {
	case plan.Kill:
		struck = n.Replicas.Kill(f.Target)
		n.wait(ctx, f)
		err = n.Replicas.Start(f.Target)
	case plan.Freeze:
		struck = n.Replicas.Freeze(f.Target)
		n.wait(ctx, f)
		n.Replicas.Thaw(f.Target)
	case plan.Roll, plan.RollAtTick:
		if f.Kind == plan.RollAtTick {
			clients.Sleep(ctx, n.untilTick(f))
			strike.From = history.Now()
		}
		if err = n.Replicas.Stop(f.Target); err == nil {
			err = n.Replicas.Start(f.Target)
		}
	}
	if !struck {
		strike.Life = ""
	}
	strike.To = history.Now()
	return errors.Join(err, n.Strikes.Append(strike))
}

// untilTick is how long it is until the first beat of the jobs, by a replica's clock, that the
// fault can still be timed to, and the fault's offset from it.
func (n *Nemesis) untilTick(f plan.Fault) time.Duration {
	now := n.Clock(f.Target)
	at := now.Truncate(work.Beat).Add(f.Offset)
	for at.Before(now) {
		at = at.Add(work.Beat)
	}
	return at.Sub(now)
}

// deploy rolls all replicas, each a moment after the one before, and waits for none of them
// meanwhile.
func (n *Nemesis) deploy(ctx context.Context, turns nemesis.Turns) error {
	errs := make([]error, len(turns))
	var all sync.WaitGroup
	for number := range turns {
		all.Go(func() {
			defer turns[number : number+1].Take()()
			clients.Sleep(ctx, plan.DeployTakes*time.Duration(number)/time.Duration(len(turns)))
			errs[number] = n.replica(ctx, plan.Fault{Kind: plan.Roll, Target: number})
		})
	}
	strike := record.Strike{Kind: plan.Deploy, Replica: -1, Server: -1, From: history.Now()}
	all.Wait()
	strike.To = history.Now()
	return errors.Join(append(errs, n.Strikes.Append(strike))...)
}

func (n *Nemesis) blackout(ctx context.Context, f plan.Fault) error {
	strike := record.Strike{Kind: f.Kind, Replica: -1, Server: -1, From: history.Now()}
	n.Replicas.KillAll()
	n.wait(ctx, f)
	err := n.Replicas.StartAll()
	strike.To = history.Now()
	return errors.Join(err, n.Strikes.Append(strike))
}
