package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

func delayRow(delay time.Duration) *row {
	return &row{
		name: "delay" + delay.String(), title: fmt.Sprintf("%s more on the way from each server", delay),
		columns: []column{{Name: "p50 us"}, {Name: "p50 x floor", Of: "p50 us", To: rival.Floor.Name},
			{Name: "pairs/s"}, {Name: "pairs/s x floor", Of: "pairs/s", To: rival.Floor.Name},
			{Name: "pairs/s x redsync", Of: "pairs/s", To: rival.Redsync.Name}},
		run: func(ctx context.Context, s *stage, b *board) error {
			links, err := s.servers.Slow(delay)
			if err != nil {
				return err
			}
			defer links.Close()
			b.Work = "Through toxiproxy in this process, which costs CPU of its own: compare within the row. "
			c := s.config(defaultTTL)
			c.URLs = links.URLs()
			kinds := []*rival.Kind{rival.Floor, rival.Tenure, rival.Redsync, rival.RedsyncGo}
			if err := s.pairs(ctx, b, kinds, c, false); err != nil {
				return err
			}
			return s.distinct(ctx, b, kinds, c, many{goroutines: 64, key: ownKeys})
		},
	}
}
