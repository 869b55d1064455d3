package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// handoverHold is how long a key is held before it is handed over: long enough for the other to
// wait already.
const handoverHold = 150 * time.Millisecond

func handoverRow() *row {
	return &row{
		name: "handover", title: "graceful hand-over to one waiter",
		columns: []column{{Name: "p50 ms"}, {Name: "x floor", Of: "p50 ms", To: rival.Oracle.Name}, {Name: "p99 ms"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = fmt.Sprintf("%d rounds of %s: two take turns. From the call of release until the waiter has the key.", s.size.few, s.size.handover)
			b.absent(rival.Floor, "has no way to wait")
			for round := range s.size.few {
				for _, k := range s.takePart(handing(), round) {
					if err := s.servers.Flush(ctx); err != nil {
						return err
					}
					if err := s.handOver(ctx, b, k); err != nil {
						return fmt.Errorf("%s, round %d: %w", k.Name, round+1, err)
					}
				}
			}
			return nil
		},
	}
}

type got struct {
	held rival.Held
	at   time.Time
	err  error
}

func (s *stage) handOver(ctx context.Context, b *board, k *rival.Kind) error {
	es, leave, err := s.enter([]*rival.Kind{k, k}, s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer leave()
	const key = "handover"
	held, err := es[0].Acquire(ctx, key)
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	var times []float64
	for turn, end := 1, time.Now().Add(s.size.handover); ; turn++ {
		next := make(chan got, 1)
		go func() {
			h, err := es[turn%2].Acquire(ctx, key)
			next <- got{h, time.Now(), err}
		}()
		time.Sleep(handoverHold)
		released := time.Now()
		err := held.Release(ctx)
		n := <-next
		if err := errors.Join(err, n.err); err != nil {
			return err
		}
		held = n.held
		if turn > 1 { // the first wait makes connections
			times = append(times, millis(n.at.Sub(released)))
		}
		if len(times) > 0 && time.Now().After(end) {
			break
		}
	}
	if err := held.Release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	b.add(k, "p50 ms", stat.Quantile(times, 0.5))
	b.add(k, "p99 ms", stat.Quantile(times, 0.99))
	return nil
}
