package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// repeatEvery is how often an order without an answer is sent again, because messages may be lost,
// and how often the journal is asked for the answer. Wait asks as often.
const repeatEvery = 250 * time.Millisecond

// OrderKind is the kind of an order.
type OrderKind string

// The kinds of orders.
const (
	OrderPause    OrderKind = bulletin.Pause
	OrderResume   OrderKind = bulletin.Resume
	OrderRunNow   OrderKind = bulletin.RunNow
	OrderResign   OrderKind = bulletin.Resign
	OrderCancel   OrderKind = bulletin.Cancel
	OrderBackfill OrderKind = bulletin.Backfill
)

// ErrNobody means that no replica took an order in time, and that no replica will take it later.
var ErrNobody = errors.New("admin: no replica took the order")

// ErrRefused means that a replica took an order and did not carry it out.
var ErrRefused = errors.New("admin: the order was refused")

// OrderError reports an order that was not carried out, or whose outcome is not known. It matches
// one of ErrNobody, ErrRefused, ErrUnknown, redlock.ErrNoQuorum, or ctx's own error.
type OrderError struct {
	ID     string // ID of the Order; empty if the order was not given
	Kind   OrderKind
	Target string // the job or the election
	By     string // the replica that took the order; empty for none
	// Reason is the cause in one word: a scheduler.Reason such as overlap, or one of this package:
	// no_replica, no_leader, leader_silent, no_orders, no_answer, not_running.
	Reason string
	Detail string // for people
	Err    error
}

func (e *OrderError) Error() string {
	said := e.Err.Error()
	switch {
	case errors.Is(e.Err, ErrNobody):
		said = "no replica did it, and none will"
	case errors.Is(e.Err, ErrRefused):
		said = "refused by " + cmp.Or(e.By, "a replica")
	}
	for _, text := range []string{e.Reason, e.Detail} {
		if text != "" {
			said += ": " + text
		}
	}
	return fmt.Sprintf("admin: %s of %q: %s", strings.ReplaceAll(string(e.Kind), "_", " "), e.Target, said)
}

// Unwrap returns Err.
func (e *OrderError) Unwrap() error { return e.Err }

// ErrorType returns the Reason, or the type of Err, for the error.type attribute of traces and
// metrics.
func (e *OrderError) ErrorType() string { return cmp.Or(e.Reason, redlock.ErrorType(e.Err)) }

// OrderTracer observes orders. Its methods are called synchronously and concurrently, and must not
// block or panic.
type OrderTracer interface {
	// TraceOrderStart is called before an order is given. The order gets the context that it
	// returns.
	TraceOrderStart(ctx context.Context, data TraceOrderStartData) context.Context
	// TraceOrderEnd is called with the context that TraceOrderStart returned.
	TraceOrderEnd(ctx context.Context, data TraceOrderEndData)
}

// TraceOrderStartData describes an order.
type TraceOrderStartData struct {
	Kind   OrderKind
	Target string // a job or an election; empty for all jobs
	By     string // the actor
	Reason string
}

// TraceOrderEndData describes the outcome of an order.
type TraceOrderEndData struct {
	Kind     OrderKind
	Target   string
	Duration time.Duration
	Err      error
}

// trace carries out an order, and tells the tracer and the logger of it.
func (c *Client) trace(ctx context.Context, kind OrderKind, target, reason string, carryOut func(context.Context) error) error {
	if err := cmp.Or(checkContext(ctx), checkText("reason", reason)); err != nil {
		return err
	}
	began := time.Now()
	if c.tracer != nil {
		ctx = c.tracer.TraceOrderStart(ctx, TraceOrderStartData{Kind: kind, Target: target, By: c.actor, Reason: reason})
	}
	err := carryOut(ctx)
	if c.tracer != nil {
		c.tracer.TraceOrderEnd(ctx, TraceOrderEndData{Kind: kind, Target: target, Duration: time.Since(began), Err: err})
	}
	level, args := slog.LevelInfo, []any{"order", kind, "for", cmp.Or(target, "all jobs"), "by", c.actor, "why", strings.ToValidUTF8(reason, "?")}
	if err != nil {
		level, args = slog.LevelWarn, append(args, "error.type", redlock.ErrorType(err), "error", err)
	}
	c.logger.Log(ctx, level, "admin: order", args...)
	return err
}

