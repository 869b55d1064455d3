package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

const (
	stallLink = 100 // kB/s towards each server
	stall     = 1500 * time.Millisecond
)

func stallRow() *row {
	return &row{
		name: "stall", title: fmt.Sprintf("leases behind links of %d kB/s, all servers stand still once for %s", stallLink, stall),
		columns: []column{{Name: "leases"}, {Name: "lost"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = fmt.Sprintf("%d leases with a TTL of %s, held for %s after the stall, extended every third of it; through toxiproxy in this process. "+
				"Lost are those that their holder was told of.", s.size.stallLeases, defaultTTL, s.size.stallHold)
			b.absent(rival.Floor, "looks at no answer")
			for _, k := range s.takePart([]*rival.Kind{rival.Tenure, rival.Redsync}, 0) {
				if err := s.stall(ctx, b, k); err != nil {
					return fmt.Errorf("%s: %w", k.Name, err)
				}
			}
			return nil
		},
	}
}

func (s *stage) stall(ctx context.Context, b *board, k *rival.Kind) error {
	if err := s.servers.Flush(ctx); err != nil {
		return err
	}
	links, err := s.servers.Narrow(stallLink)
	if err != nil {
		return err
	}
	defer links.Close()
	r, err := k.Open(rival.Config{URLs: links.URLs(), TTL: defaultTTL})
	if err != nil {
		return err
	}
	defer r.Close()
	first, err := r.Acquire(ctx, "first") // connections and scripts
	if err != nil {
		return err
	}
	if err := first.Release(ctx); err != nil {
		return err
	}
	h := &holder{kind: k, rival: r, ttl: defaultTTL}
	if err := h.take(ctx, (&holderTask{Keys: s.size.stallLeases}).names()); err != nil {
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
