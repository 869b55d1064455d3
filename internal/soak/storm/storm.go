// Package storm makes the faults of a plan happen to replicas and servers, and keeps when they did.
package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/chaos/arena"
	"github.com/tenure-dev/tenure/internal/chaos/journal"
	"github.com/tenure-dev/tenure/internal/chaos/schedule"
	"github.com/tenure-dev/tenure/internal/soak/cast"
	"github.com/tenure-dev/tenure/internal/soak/plan"
	"github.com/tenure-dev/tenure/internal/soak/story"
)

// Storm is used once.
type Storm struct {
	Arena    *arena.Arena
	Cast     *cast.Cast
	Replicas int
	Strikes  *journal.Writer
	Out      io.Writer // each fault as it happens

	begun   time.Time
	targets []sync.Mutex // held while a fault of the replica lasts
	servers sync.Mutex   // held while a fault of a server lasts

	mu    sync.Mutex
	lives []int   // guarded by mu; how many lives each replica has had
	errs  []error // guarded by mu
}

// Run makes all faults happen and returns when all of them have been put right, which is soon after ctx has ended. All replicas must
// be in their first life.
func (s *Storm) Run(ctx context.Context, faults []plan.Fault) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.begun = time.Now()
	s.targets = make([]sync.Mutex, s.Replicas)
	for range s.Replicas {
		s.lives = append(s.lives, 1)
	}
	var running sync.WaitGroup
	for _, f := range faults {
		if !sleep(ctx, time.Until(s.begun.Add(f.At))) {
			break
		}
		fmt.Fprintln(s.Out, f)
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
func (s *Storm) one(ctx context.Context, f plan.Fault) error {
	switch {
	case f.Kind.OnServer():
		return s.server(ctx, f)
	case f.Kind == plan.Blackout:
		return s.blackout(ctx, f)
	default:
		s.targets[f.Target].Lock()
		defer s.targets[f.Target].Unlock()
		return s.replica(ctx, f)
	}
}

// wait waits until a fault is to be put right.
func (s *Storm) wait(ctx context.Context, f plan.Fault) {
	sleep(ctx, time.Until(s.begun.Add(f.At+f.For)))
}

func (s *Storm) server(ctx context.Context, f plan.Fault) error {
	s.servers.Lock()
	defer s.servers.Unlock()
	restart := schedule.Fault{Kind: schedule.RestartKeep, Nodes: []int{f.Target}}
	if f.Kind == plan.RestartEmpty {
		restart.Kind = schedule.RestartEmpty
	}
	strike := story.Strike{Kind: string(f.Kind), Replica: -1, Server: f.Target, From: journal.Now()}
	if err := s.Arena.Strike(restart); err != nil {
		return err
	}
	s.wait(ctx, f)
	err := s.Arena.Heal(restart)
	strike.To = journal.Now()
	return errors.Join(err, s.Strikes.Append(strike))
}

// replica strikes one replica. Its mutex is held.
func (s *Storm) replica(ctx context.Context, f plan.Fault) (err error) {
	strike := story.Strike{Kind: string(f.Kind), Replica: f.Target, Server: -1, Life: s.life(f.Target), From: journal.Now()}
	struck := true
	switch f.Kind {
	case plan.Kill:
		struck = s.Cast.Kill(f.Target)
		s.wait(ctx, f)
		err = s.start(f.Target)
	case plan.Freeze:
		struck = s.Cast.Freeze(f.Target)
		s.wait(ctx, f)
		s.Cast.Thaw(f.Target)
	case plan.Roll:
		if err = s.Cast.Stop(f.Target); err == nil {
			err = s.start(f.Target)
		}
	}
	if !struck {
		strike.Life = ""
	}
	strike.To = journal.Now()
	return errors.Join(err, s.Strikes.Append(strike))
}

func (s *Storm) life(number int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return story.LifeName(number, s.lives[number])
}

func (s *Storm) start(number int) error {
	s.mu.Lock()
	s.lives[number]++
	s.mu.Unlock()
	return s.Cast.Start(number)
}

func (s *Storm) blackout(ctx context.Context, f plan.Fault) error {
	for i := range s.targets {
		s.targets[i].Lock()
		defer s.targets[i].Unlock()
	}
	strike := story.Strike{Kind: string(f.Kind), Replica: -1, Server: -1, From: journal.Now()}
	s.Cast.KillAll()
	s.wait(ctx, f)
	errs := make([]error, s.Replicas)
	var starts sync.WaitGroup
	for i := range errs {
		starts.Go(func() { errs[i] = s.start(i) })
	}
	starts.Wait()
	strike.To = journal.Now()
	return errors.Join(append(errs, s.Strikes.Append(strike))...)
}

// Leftover lists the keys of leases under a prefix that are on servers and must not be: those of lives that stopped in order, but for
// a moment in which what they sent last is on its way, which is far shorter than any TTL; and those of lives that were killed, after the TTL.
func Leftover(place *arena.Arena, prefix string, ttl time.Duration, lives []journal.Life) ([]string, error) {
	const moment, pause = 200 * time.Millisecond, 20 * time.Millisecond
	killed := make(map[string]bool)
	for _, life := range lives {
		killed[life.Name] = life.Killed != 0
	}
	for began := time.Now(); ; time.Sleep(pause) {
		keys, err := place.LockKeys(prefix)
		if err != nil {
			return nil, err
		}
		var left []string
		expired, arrived := time.Since(began) > ttl+moment, time.Since(began) > moment
		for _, key := range keys {
			if !killed[key.Owner] && arrived || expired {
				left = append(left, key.String())
			}
		}
		if len(keys) == 0 || len(left) > 0 {
			return left, nil
		}
	}
}
