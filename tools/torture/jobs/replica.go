package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// What all replicas agree on, besides the times of package plan.
const (
	Prefix   = "jobs"
	termTTL  = 1500 * time.Millisecond // of the leadership
	Stopping = 8 * time.Second         // more than the longest task
	// StopPatience is how long a replica may take to stop in order: Stopping, and what the Quorum's
	// Close waits for.
	StopPatience = 20 * time.Second
)

// Settings are what a replica is told.
type Settings struct {
	URLs    []string      `json:"urls"`
	Ahead   time.Duration `json:"ahead"` // of its clock
	Leaps   []plan.Leap   `json:"leaps,omitempty"`
	Zone    string        `json:"zone"`    // of its machine
	Start   time.Time     `json:"start"`   // of the run
	Version int           `json:"version"` // of its jobs
	Seed    uint64        `json:"seed"`
}

// Clock is the replica's.
func (s *Settings) Clock() Clock {
	return Clock{Clock: clockwork.NewRealClock(), Ahead: s.Ahead, Start: s.Start, Leaps: s.Leaps}
}

// replica is one life of a replica.
type replica struct {
	*clients.Process
	Settings
	clock  Clock
	quorum *redlock.Quorum
	shared *scheduler.Scheduler
	led    *scheduler.Scheduler
}

// Begin begins, for clients.Main. What it returns shuts everything down in order.
func Begin(p *clients.Process) (end func() error, err error) {
	r := &replica{Process: p}
	if err := p.Settings(&r.Settings); err != nil {
		return nil, err
	}
	if time.Local, err = time.LoadLocation(r.Zone); err != nil { // as TZ does
		return nil, err
	}
	r.clock = r.Settings.Clock()
	clock.Wall = r.clock.Now
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.addJobs(); err != nil {
		return nil, err
	}
	r.shared.Start()
	r.led.Start()
	r.Append(history.Record{Kind: history.Start, Clock: r.clock.Now().UnixMilli(), Count: r.Version})
	for _, l := range r.Leaps {
		if in := time.Until(r.Settings.Start.Add(l.At)); in > 0 {
			r.Append(history.Record{Kind: history.Leap, At: history.Now().Add(in), Delay: l.By})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	askForRuns(ctx, r.Process, r.Seed, append(r.shared.Jobs(), r.led.Jobs()...), &busy)
	return func() error {
		r.Append(history.Record{Kind: history.Stopping})
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
	t := &tracer{Process: r.Process} // one, so that runs have different numbers
	r.quorum, err = redlock.Open(r.URLs, redlock.WithTracer(t),
		redlock.WithTTL(plan.LeaderTTL), redlock.WithMaxTTL(plan.LeaderTTL), redlock.WithClockSkew(plan.Skew),
		redlock.WithNodeTimeout(plan.TTL/4), // some servers are far, and the machine is busy
		redlock.WithPrefix(Prefix), redlock.WithIdentity(r.Name), redlock.WithLogger(r.Logger))
	if err != nil {
		return err
	}
	common := []scheduler.Option{
		scheduler.WithLocation(time.UTC), // zones differ
		scheduler.WithStopTimeout(Stopping), scheduler.WithLogger(r.Logger), scheduler.WithTracer(t.scheduler()),
	}
	r.shared, err = scheduler.New(r.quorum, append(common[:len(common):len(common)], scheduler.WithLeaseOptions(redlock.WithTTL(plan.TTL)))...)
	if err != nil {
		return err
	}
	r.led, err = scheduler.New(r.quorum, append(common[:len(common):len(common)],
		scheduler.WithElection("jobs", elector.WithTTL(termTTL), elector.WithIdentity(r.Name), elector.WithLogger(r.Logger)))...)
	return err
}

func (r *replica) addJobs() error {
	for _, j := range All() {
		j = j.In(r.Version)
		if _, err := r.add(j, j.Definition()); err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) add(j Job, definition gocron.JobDefinition) (gocron.Job, error) {
	s := r.shared
	if j.Leader {
		s = r.led
	}
	opts := []gocron.JobOption{gocron.WithName(j.Name), scheduler.WithDelivery(j.Delivery), scheduler.WithOverlap(j.Overlap)}
	if j.CatchUp != scheduler.CatchUpNone {
		opts = append(opts, scheduler.WithCatchUp(j.Within(), j.CatchUp))
	}
	return s.NewJob(definition, gocron.NewTask(r.task, j, parameter), opts...)
}

// deadline is a lease's deadline on the journal's clock, and by chance earlier by as long as it
// takes to read two clocks.
func deadline(run scheduler.Run) history.Instant {
	return history.Now().Add(time.Until(run.Deadline()))
}
