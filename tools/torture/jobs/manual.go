package jobs

import (
	"context"
	"errors"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// askForRuns calls RunNow of those jobs that are manual, at random, until ctx ends.
func askForRuns(ctx context.Context, p *clients.Process, seed uint64, jobs []gocron.Job, busy *sync.WaitGroup) {
	for _, job := range jobs {
		j, ok := Find(All(), job.Name())
		if !ok || j.Kind != Manual {
			continue
		}
		random := plan.NewDice(seed+uint64(p.Number), uint64(j.Every))
		busy.Go(func() {
			for clients.Sleep(ctx, random.Between(0, 2*j.Every)) {
				ask(p, job)
			}
		})
	}
}

func ask(p *clients.Process, job gocron.Job) {
	asked := history.Record{Kind: history.Asked, Job: job.Name()}
	if err := job.RunNow(); err != nil {
		if asked.Text = err.Error(); !errors.As(err, new(*scheduler.SkipError)) {
			asked.Kind = history.Fault
		}
	}
	p.Append(asked)
}
