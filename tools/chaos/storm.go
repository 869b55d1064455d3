package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/arena"
	"github.com/tenure-dev/tenure/tools/chaos/crowd"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/chaos/schedule"
	"github.com/tenure-dev/tenure/tools/chaos/verdict"
	"github.com/tenure-dev/tenure/tools/chaos/witness"
)

// storm makes the faults of a schedule happen.
type storm struct {
	arena   *arena.Arena
	crowd   *crowd.Crowd
	witness *witness.Server
	keys    []string
	strikes *journal.Writer
	out     io.Writer           // each fault as it happens
	begun   time.Time           // set by run
	servers [servers]sync.Mutex // held while a fault of the server lasts
	links   [servers]sync.Mutex // held while a fault of its links lasts

	mu   sync.Mutex
	errs []error // guarded by mu
}

// run makes all faults happen and returns when all of them have been put right, which is soon after ctx has ended.
func (s *storm) run(ctx context.Context, faults []schedule.Fault) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.begun = time.Now()
	var running sync.WaitGroup
	for _, f := range faults {
		if !sleep(ctx, time.Until(s.begun.Add(f.At))) {
			break
		}
		fmt.Fprintln(s.out, f)
		running.Go(func() {
			if err := s.one(ctx, f); err != nil {
				s.mu.Lock()
				s.errs = append(s.errs, fmt.Errorf("fault %s: %w", f, err))
				s.mu.Unlock()
				cancel()
			}
		})
	}
	running.Wait()
	return errors.Join(s.errs...)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// one makes a fault happen and puts it right when it is over or ctx ends.
func (s *storm) one(ctx context.Context, f schedule.Fault) error {
	if f.Kind.OnClient() {
		return s.strikeClient(ctx, f)
	}
	// Putting the last one right may have taken longer than planned.
	locks := &s.servers
	if f.Kind.OnLink() {
		locks = &s.links
	}
	for _, n := range slices.Sorted(slices.Values(f.Nodes)) {
		locks[n].Lock()
		defer locks[n].Unlock()
	}
	if err := s.note(f, false, func() error { return s.arena.Strike(f) }); err != nil {
		return err
	}
	sleep(ctx, time.Until(s.begun.Add(f.At+f.For)))
	return s.note(f, true, func() error { return s.arena.Heal(f) })
}

// note keeps when something was done to the servers of a fault.
func (s *storm) note(f schedule.Fault, healed bool, do func() error) error {
	from := journal.Now()
	err := do()
	strike := verdict.Strike{Kind: f.Kind, From: from, To: journal.Now(), Healed: healed}
	switch {
	case f.Kind == schedule.ClockForward && !healed, f.Kind == schedule.ClockBack && healed:
		strike.Jump = f.Amount
	case f.Kind == schedule.ClockForward, f.Kind == schedule.ClockBack:
		strike.Jump = -f.Amount
	}
	for _, n := range f.Nodes {
		strike.Node = n
		err = errors.Join(err, s.strikes.Append(strike))
	}
	return err
}

// strikeClient kills or freezes a client, and brings it back.
func (s *storm) strikeClient(ctx context.Context, f schedule.Fault) error {
	number := f.Client
	if f.Kind == schedule.KillHolder || f.Kind == schedule.FreezeHolder {
		number = crowd.Number(s.witness.Holder(s.keys[f.Key]))
	}
	strike := verdict.Strike{Kind: f.Kind, Node: -1, From: journal.Now()}
	kill := f.Kind == schedule.KillClient || f.Kind == schedule.KillHolder
	struck := number >= 0
	if struck && kill {
		struck = s.crowd.Kill(number)
	} else if struck {
		struck = s.crowd.Freeze(number)
	}
	if struck {
		strike.Target = fmt.Sprintf("c%d", number)
	}
	strike.To = journal.Now()
	if err := s.strikes.Append(strike); err != nil || !struck {
		return err
	}
	sleep(ctx, time.Until(s.begun.Add(f.At+f.For)))
	if kill {
		return s.crowd.Start(number)
	}
	s.crowd.Thaw(number)
	return nil
}
