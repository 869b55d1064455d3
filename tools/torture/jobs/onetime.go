package jobs

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// createOneTimeJobs adds each one-time job ahead of its time by a replica's clock, those included
// that others have added, until ctx ends.
func createOneTimeJobs(ctx context.Context, p *clients.Process, clock Clock, add func(Job, gocron.JobDefinition) (gocron.Job, error)) {
	const lead, late = Ahead, 50 * time.Millisecond
	next := clock.Now().Add(late).UnixNano()/int64(OnceEvery) + 1
	for ; ; next++ {
		j, at := OneTime(next)
		if !clients.Sleep(ctx, clock.Until(at.Add(-lead))) {
			return
		}
		if clock.Until(at) < late {
			continue // it was frozen meanwhile; gocron refuses times of the past
		}
		if _, err := add(j, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at))); err != nil {
			if clock.Until(at) > 0 && ctx.Err() == nil {
				p.Append(history.Record{Kind: history.Fault, Text: "one-time job " + j.Name + ": " + err.Error()})
			}
			continue
		}
		p.Append(history.Record{Kind: history.Created, Job: j.Name, Tick: at.UnixMilli()})
	}
}
