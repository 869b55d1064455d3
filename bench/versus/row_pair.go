package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// pairWarmUp is how many pairs come before those that count: connections, scripts, caches.
const pairWarmUp = 50

// pairMost bounds the pairs of a round, and with them the memory for their times.
const pairMost = 100_000

// leftWithin is how long a release may go on in the background before keys count as left behind.
const leftWithin = 500 * time.Millisecond

func pairRow() *row {
	return &row{
		name: "pair", title: "acquire and release, one goroutine",
		columns: []column{{Name: "p50 us"}, {Name: "p99 us"}, {Name: "p50 x floor", Of: "p50 us", To: rival.Floor.Name},
			{Name: "p50 x redsync", Of: "p50 us", To: rival.Redsync.Name}, {Name: clientCPU},
			{Name: serverCPU}, {Name: allocations}, {Name: "keys left"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			others := []*rival.Kind{rival.Oracle, rival.TenureStandby}
			kinds := slices.DeleteFunc(rival.All(), func(k *rival.Kind) bool { return slices.Contains(others, k) })
			return s.pairs(ctx, b, kinds)
		},
	}
}

// pairs measures rivals one pair at a time. Each pair has a key of its own.
func (s *stage) pairs(ctx context.Context, b *board, kinds []*rival.Kind) error {
	b.Work = fmt.Sprintf("%d rounds of %s each; each pair has a new key. ", s.size.rounds, s.size.slice)
	es, leave, err := s.enter(s.takePart(kinds, 0), s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer leave()
	return s.rounds(ctx, es, func(e *entrant) error {
		before, err := s.servers.CPU(ctx)
		if err != nil {
			return err
		}
		p, err := pairFor(ctx, e, s.size.slice)
		if err != nil {
			return err
		}
		b.add(e.Kind, "p50 us", stat.Quantile(p.micros, 0.5))
		b.add(e.Kind, "p99 us", stat.Quantile(p.micros, 0.99))
		b.add(e.Kind, clientCPU, p.cpu)
		b.add(e.Kind, allocations, p.allocations)
		servers := serversOf(e.Kind)
		if servers == 0 {
			return nil
		}
		after, err := s.servers.CPU(ctx)
		if err != nil {
			return err
		}
		b.add(e.Kind, serverCPU, micros(after-before)/float64((pairWarmUp+len(p.micros))*servers))
		left, err := s.left(ctx, nodes)
		b.add(e.Kind, "keys left", float64(left))
		return err
	})
}

// left counts the locks that are on the first servers although nobody holds one.
func (s *stage) left(ctx context.Context, first int) (int, error) {
	for deadline := time.Now().Add(leftWithin); ; {
		count, err := s.servers.Locks(ctx, s.servers.Nodes()[:first])
		if count == 0 || err != nil || time.Now().After(deadline) {
			return count, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// pairTimes is how long pairs took, and what each used of this process's CPU and allocated on
// average, the background included.
type pairTimes struct {
	micros      []float64
	cpu         float64 // us
	allocations float64
}

func pairFor(ctx context.Context, e *entrant, slice time.Duration) (*pairTimes, error) {
	keys := make([]string, pairWarmUp+pairMost)
	for i := range keys {
		keys[i] = "pair/" + strconv.Itoa(i)
	}
	pair := func(key string) error {
		held, err := e.Try(ctx, key)
		if err != nil {
			return fmt.Errorf("acquire: %w", err)
		}
		if err := held.Release(ctx); err != nil {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	}
	for _, key := range keys[:pairWarmUp] {
		if err := pair(key); err != nil {
			return nil, err
		}
	}
	p := &pairTimes{micros: make([]float64, 0, pairMost)}
	runtime.GC()
	before, err := stat.Used()
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(slice)
	for _, key := range keys[pairWarmUp:] {
		began := time.Now()
		if began.After(end) {
			break
		}
		if err := pair(key); err != nil {
			return nil, err
		}
		p.micros = append(p.micros, micros(time.Since(began)))
	}
	after, err := stat.Used()
	if err != nil {
		return nil, err
	}
	p.cpu = micros(after.CPU-before.CPU) / float64(len(p.micros))
	p.allocations = float64(after.Mallocs-before.Mallocs) / float64(len(p.micros))
	return p, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebi(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
