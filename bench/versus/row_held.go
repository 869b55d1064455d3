package main

import (
	"context"
	"fmt"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
)

func heldRow() *row {
	return &row{
		name: "held", title: "many leases held by one process",
		columns: []column{{Name: "CPU s"}, {Name: "CPU x floor", Of: "CPU s", To: rival.Floor.Name}, {Name: "heap growth MiB"}, {Name: "RSS growth MiB"}, {Name: "goroutines"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = fmt.Sprintf("%d leases held for %s with a TTL of %s, extended every third of it, in a process of their own; CPU while they are held. "+
				"The floor pipelines its extensions, one goroutine a node. Leases that are extended by hand have a goroutine each.",
				s.size.held, s.size.hold, s.size.heldTTL)
			b.absent(rival.Redislock, "extended by hand, on one server")
			for _, k := range s.takePart([]*rival.Kind{rival.Floor, rival.Tenure, rival.Redsync, rival.Valkeylock}, 0) {
				r, err := s.hold(ctx, k)
				if err != nil {
					return fmt.Errorf("%s: %w", k.Name, err)
				}
				b.add(k, "CPU s", r.CPU.Seconds())
				b.add(k, "heap growth MiB", float64(r.Heap)/(1<<20))
				b.add(k, "RSS growth MiB", float64(r.RSS)/(1<<20))
				b.add(k, "goroutines", float64(r.Goroutines))
			}
			return nil
		},
	}
}

// hold has another process hold keys for a while.
func (s *stage) hold(ctx context.Context, k *rival.Kind) (*holderReport, error) {
	if err := s.servers.Flush(ctx); err != nil {
		return nil, err
	}
	var r holderReport
	task := holderTask{Rival: k.Name, Config: s.config(s.size.heldTTL), Keys: s.size.held, Measure: s.size.hold}
	child, err := place.Spawn(holderRole, task, &r)
	if err != nil {
		return nil, err
	}
	defer child.Kill()
	defer context.AfterFunc(ctx, child.End)()
	return &r, child.Result(&r)
}
