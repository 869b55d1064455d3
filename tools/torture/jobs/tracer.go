package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

var (
	_ redlock.AcquireTracer = (*tracer)(nil)
	_ redlock.ReleaseTracer = (*tracer)(nil)
)

// tracer writes down what the Schedulers tell, and which runs' ends did not come to a quorum.
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

// TraceReleaseEnd implements redlock.ReleaseTracer. Where a release fails, how the run ended may
// not have been written either.
func (t *tracer) TraceReleaseEnd(_ context.Context, data redlock.TraceReleaseEndData) {
	if data.Err != nil {
		t.Append(history.Record{Kind: history.Unheard, Token: data.Lease.FencingToken(), Text: data.Err.Error()})
	}
}
