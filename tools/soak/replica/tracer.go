package replica

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/soak/record"
)

var (
	_ scheduler.RunTracer   = (*tracer)(nil)
	_ scheduler.SkipTracer  = (*tracer)(nil)
	_ redlock.AcquireTracer = (*tracer)(nil)
	_ redlock.ReleaseTracer = (*tracer)(nil)
)

// tracer writes down what the Schedulers tell, and which runs' ends did not come to a quorum.
type tracer struct {
	*Process
	runs atomic.Int64
}

type runKey struct{}

// TraceRunStart implements scheduler.RunTracer.
func (t *tracer) TraceRunStart(ctx context.Context, data scheduler.TraceRunStartData) context.Context {
	id := fmt.Sprintf("%s/%d", t.Name, t.runs.Add(1))
	rec := record.Record{
		Kind: record.Begin, Run: id, Job: data.Run.Job, Attempt: data.Run.Attempt, CatchUp: data.Run.CatchUp,
		Token: data.Run.FencingToken(), Deadline: deadline(data.Run), Delay: data.Delay,
	}
	if !data.Run.Tick.IsZero() {
		rec.Tick = data.Run.Tick.UnixMilli()
	}
	t.Append(rec)
	return context.WithValue(ctx, runKey{}, id)
}

// TraceRunEnd implements scheduler.RunTracer.
func (t *tracer) TraceRunEnd(ctx context.Context, data scheduler.TraceRunEndData) {
	id, _ := ctx.Value(runKey{}).(string)
	rec := record.Record{Kind: record.End, Run: id, Deadline: deadline(data.Run), Panicked: data.Panicked}
	if err := data.Run.Lease().Err(); err != nil {
		rec.Text = err.Error()
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

// TraceReleaseEnd implements redlock.ReleaseTracer.
func (t *tracer) TraceReleaseEnd(_ context.Context, data redlock.TraceReleaseEndData) {
	if errors.Is(data.Err, redlock.ErrNoQuorum) {
		t.Append(record.Record{Kind: record.Unheard, Token: data.Lease.FencingToken(), Text: data.Err.Error()})
	}
}

// TraceSkip implements scheduler.SkipTracer.
func (t *tracer) TraceSkip(_ context.Context, data scheduler.TraceSkipData) {
	s := data.Skip
	rec := record.Record{Kind: record.Skip, Job: s.Job, Reason: string(s.Reason), By: s.By, Pending: s.Pending}
	if !s.Tick.IsZero() {
		rec.Tick = s.Tick.UnixMilli()
	}
	if s.Err != nil {
		rec.Text = s.Err.Error()
	}
	t.Append(rec)
}
