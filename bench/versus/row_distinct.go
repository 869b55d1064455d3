package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// manyColumns are those of rows with many goroutines.
func manyColumns() []column {
	return []column{{Name: "pairs/s"}, {Name: "x floor", Of: "pairs/s", To: rival.Floor.Name},
		{Name: "x same commands", Of: "pairs/s", To: rival.Mimic.Name}, {Name: "x batching", Of: "pairs/s", To: rival.Batcher.Name},
		{Name: "x merging", Of: "pairs/s", To: rival.Merger.Name}, {Name: "x redsync", Of: "pairs/s", To: rival.Redsync.Name},
		{Name: clientCPU}, {Name: "client CPU x batching", Of: clientCPU, To: rival.Batcher.Name},
		{Name: serverCPU}, {Name: "server CPU x batching", Of: serverCPU, To: rival.Batcher.Name}, {Name: "server CPU x merging", Of: serverCPU, To: rival.Merger.Name},
		{Name: allocations}}
}

func distinctRow(goroutines int) *row {
	return &row{
		name: fmt.Sprintf("distinct%d", goroutines), title: fmt.Sprintf("acquire and release, %d goroutines, a key each", goroutines),
		columns: manyColumns(),
		run: func(ctx context.Context, s *stage, b *board) error {
			b.absent(rival.RedsyncFast, "its leftovers keep it out of its own key")
			b.Work = "Each goroutine has one key, over and over. "
			kinds := []*rival.Kind{rival.Floor, rival.Mimic, rival.Batcher, rival.Merger, rival.Tenure, rival.Redsync, rival.RedsyncGo, rival.Redislock, rival.Valkeylock}
			return s.distinct(ctx, b, kinds, many{goroutines: goroutines, key: ownKeys})
		},
	}
}

// memoryColumn is what a key that was used once costs a server. Fences accumulate.
const memoryColumn = "server memory B/pair"

func newKeysRow(goroutines int) *row {
	return &row{
		name: fmt.Sprintf("new%d", goroutines), title: fmt.Sprintf("acquire and release, %d goroutines, a new key each time", goroutines),
		columns: append(manyColumns(), column{Name: memoryColumn}),
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = "No key is used twice, so that all that a lease leaves on the servers accumulates: Tenure's fences, and what a floor's release has overtaken. " +
				"The servers are emptied before each round. Their memory is what has grown on one of them, for each pair. "
			kinds := []*rival.Kind{rival.Floor, rival.Mimic, rival.Batcher, rival.Merger, rival.Tenure, rival.Redsync, rival.RedsyncFast, rival.Redislock, rival.Valkeylock}
			return s.distinct(ctx, b, kinds, many{goroutines: goroutines, key: newKeys, memory: true})
		},
	}
}

// many is how pairs of many goroutines are measured.
type many struct {
	goroutines int
	key        func(goroutine, pair int) string
	memory     bool
	then       func(e *entrant) error // after that; may be nil
}

// distinct measures how many pairs many goroutines have in a second.
func (s *stage) distinct(ctx context.Context, b *board, kinds []*rival.Kind, m many) error {
	b.Work += fmt.Sprintf("%d rounds of %s with %d goroutines. ", s.size.rounds, s.size.slice, m.goroutines)
	es, leave, err := s.enter(s.takePart(kinds, 0), s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer leave()
	return s.rounds(ctx, es, func(e *entrant) error {
		// A first pair each makes connections, and is not measured.
		if _, err := manyPairs(ctx, e, m.goroutines, 0, warmUp(m.key)); err != nil {
			return err
		}
		memory, err := s.servers.Memory(ctx)
		if err != nil {
			return err
		}
		pairs := 0
		spent, err := s.costOf(ctx, func() (err error) {
			pairs, err = manyPairs(ctx, e, m.goroutines, s.size.slice, m.key)
			return err
		})
		if err != nil {
			return err
		}
		b.add(e.Kind, "pairs/s", float64(pairs)/spent.took.Seconds())
		spent.add(b, e.Kind, pairs)
		b.add(e.Kind, allocations, float64(spent.allocations)/float64(pairs))
		if servers := serversOf(e.Kind); m.memory && servers > 0 {
			after, err := s.servers.Memory(ctx)
			if err != nil {
				return err
			}
			b.add(e.Kind, memoryColumn, (after-memory)/float64(pairs*servers))
		}
		if m.then != nil {
			return m.then(e)
		}
		return nil
	})
}

// ownKeys gives each goroutine one key for all its pairs.
func ownKeys(goroutine, _ int) string { return fmt.Sprintf("distinct/%d", goroutine) }

// newKeys gives each pair a key, for those that leave some behind.
func newKeys(goroutine, pair int) string { return fmt.Sprintf("distinct/%d/%d", goroutine, pair) }

// warmUp gives other keys than key, so that those stay new.
func warmUp(key func(goroutine, pair int) string) func(goroutine, pair int) string {
	return func(goroutine, pair int) string { return "first/" + key(goroutine, pair) }
}

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