// enact carries out an order that needs no replica: it is in force once a quorum of nodes has it.
// The order and its outcome are entered into the journal of orders. detail is that of an order that
// was done.
func (c *Client) enact(ctx context.Context, kind OrderKind, target, reason string, carryOut func(context.Context) (detail string, err error)) error {
	return c.trace(ctx, kind, target, reason, func(ctx context.Context) error {
		detail, err := carryOut(ctx)
		if errors.Is(err, ErrNotPaused) { // there was nothing to do
			return err
		}
		o := bulletin.Order{ID: orders.NewID(), Kind: string(kind), Target: target, By: c.actor, Why: reason, Result: bulletin.Done, Detail: detail}
		switch {
		case errors.Is(err, register.ErrUnknown):
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
			o.Result, o.Detail = bulletin.Unknown, redlock.ErrorType(err)
		case err != nil:
			o.Result, o.Detail = bulletin.Refused, redlock.ErrorType(err)
		}
		orders.Tell(context.WithoutCancel(ctx), c.q, o, c.timeout)
		return err
	})
}

// Started is a run that RunNow has begun.
type Started struct {
	Run
	Order  string  // the ID of the Order
	Paused *Paused // the pause of the job, which was run all the same; nil if it is not paused
}

// RunNow begins a run of a job now. The leader runs it if the job has an election, and else any
// replica that has the job. RunNow returns when a replica has begun the run, and does not wait for
// its end. The run is no tick of the schedule and takes the place of none. A paused job is run too.
//
// A call begins at most one run, whatever happens to messages, replicas and nodes: one replica
// claims the order, on a quorum of nodes. RunNow waits until ctx ends, at most the order timeout
// (WithOrderTimeout), and then a few node timeouts to be sure of the outcome.
//
// Errors: *OptionError; or an *OrderError that matches
//   - ErrRefused if a replica took the order and could not begin the run, with a scheduler.Reason
//     such as overlap, if a run of the job goes on;
//   - ErrNobody if no replica took the order and none will, and also ErrNoJob if no replica is
//     known to have the job;
//   - ErrUnknown if a replica took the order, or may have, and the outcome is not known: ask
//     Running and Runs, and Orders, where the order has its ID;
//   - redlock.ErrNoQuorum or ctx's own error if the order was not given.
func (c *Client) RunNow(ctx context.Context, job, reason string) (started Started, err error) {
	key, err := Job(job).key()
	if err != nil {
		return Started{}, err
	}
	if err := c.q.Validate(key); err != nil {
		return Started{}, fmt.Errorf("admin: cannot order a run of %q: %w", job, err)
	}
	err = c.trace(ctx, OrderRunNow, job, reason, func(ctx context.Context) error {
		// A replica can claim the order only if a quorum of nodes votes. This read needs the same.
		l, err := c.log(ctx, job)
		if err != nil {
			return &OrderError{Kind: OrderRunNow, Target: job, Err: err}
		}
		started.Paused = pausedBy(Job(job), l.pauses...)
		o, a, err := c.give(ctx, bulletin.Order{Kind: bulletin.RunNow, Target: job, Why: reason})
		if started.Order = o.ID; err != nil {
			if a, err = c.unanswered(ctx, o, err); err != nil {
				return err
			}
		}
		if a.Run != nil {
			started.Run = Run{Job: job, Replica: a.Run.By, Began: timeOf(a.Run.Began), FencingToken: a.Run.Token}
		}
		return refusal(o, a)
	})
	return started, err
}

