package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/cluster"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/soak/nemesis"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// calm is how long nothing happens after the faults, so that what was missed is caught up: the
// longest run, the longest TTL, and as much again as replicas' clocks and a busy machine may need.
const calm = 12 * time.Second

// Run implements harness.Program.
func (p *program) Run(ctx context.Context, files *harness.Archive, out, faults io.Writer) error {
	acc := account{Account: p.Account(p.Command()), Topology: p.topology.Name}
	strikes, err := files.CreateStrikes()
	if err != nil {
		return err
	}
	defer strikes.Close()
	start := cluster.New
	if p.topology.Memory {
		start = cluster.NewInMemory
	}
	servers, err := start(p.topology.Servers)
	if err != nil {
		return err
	}
	defer servers.Close()
	settings, err := p.settings(servers)
	if err != nil {
		return err
	}
	replicas, err := clients.New(clients.Config{
		Count: plan.Replicas, Letter: "r", Journals: files.Clients(), Patience: replica.StopPatience,
		Settings: func(number, _ int) any { return settings[number] },
	})
	if err != nil {
		return err
	}
	defer replicas.Close()
	if err := replicas.StartAll(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d servers and %d replica processes run; faults for %s\n", servers.Len(), plan.Replicas, p.Duration)

	end, cancel := context.WithTimeout(ctx, p.Duration)
	defer cancel()
	n := &nemesis.Nemesis{
		Cluster: servers, Replicas: replicas, Strikes: strikes,
		Clock: func(number int) time.Time { return settings[number].Clock().Now() },
	}
	err = n.Run(end, faults, p.faults())
	if ctx.Err() == nil && err == nil {
		<-end.Done()
	}
	acc.Over, acc.OverAt = history.Now(), time.Now().UnixMilli()
	if acc.Halted = ctx.Err() != nil; acc.Halted {
		_ = replicas.StopAll()
		return errors.Join(err, files.Close(replicas.Close(), acc))
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the faults are over")
	acc.Halted = !clients.Sleep(ctx, calm)
	if err := replicas.StopAll(); err != nil {
		acc.Failures = append(acc.Failures, err.Error())
	}
	lives := replicas.Close()
	if !acc.Halted {
		if acc.Leftover, err = servers.Leftover(replica.Prefix, work.LeaderTTL, lives); err != nil {
			return err
		}
	}
	return files.Close(lives, acc)
}

// zones are those of the replicas' machines. The ticks of the jobs are the same everywhere.
var zones = []string{"Asia/Kathmandu", "America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin", "UTC"}

// settings tell each replica what to do: where the servers are, and what its clock shows.
func (p *program) settings(servers *cluster.Cluster) ([]replica.Settings, error) {
	skews := plan.Skews(p.Seed, plan.Replicas, p.topology.Ahead)
	leaps := plan.Leaps(p.Seed, p.topology, plan.Replicas, p.Duration)
	begun, settings := time.Now(), make([]replica.Settings, plan.Replicas)
	for number := range settings {
		settings[number] = replica.Settings{
			URLs: servers.URLs(fault.SideOf(number)), Ahead: skews[number], Leaps: leaps[number], Zone: zones[number%len(zones)],
			Start: begun, Duration: p.Duration, Seed: p.Seed,
		}
	}
	for number, distances := range p.topology.Distances(plan.Replicas) {
		var err error
		if settings[number].URLs, err = servers.Routes(fmt.Sprintf("replica %d", number), distances); err != nil {
			return nil, err
		}
	}
	return settings, nil
}
