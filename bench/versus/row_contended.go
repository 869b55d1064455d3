package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

const (
	contenders    = 16
	contendedHold = 5 * time.Millisecond
	contendedKey  = "contended"
)

// waiting are the rivals with a way to wait.
func waiting() []*rival.Kind {
	return []*rival.Kind{rival.Tenure, rival.Redsync, rival.Redislock, rival.Valkeylock}
}

// handing are those, and the floor of a hand-over.
func handing() []*rival.Kind { return append([]*rival.Kind{rival.Oracle}, waiting()...) }

func contendedRow() *row {
	return &row{
		name: "contended", title: fmt.Sprintf("%d contenders with clients of their own, one key, held for %s", contenders, contendedHold),
		columns: []column{{Name: "acquisitions/s"}, {Name: "acquisitions x floor", Of: "acquisitions/s", To: rival.Oracle.Name}, {Name: "commands each"}, {Name: "server calls each"}, {Name: "hand-over p50 ms"},
			{Name: "hand-over x floor", Of: "hand-over p50 ms", To: rival.Oracle.Name}, {Name: "hand-over p99 ms"}, {Name: "least of a contender"}, {Name: "most"}, {Name: "least/most"}},
		run: contended,
	}
}

func contended(ctx context.Context, s *stage, b *board) error {
	b.Work = fmt.Sprintf("%d rounds of %s. Commands are those that the contenders sent; server calls are INFO commandstats, where what a "+
		"script calls counts too. A hand-over is from the call of release until the next has it.", s.size.few, s.size.contended)
	b.absent(rival.Floor, "has no way to wait")
	for round := range s.size.few {
		for _, k := range s.takePart(handing(), round) {
			if err := s.servers.Flush(ctx); err != nil {
				return err
			}
			if err := s.contend(ctx, b, k); err != nil {
				return fmt.Errorf("%s, round %d: %w", k.Name, round+1, err)
			}
		}
	}
	return nil
}

// contest is the contenders for one key.
type contest struct {
	inside   atomic.Int32
	released atomic.Int64 // when the last release was called, in nanoseconds since began; 0 for none
	began    time.Time
	end      context.Context

	mu        sync.Mutex
	handovers []float64 // guarded by mu; ms
}

func (s *stage) contend(ctx context.Context, b *board, k *rival.Kind) error {
	kinds := slices.Repeat([]*rival.Kind{k}, contenders)
	config := s.config(defaultTTL)
	config.Sent = &rival.Sent{}
	es, leave, err := s.enter(kinds, config)
	if err != nil {
		return err
	}
	defer leave()
	for _, e := range es { // connections and scripts
		held, err := e.Acquire(ctx, contendedKey)
		if err == nil {
			err = held.Release(ctx)
		}
		if err != nil {
			return err
		}
	}
	calls, err := s.servers.Calls(ctx)
	if err != nil {
		return err
	}
	sent := config.Sent.Commands()
	end, cancel := context.WithTimeout(ctx, s.size.contended)
	defer cancel()
	c := &contest{began: time.Now(), end: end}
	counts, errs := make([]float64, contenders), make([]error, contenders)
	var wg sync.WaitGroup
	for i, e := range es {
		wg.Go(func() { counts[i], errs[i] = c.run(ctx, e) })
	}
	wg.Wait()
	took := time.Since(c.began)
	if err := firstOf(errs); err != nil {
		return err
	}
	sent = config.Sent.Commands() - sent
	callsAfter, err := s.servers.Calls(ctx)
	if err != nil {
		return err
	}
	sum := 0.0
	for _, n := range counts {
		sum += n
	}
	if sum == 0 {
		return errors.New("nobody got the key")
	}
	b.add(k, "acquisitions/s", sum/took.Seconds())
	b.add(k, "commands each", float64(sent)/sum)
	b.add(k, "server calls each", float64(callsAfter-calls)/sum)
	b.add(k, "hand-over p50 ms", stat.Quantile(c.handovers, 0.5))
	b.add(k, "hand-over p99 ms", stat.Quantile(c.handovers, 0.99))
	least, most := slices.Min(counts), slices.Max(counts)
	b.add(k, "least of a contender", least)
	b.add(k, "most", most)
	b.add(k, "least/most", least/most)
	return nil
}

// run acquires until the end.
func (c *contest) run(ctx context.Context, e *entrant) (count float64, err error) {
	for more := true; more && err == nil; {
		if more, err = c.turn(ctx, e); more {
			count++
		}
	}
	return count, err
}

// turn waits for the key, holds and releases it, and returns true, or false when the end came
// first.
func (c *contest) turn(ctx context.Context, e *entrant) (bool, error) {
	// The end must not end what is held: valkeylock's locks end with the context that they were
	// acquired with.
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	before := context.AfterFunc(c.end, giveUp)
	held, err := e.Acquire(waiting, contendedKey)
	if !before() {
		if err == nil {
			_ = held.Release(ctx) // it may have ended with its context
		}
		return false, ctx.Err()
	}
	if err != nil {
		return false, fmt.Errorf("acquire: %w", err)
	}
	now := time.Since(c.began)
	if released := c.released.Load(); released != 0 {
		c.mu.Lock()
		c.handovers = append(c.handovers, millis(now-time.Duration(released)))
		c.mu.Unlock()
	}
	if c.inside.Add(1) != 1 {
		return false, errors.New("two had the key at once")
	}
	time.Sleep(contendedHold)
	c.inside.Add(-1)
	c.released.Store(int64(time.Since(c.began)))
	if err := held.Release(ctx); err != nil {
		return false, fmt.Errorf("release: %w", err)
	}
	return true, nil
}
