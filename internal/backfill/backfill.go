// Package backfill has a job run ticks that are past, whoever ran them or did not: it sets or
// clears the Fill of the job's record, under the job's lease. A scheduler of the job sees that
// within a minute. What is due goes first; then the ticks are run one after the other, on any
// replica, over crashes, with the job's delivery.
package backfill

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// ErrNone means that there is nothing to fill: no replica has ever had a job of that key, the job's
// last run decides when the next is due, so that it has no ticks that are past, or from is not
// before the end and the nodes' time.
var ErrNone = errors.New("backfill: the job has no such ticks")

// keep is for how long a record is kept at least after this has written it. Schedulers say more.
const keep = 24 * time.Hour

// Set has the job with that key run its ticks from one time to another, both included, as far as
// they are past by the nodes' clocks. It takes the place of an earlier backfill that goes on. It
// returns what it wrote. How many ticks those are only a scheduler of the job knows: where there
// are none it clears the backfill again.
//
// It waits for the job's lease, so for a run that goes on, until ctx ends. Errors: ErrNone, those
// of Quorum.Acquire and of register; register.ErrUnknown says that the backfill may stand or not.
func Set(ctx context.Context, q *redlock.Quorum, key string, from, to time.Time) (is joblog.Fill, err error) {
	err = change(ctx, q, key, func(r joblog.Record, now time.Time) (joblog.Record, bool) {
		r, ok := r.Backfill(from, to, now)
		is = r.Fill
		return r, ok
	})
	return is, err
}

// Clear ends a backfill and returns what was left of it; ErrNone if there was none. A run of it
// that goes on is waited for, as Set does: cancelling that run clears the backfill too.
func Clear(ctx context.Context, q *redlock.Quorum, key string) (was joblog.Fill, err error) {
	err = change(ctx, q, key, func(r joblog.Record, _ time.Time) (joblog.Record, bool) {
		was, r.Fill = r.Fill, joblog.Fill{}
		return r, !was.To.IsZero()
	})
	return was, err
}

// change writes what a record becomes.
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
