package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/leases"
	"github.com/tenure-dev/tenure/tools/torture/nemesis"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// patience is how long nothing that is missing may be caught up after the faults until the run is
// given up: the longest run, the longest TTL, and as much again as replicas' clocks and a busy
// machine may need.
const patience = 12 * time.Second

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
func (r *run) run(ctx context.Context) (err error) {
	acc := history.Account{Workload: r.workload.Name, Command: r.command(), Servers: r.workload.Servers, Undecided: time.Minute}
	// Keys stay longer than their TTL where a clock was moved back after they had been set.
	prefix, ttl := leases.Prefix, plan.LeaderTTL+plan.MaxJump
	if r.workload.Jobs {
		prefix = jobs.Prefix
	}
	r.servers, err = cluster.New(cluster.Config{
		Servers: r.workload.Servers, Memory: r.workload.Memory, TLS: r.workload.TLS, Prefix: prefix, Dir: r.dir,
	})
	if err != nil {
		return err
	}
	defer r.servers.Close()
	r.nemesis = &nemesis.Nemesis{Cluster: r.servers}
	cfg := clients.Config{Count: r.workload.Clients, Journals: history.Clients(r.dir)}
	if r.workload.Jobs {
		operator, err := r.jobs(&cfg)
		if err != nil {
			return err
		}
		defer operator.Close()
	} else {
		r.leases(&cfg)
	}
	if r.group, err = clients.New(cfg); err != nil {
		return err
	}
	defer r.group.Close()
	r.nemesis.Clients = r.group
	if err := r.group.StartAll(); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%d servers and %d client processes run; faults for %s\n", r.workload.Servers, r.group.Count, r.duration)

	end, cancel := context.WithTimeout(ctx, r.duration)
	defer cancel()
	printed := io.Discard
	if r.verbose {
		printed = r.out
	}
	acc.Began = history.Now()
	if err := r.nemesis.Run(end, printed, plan.Faults(r.seed, r.workload, r.duration)); err != nil {
		return err
	}
	<-end.Done()
	acc.Over, acc.OverAt, acc.Strikes = history.Now(), time.Now().UnixMilli(), r.nemesis.Strikes()
	finish := r.group.Conclude
	if acc.Halted = ctx.Err() != nil; acc.Halted {
		finish = r.group.StopAll
	} else {
		fmt.Fprintln(r.out, "the faults are over")
		if r.workload.Jobs {
			acc.Halted, err = r.settle(ctx, acc)
		}
	}
	if err := errors.Join(err, finish()); err != nil {
		acc.Failures = append(acc.Failures, err.Error())
	}
	acc.Lives = r.group.Close()
	if !acc.Halted {
		if acc.Leftover, err = r.servers.Leftover(prefix, ttl, acc.Lives); err != nil {
			return err
		}
	}
	return acc.Write(r.dir)
}

// settle waits until the checker finds nothing that is missing, or nothing more has been caught up
// for some time.
func (r *run) settle(ctx context.Context, acc history.Account) (halted bool, err error) {
	least, better := math.MaxInt, time.Now()
	for {
		began := time.Now()
		acc.Lives = r.group.Lives()
		h, err := acc.Of(r.dir)
		if err != nil {
			return false, err
		}
		missing := len(checker.Check(h, jobs.All()).Violations)
		if missing < least {
			least, better = missing, time.Now()
		}
		if missing == 0 || time.Since(better) > patience {
			return false, nil
		}
		if !clients.Sleep(ctx, max(time.Second, 3*time.Since(began))) {
			return true, nil
		}
	}
}

// leases prepares clients that take leases, and one with another list of nodes.
func (r *run) leases(cfg *clients.Config) {
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
	cfg.Letter, cfg.Patience, cfg.Spare = "c", leases.StopPatience, 1
	cfg.Settings = func(number, life int) any {
		urls := r.servers.URLs(plan.SideOf(number))
		if number == cfg.Count {
			urls = urls[:3]
		}
		s := leases.Settings{URLs: urls, Trusted: r.servers.Trusted(), Holders: holders, Clients: cfg.Count, Seed: r.seed + uint64(number)<<32 + uint64(life)<<16}
		s.Ahead, _ = plan.Clock(r.seed, r.workload, number, r.duration)
		return s
	}
}

// zones are those of the replicas' machines. The ticks of the jobs are the same everywhere.
var zones = []string{"Asia/Kathmandu", "America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin", "UTC"}

// jobs prepares replicas with jobs, each with the servers and the clock that it has, and an
// operator who pauses jobs.
func (r *run) jobs(cfg *clients.Config) (operator *redlock.Quorum, err error) {
	begun, settings := time.Now(), make([]jobs.Settings, cfg.Count)
	for number := range settings {
		s := &settings[number]
		*s = jobs.Settings{URLs: r.servers.URLs(plan.SideOf(number)), Zone: zones[number%len(zones)], Start: begun, Seed: r.seed}
		s.Ahead, s.Leaps = plan.Clock(r.seed, r.workload, number, r.duration)
		if distances := r.workload.Distances(number); distances != nil {
			if s.URLs, err = r.servers.Routes(fmt.Sprintf("replica %d", number), distances); err != nil {
				return nil, err
			}
		}
	}
	silent := slog.New(slog.DiscardHandler)
	operator, err = redlock.Open(r.servers.URLs(plan.Left), redlock.WithTTL(plan.LeaderTTL), redlock.WithMaxTTL(plan.LeaderTTL),
		redlock.WithClockSkew(plan.Skew), redlock.WithPrefix(jobs.Prefix), redlock.WithIdentity("operator"), redlock.WithLogger(silent))
	if err != nil {
		return nil, err
	}
	orders, err := admin.New(operator, admin.WithLogger(silent))
	if err != nil {
		return nil, errors.Join(err, operator.Close())
	}
	r.nemesis.Job = jobs.PausedName
	r.nemesis.Pause = func(ctx context.Context, job int) error {
		_, err := orders.Pause(ctx, admin.Job(jobs.PausedName(job)), admin.PauseOptions{})
		return err
	}
	r.nemesis.Resume = func(ctx context.Context, job int) error {
		err := orders.Resume(ctx, admin.Job(jobs.PausedName(job)), "")
		if errors.Is(err, admin.ErrNotPaused) { // an earlier try has done it
			err = nil
		}
		return err
	}
	r.nemesis.Clock = func(number int) time.Time { return settings[number].Clock().Now() }
	cfg.Letter, cfg.Patience = "r", jobs.StopPatience
	cfg.Settings = func(number, _ int) any {
		s := settings[number]
		s.Version = int(r.nemesis.Version.Load())
		return s
	}
	return operator, nil
}
