package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/plan"
	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/cluster"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/nemesis"
)

const (
	// stopPatience is how long clients may take to stop in order: Close waits for releases and
	// connections.
	stopPatience = 15 * time.Second
	// undecided is how long porcupine may take.
	undecided = time.Minute
	// driftFloor is the fixed part of redlock's allowance for drift, see redlock.WithDrift.
	driftFloor = 2 * time.Millisecond
)

// Run implements harness.Program.
func (p *program) Run(ctx context.Context, files *harness.Archive, out, faults io.Writer) error {
	acc := account{
		Account: p.Account(p.Command()),
		Settings: checker.Settings{
			Drift: redlock.DefaultDrift, Floor: driftFloor, Skew: p.skew, Undecided: undecided, Servers: servers, Recovery: p.recovery(),
		},
	}
	for _, key := range tickring() {
		acc.Settings.Ticks = append(acc.Settings.Ticks, key.Name)
	}
	strikes, err := files.CreateStrikes()
	if err != nil {
		return err
	}
	defer strikes.Close()
	writes, err := files.Create(writesName)
	if err != nil {
		return err
	}
	defer writes.Close()
	servers, err := cluster.New(servers)
	if err != nil {
		return err
	}
	defer servers.Close()
	store, err := resource.Serve(writes)
	if err != nil {
		return err
	}
	defer store.Close()
	group, err := clients.New(clients.Config{
		Count: p.clients, Letter: "c", Journals: files.Clients(), Patience: stopPatience,
		Settings: func(number, life int) any {
			return client.Settings{
				URLs: servers.URLs(fault.SideOf(number)), Prefix: prefix, Keys: p.keyring(), MaxTTL: maxTTL(), Skew: p.skew,
				Ticks: tickring(), Operator: number < operators,
				Resource: store.Addr(), Seed: p.Seed + uint64(number)<<32 + uint64(life), Workers: p.workers, Control: p.control,
			}
		},
	})
	if err != nil {
		return err
	}
	defer group.Close()
	if err := group.StartAll(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d servers and %d client processes run; faults for %s\n", servers.Len(), p.clients, p.Duration)

	end, cancel := context.WithTimeout(ctx, p.Duration)
	defer cancel()
	i := &injector{cluster: servers, clients: group, resource: store, keys: p.keyring(), strikes: strikes, begun: time.Now()}
	err = nemesis.Run(end, faults, p.faults(), i.inject)
	if acc.Halted = ctx.Err() != nil; acc.Halted {
		_ = group.StopAll()
		return errors.Join(store.Close(), files.Close(group.Close(), acc))
	}
	if err != nil {
		return err
	}
	<-end.Done()
	acc.Over = history.Now()
	fmt.Fprintln(out, "the faults are over")
	acc.Failures = p.conclude(group)
	if err := group.StopAll(); err != nil {
		acc.Failures = append(acc.Failures, err.Error())
	}
	lives := group.Close()
	// TTLs are counted by a clock that was moved back after they had been set.
	if acc.Leftover, err = servers.Leftover(prefix, maxTTL()+plan.MaxJump, lives); err != nil {
		return err
	}
	acc.Stuck = servers.Stuck()
	return errors.Join(store.Close(), files.Close(lives, acc))
}

// conclude has every client let go of everything, every key acquired once more, every pause ended,
// and a tick of each key granted. It returns what did not work.
func (p *program) conclude(group *clients.Group) (failures []string) {
	nothing := func(int) []string { return nil }
	if err := group.Command(client.Settle, nothing, p.recovery()+2*maxTTL()); err != nil {
		failures = append(failures, "no quorum of servers votes: "+err.Error())
	}
	keys := p.keyring()
	names := func(number int) (names []string) {
		for i := number; i < len(keys); i += p.clients {
			names = append(names, keys[i].Name)
		}
		return names
	}
	each := (p.keys + p.clients - 1) / p.clients
	if err := group.Command(client.Probe, names, time.Duration(each+1)*(maxTTL()+client.ProbeGrace)); err != nil {
		failures = append(failures, err.Error())
	}
	paused := []string{client.All}
	for _, key := range tickring() {
		paused = append(paused, key.Name)
	}
	resumed := func(number int) []string {
		if number == 0 {
			return paused
		}
		return nil
	}
	if err := group.Command(client.Resume, resumed, time.Duration(len(paused))*(maxTTL()+client.ProbeGrace)); err != nil {
		failures = append(failures, "not everything could be resumed: "+err.Error())
	}
	ticks := func(number int) []string { // each by a process that has not resumed
		if number < 1 || number > tickKeys {
			return nil
		}
		return paused[number : number+1]
	}
	if err := group.Command(client.Tick, ticks, client.TickGrace+client.ProbeGrace); err != nil {
		failures = append(failures, err.Error())
	}
	return failures
}
