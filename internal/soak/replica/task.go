package replica

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/soak/story"
	"github.com/tenure-dev/tenure/internal/soak/work"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	// parameter is what every task is given.
	parameter = "parameter"
	// look is how often a task that takes long notes its deadline.
	look = 200 * time.Millisecond
)

var errTask = errors.New("the task fails each third time")

// task is what all jobs do: nothing, for as long as they are told.
func (r *replica) task(ctx context.Context, j work.Job, p string) error {
	run, ok := scheduler.RunFromContext(ctx)
	if !ok || run.Job != j.Name || p != parameter {
		r.Append(story.Record{Kind: story.Fault, Text: fmt.Sprintf("task of %s: run %+v, parameter %q", j.Name, run, p)})
		return nil
	}
	id, _ := ctx.Value(runKey{}).(string)
	if j.Panics && run.Attempt == 1 && j.Tick(run.Tick.UnixMilli())/j.Every.Milliseconds()%4 == 0 {
		panic("each fourth tick")
	}
	until := ctx
	if j.Deaf {
		until = context.WithoutCancel(ctx)
	}
	for end := time.Now().Add(j.Takes); time.Until(end) > 0; {
		if !sleep(until, min(look, time.Until(end))) {
			return context.Cause(ctx)
		}
		if j.Takes > look {
			r.Append(story.Record{Kind: story.Valid, Run: id, Deadline: deadline(run)})
		}
	}
	if j.Fails && run.FencingToken()%3 == 0 {
		return errTask
	}
	return nil
}

// askForRuns calls RunNow of manual jobs at random.
func (r *replica) askForRuns(ctx context.Context, busy *sync.WaitGroup) {
	name := fnv.New64()
	_, _ = name.Write([]byte(r.Name))
	for _, job := range append(r.shared.Jobs(), r.led.Jobs()...) {
		j, ok := work.Find(work.Jobs(), job.Name())
		if !ok || j.Kind != work.Manual {
			continue
		}
		random := rand.New(rand.NewPCG(r.Seed, name.Sum64()+uint64(j.Every)))
		busy.Go(func() {
			for sleep(ctx, time.Duration(random.Int64N(int64(2*j.Every)))) {
				r.ask(job)
			}
		})
	}
}

func (r *replica) ask(job gocron.Job) {
	asked := story.Record{Kind: story.Asked, Job: job.Name()}
	if err := job.RunNow(); err != nil {
		if asked.Text = err.Error(); !errors.Is(err, elector.ErrNotLeader) {
			asked.Kind = story.Fault
		}
	}
	r.Append(asked)
}
