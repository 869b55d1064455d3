package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

const (
	stallLink = 100 // kB/s towards each server
	stall     = 1500 * time.Millisecond
)

// crashes measures the row crash.
func (s *stage) crashes(ctx context.Context, b *board) error {
	crash := func(beside string) error {
		return turns(ctx, b.rounds, b.kinds, func(k *rival.Kind) error { return s.crash(ctx, b, k, beside) })
	}
	if err := errors.Join(s.servers.Flush(ctx), crash("")); err != nil {
		return err
	}
	return errors.Join(s.servers.Fill(ctx, s.size.others), crash(", beside other keys"), s.servers.Flush(ctx))
}

// crash is one trial.
func (s *stage) crash(ctx context.Context, b *board, k *rival.Kind, beside string) error {
	name, ttl := fmt.Sprint("crash/", time.Now().UnixNano()), s.size.crashTTL
	key := keys(name, 1)[0]
	config := s.config(ttl)
	holder, err := spawn(ctx, task{Holder: &holderTask{Rival: k.Name, Config: config, Key: name, Keys: 1}})
	if err != nil {
		return err
	}
	defer holder.Kill()
	r, err := k.Open(config)
	if err != nil {
		return err
	}
	defer r.Close()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	next := wait(waiting, r, key)
	// By then the waiter waits, and the holder has extended at least once.
	time.Sleep(ttl/2 + rand.N(ttl/2))
	if err := holder.Kill(); err != nil {
		return err
	}
	killed := time.Now()
	expires, err := s.servers.Expiry(ctx, k.Key(key), k.Servers, k.Servers/2+1)
	if err != nil {
		return err
	}
	giveUp := time.NewTimer(time.Until(expires) + s.size.giveUp)
	defer giveUp.Stop()
	var n got
	never := 0.0
	select {
	case n = <-next:
	case <-giveUp.C:
		stop()
		n, never = <-next, 1
	}
	switch {
	case n.err == nil:
		if err := n.held.Release(ctx); err != nil {
			return fmt.Errorf("release: %w", err)
		}
	case never == 0:
		return errors.Join(errors.New("the waiter failed"), n.err)
	}
	b.add(k, "after expiry ms"+beside, millis(n.at.Sub(expires)))
	b.add(k, "after SIGKILL ms"+beside, millis(n.at.Sub(killed)))
	b.add(k, "never"+beside, never)
	return nil
}

func (s *stage) stall(ctx context.Context, b *board, k *rival.Kind) error {
	links, err := s.servers.Narrow(stallLink)
	if err != nil {
		return err
	}
	defer links.Close()
	r, err := k.Open(rival.Config{URLs: links.URLs, TTL: defaultTTL})
	if err != nil {
		return err
	}
	defer r.Close()
	if err := pair(ctx, r, "first"); err != nil { // makes connections and loads scripts
		return err
	}
	h := &holder{kind: k, rival: r, ttl: defaultTTL}
	if err := h.take(ctx, keys("stall", s.size.stallLeases)); err != nil {
		return err
	}
	for _, n := range s.servers.Nodes() {
		if err := n.Freeze(); err != nil {
			return err
		}
		defer n.Thaw()
	}
	time.Sleep(stall)
	for _, n := range s.servers.Nodes() {
		if err := n.Thaw(); err != nil {
			return err
		}
	}
	time.Sleep(s.size.stallHold)
	b.add(k, "leases", float64(s.size.stallLeases))
	b.add(k, "lost", float64(h.losses()))
	return nil
}

func (s *stage) hold(ctx context.Context, b *board, k *rival.Kind) error {
	p, err := spawn(ctx, task{Holder: &holderTask{Rival: k.Name, Config: s.config(s.size.heldTTL), Key: "held", Keys: s.size.held, Measure: s.size.hold}})
	if err != nil {
		return err
	}
	var r holderReport
	if err := p.result(&r); err != nil {
		return err
	}
	b.add(k, "CPU s", r.CPU.Seconds())
	b.add(k, "heap growth MiB", mebi(r.Heap))
	b.add(k, "RSS growth MiB", mebi(r.RSS))
	b.add(k, "goroutines", float64(r.Goroutines))
	return nil
}
