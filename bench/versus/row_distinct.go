package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

func distinctRow(goroutines int) *row {
	return &row{
		name: fmt.Sprintf("distinct%d", goroutines), title: fmt.Sprintf("acquire and release, %d goroutines, a key each", goroutines),
		columns: []column{{Name: "pairs/s"}, {Name: "x floor", Of: "pairs/s", To: rival.Floor.Name},
			{Name: "x same commands", Of: "pairs/s", To: rival.Mimic.Name}, {Name: "x batching", Of: "pairs/s", To: rival.Batcher.Name},
			{Name: "x redsync", Of: "pairs/s", To: rival.Redsync.Name}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.absent(rival.RedsyncFast, "its leftovers keep it out of its own key")
			kinds := []*rival.Kind{rival.Floor, rival.Mimic, rival.Batcher, rival.Tenure, rival.Redsync, rival.RedsyncGo, rival.Redislock, rival.Valkeylock, rival.Etcd}
			return s.distinct(ctx, b, kinds, s.config(defaultTTL), goroutines)
		},
	}
}

// distinct measures how many pairs many goroutines have in a second.
func (s *stage) distinct(ctx context.Context, b *board, kinds []*rival.Kind, c rival.Config, goroutines int) error {
	b.Work += fmt.Sprintf("%d rounds of %s with %d goroutines. ", s.size.rounds, s.size.slice, goroutines)
	es, leave, err := s.enter(kinds, c)
	if err != nil {
		return err
	}
	defer leave()
	return s.rounds(ctx, es, func(e *entrant) error {
		// A first pair each makes connections, and is not measured.
		if _, err := pairsPerSecond(ctx, e, goroutines, 0, ownKeys); err != nil {
			return err
		}
		rate, err := pairsPerSecond(ctx, e, goroutines, s.size.slice, ownKeys)
		b.add(e.Kind, "pairs/s", rate)
		return err
	})
}

// ownKeys gives each goroutine one key for all its pairs.
func ownKeys(goroutine, _ int) string { return fmt.Sprintf("distinct/%d", goroutine) }

// newKeys gives each pair a key, for those that leave some behind.
func newKeys(goroutine, pair int) string { return fmt.Sprintf("distinct/%d/%d", goroutine, pair) }

func pairsPerSecond(ctx context.Context, e *entrant, goroutines int, slice time.Duration, key func(goroutine, pair int) string) (float64, error) {
	runtime.GC()
	counts, errs := make([]int, goroutines), make([]error, goroutines)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for counts[i] == 0 || time.Since(began) < slice {
				held, err := e.Try(ctx, key(i, counts[i]))
				if err == nil {
					err = held.Release(ctx)
				}
				if err != nil {
					errs[i] = err
					return
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	took, sum := time.Since(began), 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / took.Seconds(), firstOf(errs)
}

// firstOf returns the first error of many callers, which mostly have the same, and says how many
// there are.
func firstOf(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d of the callers failed; the first: %w", len(errs), errs[0])
}
