package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// manyColumns are those of rows with many goroutines.
func manyColumns() []column {
	return []column{{Name: "pairs/s"}, {Name: "x floor", Of: "pairs/s", To: rival.Floor.Name},
		{Name: "x batching", Of: "pairs/s", To: rival.Batcher.Name}, {Name: "x redsync", Of: "pairs/s", To: rival.Redsync.Name},
		{Name: "x no standby", Of: "pairs/s", To: rival.Tenure.Name},
		{Name: clientCPU}, {Name: "client CPU x batching", Of: clientCPU, To: rival.Batcher.Name},
		{Name: serverCPU}, {Name: "server CPU x batching", Of: serverCPU, To: rival.Batcher.Name},
		{Name: allocations}}
}

func distinctRow(goroutines int) *row {
	return &row{
		name: fmt.Sprintf("distinct%d", goroutines), title: fmt.Sprintf("acquire and release, %d goroutines, a key each", goroutines),
		columns: manyColumns(),
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = "Each goroutine has one key, over and over. "
			kinds := []*rival.Kind{rival.Floor, rival.Batcher, rival.Tenure, rival.TenureStandby, rival.Redsync, rival.Redislock, rival.Valkeylock}
			return s.distinct(ctx, b, kinds, goroutines)
		},
	}
}

// distinct measures how many pairs many goroutines have in a second.
func (s *stage) distinct(ctx context.Context, b *board, kinds []*rival.Kind, goroutines int) error {
	b.Work += fmt.Sprintf("%d rounds of %s with %d goroutines. ", s.size.rounds, s.size.slice, goroutines)
	es, leave, err := s.enter(s.takePart(kinds, 0), s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer leave()
	return s.rounds(ctx, es, func(e *entrant) (err error) {
		if p, ok := e.Rival.(rival.Preparer); ok {
			stop, unprepared := p.Prepare(ctx)
			if unprepared != nil {
				return unprepared
			}
			defer func() { err = errors.Join(err, stop()) }()
		}
		// A first pair each makes connections, and is not measured.
		if _, err := manyPairs(ctx, e, goroutines, 0, ownKeys); err != nil {
			return err
		}
		pairs := 0
		spent, err := s.costOf(ctx, func() (err error) {
			pairs, err = manyPairs(ctx, e, goroutines, s.size.slice, ownKeys)
			return err
		})
		if err != nil {
			return err
		}
		b.add(e.Kind, "pairs/s", float64(pairs)/spent.took.Seconds())
		spent.add(b, e.Kind, pairs)
		b.add(e.Kind, allocations, float64(spent.allocations)/float64(pairs))
		return nil
	})
}

// ownKeys gives each goroutine one key for all its pairs.
func ownKeys(goroutine, _ int) string { return fmt.Sprintf("distinct/%d", goroutine) }

// newKeys gives each pair a key, for those that leave some behind.
func newKeys(goroutine, pair int) string { return fmt.Sprintf("distinct/%d/%d", goroutine, pair) }

// manyPairs has many goroutines acquire and release, each at least once, and returns how many pairs
// they had.
func manyPairs(ctx context.Context, e *entrant, goroutines int, slice time.Duration, key func(goroutine, pair int) string) (int, error) {
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
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum, firstOf(errs)
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
