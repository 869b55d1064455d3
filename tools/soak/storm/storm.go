// Package storm makes the faults of a plan happen to replicas and servers, and keeps when they did.
package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/arena"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/chaos/schedule"
	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/story"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// Storm is used once.
type Storm struct {
	Arena    *arena.Arena
	Cast     *cast.Cast
	Replicas int
	Strikes  *journal.Writer
	Out      io.Writer // each fault as it happens
	// Clock is what a replica's clock shows.
	Clock func(replica int) time.Time

	begun   time.Time
	targets []queue // of faults, each waiting for those of the same replica before it
	servers []queue

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
	s.targets = make([]queue, s.Replicas)
	servers := 0
	for _, f := range faults {
		if f.Kind.OnServer() {
			servers = max(servers, f.Target+1)
		}
	}
	s.servers = make([]queue, servers)
	for range s.Replicas {
		s.lives = append(s.lives, 1)
	}
	var running sync.WaitGroup
	for _, f := range faults {
		if !sleep(ctx, time.Until(s.begun.Add(f.At))) {
			break
		}
		fmt.Fprintln(s.Out, f)
		turns := s.join(f)
		running.Go(func() {
			if err := s.one(ctx, f, turns); err != nil {
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

// queue lets faults happen one after the other, in the order in which they joined.
type queue struct{ last chan struct{} }

// turn is a fault's place in a queue.
type turn struct {
	before chan struct{} // closed when the faults before it are over; nil is the first
	over   chan struct{}
}

func (q *queue) join() turn {
	t := turn{before: q.last, over: make(chan struct{})}
	q.last = t.over
	return t
}

func (t turn) leave() { close(t.over) }

func (t turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

// join gives a fault its place in the queues of all that it strikes.
func (s *Storm) join(f plan.Fault) []turn {
	switch {
	case f.Kind.OnServer():
		return []turn{s.servers[f.Target].join()}
	case f.Kind == plan.Blackout || f.Kind == plan.Deploy:
		turns := make([]turn, s.Replicas)
		for i := range turns {
			turns[i] = s.targets[i].join()
		}
		return turns
	default:
		return []turn{s.targets[f.Target].join()}
	}
}

// one makes a fault happen, when its turn comes, and puts it right when it is over or ctx ends.
func (s *Storm) one(ctx context.Context, f plan.Fault, turns []turn) error {
	if f.Kind == plan.Deploy {
		return s.deploy(ctx, turns)
	}
	for _, t := range turns {
		defer t.leave()
		t.wait()
	}
	switch {
	case f.Kind.OnServer():
		return s.server(ctx, f)
	case f.Kind == plan.Blackout:
		return s.blackout(ctx, f)
	default:
		return s.replica(ctx, f)
	}
}

// wait waits until a fault is to be put right.
func (s *Storm) wait(ctx context.Context, f plan.Fault) {
	sleep(ctx, time.Until(s.begun.Add(f.At+f.For)))
}

func (s *Storm) server(ctx context.Context, f plan.Fault) error {
	restart := schedule.Fault{Nodes: []int{f.Target}}
	switch f.Kind {
	case plan.RestartKeep:
		restart.Kind = schedule.RestartKeep
	case plan.RestartEmpty:
		restart.Kind = schedule.RestartEmpty
	case plan.FreezeServer:
		restart.Kind = schedule.FreezeServer
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

// replica strikes one replica, whose turn it is.
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
	case plan.Roll, plan.RollAtTick:
		if f.Kind == plan.RollAtTick {
			sleep(ctx, s.untilTick(f))
			strike.From = journal.Now()
		}
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

// untilTick is how long it is until the first beat of the jobs, by a replica's clock, that the
// fault can still be timed to, and the fault's offset from it.
func (s *Storm) untilTick(f plan.Fault) time.Duration {
	now := s.Clock(f.Target)
	at := now.Truncate(work.Beat).Add(f.Offset)
	for at.Before(now) {
		at = at.Add(work.Beat)
	}
	return at.Sub(now)
}

// deploy rolls all replicas, each a moment after the one before, and waits for none of them
// meanwhile.
func (s *Storm) deploy(ctx context.Context, turns []turn) error {
	errs := make([]error, s.Replicas)
	var all sync.WaitGroup
	for number := range s.Replicas {
		all.Go(func() {
			defer turns[number].leave()
			turns[number].wait()
			sleep(ctx, plan.DeployTakes*time.Duration(number)/time.Duration(s.Replicas))
			errs[number] = s.replica(ctx, plan.Fault{Kind: plan.Roll, Target: number})
		})
	}
	strike := story.Strike{Kind: string(plan.Deploy), Replica: -1, Server: -1, From: journal.Now()}
	all.Wait()
	strike.To = journal.Now()
	return errors.Join(append(errs, s.Strikes.Append(strike))...)
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
