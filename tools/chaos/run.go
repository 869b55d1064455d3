package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/arena"
	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/crowd"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/chaos/schedule"
	"github.com/tenure-dev/tenure/tools/chaos/verdict"
	"github.com/tenure-dev/tenure/tools/chaos/witness"
)

const (
	// stopPatience is how long clients may take to stop in order: Close waits for releases and connections.
	stopPatience = 15 * time.Second
	// undecided is how long porcupine may take.
	undecided = time.Minute
	// driftFloor is the fixed part of redlock's allowance for drift, see redlock.WithDrift.
	driftFloor = 2 * time.Millisecond
)

// plan is the schedule of the faults.
func (c *config) plan() []schedule.Fault {
	return schedule.Plan(c.seed, schedule.Config{
		Duration: c.duration, Servers: servers, Clients: c.clients, Keys: c.keys, TTL: maxTTL(), Recovery: c.recovery(),
	})
}

// run starts everything, lets the faults happen, ends everything, and leaves what is known in the archive. An error is
// trouble with the set-up, not a violation.
func run(ctx context.Context, cfg *config, files *archive, out io.Writer) error {
	acc := account{
		Command: cfg.command(), Seed: cfg.seed, Duration: cfg.duration.String(),
		Settings: verdict.Settings{Drift: redlock.DefaultDrift, Floor: driftFloor, Skew: cfg.skew, Undecided: undecided},
	}
	strikes, err := files.create(strikesName)
	if err != nil {
		return err
	}
	defer strikes.Close()
	writes, err := files.create(writesName)
	if err != nil {
		return err
	}
	defer writes.Close()
	place, err := arena.New(servers)
	if err != nil {
		return err
	}
	defer place.Close()
	resource, err := witness.Serve(writes)
	if err != nil {
		return err
	}
	defer resource.Close()

	clients := crowd.New(cfg.clients, func(number int) client.Assignment {
		return client.Assignment{
			URLs: place.URLs(schedule.Left + schedule.Side(number%2)), Prefix: prefix, Keys: cfg.keyring(),
			MaxTTL: maxTTL(), Skew: cfg.skew, Witness: resource.Addr(), Journals: files.clients(),
			Seed: cfg.seed, Workers: cfg.workers, Control: cfg.control,
		}
	})
	defer clients.Close()
	if err := startAll(clients, cfg.clients); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d servers and %d client processes run; faults for %s\n", servers, cfg.clients, cfg.duration)

	s := &storm{arena: place, crowd: clients, witness: resource, strikes: strikes, out: io.Discard}
	if cfg.verbose {
		s.out = out
	}
	for _, key := range cfg.keyring() {
		s.keys = append(s.keys, key.Name)
	}
	end, cancel := context.WithTimeout(ctx, cfg.duration)
	defer cancel()
	err = s.run(end, cfg.plan())
	if acc.Halted = ctx.Err() != nil; acc.Halted {
		// The terminal has sent its signal to the servers too, so they may be gone.
		_ = clients.Stop(stopPatience)
		return errors.Join(resource.Close(), files.close(clients.Close(), acc))
	}
	if err != nil {
		return err
	}
	<-end.Done()
	acc.Over = journal.Now()
	fmt.Fprintln(out, "the faults are over")
	acc.Failures = conclude(cfg, clients)
	if err := clients.Stop(stopPatience); err != nil {
		acc.Failures = append(acc.Failures, err.Error())
	}
	lives := clients.Close()
	if acc.Leftover, err = leftover(place, lives); err != nil {
		return err
	}
	acc.Stuck = place.Stuck()
	return errors.Join(resource.Close(), files.close(lives, acc))
}

// leftover lists the keys of leases that are on servers and must not be: those of clients that stopped in order, but for
// a moment in which what they sent last is on its way, which is far shorter than any TTL; and those of clients that were
// killed, after their TTL, counted by a clock that was moved back after they had been set.
func leftover(place *arena.Arena, lives []journal.Life) ([]string, error) {
	const moment, pause = 200 * time.Millisecond, 20 * time.Millisecond
	killed := make(map[string]bool)
	for _, life := range lives {
		killed[life.Name] = life.Killed != 0
	}
	for began := time.Now(); ; time.Sleep(pause) {
		keys, err := place.LockKeys(prefix)
		if err != nil {
			return nil, err
		}
		var left []string
		expired, arrived := time.Since(began) > maxTTL()+schedule.MaxJump+moment, time.Since(began) > moment
		for _, key := range keys {
			if !killed[key.Owner] && arrived || expired {
				left = append(left, key.String())
			}
		}
		if len(keys) == 0 || len(left) > 0 {
			return left, nil
		}
	}
}

func startAll(clients *crowd.Crowd, count int) error {
	errs := make([]error, count)
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() { errs[i] = clients.Start(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// conclude has every client let go of everything, and every key acquired once more. It returns what did not work.
func conclude(cfg *config, clients *crowd.Crowd) (failures []string) {
	settle := func(int) string { return client.Settle }
	if err := clients.Command(settle, client.Settled, cfg.recovery()+2*maxTTL()); err != nil {
		failures = append(failures, "no quorum of servers votes: "+err.Error())
	}
	keys := cfg.keyring()
	probe := func(number int) string {
		var names []string
		for i := number; i < len(keys); i += cfg.clients {
			names = append(names, keys[i].Name)
		}
		return strings.Join(append([]string{client.Probe}, names...), " ")
	}
	each := (cfg.keys + cfg.clients - 1) / cfg.clients
	if err := clients.Command(probe, client.Probed, time.Duration(each+1)*(maxTTL()+client.ProbeGrace)); err != nil {
		failures = append(failures, err.Error())
	}
	return failures
}

// command is the command line that repeats the run.
func (c *config) command() string {
	text := fmt.Sprintf("go run ./tools/chaos -seed %d -duration %s -clients %d -keys %d -workers %d -skew %s",
		c.seed, c.duration, c.clients, c.keys, c.workers, c.skew)
	if c.control != client.NoControl {
		text += " -control " + string(c.control)
	}
	return text
}
