package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tenure-dev/tenure/internal/chaos/arena"
	"github.com/tenure-dev/tenure/internal/chaos/journal"
	"github.com/tenure-dev/tenure/internal/chaos/schedule"
	"github.com/tenure-dev/tenure/internal/soak/cast"
	"github.com/tenure-dev/tenure/internal/soak/plan"
	"github.com/tenure-dev/tenure/internal/soak/storm"
	"github.com/tenure-dev/tenure/internal/soak/work"
)

const (
	servers  = 5
	replicas = 5
	// warmUp and tail are left out at the start and at the end: replicas whose clocks differ do not begin and end with the same tick.
	warmUp = 3 * time.Second
	tail   = 3 * time.Second
)

// settings are what a replica is told.
type settings struct {
	Way   string        `json:"way"`
	URLs  []string      `json:"urls"`
	Ahead time.Duration `json:"ahead"`
}

// stage tries one way and counts.
func stage(ctx context.Context, cfg *config, w way, out io.Writer) (*tally, error) {
	dir, err := os.MkdirTemp("", "cron-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	strikes, err := journal.Create(dir, "strikes")
	if err != nil {
		return nil, err
	}
	defer strikes.Close()
	place, err := arena.New(servers)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	skews := plan.Skews(cfg.seed, replicas, work.MaxAhead)
	players, err := cast.New(replicas, filepath.Join(dir, "replicas"), func(number int) any {
		return settings{Way: w.name, URLs: place.URLs(schedule.Left), Ahead: skews[number]}
	})
	if err != nil {
		return nil, err
	}
	defer players.Close()
	if err := players.StartAll(); err != nil {
		return nil, err
	}
	faults := plan.Plan(cfg.seed, plan.Config{Duration: cfg.duration, Replicas: replicas, Kinds: []plan.Kind{plan.Kill, plan.Roll}})
	fmt.Fprintf(out, "%s: clocks ahead by %v, %d faults in %s\n", w.name, skews, len(faults), cfg.duration)
	s := &storm.Storm{Arena: place, Cast: players, Replicas: replicas, Strikes: strikes, Out: io.Discard}
	if cfg.verbose {
		s.Out = out
	}
	t := &tally{way: w.name, from: time.Now().Add(warmUp).UnixMilli(), faults: len(faults), runs: make(map[string]map[int64]int)}
	end, cancel := context.WithTimeout(ctx, cfg.duration)
	defer cancel()
	if err := s.Run(end, faults); err != nil {
		return nil, err
	}
	<-end.Done()
	t.to = time.Now().Add(-tail).UnixMilli()
	if err := errors.Join(players.StopAll()); err != nil {
		return nil, err
	}
	for _, life := range players.Close() {
		if life.Err != "" && life.Killed == 0 {
			return nil, fmt.Errorf("replica %s ended by itself: %s: %s", life.Name, life.Err, life.Stderr)
		}
	}
	records, err := cast.Journals(filepath.Join(dir, "replicas"), replicas)
	if err != nil {
		return nil, err
	}
	t.add(records)
	return t, nil
}