// Resign makes the leader of an election step down. The context of its term ends. When the work of
// the term has returned, the leader releases the lease, and then Resign returns. The next leader
// may be another replica, or the same one. If another leader was elected meanwhile it stays.
//
// The term of a Scheduler's election (scheduler.WithElection) has no work to wait for. The contexts
// of runs that began in the term end, but the runs may go on after Resign has returned. Each run
// has a lease of its own, and Running and Jobs show it.
//
// Errors: elector.ErrNoLeader if the election has no leader; *OptionError; *OrderError, which
// matches ErrRefused if the leader overran its drain timeout or lost its lease, and ErrUnknown if
// it did not answer within the order timeout, which by default is as long as the drain timeout;
// redlock.ErrNoQuorum, redlock.ErrClosed, or ctx's own error.
func (c *Client) Resign(ctx context.Context, election, reason string) error {
	key, err := keyOf(elector.KeyPrefix, election, "Resign", "election", "names no election")
	if err != nil {
		return err
	}
	return c.trace(ctx, OrderResign, election, reason, func(ctx context.Context) error {
		h, err := c.q.Holder(ctx, key)
		if errors.Is(err, redlock.ErrNotHeld) {
			return elector.ErrNoLeader
		} else if err != nil {
			return fmt.Errorf("admin: cannot tell who leads %q: %w", election, err)
		}
		o, a, err := c.give(ctx, bulletin.Order{Kind: bulletin.Resign, Target: election, Number: h.FencingToken, Why: reason})
		if err == nil {
			return refusal(o, a)
		}
		if now, herr := c.q.Holder(ctx, key); errors.Is(herr, redlock.ErrNotHeld) || herr == nil && now.FencingToken > h.FencingToken {
			return nil // that term has ended; or the first read was wrong, if the new number is smaller
		}
		return &OrderError{ID: o.ID, Kind: OrderResign, Target: election, By: h.Identity, Reason: "leader_silent", Err: fmt.Errorf("%w: %w", ErrUnknown, err)}
	})
}

// Cancel ends the context of a run, with a *scheduler.CancelledError as its cause. It returns when
// the replica of the run has ended the context, and does not wait for the task, which may go on:
// see Wait. The run counts as complete and is not repeated.
//
// Errors: ErrNotRunning if that run does not go on, or its task has returned; *OptionError;
// *OrderError, which matches ErrUnknown if the replica did not answer in time; redlock.ErrNoQuorum,
// redlock.ErrClosed, or ctx's own error.
func (c *Client) Cancel(ctx context.Context, run RunID, reason string) error {
	if _, err := Job(run.Job).key(); err != nil {
		return err
	}
	return c.trace(ctx, OrderCancel, run.Job, reason, func(ctx context.Context) error {
		if is, err := c.Running(ctx, run.Job); err != nil {
			return err
		} else if is.FencingToken != run.FencingToken {
			return ErrNotRunning
		}
		o, a, err := c.give(ctx, bulletin.Order{Kind: bulletin.Cancel, Target: run.Job, Number: run.FencingToken, Why: reason})
		if err == nil {
			return refusal(o, a)
		}
		if is, gone := c.Running(ctx, run.Job); errors.Is(gone, ErrNotRunning) || gone == nil && is.FencingToken > run.FencingToken {
			return ErrNotRunning // see Resign
		}
		return &OrderError{ID: o.ID, Kind: OrderCancel, Target: run.Job, Reason: "no_answer", Err: fmt.Errorf("%w: %w", ErrUnknown, err)}
	})
}

// Backfill is a span of time whose ticks of a job are run again, or for the first time.
type Backfill struct{ From, To time.Time } // both included

// ErrNoBackfill means that the job has no past ticks in the span, or that no backfill goes on.
var ErrNoBackfill = errors.New("admin: there is nothing to backfill")

