package jobs

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// askForRuns calls RunNow of those jobs that are manual, at random, until ctx ends.
func askForRuns(ctx context.Context, p *Process, seed uint64, jobs []gocron.Job, busy *sync.WaitGroup) {
	name := fnv.New64()
	_, _ = name.Write([]byte(p.Name))
	for _, job := range jobs {
		j, ok := Find(All(), job.Name())
		if !ok || j.Kind != Manual {
			continue
		}
		random := rand.New(rand.NewPCG(seed, name.Sum64()+uint64(j.Every)))
		busy.Go(func() {
			for clients.Sleep(ctx, time.Duration(random.Int64N(int64(2*j.Every)))) {
				ask(p, job)
			}
		})
	}
}

func ask(p *Process, job gocron.Job) {
	asked := history.Record{Kind: history.Asked, Job: job.Name()}
	if err := job.RunNow(); err != nil {
		if asked.Text = err.Error(); !errors.As(err, new(*scheduler.SkipError)) {
			asked.Kind = history.Fault
		}
	}
	p.Append(asked)
}
