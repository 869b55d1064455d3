package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/leases"
	"github.com/tenure-dev/tenure/tools/torture/nemesis"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

const (
	// calm is how long nothing happens after the faults of jobs, so that what was missed is caught
	// up: the longest run, the longest TTL, and as much again as replicas' clocks and a busy
	// machine may need.
	calm = 12 * time.Second
	// maxJump is by how much longer than its TTL a key may stay: TTLs are counted by a clock that
	// was moved back after they had been set.
	maxJump = plan.MaxJump
	// driftFloor is the fixed part of redlock's allowance for drift, see redlock.WithDrift.
	driftFloor = 2 * time.Millisecond
)

// run is one of the program.
type run struct {
	*options
	dir     string // of the journals
	out     io.Writer
	servers *cluster.Cluster
	group   *clients.Group
	nemesis *nemesis.Nemesis
}

// run starts everything, lets the faults happen, ends everything, and leaves what is known in the
// directory. An error is trouble with the set-up, not a violation. It ends soon after ctx.
func (r *run) run(ctx context.Context, faults []plan.Fault) (err error) {
	acc := history.Account{
		Workload: r.workload, Topology: r.topology.Name, Command: r.command(), Seed: r.seed, Duration: r.duration.String(),
		Servers: plan.Servers, Drift: redlock.DefaultDrift, Floor: driftFloor, Skew: plan.Skew, Undecided: time.Minute,
	}
	if r.workload == "jobs" {
		acc.Servers = r.topology.Servers
	}
	strikes, err := history.CreateStrikes(r.dir)
	if err != nil {
		return err
	}
	defer strikes.Close()
	prefix, ttl := leases.Prefix, leases.MaxTTL+maxJump
	if r.workload == "jobs" {
		prefix, ttl = jobs.Prefix, plan.LeaderTTL
	}
	if r.servers, err = cluster.New(acc.Servers, r.topology.Memory, cluster.Users{Prefix: prefix, Dir: r.dir}); err != nil {
		return err
	}
	defer r.servers.Close()
	r.nemesis = &nemesis.Nemesis{Cluster: r.servers, Strikes: strikes}
	if r.workload == "jobs" {
		close, err := r.jobs()
		if err != nil {
			return err
		}
		defer close()
	} else if err := r.leases(); err != nil {
		return err
	}
	defer r.group.Close()
	r.nemesis.Clients = r.group
	if err := r.group.StartAll(); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%d servers and %d client processes run; faults for %s\n", r.servers.Len(), r.group.Count, r.duration)

	end, cancel := context.WithTimeout(ctx, r.duration)
	defer cancel()
	printed := io.Discard
	if r.verbose {
		printed = r.out
	}
	if err := r.nemesis.Run(end, printed, faults); err != nil {
		return err
	}
	<-end.Done()
	acc.Over, acc.OverAt = history.Now(), time.Now().UnixMilli()
	finish := r.group.Conclude
	if acc.Halted = ctx.Err() != nil; acc.Halted {
		finish = r.group.StopAll
	} else {
		fmt.Fprintln(r.out, "the faults are over")
		if r.workload == "jobs" {
			acc.Halted = !clients.Sleep(ctx, calm)
		}
	}
	if err := finish(); err != nil {
		acc.Failures = append(acc.Failures, err.Error())
	}
	lives := r.group.Close()
	if !acc.Halted {
		if acc.Leftover, err = r.servers.Leftover(prefix, ttl, lives); err != nil {
			return err
		}
	}
	return history.Close(r.dir, lives, acc)
}

// leases prepares clients that take leases.
func (r *run) leases() (err error) {
	holders := filepath.Join(r.dir, "holders"+history.Suffix)
	r.nemesis.Holder = func(key int) int {
		grants, _ := history.Read[history.Record](holders)
		for i := len(grants) - 1; i >= 0; i-- {
			if grants[i].Key == leases.Keys[key].Name {
				return clients.Number(grants[i].Lease)
			}
		}
		return -1
	}
	r.group, err = clients.New(clients.Config{
		Count: leases.Clients, Letter: "c", Journals: history.Clients(r.dir), Patience: leases.StopPatience,
		Settings: func(number, life int) any {
			return leases.Settings{
				URLs: r.servers.URLs(plan.SideOf(number)), Holders: holders, Seed: r.seed + uint64(number)<<32 + uint64(life), NoGate: r.control == noGate,
			}
		},
	})
	return err
}

// zones are those of the replicas' machines. The ticks of the jobs are the same everywhere.
var zones = []string{"Asia/Kathmandu", "America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin", "UTC"}

// jobs prepares replicas with jobs, each with the servers and the clock that it has, and an
// operator who pauses jobs.
func (r *run) jobs() (close func() error, err error) {
	skews := plan.Skews(r.seed, plan.Replicas, r.topology.Ahead)
	leaps := plan.Leaps(r.seed, r.topology, plan.Replicas, r.duration)
	begun, settings := time.Now(), make([]jobs.Settings, plan.Replicas)
	for number := range settings {
		settings[number] = jobs.Settings{
			URLs: r.servers.URLs(plan.SideOf(number)), Ahead: skews[number], Leaps: leaps[number], Zone: zones[number%len(zones)],
			Start: begun, Duration: r.duration, Seed: r.seed,
		}
		if r.topology.Leaps && number < 2 {
			settings[number].Leaps = plan.SetRight(leaps[number], r.duration/2, skews[number])
		}
	}
	for number, distances := range r.topology.Distances(plan.Replicas) {
		if settings[number].URLs, err = r.servers.Routes(fmt.Sprintf("replica %d", number), distances); err != nil {
			return nil, err
		}
	}
	silent := slog.New(slog.DiscardHandler)
	q, err := redlock.Open(r.servers.URLs(plan.Left), redlock.WithTTL(plan.LeaderTTL), redlock.WithMaxTTL(plan.LeaderTTL),
		redlock.WithClockSkew(plan.Skew), redlock.WithPrefix(jobs.Prefix), redlock.WithIdentity("operator"), redlock.WithLogger(silent))
	if err != nil {
		return nil, err
	}
	operator, err := admin.New(q, admin.WithLogger(silent))
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	r.nemesis.Job = jobs.PausedName
	r.nemesis.Pause = func(ctx context.Context, job int) error {
		_, err := operator.Pause(ctx, admin.Job(jobs.PausedName(job)), admin.PauseOptions{})
		return err
	}
	r.nemesis.Resume = func(ctx context.Context, job int) error {
		err := operator.Resume(ctx, admin.Job(jobs.PausedName(job)), "")
		if errors.Is(err, admin.ErrNotPaused) { // an earlier try has done it
			err = nil
		}
		return err
	}
	r.nemesis.Clock = func(number int) time.Time { return settings[number].Clock().Now() }
	r.group, err = clients.New(clients.Config{
		Count: plan.Replicas, Letter: "r", Journals: history.Clients(r.dir), Patience: jobs.StopPatience,
		Settings: func(number, _ int) any { return settings[number] },
	})
	return q.Close, err
}
