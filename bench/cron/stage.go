package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/cluster"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/soak/nemesis"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

const (
	// warmUp and tail are left out at the start and at the end: replicas whose clocks differ do not
	// begin and end with the same tick.
	warmUp = 3 * time.Second
	tail   = 2 * time.Second
	// calm is how long nothing happens after the faults, so that what was missed is caught up by
	// the way that does so: the soak's.
	calm = 12 * time.Second
)

// settings are what a replica is told: what one of the soak is, and the way to go.
type settings struct {
	Way string `json:"way"`
	replica.Settings
}

// topology is the soak's first, with faults that every way has an answer to: no clock leaps, no
// server stands still, and replicas are not stopped at a tick, nor all at once.
func topology() plan.Topology {
	t := plan.Topologies()[0]
	t.Kinds, t.Deploys, t.Freezes = []fault.Kind{plan.Kill, plan.Freeze, plan.Roll}, 0, 0
	return t
}

// stage tries one way and counts.
func stage(ctx context.Context, cfg *config, w way, out io.Writer) (*tally, error) {
	dir, err := os.MkdirTemp("", "cron-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	strikes, err := history.Create(dir, "strikes")
	if err != nil {
		return nil, err
	}
	defer strikes.Close()
	servers, err := cluster.New(plan.Servers)
	if err != nil {
		return nil, err
	}
	defer servers.Close()
	begun, skews := time.Now(), plan.Skews(cfg.seed, plan.Replicas, work.MaxAhead)
	journals := filepath.Join(dir, "replicas")
	replicas, err := clients.New(clients.Config{
		Count: plan.Replicas, Letter: "r", Journals: journals, Patience: replica.StopPatience,
		Settings: func(number, _ int) any {
			return settings{w.name, replica.Settings{
				URLs: servers.URLs(fault.Left), Ahead: skews[number], Start: begun, Duration: cfg.duration, Seed: cfg.seed, AtMostOnce: true,
			}}
		},
	})
	if err != nil {
		return nil, err
	}
	defer replicas.Close()
	if err := replicas.StartAll(); err != nil {
		return nil, err
	}
	faults := plan.Plan(cfg.seed, topology(), cfg.duration)
	fmt.Fprintf(out, "%s: clocks ahead by %v, %d faults in %s\n", w.name, skews, len(faults), cfg.duration)
	injected := io.Discard
	if cfg.verbose {
		injected = out
	}
	t := &tally{way: w.name, from: time.Now().Add(warmUp).UnixMilli(), faults: len(faults), runs: make(map[string]map[int64]int)}
	end, cancel := context.WithTimeout(ctx, cfg.duration)
	defer cancel()
	n := &nemesis.Nemesis{Cluster: servers, Replicas: replicas, Strikes: strikes}
	if err := n.Run(end, injected, faults); err != nil {
		return nil, err
	}
	<-end.Done()
	t.to = time.Now().Add(-tail).UnixMilli()
	select {
	case <-time.After(calm):
	case <-ctx.Done():
	}
	if err := replicas.StopAll(); err != nil {
		return nil, err
	}
	var failed []error
	for _, life := range replicas.Close() {
		if life.Err != "" && life.Killed == 0 {
			failed = append(failed, fmt.Errorf("replica %s ended by itself: %s: %s", life.Name, life.Err, life.Stderr))
		}
	}
	records, err := history.ReadAll[record.Record](journals)
	if err := errors.Join(append(failed, err)...); err != nil {
		return nil, err
	}
	t.add(records)
	return t, nil
}
