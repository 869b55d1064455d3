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

// The columns that cost fills.
const (
	clientCPU   = "client CPU us/pair"
	serverCPU   = "server CPU us/pair" // of one server
	allocations = "allocations/pair"
)

const (
	// pairWarmUp is how many pairs are not measured: they make connections, load scripts and fill
	// caches.
	pairWarmUp = 50
	// pairMost bounds the pairs of a round, and with them the memory for their times.
	pairMost = 100_000
	// leftWithin is how long a release may go on in the background before keys count as left
	// behind.
	leftWithin = 500 * time.Millisecond
	// goroutines is the number of callers in rows with many of them.
	goroutines = 64
	// calmWithin bounds how long callers whose answers come when the server is thawed may take to
	// end.
	calmWithin = 30 * time.Second
)

// pair measures the row pair. The rivals stay open for all rounds, so that a process's first steps
// are not measured.
func (s *stage) pair(ctx context.Context, b *board) error {
	rs, leave, err := enter(b.kinds, s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer leave()
	return s.each(ctx, b.rounds, b.kinds, func(k *rival.Kind) error { return s.pairs(ctx, b, k, rs[slices.Index(b.kinds, k)]) })
}

// pairs measures a rival with one pair at a time.
func (s *stage) pairs(ctx context.Context, b *board, k *rival.Kind, r rival.Rival) error {
	names := keys("pair", pairWarmUp+pairMost)
	for _, key := range names[:pairWarmUp] {
		if err := pair(ctx, r, key); err != nil {
			return err
		}
	}
	var times []float64
	err := s.cost(ctx, b, k, func() (_ int, err error) {
		times, err = pairsFor(ctx, r, names[pairWarmUp:], s.size.slice)
		return len(times), err
	})
	if err != nil {
		return err
	}
	b.quantiles(k, "us", times)
	left, err := s.left(ctx, nodes)
	b.add(k, "keys left", float64(left))
	return err
}

// keys returns n different names. They are made before anything is measured.
func keys(of string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = of + "/" + strconv.Itoa(i)
	}
	return all
}

// pair acquires a key and releases it.
func pair(ctx context.Context, r rival.Rival, key string) error {
	held, err := r.Try(ctx, key)
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	if err := held.Release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// pairsFor makes pairs for a time, at least one, each with a new key. It returns how long each
// took, in microseconds.
func pairsFor(ctx context.Context, r rival.Rival, keys []string, slice time.Duration) ([]float64, error) {
	times := make([]float64, 0, len(keys))
	end := time.Now().Add(slice)
	for _, key := range keys {
		began := time.Now()
		if len(times) > 0 && began.After(end) {
			break
		}
		if err := pair(ctx, r, key); err != nil {
			return nil, err
		}
		times = append(times, micros(time.Since(began)))
	}
	return times, nil
}

// cost has pairs made, after a garbage collection, and adds the cost of one pair: its allocations,
// the CPU of this process, including the background, and the CPU of one server, which is the mean
// of the servers that the rival locks on.
func (s *stage) cost(ctx context.Context, b *board, k *rival.Kind, work func() (pairs int, err error)) error {
	runtime.GC()
	servers, err := s.servers.CPU(ctx)
	if err != nil {
		return err
	}
	before := stat.Used()
	pairs, err := work()
	if err != nil {
		return err
	}
	after := stat.Used()
	serversAfter, err := s.servers.CPU(ctx)
	if err != nil {
		return err
	}
	n := float64(pairs)
	b.add(k, clientCPU, micros(after.CPU-before.CPU)/n)
	b.add(k, allocations, float64(after.Mallocs-before.Mallocs)/n)
	b.add(k, serverCPU, micros(serversAfter-servers)/n/float64(k.Servers))
	return nil
}

// left counts the locks on the first servers when none is held any more.
func (s *stage) left(ctx context.Context, first int) (int, error) {
	for deadline := time.Now().Add(leftWithin); ; {
		count, err := s.servers.Locks(ctx, s.servers.Nodes()[:first])
		if count == 0 || err != nil || time.Now().After(deadline) {
			return count, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// distinct measures how many pairs a second many goroutines make.
func (s *stage) distinct(ctx context.Context, b *board, k *rival.Kind) error {
	r, err := k.Open(s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer r.Close()
	// The first pairs make connections, and are not measured.
	if _, err := manyPairs(ctx, r, 0, ownKeys); err != nil {
		return err
	}
	return s.cost(ctx, b, k, func() (int, error) {
		began := time.Now()
		pairs, err := manyPairs(ctx, r, s.size.slice, ownKeys)
		b.add(k, "pairs/s", float64(pairs)/time.Since(began).Seconds())
		return pairs, err
	})
}

// ownKeys gives each goroutine one key for all its pairs.
func ownKeys(goroutine, _ int) string { return fmt.Sprintf("distinct/%d", goroutine) }

// newKeys gives each pair a key of its own, for rivals that leave keys behind.
func newKeys(goroutine, pair int) string { return fmt.Sprintf("distinct/%d/%d", goroutine, pair) }

// manyPairs has many goroutines acquire and release, each at least once, and returns the number of
// pairs.
func manyPairs(ctx context.Context, r rival.Rival, slice time.Duration, key func(goroutine, pair int) string) (sum int, err error) {
	counts := make([]int, goroutines)
	began := time.Now()
	err = atOnce(goroutines, func(i int) error {
		for counts[i] == 0 || time.Since(began) < slice {
			if err := pair(ctx, r, key(i, counts[i])); err != nil {
				return err
			}
			counts[i]++
		}
		return nil
	})
	for _, n := range counts {
		sum += n
	}
	return sum, err
}

func (s *stage) freeze(ctx context.Context, b *board, k *rival.Kind) error {
	idle := runtime.NumGoroutine()
	r, err := k.Open(s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer r.Close()
	part := func(name string) (p50, p99 float64, peak int, err error) {
		times, err := pairsFor(ctx, r, keys(name, pairMost), s.size.frozen)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%s: %w", name, err)
		}
		runtime.GC()
		stop := stat.FollowPeak()
		_, err = manyPairs(ctx, r, s.size.frozen, newKeys)
		peak, memory := stop()
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%s, %d callers: %w", name, goroutines, err)
		}
		b.add(k, name+" goroutines", float64(peak))
		if p99 = stat.Quantile(times, 0.99); name == "frozen" {
			b.add(k, "frozen memory MiB", mebi(memory))
		}
		b.add(k, name+" p99 us", p99)
		return stat.Quantile(times, 0.5), p99, peak, nil
	}
	_, healthy, before, err := part("healthy")
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
	p50, p99, peak, err := part("frozen")
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
	for deadline := time.Now().Add(calmWithin); runtime.NumGoroutine() > idle+10*goroutines && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	b.add(k, "frozen p50 us", p50)
	b.add(k, "p99 x healthy", p99/healthy)
	b.add(k, "more goroutines", float64(peak-before))
	b.add(k, "keys left on the healthy", float64(left))
	return nil
}