// Backfill runs the past ticks of a job between two times, also those that were run before. They
// are run one after the other, on any replica, with the job's delivery. Ticks that are due go
// first. Ticks of the span that are not due yet are left out. A backfill replaces an earlier one
// that goes on.
//
// Backfill returns when a quorum of nodes has the backfill in the job's record. Replicas see it
// within a minute, and JobStatus shows the rest of it. StopBackfill ends it, and so does Cancel of
// one of its runs.
//
// The ticks are those of the present schedule. A job whose last run decides the next tick has no
// past ticks. No replica has a job any more of which no tick is left: its backfill begins when a
// replica makes it again. Backfill waits for a run of the job that goes on, at most the order
// timeout.
//
// Errors: ErrNoJob if no replica is known to have the job, or its Scheduler writes no card
// (scheduler.Telling); ErrNoBackfill; *OptionError; *OrderError, which matches ErrRefused if a run
// of the job still goes on; ErrUnknown; redlock.ErrNoQuorum, redlock.ErrClosed, or ctx's own error.
func (c *Client) Backfill(ctx context.Context, job string, from, to time.Time, reason string) (Backfill, error) {
	if from.After(to) {
		return Backfill{}, &OptionError{"Backfill", fmt.Sprintf("%s is after %s", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano))}
	}
	if _, _, err := c.definition(ctx, job); err != nil {
		return Backfill{}, err
	}
	return c.fill(ctx, job, reason, func(r *joblog.Record, now time.Time) (fill joblog.Fill, ok bool) {
		*r, ok = r.Backfill(from, to, now)
		return r.Fill, ok
	})
}

// StopBackfill ends a backfill, and returns the part that was left. Errors are those of Backfill,
// except ErrNoJob.
func (c *Client) StopBackfill(ctx context.Context, job, reason string) (Backfill, error) {
	return c.fill(ctx, job, reason, func(r *joblog.Record, _ time.Time) (was joblog.Fill, ok bool) {
		was, r.Fill = r.Fill, joblog.Fill{}
		return was, !was.To.IsZero()
	})
}

// fill sets or clears the Fill of the job's record, under the job's lease. The function change
// changes the record as it is at a time by the nodes' clocks. It reports false if there is nothing
// to fill.
func (c *Client) fill(ctx context.Context, job, reason string, change func(*joblog.Record, time.Time) (joblog.Fill, bool)) (b Backfill, err error) {
	key, err := Job(job).keyAnd("reason", reason)
	if err != nil {
		return b, err
	}
	err = c.enact(ctx, OrderBackfill, job, reason, func(ctx context.Context) (string, error) {
		within, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
		defer cancel()
		lease, err := c.q.Acquire(within, key, redlock.WithPayload(joblog.Brief), redlock.WithMinHold(0))
		if held, is := errors.AsType[*redlock.HeldError](err); is && ctx.Err() == nil {
			err = &OrderError{Kind: OrderBackfill, Target: job, By: held.Holder.Identity, Reason: "overlap", Err: ErrRefused}
		}
		if err != nil {
			return "", err
		}
		var fill joblog.Fill
		err = register.Of(c.q, key, keepLog).Change(within, lease, func(s register.State) ([]byte, error) {
			rec, err := joblog.Parse(s.Value, s.Now)
			if err != nil {
				return nil, s.Unreadable(err)
			}
			var ok bool
			if fill, ok = change(&rec, s.Now); !ok {
				return nil, fmt.Errorf("%w: backfill: the job has no such ticks: job %q", ErrNoBackfill, job)
			}
			return rec.Encode()
		})
		if err != nil {
			return "", err
		}
		b = newBackfill(fill)
		return b.String(), nil
	})
	return b, err
}

func newBackfill(f joblog.Fill) Backfill { return Backfill{f.From.Add(1), f.To} }

// String returns From and To in UTC, as RFC 3339.
func (b Backfill) String() string {
	return b.From.UTC().Format(time.RFC3339) + " to " + b.To.UTC().Format(time.RFC3339)
}

// errNoAnswer means that an order was given and no replica answered in time.
var errNoAnswer = errors.New("admin: no replica answered in time")

