package service

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// leases tells of every lease of the replica, from its grant to its end. It is a redlock tracer.
//
// An end is told before the nodes hear of the release: whoever is granted the key next is told of
// later.
type leases struct{ report func(Report) }

func (l leases) tell(kind, key string, lea *redlock.Lease, why string) {
	of := lease(key)
	if of == "" {
		return
	}
	l.report(Report{
		Kind: kind, Of: of, At: time.Now().UnixMilli(),
		Token: lea.FencingToken(), Until: lea.Deadline().UnixMilli(), Why: why,
	})
}

func (l leases) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (l leases) TraceAcquireEnd(_ context.Context, data redlock.TraceAcquireEndData) {
	if data.Lease != nil {
		l.tell(Granted, data.Key, data.Lease, "")
	}
}

func (l leases) TraceExtend(_ context.Context, data redlock.TraceExtendData) {
	if data.Err == nil {
		l.tell(Extended, data.Key, data.Lease, "")
	}
}

func (l leases) TraceReleaseStart(ctx context.Context, data redlock.TraceReleaseStartData) context.Context {
	if !errors.Is(data.Lease.Err(), redlock.ErrLost) { // of which people have been told
		l.tell(Released, data.Key, data.Lease, "")
	}
	return ctx
}

func (l leases) TraceReleaseEnd(context.Context, redlock.TraceReleaseEndData) {}

func (l leases) TraceLost(_ context.Context, data redlock.TraceLostData) {
	l.tell(Lost, data.Key, data.Lease, string(data.Reason))
}

// runs tells of the runs of the job.
func runs(report func(Report)) *scheduler.Tracer {
	return &scheduler.Tracer{
		RunStart: func(ctx context.Context, data scheduler.RunStartTrace) context.Context {
			report(Report{
				Kind: Begun, Of: OfRun, At: time.Now().UnixMilli(), Token: data.Run.FencingToken(),
				Until: data.Run.Deadline().UnixMilli(), Tick: data.Run.Due.UnixMilli(), Attempt: data.Run.Attempt,
			})
			return ctx
		},
	}
}
