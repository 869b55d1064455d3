package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

const (
	// parameter is what every task is given.
	parameter = "parameter"
	// look is how often a task that takes long notes its deadline.
	look = 200 * time.Millisecond
)

var errTask = errors.New("the task fails each third time")

// task is what all jobs do: nothing, for as long as they are told.
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
		if !clients.Sleep(until, min(look, time.Until(end))) {
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
