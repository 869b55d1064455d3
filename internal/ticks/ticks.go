// Package ticks runs a tick once on several hosts without a scheduler: each host computes the time
// of the tick. The nodes keep a joblog record under the key of the lease, as for a job, and a tick
// is paused as a job is.
package ticks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/internal/timetable"
	"github.com/tenure-dev/tenure/redlock"
)

// Reasons for which this host does not run a tick, and never will.
var (
	ErrDone    = errors.New("ticks: another host has run the tick, runs it, or has begun a later one")
	ErrPaused  = errors.New("ticks: the tick is paused")
	ErrGivenUp = errors.New("ticks: the tick is given up")
)

const (
	// Pauses between looks at the record while a holder has the lease: the first one, doubled up to
	// the last.
	firstLook, lastLook = 100 * time.Millisecond, time.Second
	// granting is how long a holder that has granted nothing yet is given to do so, if the caller
	// does not wait for the lease.
	granting = 2 * time.Second
	// mostPauseReads bounds how often the pauses are read again. The tick is run even on nodes that
	// never answer within pause.Fresh.
	mostPauseReads = 3
	// writeWithin bounds a write, or a release, after the run was refused.
	writeWithin = 10 * time.Second
)

// Tick is a due time that several hosts are to run once.
type Tick struct {
	Key      string // of the lease
	At       time.Time
	Keep     time.Duration // how long the nodes remember it
	Delivery joblog.Delivery
	Attempts int // AtLeastOnce: how often it may be begun
}

// Taker takes a tick on one host. It is not for concurrent use.
type Taker struct {
	Tick
	q      *redlock.Quorum
	record register.Register
	table  joblog.Table // of the one tick
	never  *Run         // granted and not begun: its grant may be in force
}

// New makes a Taker. It does no I/O.
func New(q *redlock.Quorum, t Tick) *Taker {
	t.At = t.At.UTC()
	once, _ := timetable.New(timetable.Spec{Kind: timetable.Once, At: []time.Time{t.At}}) // one time is always valid
	return &Taker{Tick: t, q: q, record: register.Of(q, t.Key, t.Keep), table: once.Table(t.At)}
}

// Run is a tick that was granted to this host, with its lease.
type Run struct {
	*redlock.Lease
	Attempt int // from 1

	tick   *Taker
	turn   *register.Turn
	record joblog.Record
	before joblog.Record
}

