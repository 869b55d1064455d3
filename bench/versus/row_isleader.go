package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
	"github.com/tenure-dev/tenure/elector"
)

func isLeaderRow() *row {
	return &row{
		name: "isleader", title: "asking whether one leads, and whether a lease is valid",
		columns: []column{{Name: "IsLeader ns"}, {Name: "IsLeader allocations"}, {Name: "Lease.Err ns"}, {Name: "Lease.Err allocations"}},
		run:     isLeader,
	}
}

func isLeader(ctx context.Context, s *stage, b *board) (err error) {
	b.Work = fmt.Sprintf("%d rounds of %d calls, no I/O. Peers have no such question: they have a time, a context or a session that tells later.", s.size.rounds, s.size.isLeader)
	if err := s.servers.Flush(ctx); err != nil {
		return err
	}
	k := rival.Tenure
	q, err := rival.OpenQuorum(s.config(defaultTTL))
	if err != nil {
		return err
	}
	defer q.Close()
	lease, err := q.TryAcquire(ctx, "isleader")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release(ctx)) }()
	e, err := elector.New(q, "isleader")
	if err != nil {
		return err
	}
	term, stop := context.WithCancel(ctx)
	elected, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- e.Run(term, func(ctx context.Context, _ *elector.Term) error {
			elected <- struct{}{}
			<-ctx.Done()
			return nil
		})
	}()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	select {
	case <-elected:
	case <-time.After(defaultTTL):
		return errors.New("nobody was elected")
	}
	for range s.size.rounds {
		for name, ask := range map[string]func() error{
			"IsLeader": func() error { return e.IsLeader(ctx) }, "Lease.Err": lease.Err,
		} {
			ns, allocations, err := callCost(s.size.isLeader, ask)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			b.add(k, name+" ns", ns)
			b.add(k, name+" allocations", allocations)
		}
	}
	return nil
}

// callCost is what a call takes and allocates. What the whole process allocates meanwhile is among
// that, so it is rounded down to hundredths.
func callCost(calls int, do func() error) (ns, allocations float64, err error) {
	before, err := stat.Used()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	for range calls {
		if err := do(); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(began)
	after, err := stat.Used()
	if err != nil {
		return 0, 0, err
	}
	return float64(took) / float64(calls), float64(int(100*float64(after.Mallocs-before.Mallocs)/float64(calls))) / 100, nil
}
