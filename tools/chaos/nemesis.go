package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/plan"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/cluster"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/nemesis"
)

// injector makes faults happen and writes them down.
type injector struct {
	cluster  *cluster.Cluster
	clients  *clients.Group
	resource *resource.Server
	keys     []client.Key
	strikes  *history.Writer
	begun    time.Time
}

// inject makes a fault happen and puts it right when it is over or ctx ends.
func (i *injector) inject(ctx context.Context, f plan.Fault, turns nemesis.Turns) error {
	if f.OnClient() {
		return i.strikeClient(ctx, f)
	}
	// Putting the last one right may have taken longer than planned.
	defer turns.Take()()
	if err := i.note(f, false, func() error { return i.cluster.Strike(f.Fault) }); err != nil {
		return err
	}
	i.wait(ctx, f)
	return i.note(f, true, func() error { return i.cluster.Heal(f.Fault) })
}

// wait waits until a fault is to be put right.
func (i *injector) wait(ctx context.Context, f plan.Fault) {
	clients.Sleep(ctx, time.Until(i.begun.Add(f.At+f.For)))
}

// note keeps when something was done to the servers of a fault.
func (i *injector) note(f plan.Fault, healed bool, do func() error) error {
	from := history.Now()
	err := do()
	strike := record.Strike{Kind: f.Kind, From: from, To: history.Now(), Healed: healed}
	switch {
	case f.Kind == fault.ClockForward && !healed, f.Kind == fault.ClockBack && healed:
		strike.Jump = f.Amount
	case f.Kind == fault.ClockForward, f.Kind == fault.ClockBack:
		strike.Jump = -f.Amount
	}
	for _, n := range f.Nodes {
		strike.Node = n
		err = errors.Join(err, i.strikes.Append(strike))
	}
	return err
}

// strikeClient kills or freezes a client, and brings it back.
func (i *injector) strikeClient(ctx context.Context, f plan.Fault) error {
	number := f.Client
	if f.Kind == plan.KillHolder || f.Kind == plan.FreezeHolder {
		number = clients.Number(i.resource.Holder(i.keys[f.Key].Name))
	}
	strike := record.Strike{Kind: f.Kind, Node: -1, From: history.Now()}
	kill := f.Kind == plan.KillClient || f.Kind == plan.KillHolder
	struck := number >= 0
	if struck && kill {
		struck = i.clients.Kill(number)
	} else if struck {
		struck = i.clients.Freeze(number)
	}
	if struck {
		strike.Target = fmt.Sprintf("c%d", number)
	}
	strike.To = history.Now()
	if err := i.strikes.Append(strike); err != nil || !struck {
		return err
	}
	i.wait(ctx, f)
	if kill {
		return i.clients.Start(number)
	}
	i.clients.Thaw(number)
	return nil
}
