package main

import (
	"context"
	"fmt"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

const (
	steadyRate = 4000 // pairs a second
	// warmCallers make connections before.
	warmCallers = 64
)

// generator is no lock at all: what the load itself takes.
var generator = &rival.Kind{Name: "no lock", Module: rival.Tenure.Module, Servers: "0", Open: func(rival.Config) (rival.Rival, error) { return noLock{}, nil }}

type noLock struct{}

func (l noLock) Try(context.Context, string) (rival.Held, error) { return l, nil }
func (noLock) Acquire(context.Context, string) (rival.Held, error) {
	return nil, rival.ErrCannotWait
}
func (noLock) Release(context.Context) error { return nil }
func (noLock) Close() error                  { return nil }

func steadyRow() *row {
	return &row{
		name: "steady", title: fmt.Sprintf("%d pairs a second, whatever comes back", steadyRate),
		columns: []column{{Name: "p50 us"}, {Name: "p99 us"}, {Name: "p99.9 us"},
			{Name: "p50 x batching", Of: "p50 us", To: rival.Batcher.Name}, {Name: "p99 x batching", Of: "p99 us", To: rival.Batcher.Name},
			{Name: clientCPU}, {Name: "client CPU x batching", Of: clientCPU, To: rival.Batcher.Name},
			{Name: serverCPU}, {Name: "server CPU x batching", Of: serverCPU, To: rival.Batcher.Name}, {Name: "failed"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = fmt.Sprintf("Pairs begin when they are due, whether those before have ended or not, and their time counts from then: a stall costs all that wait for it. "+
				"Each pair has a new key. What failed counts with the time and the CPU that it took. %d rounds of %s. *%s* is what the load takes by itself.", s.size.rounds, s.size.open, generator.Name)
			kinds := []*rival.Kind{generator, rival.Floor, rival.Batcher, rival.Merger, rival.Tenure, rival.Redsync, rival.Redislock, rival.Valkeylock}
			es, leave, err := s.enter(s.takePart(kinds, 0), s.config(defaultTTL))
			if err != nil {
				return err
			}
			defer leave()
			return s.rounds(ctx, es, func(e *entrant) error {
				if _, err := manyPairs(ctx, e, warmCallers, 0, warmUp(newKeys)); err != nil {
					return err
				}
				plan := newSchedule(steadyRate, s.size.open)
				times, spent, err := s.openLoop(ctx, e, plan)
				if err != nil {
					return err
				}
				b.add(e.Kind, "p50 us", times.quantile(0.5))
				b.add(e.Kind, "p99 us", times.quantile(0.99))
				b.add(e.Kind, "p99.9 us", times.quantile(0.999))
				spent.add(b, e.Kind, plan.pairs)
				b.add(e.Kind, "failed", float64(times.failed))
				return nil
			})
		},
	}
}

// openLoop is an open loop, and what it cost.
func (s *stage) openLoop(ctx context.Context, e *entrant, plan schedule) (times *openTimes, spent *cost, err error) {
	spent, err = s.costOf(ctx, func() (err error) {
		times, err = openLoop(ctx, e, plan)
		return err
	})
	return times, spent, err
}
