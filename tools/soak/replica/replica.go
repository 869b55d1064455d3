// Package replica is what a replica process does: it has the jobs of package work in two Schedulers, one that shares the runs with the other
// replicas and one that elects a leader, and keeps a journal of everything that the Schedulers tell.
package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/story"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// What all replicas agree on, besides the times of package work.
const (
	Prefix   = "soak"
	TermTTL  = 1500 * time.Millisecond // of the leadership
	Stopping = 8 * time.Second         // more than the longest task
	try      = 700 * time.Millisecond  // below the shortest interval
)

// Settings are what a replica is told.
type Settings struct {
	URLs     []string      `json:"urls"`
	Ahead    time.Duration `json:"ahead"` // of its clock
	Leaps    []plan.Leap   `json:"leaps,omitempty"`
	Zone     string        `json:"zone"`  // of its machine
	Start    time.Time     `json:"start"` // of the soak
	Duration time.Duration `json:"duration"`
	Seed     uint64        `json:"seed"`

	AtMostOnce bool `json:"at_most_once,omitempty"` // all jobs, those included that are to be run at least once
}

// Clock is the replica's.
func (s *Settings) Clock() Clock {
	return Clock{Clock: clockwork.NewRealClock(), Ahead: s.Ahead, Start: s.Start, Leaps: s.Leaps}
}

// Environment implements cast.Environment.
func (s Settings) Environment() []string { return []string{"TZ=" + s.Zone} }

// replica is one life of a replica.
type replica struct {
	*cast.Role
	Settings
	clock  Clock
	quorum *redlock.Quorum
	shared *scheduler.Scheduler
	led    *scheduler.Scheduler
}

// Play begins, for cast.Main. What it returns shuts everything down in order.
func Play(role *cast.Role) (stop func() error, err error) {
	r := &replica{Role: role}
	if err := role.Settings(&r.Settings); err != nil {
		return nil, err
	}
	r.clock = r.Settings.Clock()
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.addJobs(); err != nil {
		return nil, err
	}
	r.shared.Start()
	r.led.Start()
	r.Append(story.Record{Kind: story.Start, Clock: r.clock.Now().UnixMilli()})
	for _, l := range r.Leaps {
		if in := time.Until(r.Settings.Start.Add(l.At)); in > 0 {
			r.Append(story.Record{Kind: story.Leap, At: journal.Now().Add(in), Delay: l.By})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	busy.Go(func() { r.watch(ctx) })
	busy.Go(func() { CreateOneTimeJobs(ctx, role, r.clock, r.add) })
	AskForRuns(ctx, role, r.Seed, append(r.shared.Jobs(), r.led.Jobs()...), &busy)
	return func() error {
		cancel()
		busy.Wait()
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() { errs[0] = r.shared.Shutdown() })
		both.Go(func() { errs[1] = r.led.Shutdown() })
		both.Wait()
		return errors.Join(errs[0], errs[1], r.quorum.Close())
	}, nil
}

func (r *replica) open() (err error) {
	t := &tracer{Role: r.Role} // one, so that runs have different numbers
	r.quorum, err = redlock.Open(r.URLs, redlock.WithTracer(t),
		redlock.WithTTL(work.LeaderTTL), redlock.WithMaxTTL(work.LeaderTTL), redlock.WithClockSkew(work.Skew),
		redlock.WithNodeTimeout(work.TTL/4), // some servers are far, and the machine is busy
		redlock.WithPrefix(Prefix), redlock.WithIdentity(r.Name), redlock.WithLogger(r.Logger))
	if err != nil {
		return err
	}
	common := []scheduler.Option{
		scheduler.WithClock(r.clock), scheduler.WithTryTimeout(try),
		scheduler.WithStopTimeout(Stopping), scheduler.WithLogger(r.Logger), scheduler.WithTracer(t),
	}
	r.shared, err = scheduler.New(r.quorum, append(common[:len(common):len(common)], scheduler.WithTTL(work.TTL))...)
	if err != nil {
		return err
	}
	r.led, err = scheduler.New(r.quorum, append(common[:len(common):len(common)],
		scheduler.WithElection("soak", elector.WithTTL(TermTTL), elector.WithIdentity(r.Name), elector.WithLogger(r.Logger)))...)
	return err
}

func (r *replica) addJobs() error {
	for _, j := range work.Jobs() {
		if r.AtMostOnce {
			j.Delivery = redlock.AtMostOnce
		}
		definition, err := j.Definition(r.Start, r.Duration)
		if err != nil {
			return err
		}
		if _, err := r.add(j, definition); err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) add(j work.Job, definition gocron.JobDefinition) (gocron.Job, error) {
	s := r.shared
	if j.Leader {
		s = r.led
	}
	opts := []scheduler.JobOption{scheduler.WithDelivery(j.Delivery), scheduler.WithOverlap(j.Overlap)}
	if j.CatchUp != scheduler.CatchUpNone {
		opts = append(opts, scheduler.WithCatchUp(j.Within(), j.CatchUp))
	}
	return s.With(opts...).NewJob(definition, scheduler.NewTask(r.task, j, parameter), gocron.WithName(j.Name))
}

// watch notes when the process did not run: it was frozen, or the machine was busy.
func (r *replica) watch(ctx context.Context) {
	const every, notable = 50 * time.Millisecond, 200 * time.Millisecond
	for last := time.Now(); sleep(ctx, every); last = time.Now() {
		if gap := time.Since(last); gap > notable {
			r.Append(story.Record{Kind: story.Pause, Delay: gap})
		}
	}
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

// deadline is a lease's deadline on the journal's clock, and by chance earlier by as long as it takes to read two clocks.
func deadline(run scheduler.Run) journal.Instant {
	return journal.Now().Add(time.Until(run.Deadline()))
}