// Take acquires the lease and has the tick granted. Unless try is set, it waits for both until ctx
// ends.
//
// Errors: ErrDone; ErrPaused; ErrGivenUp if the tick was begun too often; *redlock.ClockError if
// the tick is ahead of the nodes' clocks; those of Quorum.Acquire; with try those of
// Quorum.TryAcquire and of register.
func (t *Taker) Take(ctx context.Context, try bool, opts ...redlock.LeaseOption) (*Run, error) {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		_, err := t.look(ctx) // keeps late hosts off the lease; if it fails, so does the lease
		if isOver(err) {
			return nil, err
		}
		acquire := t.acquire
		if try {
			acquire = t.tryAcquire
		}
		lease, err := acquire(ctx, opts)
		if err != nil {
			return nil, err
		}
		r, err := t.begin(ctx, lease)
		if err == nil {
			return r, nil
		}
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
		_ = lease.Release(after) // if this fails, the lease expires
		cancel()
		if _, ahead := errors.AsType[*redlock.ClockError](err); try || isOver(err) || ahead {
			return nil, err
		}
		if ended := clock.Sleep(ctx, pause/2+rand.N(pause)); ended != nil {
			return nil, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// isOver reports whether this host will never run the tick, so that a retry is no use.
func isOver(err error) bool {
	return errors.Is(err, ErrDone) || errors.Is(err, ErrPaused) || errors.Is(err, ErrGivenUp)
}

// acquire waits for the lease. Meanwhile it looks at the record, and ends when the tick is over.
func (t *Taker) acquire(ctx context.Context, opts []redlock.LeaseOption) (*redlock.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause := firstLook; clock.Sleep(ctx, pause) == nil; pause = min(2*pause, lastLook) {
			if _, err := t.look(ctx); isOver(err) {
				cancel(err)
				return
			}
		}
	}()
	lease, err := t.q.Acquire(ctx, t.Key, opts...)
	cancel(nil)
	<-done
	if over := context.Cause(ctx); err != nil && isOver(over) {
		return nil, over
	}
	return lease, err
}

// tryAcquire makes one attempt. If the lease is held, it waits until the holder has granted this
// tick, has granted another, or has had time to.
func (t *Taker) tryAcquire(ctx context.Context, opts []redlock.LeaseOption) (*redlock.Lease, error) {
	lease, err := t.q.TryAcquire(ctx, t.Key, opts...)
	if !errors.Is(err, redlock.ErrHeld) {
		return lease, err
	}
	for began, pause := time.Now(), firstLook/2; time.Since(began) < granting; pause = min(2*pause, lastLook) {
		rec, unread := t.look(ctx)
		if isOver(unread) {
			return nil, unread
		}
		if h, unheld := t.q.Holder(ctx, t.Key); unread == nil && (unheld != nil || rec.Run.Token == h.FencingToken) {
			break // the holder runs another tick, or has ended
		}
		if clock.Sleep(ctx, pause) != nil {
			break
		}
	}
	return nil, err
}

// look reads the record without a lease.
func (t *Taker) look(ctx context.Context) (joblog.Record, error) {
	states, err := t.record.Read(ctx, pause.Of(t.q, t.Key), pause.Of(t.q, ""))
	if err != nil {
		return joblog.Record{}, err
	}
	rec, _, err := t.verdict(states)
	if t.Delivery == joblog.AtLeastOnce && errors.Is(err, ErrGivenUp) {
		err = nil // its last attempt may still run
	}
	return rec, err
}

// verdict returns what the record and the pauses say of the tick.
func (t *Taker) verdict(states []register.State) (rec joblog.Record, v joblog.Verdict, err error) {
	if rec, err = joblog.Parse(states[0].Value, states[0].Now); err != nil {
		return rec, v, states[0].Unreadable(err)
	}
	if n := t.never; n != nil && rec.Run.Token == n.FencingToken() && rec.Run.Ended.IsZero() {
		rec = n.before
	}
	if err = t.paused(pause.ParseAll(states[1:])); err != nil {
		return rec, v, err
	}
	// No rest after an attempt that was cut short: there are only a few attempts.
	v = joblog.Owed(rec, t.table, t.policy(), joblog.Later(t.At, time.Now()))
	switch {
	case !v.Tick.Equal(t.At):
		return rec, v, ErrDone
	case t.Delivery == joblog.AtLeastOnce && v.Attempt > t.Attempts:
		return rec, v, fmt.Errorf("%w: it was begun %d times on all hosts, and never ended", ErrGivenUp, v.Attempt-1)
	}
	return rec, v, nil
}

// paused returns ErrPaused if one of the pauses leaves the tick out, and the error of their read.
func (t *Taker) paused(pauses []pause.Pause, err error) error {
	for _, p := range pauses {
		if !t.At.After(p.Floor()) {
			return fmt.Errorf("%w by %s", ErrPaused, p.By)
		}
	}
	return err
}

// policy runs the latest tick, however late.
func (t *Taker) policy() joblog.Policy {
	return joblog.Policy{CatchUp: joblog.CatchUpLatest, Window: redlock.MaxKeep, Delivery: t.Delivery}
}

// begin has a quorum of nodes take the grant. If the pauses were read too long ago by then, it
// reads them again, because a pause.Set that the first read missed may have returned.
func (t *Taker) begin(ctx context.Context, lease *redlock.Lease) (*Run, error) {
	steady := bridge.Of(t.q).Now
	sent := steady()
	turn, states, err := t.record.Begin(ctx, lease, pause.Of(t.q, t.Key), pause.Of(t.q, ""))
	if err != nil {
		return nil, err
	}
	rec, v, over := t.verdict(states)
	r := &Run{Lease: lease, Attempt: v.Attempt, tick: t, turn: turn, before: rec}
	switch {
	case errors.Is(over, ErrGivenUp):
		err := r.write(ctx, joblog.Settle(rec, t.table, joblog.Verdict{Cursor: t.At}, states[0].Now))
		return nil, errors.Join(over, err)
	case over != nil:
		return nil, over
	}
	if ahead, is := errors.AsType[*redlock.ClockError](t.q.CheckClock(t.At)); is && ahead.Ahead > 0 {
		return nil, fmt.Errorf("ticks: no tick is granted before its time: %w", ahead)
	}
	err = r.write(ctx, joblog.Begin(rec, t.table, t.policy(), v, joblog.Grant{Token: lease.FencingToken(), By: lease.Identity(), At: time.Now()}))
	for n := 0; n < mostPauseReads && err == nil && steady()-sent > pause.Fresh; n++ {
		sent = steady()
		err = t.paused(pause.Read(ctx, t.q, t.Key, ""))
	}
	if err = cmp.Or(err, lease.Err()); err != nil {
		t.never = r
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
		defer cancel()
		_ = r.Undo(after) // the grant may be in force
		return nil, err
	}
	return r, nil
}

func (r *Run) write(ctx context.Context, rec joblog.Record) error {
	r.record = rec
	value, err := rec.Encode()
	if err != nil {
		return err
	}
	return r.turn.Write(ctx, value)
}

// Undo takes back the grant of a run that has not begun. It does not release the lease.
func (r *Run) Undo(ctx context.Context) error { return r.write(ctx, r.before) }

// End writes how the run ended. It does not release the lease. With AtLeastOnce a run that did not
// succeed is tried again, unless it was the last attempt.
func (r *Run) End(ctx context.Context, succeeded bool, took time.Duration) error {
	e := joblog.Ending{Outcome: joblog.Succeeded, At: time.Now(), Took: took}
	switch {
	case succeeded:
	case r.tick.Delivery == joblog.AtLeastOnce && r.Attempt < r.tick.Attempts:
		e.Outcome = joblog.Stopped
	default:
		e.Outcome = joblog.Failed
	}
	rec, _ := joblog.End(r.record, r.tick.table, r.tick.policy(), e)
	return r.write(ctx, rec)
}
