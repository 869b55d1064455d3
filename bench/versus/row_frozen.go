package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

const (
	// frozenCallers is how many callers there are at once in the second part.
	frozenCallers = 64
	// calmWithin bounds how long those may take to end whose answers come when the server is
	// thawed.
	calmWithin = 30 * time.Second
)

func frozenRow() *row {
	return &row{
		name: "frozen", title: "one server of five stopped with SIGSTOP",
		columns: []column{{Name: "healthy p99 us"}, {Name: "frozen p50 us"}, {Name: "frozen p99 us"}, {Name: "p99 x healthy"},
			{Name: "healthy goroutines"}, {Name: "frozen goroutines"}, {Name: "more goroutines"}, {Name: "frozen memory MiB"},
			{Name: "keys left on the healthy"}},
		run: frozen,
	}
}

func frozen(ctx context.Context, s *stage, b *board) error {
	b.Work = fmt.Sprintf("Pairs of one goroutine for %s, and at least one, before and after the freeze; then as long with %d goroutines. "+
		"Goroutines and memory (objects and stacks) at their peak, keys while the server is still frozen.", s.size.frozen, frozenCallers)
	b.absent(rival.Redislock, "one server: it is that one or not")
	b.absent(rival.Valkeylock, "one server: it is that one or not")
	kinds := []*rival.Kind{rival.Floor, rival.Tenure}
	if s.size.slowToo {
		kinds = append(kinds, rival.Redsync)
	}
	for _, k := range s.takePart(kinds, 0) {
		if err := s.freeze(ctx, b, k); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	return nil
}

func (s *stage) freeze(ctx context.Context, b *board, k *rival.Kind) error {
	if err := s.servers.Flush(ctx); err != nil {
		return err
	}
	idle := runtime.NumGoroutine()
	es, leave, err := s.enter([]*rival.Kind{k}, s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer leave()
	e := es[0]
	part := func(name string) ([]float64, int, uint64, error) {
		p, err := pairsFor(ctx, e, name, s.size.frozen)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("%s: %w", name, err)
		}
		runtime.GC()
		peak := stat.FollowPeak()
		_, err = manyPairs(ctx, e, frozenCallers, s.size.frozen, newKeys)
		goroutines, memory := peak.Stop()
		if err != nil {
			return nil, 0, 0, fmt.Errorf("%s, %d callers: %w", name, frozenCallers, err)
		}
		return p, goroutines, memory, nil
	}
	healthy, goroutines, _, err := part("healthy")
	if err != nil {
		return err
	}
	if err := s.servers.Flush(ctx); err != nil {
		return err
	}
	victim := s.servers.Node(nodes - 1)
	if err := victim.Freeze(); err != nil {
		return err
	}
	defer victim.Thaw()
	slow, more, memory, err := part("frozen")
	if err != nil {
		return err
	}
	left, err := s.left(ctx, nodes-1)
	if err != nil {
		return err
	}
	if err := victim.Thaw(); err != nil {
		return err
	}
	for deadline := time.Now().Add(calmWithin); runtime.NumGoroutine() > idle+10*frozenCallers && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	b.add(k, "healthy p99 us", stat.Quantile(healthy, 0.99))
	b.add(k, "frozen p50 us", stat.Quantile(slow, 0.5))
	b.add(k, "frozen p99 us", stat.Quantile(slow, 0.99))
	b.add(k, "p99 x healthy", stat.Quantile(slow, 0.99)/stat.Quantile(healthy, 0.99))
	b.add(k, "healthy goroutines", float64(goroutines))
	b.add(k, "frozen goroutines", float64(more))
	b.add(k, "more goroutines", float64(more-goroutines))
	b.add(k, "frozen memory MiB", mebi(memory))
	b.add(k, "keys left on the healthy", float64(left))
	return nil
}

// pairsFor makes pairs, at least one, and returns how long each took.
func pairsFor(ctx context.Context, e *entrant, name string, slice time.Duration) ([]float64, error) {
	var times []float64
	for end := time.Now().Add(slice); len(times) == 0 || time.Now().Before(end); {
		began := time.Now()
		held, err := e.Try(ctx, name+"/"+strconv.Itoa(len(times)))
		if err != nil {
			return nil, fmt.Errorf("acquire: %w", err)
		}
		if err := held.Release(ctx); err != nil {
			return nil, fmt.Errorf("release: %w", err)
		}
		times = append(times, micros(time.Since(began)))
	}
	return times, nil
}
