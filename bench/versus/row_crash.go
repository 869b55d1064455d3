package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
)

func crashRow() *row {
	return &row{
		name: "crash", title: "successor after SIGKILL of the holder",
		columns: []column{{Name: "after expiry ms"}, {Name: "after SIGKILL ms"}, {Name: "never"},
			{Name: "after expiry ms, beside other keys"}, {Name: "after SIGKILL ms, beside other keys"}, {Name: "never, beside other keys"}},
		run: crash,
	}
}

func crash(ctx context.Context, s *stage, b *board) error {
	b.Work = fmt.Sprintf("%d trials each: TTL %s; a process that holds and extends a key is killed at a random moment while another waits for it. "+
		"Expiry is when a quorum of the servers is free. The other columns are with %d other keys that expire on each server. A waiter without the key %s "+
		"after the expiry counts as never, and that time as its result.",
		s.size.crashTrials, s.size.crashTTL, s.size.others, s.size.giveUpWaiter)
	b.absent(rival.Floor, "has no way to wait")
	for _, beside := range []string{"", ", beside other keys"} {
		if err := s.servers.Flush(ctx); err != nil {
			return err
		}
		kinds := waiting()
		if beside != "" {
			if err := s.servers.Fill(ctx, s.size.others); err != nil {
				return err
			}
		}
		if s.size.crashers > 0 {
			kinds = kinds[:s.size.crashers]
		}
		for trial := range s.size.crashTrials {
			for _, k := range s.takePart(kinds, trial) {
				if err := s.crash(ctx, b, k, fmt.Sprintf("crash/%d", trial), beside); err != nil {
					return fmt.Errorf("%s, trial %d%s: %w", k.Name, trial+1, beside, err)
				}
			}
		}
	}
	return s.servers.Flush(ctx)
}

// crash is one trial.
func (s *stage) crash(ctx context.Context, b *board, k *rival.Kind, key, beside string) error {
	ttl := s.size.crashTTL
	config := s.config(ttl)
	var ready holderReport
	holder, err := place.Spawn(holderRole, holderTask{Rival: k.Name, Config: config, Key: key}, &ready)
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
	next := make(chan got, 1)
	go func() {
		h, err := r.Acquire(waiting, key)
		next <- got{h, time.Now(), err}
	}()
	// The waiter waits by then, and the holder has extended now and then.
	time.Sleep(ttl/2 + rand.N(ttl/2))
	holder.Kill()
	killed := time.Now()
	servers, need := nodes, nodes/2+1
	if k.Servers == rival.OneServer {
		servers, need = 1, 1
	}
	expires, err := s.servers.Expiry(ctx, k.Key(key), servers, need)
	if err != nil {
		return err
	}
	giveUp := time.NewTimer(time.Until(expires) + s.size.giveUpWaiter)
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
