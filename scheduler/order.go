package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock"
)

// ErrCancelled means that a run was ended by an operator (admin.Client.Cancel), or by the job's
// next tick (OverlapCancel).
var ErrCancelled = errors.New("scheduler: cancelled")

// CancelledError is the cause with which the context of a run ends that was cancelled; see
// ErrCancelled. It matches ErrCancelled.
type CancelledError struct {
	Job string
	By  string // the operator's name, unverified, or this replica's identity
	Why string
}

func (e *CancelledError) Error() string {
	text := fmt.Sprintf("scheduler: the run of job %q was cancelled by %s", e.Job, e.By)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Is reports whether target is ErrCancelled.
func (e *CancelledError) Is(target error) bool { return target == ErrCancelled }

// ErrorType returns the stable value "cancelled" for the error.type attribute of traces and
// metrics.
func (e *CancelledError) ErrorType() string { return "cancelled" }

const (
	// orderSpread spreads the claims of replicas that may all take an order.
	orderSpread = 50 * time.Millisecond
	// claimAgain is the pause before an order that no replica has claimed is claimed again.
	claimAgain = 100 * time.Millisecond
)

// accept returns the function that carries out an order, if the order is for this replica. An order
// whose Within is not positive is for no replica.
func (s *Scheduler) accept(o bulletin.Order) (carryOut func(context.Context) bulletin.Order, ok bool) {
	if o.Within <= 0 {
		return nil, false
	}
	switch o.Kind {
	case bulletin.RunNow:
		j := s.named(o.Target)
		if j == nil || j.unlocked || j.unfit(context.Background()) != nil {
			return nil, false
		}
		return func(ctx context.Context) bulletin.Order { return j.ordered(ctx, o) }, true
	case bulletin.Cancel:
		found := s.runs(func(r *run) bool {
			return r.job.name == o.Target && r.lease != nil && r.lease.FencingToken() == o.Number
		})
		if len(found) == 0 {
			return nil, false
		}
		r := found[0]
		return func(ctx context.Context) bulletin.Order {
			s.cfg.logger.InfoContext(ctx, "scheduler: an operator cancels a run", "job", o.Target, "tick", r.public().Due, "fencing_token", o.Number, "by", o.By, "why", o.Why)
			answer := bulletin.Order{Result: bulletin.Done, By: r.lease.Identity()}
			switch cancelled, err := r.cancel(ctx, &CancelledError{Job: o.Target, By: o.By, Why: o.Why}); {
			case err != nil:
				answer.Result, answer.Detail = bulletin.Unknown, redlock.ErrorType(err)
			case !cancelled:
				answer.Result, answer.Detail = bulletin.Refused, bulletin.NotRunning
			}
			return answer
		}, true
	}
	return nil, false
}

// ordered begins a run that an operator has asked for. Its answer has no Result if another replica
// claims the order, or the order can no longer be claimed.
func (j *job) ordered(ctx context.Context, o bulletin.Order) (answer bulletin.Order) {
	s, started := j.s, j.s.life()
	if started == nil {
		return answer
	}
	if s.leader == nil {
		spread := rand.N(orderSpread)
		if s.limit.isFull() { // other replicas may have a place
			spread += claimAgain
		}
		_ = clock.Sleep(ctx, spread)
	}
	until := time.Now().Add(time.Duration(o.Within) * time.Millisecond)
	for err := j.claim(ctx, o.ID); err != nil; err = j.claim(ctx, o.ID) {
		if errors.Is(err, orders.ErrTaken) || errors.Is(err, redlock.ErrClosed) || time.Now().After(until) || clock.Sleep(ctx, claimAgain) != nil {
			return answer
		}
	}
	s.run(func() { orders.Taken(started, s.q, o, s.q.Identity()) })
	answer.Result, answer.By, answer.Run = bulletin.Done, s.q.Identity(), new(bulletin.Run)
	if r, err := j.runNow(started, o.ID); err == nil {
		*answer.Run = r.bulletin()
	} else {
		e := newSkipError(j.name, time.Time{}, err)
		answer.Result, answer.Detail, answer.Run.By = bulletin.Refused, string(e.Reason), e.By
	}
	return answer
}

// claim makes one attempt to claim an order, within tryTimeout.
func (j *job) claim(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return orders.Claim(ctx, j.s.q, id, j.s.cfg.lease...)
}

// ownOrder stands for the order in a run that this process itself has asked for.
const ownOrder = "RunNow"

// runNow begins a run that is no tick, and returns when its task is about to be called.
func (j *job) runNow(ctx context.Context, order string) (*run, error) {
	if err := j.unfit(ctx); err != nil {
		return nil, err
	}
	if !j.s.limit.try() {
		return nil, &SkipError{Job: j.name, Reason: SkipLimit}
	}
	var r *run
	came := make(chan error, 1)
	goes := j.s.run(func() {
		defer j.s.limit.giveBack()
		var err error
		if r, err = j.beginNow(ctx, order); err == nil {
			r.begins = func() { came <- nil }
			err = r.carryOut(ctx, j.s.now())
		}
		if err != nil {
			came <- err
		}
	})
	if !goes {
		j.s.limit.giveBack()
		return nil, context.Canceled
	}
	select {
	case err := <-came:
		return r, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// beginNow takes the lease of a run that is no tick, and has the run granted.
func (j *job) beginNow(ctx context.Context, order string) (*run, error) {
	within, cancel := context.WithTimeoutCause(ctx, tryTimeout, redlock.ErrTimeout)
	defer cancel()
	if err := j.adopt(within); err != nil { // the first turn may not have adopted yet
		return nil, err
	}
	if j.unlocked {
		return j.begin(ctx, nil, j.s.now(), order, true)
	}
	ctx = j.traceTick(ctx, time.Time{}, joblog.Ordered)
	lease, err := j.try(ctx, payloadOf(time.Time{}))
	for until := time.Now().Add(tryTimeout); j.isFreeSoon(err) && time.Now().Before(until) && clock.Sleep(ctx, leastPause) == nil; {
		lease, err = j.try(ctx, payloadOf(time.Time{}))
	}
	if err != nil {
		return nil, err
	}
	return j.begin(ctx, lease, j.s.now(), order, true)
}

// isFreeSoon reports whether a lease was refused although no run holds it. The holder only writes,
// or is a waiter whose turn it is and which has no payload yet. Or votes are split, or an attempt
// of this replica is being undone.
func (j *job) isFreeSoon(err error) bool {
	if held := new(redlock.HeldError); errors.As(err, &held) {
		return held.Holder.Payload == "" || isBrief(err) || held.Self && len(j.s.runs(func(r *run) bool { return r.job.name == j.name })) == 0
	}
	return errors.Is(err, redlock.ErrSplit)
}