// give sends an order to all replicas until one answers, or until the order timeout or ctx ends. An
// error means that there was no answer. If given has no ID the order was not given.
func (c *Client) give(ctx context.Context, o bulletin.Order) (given, answer bulletin.Order, err error) {
	end, next := time.After(c.timeout), time.Tick(repeatEvery)
	o.By = c.actor
	told := o
	told.ID, told.Within = orders.NewID(), c.timeout.Milliseconds()
	e, ok := told.Entry()
	if !ok {
		return o, answer, &OptionError{"order", "its job or election has a name that is no UTF-8, or too long for an order"}
	}
	e.At = time.Now()
	silence := errNoAnswer
	for {
		if err := board.Of(c.q).Post(ctx, nil, e); err == nil {
			o, silence = told, errNoAnswer
		} else if o.ID == "" && ctx.Err() == nil {
			if silence = err; !errors.Is(err, redlock.ErrNoQuorum) {
				return o, answer, err
			}
		}
		select {
		case <-next:
			if a, _, ok := c.answerTo(ctx, told.ID); ok {
				return o, a, nil
			}
		case <-end:
			return o, answer, silence
		case <-ctx.Done():
			return o, answer, ended(ctx)
		}
	}
}

// refusal returns the error of an answer, or nil if the order was done.
func refusal(o, a bulletin.Order) error {
	if a.Result == bulletin.Done {
		return nil
	}
	e := &OrderError{ID: o.ID, Kind: OrderKind(o.Kind), Target: o.Target, By: a.By, Reason: a.Detail, Err: ErrRefused}
	switch {
	case a.Result != bulletin.Refused:
		e.Err = ErrUnknown
	case a.Detail == bulletin.NotRunning:
		e.Err = fmt.Errorf("%w: %w", ErrRefused, ErrNotRunning)
	}
	if a.Run != nil && a.Run.By != "" {
		e.Detail = "held by " + a.Run.By
	}
	return e
}

// hurry is how long unanswered looks for the outcome of an order whose ctx has ended.
const hurry = 2 * time.Second

