package replica

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/story"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// AskForRuns calls RunNow of those jobs that are manual, at random, until ctx ends.
func AskForRuns(ctx context.Context, role *cast.Role, seed uint64, jobs []gocron.Job, busy *sync.WaitGroup) {
	name := fnv.New64()
	_, _ = name.Write([]byte(role.Name))
	for _, job := range jobs {
		j, ok := work.Find(work.Jobs(), job.Name())
		if !ok || j.Kind != work.Manual {
			continue
		}
		random := rand.New(rand.NewPCG(seed, name.Sum64()+uint64(j.Every)))
		busy.Go(func() {
			for sleep(ctx, time.Duration(random.Int64N(int64(2*j.Every)))) {
				ask(role, job)
			}
		})
	}
}

func ask(role *cast.Role, job gocron.Job) {
	asked := story.Record{Kind: story.Asked, Job: job.Name()}
	if err := job.RunNow(); err != nil {
		if asked.Text = err.Error(); !errors.As(err, new(*scheduler.SkipError)) {
			asked.Kind = story.Fault
		}
	}
	role.Append(asked)
}
