package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/arena"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/chaos/schedule"
	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/storm"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// calm is how long nothing happens after the faults, so that what was missed is caught up: the longest run, the longest TTL, and as much
// again as replicas' clocks and a busy machine may need.
const calm = 12 * time.Second

// run starts everything, lets the faults happen, ends everything, and leaves what is known in the archive. An error is
// trouble with the set-up, not a violation.
func run(ctx context.Context, cfg *config, files *archive, out io.Writer) error {
	acc := account{Command: cfg.command(), Seed: cfg.seed, Topology: cfg.topology.Name, Duration: cfg.duration.String()}
	strikes, err := files.create(strikesName)
	if err != nil {
		return err
	}
	defer strikes.Close()
	t := cfg.topology
	start := arena.New
	if t.Memory {
		start = arena.NewInMemory
	}
	place, err := start(t.Servers)
	if err != nil {
		return err
	}
	defer place.Close()
	settings, err := direct(cfg, place)
	if err != nil {
		return err
	}
	players, err := cast.New(plan.Replicas, files.dir, func(number int) any { return settings[number] })
	if err != nil {
		return err
	}
	defer players.Close()
	if err := players.StartAll(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d servers and %d replica processes run; faults for %s\n", t.Servers, plan.Replicas, cfg.duration)

	s := &storm.Storm{
		Arena: place, Cast: players, Replicas: plan.Replicas, Strikes: strikes, Out: io.Discard,
		Clock: func(number int) time.Time { return settings[number].Clock().Now() },
	}
	if cfg.verbose {
		s.Out = out
	}
	end, cancel := context.WithTimeout(ctx, cfg.duration)
	defer cancel()
	err = s.Run(end, plan.Plan(cfg.seed, t, cfg.duration))
	if ctx.Err() == nil && err == nil {
		<-end.Done()
	}
	acc.Over, acc.OverAt = journal.Now(), time.Now().UnixMilli()
	if acc.Halted = ctx.Err() != nil; acc.Halted {
		_ = players.StopAll()
		return errors.Join(err, files.close(players.Close(), acc))
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the faults are over")
	select {
	case <-time.After(calm):
	case <-ctx.Done():
		acc.Halted = true
	}
	if err := players.StopAll(); err != nil {
		acc.Failures = append(acc.Failures, err.Error())
	}
	lives := players.Close()
	if !acc.Halted {
		if acc.Leftover, err = storm.Leftover(place, replica.Prefix, work.LeaderTTL, lives); err != nil {
			return err
		}
	}
	return files.close(lives, acc)
}

// zones are those of the replicas' machines. The ticks of the jobs are the same everywhere.
var zones = []string{"Asia/Kathmandu", "America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin", "UTC"}

// direct tells each replica what to do: where the servers are, and what its clock shows.
func direct(cfg *config, place *arena.Arena) ([]replica.Settings, error) {
	t := cfg.topology
	skews, leaps := plan.Skews(cfg.seed, plan.Replicas, t.Ahead), plan.Leaps(cfg.seed, t, plan.Replicas, cfg.duration)
	begun, settings := time.Now(), make([]replica.Settings, plan.Replicas)
	for number := range settings {
		settings[number] = replica.Settings{
			URLs: place.URLs(schedule.Left + schedule.Side(number%2)), Ahead: skews[number], Leaps: leaps[number], Zone: zones[number%len(zones)],
			Start: begun, Duration: cfg.duration, Seed: cfg.seed,
		}
	}
	for number, distances := range t.Distances(plan.Replicas) {
		var err error
		if settings[number].URLs, err = place.Routes(fmt.Sprintf("replica %d", number), distances); err != nil {
			return nil, err
		}
	}
	return settings, nil
}
