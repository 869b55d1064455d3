// Package backfill has a job run past ticks, whether they were run before or not: it sets or clears
// the Fill of the job's record, under the job's lease. A scheduler of the job sees that within a
// minute. Ticks that are due go first. Then the past ticks are run one after the other, on any
// replica, also after crashes, with the job's delivery.
package backfill

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// ErrNone means that there is nothing to fill: no replica has ever had a job with that key; or the
// job has no past ticks, because each run decides when the next is due; or from is after the end or
// after the nodes' time.
var ErrNone = errors.New("backfill: the job has no such ticks")

// keep is how long the nodes keep a record at least after this write. Schedulers keep it longer.
const keep = 24 * time.Hour

// Set has the job with that key run its ticks from one time to another, both included, as far as
// they are past by the nodes' clocks. It replaces an earlier backfill, and returns what it wrote.
// Only a scheduler of the job knows how many ticks those are; if there are none, it clears the
// backfill again.
//
// Set waits for the job's lease, and so for a run that goes on, until ctx ends. Errors: ErrNone,
// and those of Quorum.Acquire and of register. After register.ErrUnknown the backfill may stand or
// not.
func Set(ctx context.Context, q *redlock.Quorum, key string, from, to time.Time) (is joblog.Fill, err error) {
	err = change(ctx, q, key, func(r joblog.Record, now time.Time) (joblog.Record, bool) {
		r, ok := r.Backfill(from, to, now)
		is = r.Fill
		return r, ok
	})
	return is, err
}

// Clear ends a backfill and returns what was left of it; ErrNone if there was none. As Set does, it
// waits for a run that goes on. Cancelling a run of the backfill clears the backfill too.
func Clear(ctx context.Context, q *redlock.Quorum, key string) (was joblog.Fill, err error) {
	err = change(ctx, q, key, func(r joblog.Record, _ time.Time) (joblog.Record, bool) {
		was, r.Fill = r.Fill, joblog.Fill{}
		return r, !was.To.IsZero()
	})
	return was, err
}

// change writes the record that to makes of the old one, under the job's lease.
func change(ctx context.Context, q *redlock.Quorum, key string, to func(joblog.Record, time.Time) (joblog.Record, bool)) error {
	lease, err := q.Acquire(ctx, key, redlock.WithPayload(joblog.Brief), redlock.WithMinHold(0))
	if err != nil {
		return err
	}
	return register.Of(q, key, keep).Change(ctx, lease, func(s register.State) ([]byte, error) {
		rec, err := joblog.Parse(s.Value, s.Now)
		if err != nil {
			return nil, s.Unreadable(err)
		}
		rec, ok := to(rec, s.Now)
		if !ok {
			return nil, ErrNone
		}
		return rec.Encode()
	})
}
