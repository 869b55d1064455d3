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
	// handoverHold is how long a key is held before it is handed over: long enough that the other
	// already waits.
	handoverHold = 150 * time.Millisecond
)

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
	config := s.config(defaultTTL)
	config.Sent = &rival.Sent{}
	rs, leave, err := enter(slices.Repeat([]*rival.Kind{k}, contenders), config)
	if err != nil {
		return err
	}
	defer leave()
	for _, r := range rs { // makes connections and loads scripts
		held, err := r.Acquire(ctx, contendedKey)
		if err == nil {
			err = held.Release(ctx)
		}
		if err != nil {
			return err
		}
	}
	sent := config.Sent.Commands()
	end, cancel := context.WithTimeout(ctx, s.size.contended)
	defer cancel()
	c, counts := &contest{began: time.Now(), end: end}, make([]float64, contenders)
	err = atOnce(contenders, func(i int) (err error) { counts[i], err = c.run(ctx, rs[i]); return err })
	if err != nil {
		return err
	}
	took, sum := time.Since(c.began), 0.0
	for _, n := range counts {
		sum += n
	}
	if sum == 0 {
		return errors.New("nobody got the key")
	}
	b.add(k, "acquisitions/s", sum/took.Seconds())
	b.add(k, "commands each", float64(config.Sent.Commands()-sent)/sum)
	b.add(k, "hand-over p50 ms", stat.Quantile(c.handovers, 0.5))
	b.add(k, "hand-over p99 ms", stat.Quantile(c.handovers, 0.99))
	least, most := slices.Min(counts), slices.Max(counts)
	b.add(k, "least of a contender", least)
	b.add(k, "most", most)
	b.add(k, "least/most", least/most)
	return nil
}

// run acquires until the end.
func (c *contest) run(ctx context.Context, r rival.Rival) (count float64, err error) {
	for more := true; more && err == nil; {
		if more, err = c.turn(ctx, r); more {
			count++
		}
	}
	return count, err
}

// turn waits for the key, holds it and releases it, and returns true. It returns false if the end
// came first.
func (c *contest) turn(ctx context.Context, r rival.Rival) (bool, error) {
	// The end must not end a lock that is held: valkeylock's locks end with the context with which
	// they were acquired.
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	before := context.AfterFunc(c.end, giveUp)
	held, err := r.Acquire(waiting, contendedKey)
	if !before() {
		if err == nil {
			_ = held.Release(ctx) // the lock may have ended with its context
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

type got struct {
	held rival.Held
	at   time.Time
	err  error
}

// wait waits for a key in a goroutine of its own.
func wait(ctx context.Context, r rival.Rival, key string) <-chan got {
	next := make(chan got, 1)
	go func() {
		h, err := r.Acquire(ctx, key)
		next <- got{h, time.Now(), err}
	}()
	return next
}

func (s *stage) handOver(ctx context.Context, b *board, k *rival.Kind) error {
	rs, leave, err := enter([]*rival.Kind{k, k}, s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer leave()
	const key = "handover"
	held, err := rs[0].Acquire(ctx, key)
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	var times []float64
	for turn, end := 1, time.Now().Add(s.size.handover); len(times) == 0 || time.Now().Before(end); turn++ {
		next := wait(ctx, rs[turn%2], key)
		time.Sleep(handoverHold)
		released := time.Now()
		err := held.Release(ctx)
		n := <-next
		if err := errors.Join(err, n.err); err != nil {
			return err
		}
		if held = n.held; turn > 1 { // the first wait makes connections
			times = append(times, millis(n.at.Sub(released)))
		}
	}
	if err := held.Release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	b.quantiles(k, "ms", times)
	return nil
}

// idle measures a waiter that has settled: it has connected, has found the key held, and waits.
func (s *stage) idle(ctx context.Context, b *board, k *rival.Kind) error {
	const name = "waiter"
	config := s.config(defaultTTL)
	holder, err := spawn(ctx, task{Holder: &holderTask{Rival: k.Name, Config: config, Key: name, Keys: 1}})
	if err != nil {
		return err
	}
	defer holder.Kill()
	config.Sent = &rival.Sent{}
	r, err := k.Open(config)
	if err != nil {
		return err
	}
	defer r.Close()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	next := wait(waiting, r, keys(name, 1)[0])
	time.Sleep(min(s.size.waiter, time.Second))
	used, sent, began := stat.Used(), config.Sent.Commands(), time.Now()
	time.Sleep(s.size.waiter)
	perSecond := float64(config.Sent.Commands()-sent) / time.Since(began).Seconds()
	b.add(k, "commands/s", perSecond)
	b.add(k, "commands per TTL per node", perSecond*defaultTTL.Seconds()/float64(k.Servers))
	b.add(k, "CPU us/s", micros(stat.Used().CPU-used.CPU)/time.Since(began).Seconds())
	stop()
	if n := <-next; n.err == nil {
		return errors.New("the waiter got a key that was held")
	}
	return nil
}
