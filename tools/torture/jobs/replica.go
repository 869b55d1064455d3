package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// All replicas share these constants, and the times of package plan.
const (
	Prefix   = "jobs"
	termTTL  = 1500 * time.Millisecond // of a leader's term
	Stopping = 8 * time.Second         // more than the longest task
	// StopPatience is how long a replica may take to stop in order: Stopping, and the time for
	// which the Quorum's Close waits.
	StopPatience = 20 * time.Second
)

// replica is one life of a replica.
type replica struct {
	*clients.Process
	quorum     *redlock.Quorum
	schedulers map[bool]*scheduler.Scheduler // by whether an election leads
}

// Begin starts a replica, for clients.Main. The function that it returns shuts everything down in
// order.
func Begin(p *clients.Process) (end func(bool) error, err error) {
	r := &replica{Process: p, schedulers: make(map[bool]*scheduler.Scheduler)}
	if time.Local, err = time.LoadLocation(r.Zone); err != nil { // as TZ does
		return nil, err
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.addJobs(); err != nil {
		return nil, err
	}
	var all []*scheduler.Scheduler
	var work []gocron.Job
	for _, s := range r.schedulers {
		s.Start()
		all, work = append(all, s), append(work, s.Jobs()...)
	}
	r.Append(history.Record{Kind: history.Start, Clock: r.Now().UnixMilli(), Count: r.Version})
	for _, l := range r.Leaps {
		if in := time.Until(r.Settings.Start.Add(l.At)); in > 0 {
			r.Append(history.Record{Kind: history.Leap, At: history.Now().Add(in), Delay: l.By})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	r.askForRuns(ctx, work, &busy)
	return func(bool) error {
		r.Append(history.Record{Kind: history.Stopping})
		cancel()
		busy.Wait()
		return errors.Join(clients.All(len(all), func(i int) error { return all[i].Shutdown() }), r.quorum.Close())
	}, nil
}

func (r *replica) open() (err error) {
	t := &tracer{Process: r.Process} // one for both Schedulers, so that runs have different numbers
	// The node timeout allows for distant servers and a busy machine.
	if r.quorum, err = r.Open(Prefix, redlock.WithIdentity(r.Name), redlock.WithLogger(r.Logger), redlock.WithTracer(t), redlock.WithNodeTimeout(plan.TTL/4)); err != nil {
		return err
	}
	for leader, own := range map[bool]scheduler.Option{
		false: scheduler.WithLeaseOptions(redlock.WithTTL(plan.TTL)),
		true:  scheduler.WithElection("jobs", elector.WithTTL(termTTL), elector.WithIdentity(r.Name), elector.WithLogger(r.Logger)),
	} {
		r.schedulers[leader], err = scheduler.New(r.quorum, own, scheduler.WithLocation(time.UTC), // zones differ
			scheduler.WithStopTimeout(Stopping), scheduler.WithLogger(r.Logger), scheduler.WithTracer(t.scheduler()))
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *replica) addJobs() error {
	for _, j := range All() {
		j = j.In(r.Version)
		opts := []gocron.JobOption{gocron.WithName(j.Name), scheduler.WithDelivery(j.Delivery), scheduler.WithOverlap(j.Overlap)}
		if j.CatchUp != scheduler.CatchUpNone {
			opts = append(opts, scheduler.WithCatchUp(j.Within(), j.CatchUp))
		}
		if _, err := r.schedulers[j.Leader].NewJob(j.Definition(), gocron.NewTask(r.task, j, parameter), opts...); err != nil {
			return err
		}
	}
	return nil
}

// deadline returns the deadline of the run's lease, on the journal's clock. It may be too early by
// the time that it takes to read two clocks.
func deadline(run scheduler.Run) history.Instant {
	return history.Now().Add(time.Until(run.Deadline()))
}

// askForRuns calls RunNow of the manual jobs, at random times, until ctx ends.
func (r *replica) askForRuns(ctx context.Context, jobs []gocron.Job, busy *sync.WaitGroup) {
	for _, job := range jobs {
		j := Find(All(), job.Name())
		if j.Kind != Manual {
			continue
		}
		random := plan.NewDice(r.Seed+uint64(r.Number), uint64(j.Every))
		busy.Go(func() {
			for clock.Sleep(ctx, random.Between(0, 2*j.Every)) == nil {
				asked := history.Record{Kind: history.Asked, Job: j.Name}
				if err := job.RunNow(); err != nil {
					if asked.Text = err.Error(); !errors.As(err, new(*scheduler.SkipError)) {
						asked.Kind = history.Fault
					}
				}
				r.Append(asked)
			}
		})
	}
}

const (
	// parameter is the argument of every task.
	parameter = "parameter"
	// look is how often a long task notes its deadline.
	look = 200 * time.Millisecond
)

var errTask = errors.New("the task fails each third time")

// task is the task of all jobs: it waits for as long as the job says.
func (r *replica) task(ctx context.Context, j Job, p string) error {
	run, ok := scheduler.RunFromContext(ctx)
	if !ok || run.Job != j.Name || p != parameter {
		r.Append(history.Record{Kind: history.Fault, Text: fmt.Sprintf("task of %s: run %+v, parameter %q", j.Name, run, p)})
		return nil
	}
	id, _ := ctx.Value(runKey{}).(string)
	if j.Panics && run.Attempt == 1 && run.Due.UnixMilli()/j.Every.Milliseconds()%4 == 0 {
		panic("each fourth tick")
	}
	until := ctx
	if j.Deaf {
		until = context.WithoutCancel(ctx)
	}
	for end := time.Now().Add(j.Takes); time.Until(end) > 0; {
		if clock.Sleep(until, min(look, time.Until(end))) != nil {
			return context.Cause(ctx)
		}
		if j.Takes > look {
			r.Append(history.Record{Kind: history.Valid, Run: id, Deadline: deadline(run)})
		}
	}
	if j.Fails && run.FencingToken()%3 == 0 {
		return errTask
	}
	return nil
}

var (
	_ redlock.AcquireTracer = (*tracer)(nil)
	_ redlock.ReleaseTracer = (*tracer)(nil)
)

// tracer records the events of the Schedulers, and the runs whose end no quorum confirmed.
type tracer struct {
	*clients.Process
	runs atomic.Int64
}

type runKey struct{}

func (t *tracer) scheduler() *scheduler.Tracer {
	return &scheduler.Tracer{RunStart: t.begin, RunEnd: t.end, Skip: t.skip}
}

func (t *tracer) begin(ctx context.Context, data scheduler.RunStartTrace) context.Context {
	id := fmt.Sprintf("%s/%d", t.Name, t.runs.Add(1))
	rec := history.Record{
		Kind: history.Begin, Run: id, Job: data.Run.Job, Attempt: data.Run.Attempt, Reason: data.Run.Why,
		Token: data.Run.FencingToken(), Deadline: deadline(data.Run), Delay: data.Lateness,
	}
	if !data.Run.Due.IsZero() {
		rec.Tick = data.Run.Due.UnixMilli()
	}
	t.Append(rec)
	return context.WithValue(ctx, runKey{}, id)
}

func (t *tracer) end(ctx context.Context, data scheduler.RunEndTrace) {
	id, _ := ctx.Value(runKey{}).(string)
	rec := history.Record{Kind: history.End, Run: id, Deadline: deadline(data.Run), Panicked: errors.As(data.Err, new(*scheduler.PanicError))}
	rec.Told = data.Err != nil && ctx.Err() != nil
	if err := data.Run.Lease().Err(); err != nil {
		rec.Text = err.Error()
	}
	t.Append(rec)
}

func (t *tracer) skip(_ context.Context, s *scheduler.SkipError) {
	rec := history.Record{Kind: history.Skip, Job: s.Job, Count: s.Count, Reason: string(s.Reason), By: s.By, Pending: s.Pending}
	if !s.Tick.IsZero() {
		rec.Tick = s.Tick.UnixMilli()
	}
	if s.Err != nil {
		rec.Text = s.Err.Error()
	}
	t.Append(rec)
}

// TraceAcquireStart implements redlock.AcquireTracer.
func (t *tracer) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

// TraceAcquireEnd implements redlock.AcquireTracer.
func (t *tracer) TraceAcquireEnd(context.Context, redlock.TraceAcquireEndData) {}

// TraceReleaseStart implements redlock.ReleaseTracer.
func (t *tracer) TraceReleaseStart(ctx context.Context, _ redlock.TraceReleaseStartData) context.Context {
	return ctx
}

// TraceReleaseEnd implements redlock.ReleaseTracer. If a release fails, the outcome of the run may
// not have been written either.
func (t *tracer) TraceReleaseEnd(_ context.Context, data redlock.TraceReleaseEndData) {
	if data.Err != nil {
		t.Append(history.Record{Kind: history.Unheard, Token: data.Lease.FencingToken(), Text: data.Err.Error()})
	}
}
