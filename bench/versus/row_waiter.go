package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

func waiterRow() *row {
	return &row{
		name: "waiter", title: "one idle waiter",
		columns: []column{{Name: "commands/s"}, {Name: "commands per TTL per node"}, {Name: "CPU us/s"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = fmt.Sprintf("%s of waiting for a key that another process holds, TTL %s. The commands are those that the waiter sends.",
				s.size.waiter, s.size.waiterTTL)
			b.absent(rival.Floor, "has no way to wait")
			for _, k := range s.takePart(waiting(), 0) {
				if err := s.servers.Flush(ctx); err != nil {
					return err
				}
				if err := s.idle(ctx, b, k); err != nil {
					return fmt.Errorf("%s: %w", k.Name, err)
				}
			}
			return nil
		},
	}
}

// idle measures a waiter that has settled: it has connected, found the key held, and waits.
func (s *stage) idle(ctx context.Context, b *board, k *rival.Kind) error {
	const key = "waiter"
	config := s.config(s.size.waiterTTL)
	var ready holderReport
	holder, err := place.Spawn(holderRole, holderTask{Rival: k.Name, Config: config, Key: key}, &ready)
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
	ended := make(chan error, 1)
	go func() {
		_, err := r.Acquire(waiting, key)
		ended <- err
	}()
	defer stop()
	time.Sleep(min(s.size.waiter, time.Second))
	used, err := stat.Used()
	if err != nil {
		return err
	}
	sent, began := config.Sent.Commands(), time.Now()
	time.Sleep(s.size.waiter)
	sent, took := config.Sent.Commands()-sent, time.Since(began)
	usedAfter, err := stat.Used()
	if err != nil {
		return err
	}
	stop()
	if err := <-ended; err == nil {
		return errors.New("the waiter got a key that was held")
	}
	perSecond := float64(sent) / took.Seconds()
	b.add(k, "commands/s", perSecond)
	servers := 1.0
	if k.Servers == rival.AllServers {
		servers = nodes
	}
	b.add(k, "commands per TTL per node", perSecond*s.size.waiterTTL.Seconds()/servers)
	b.add(k, "CPU us/s", micros(usedAfter.CPU-used.CPU)/took.Seconds())
	return nil
}