// unanswered finds out the outcome of a RunNow that has no answer. It claims the order itself, so
// that no replica can claim it any more.
func (c *Client) unanswered(ctx context.Context, o bulletin.Order, because error) (answer bulletin.Order, err error) {
	e := &OrderError{ID: o.ID, Kind: OrderRunNow, Target: o.Target, Err: because}
	if o.ID == "" {
		return answer, e // it was not sent
	}
	most := c.timeout
	if ctx.Err() != nil {
		most = min(most, hurry)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	for {
		switch err := orders.Claim(ctx, c.q, o.ID); {
		case err == nil:
			e.Err = ErrNobody
			if e.Reason, e.Detail = c.whyNobody(ctx, o.Target); e.Reason == "no_replica" {
				e.Err = fmt.Errorf("%w: %w", ErrNobody, ErrNoJob)
			}
			o.By, o.Why, o.Within, o.Result, o.Detail = "", "", 0, bulletin.Nobody, e.Reason
			orders.Tell(context.WithoutCancel(ctx), c.q, o, c.timeout)
			return answer, e
		case errors.Is(err, orders.ErrTaken):
			return c.lookUp(ctx, o, e)
		case ctx.Err() != nil, errors.Is(err, redlock.ErrClosed), errors.Is(err, redlock.ErrNoQuorum):
			e.Err = fmt.Errorf("%w: %w: %w", ErrUnknown, because, err)
			return answer, e
		}
		_ = clock.Sleep(ctx, repeatEvery)
	}
}

// lookUp waits for the answer to an order that a replica has claimed.
func (c *Client) lookUp(ctx context.Context, o bulletin.Order, e *OrderError) (answer bulletin.Order, err error) {
	for ctx.Err() == nil {
		a, by, ok := c.answerTo(ctx, o.ID)
		if ok {
			return a, nil
		}
		e.By = cmp.Or(by, e.By)
		_ = clock.Sleep(ctx, repeatEvery)
	}
	e.Err, e.Reason, e.Detail = fmt.Errorf("%w: %w", ErrUnknown, e.Err), "no_answer", "it took the order, and has not said what came of it"
	return answer, e
}

// answerTo reads the answer to an order from the journal, and the replica that claimed the order.
func (c *Client) answerTo(ctx context.Context, id string) (a bulletin.Order, by string, ok bool) {
	entries, _ := board.Of(c.q).Journal(ctx, bulletin.Orders, newestOrders)
	for _, e := range entries {
		switch a, ok := bulletin.Parse[bulletin.Order](e.Text); {
		case !ok || a.ID != id || a.Result == "":
		case a.Result == bulletin.Taken:
			by = a.By
		default:
			return a, a.By, true
		}
	}
	return bulletin.Order{}, by, false
}

// newestOrders is how many of the newest entries of the journal are searched for an answer. An
// answer behind more entries is not found.
const newestOrders = 100

// whyNobody says why no replica took an order, as far as the replicas' cards show.
func (c *Client) whyNobody(ctx context.Context, job string) (reason, detail string) {
	j, _, err := c.definition(ctx, job)
	switch {
	case errors.Is(err, ErrNoJob):
		return "no_replica", "no replica is known to have the job"
	case err != nil:
		return "no_answer", ""
	case !j.Orders:
		return "no_orders", "its replicas take no orders (scheduler.Telling)"
	case j.Election == "":
		return "no_answer", "no replica answered"
	}
	h, err := c.q.Holder(ctx, elector.KeyPrefix+j.Election)
	switch {
	case errors.Is(err, redlock.ErrNotHeld):
		return "no_leader", fmt.Sprintf("nobody leads %q", j.Election)
	case err != nil:
		return "no_answer", ""
	}
	return "leader_silent", fmt.Sprintf("%s, which leads %q, did not answer", h.Identity, j.Election)
}

// Order is an order that was given by any process, with its outcome.
type Order struct {
	ID     string
	Kind   OrderKind
	Target string // a job or an election; empty for all jobs
	By     string // the actor that its process named; not proven
	Why    string
	At     time.Time // when the order was given; zero if not known any more
	// Result is done, refused or unknown; nobody if no replica took it and none will; taken while a
	// replica carries it out, or if that replica died; empty without an answer.
	Result   string
	Detail   string    // the cause, in one word
	TakenBy  string    // the replica that took it
	Answered time.Time // the time of the answer; zero without one
	Run      RunID     // the run that was begun, or was to end
	Sources  int       // nodes that have the order
}

// Orders reads the orders that were given last, at most limit, the newest first. Nodes keep about
// 200.
//
// Errors are those of Replicas.
func (c *Client) Orders(ctx context.Context, limit int) ([]Order, error) {
	entries, err := board.Of(c.q).Journal(ctx, bulletin.Orders, bulletin.MaxEntries)
	if err != nil {
		return nil, fmt.Errorf("admin: cannot read the orders: %w", err)
	}
	var all []Order
	known := make(map[string]int)                // the place in all
	for _, e := range slices.Backward(entries) { // the oldest first
		o, ok := bulletin.Parse[bulletin.Order](e.Text)
		if !ok {
			continue
		}
		at, is := known[o.ID]
		if !is {
			at, known[o.ID] = len(all), len(all)
			all = append(all, *newOrder(o))
		}
		all[at].add(o, e)
	}
	slices.Reverse(all)
	return all[:min(len(all), max(limit, 0))], nil
}

func newOrder(b bulletin.Order) *Order {
	return &Order{ID: b.ID, Kind: OrderKind(b.Kind), Target: b.Target}
}

// add takes over an entry: the order itself, or its answer.
func (o *Order) add(b bulletin.Order, e bulletin.Entry) {
	o.Sources = max(o.Sources, e.Nodes)
	own := b.Kind == bulletin.Pause || b.Kind == bulletin.Resume || b.Kind == bulletin.Backfill // order and answer in one
	if b.Result == "" || own {
		o.By, o.Why, o.At = b.By, b.Why, e.At
	}
	if b.Result != "" && (b.Result != bulletin.Taken || o.Result == "") {
		o.Result, o.Detail, o.Answered = b.Result, b.Detail, e.At
		if !own {
			o.TakenBy = b.By
		}
	}
	switch {
	case b.Run != nil && b.Result == bulletin.Done:
		o.Run = RunID{b.Target, b.Run.Token}
	case b.Kind == bulletin.Cancel:
		o.Run = RunID{b.Target, b.Number}
	}
}
