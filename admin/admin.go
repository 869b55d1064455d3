package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// KeyPrefix stands before the name of a job in the key of the job's lease, as in package scheduler.
const KeyPrefix = "job/"

// DefaultOrderTimeout is how long an order waits for a replica, without WithOrderTimeout.
const DefaultOrderTimeout = 10 * time.Second

// Client reads the state of a cluster and gives orders. It is safe for concurrent use.
type Client struct {
	q       *redlock.Quorum
	actor   string
	timeout time.Duration
	tracer  OrderTracer // nil for none
	logger  *slog.Logger
}

// Option configures a Client.
type Option func(*Client) error

// OptionError reports an argument that cannot be used.
type OptionError struct{ Option, Reason string }

func (e *OptionError) Error() string { return fmt.Sprintf("admin: %s: %s", e.Option, e.Reason) }

// MaxText is the most bytes that the name of an actor, or the reason of an order, may have.
const MaxText = pause.MaxText

// refuse returns an *OptionError about an argument if wrong is true, and else nil.
func refuse(wrong bool, option, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// checkText checks the length and the encoding of a text that people read.
func checkText(option, text string) error {
	return cmp.Or(refuse(len(text) > MaxText, option, "has %d bytes, more than %d", len(text), MaxText),
		refuse(!utf8.ValidString(text), option, "is no UTF-8"))
}

// WithActor names the actor who gives the orders. The name is in logs, in the journal of orders and
// in pauses. It has at most MaxText bytes of UTF-8. Default: the identity of the Quorum's leases.
func WithActor(name string) Option {
	return func(c *Client) error {
		c.actor = name
		return cmp.Or(refuse(name == "", "WithActor", "is empty"), checkText("WithActor", name))
	}
}

// WithLogger sets the logger of orders. An order is logged at level Info, a failed one as a
// warning. Default: slog.Default at the time of New.
func WithLogger(l *slog.Logger) Option {
	return func(c *Client) error {
		c.logger = l
		return refuse(l == nil, "WithLogger", "nil logger")
	}
}

// WithOrderTimeout sets how long RunNow, Resign and Cancel wait for a replica, and how long
// Backfill and StopBackfill wait for a run of the job to end. It is from 1 s to an hour. Default:
// DefaultOrderTimeout.
func WithOrderTimeout(d time.Duration) Option {
	return func(c *Client) error {
		c.timeout = d
		return refuse(d < time.Second || d > time.Hour, "WithOrderTimeout", "%v is not from 1 s to 1 h", d)
	}
}

// WithTracer sets the tracer of the orders of this Client. Default: the Quorum's tracer
// (redlock.WithTracer), if it is an OrderTracer.
func WithTracer(t OrderTracer) Option {
	return func(c *Client) error {
		c.tracer = t
		return refuse(t == nil, "WithTracer", "nil tracer; leave the option out for none")
	}
}

// New makes a Client on a Quorum, which needs the nodes and the prefix of the replicas. It does no
// I/O. The caller keeps the Quorum, and closes it.
func New(q *redlock.Quorum, opts ...Option) (*Client, error) {
	if q == nil {
		return nil, &OptionError{"New", "nil Quorum: open one with redlock.Open"}
	}
	c := &Client{q: q, actor: q.Identity(), timeout: DefaultOrderTimeout, logger: slog.Default()}
	c.tracer, _ = q.Tracer().(OrderTracer)
	for _, o := range opts {
		if o == nil {
			return nil, &OptionError{"Option", "nil option"}
		}
		if err := o(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// As returns a copy of the Client whose orders are given by another actor, named as in WithActor.
// It is for a program that passes on the orders of several people. Errors are *OptionError.
func (c *Client) As(actor string) (*Client, error) {
	as := *c
	if err := WithActor(actor)(&as); err != nil {
		return nil, err
	}
	return &as, nil
}

// Target names the job of an order, or all jobs. The zero Target names none, and is refused.
type Target struct {
	job string
	all bool
}

// Job returns the Target of one job, by the job's name.
func Job(name string) Target { return Target{job: name} }

// AllJobs is the Target of all jobs of the prefix, also of jobs that are added later.
var AllJobs = Target{all: true}

// String returns "all jobs", or the word job and the job's name in quotation marks.
func (t Target) String() string {
	if t.all {
		return "all jobs"
	}
	return fmt.Sprintf("job %q", t.job)
}

// key returns the key of the job's lease; it is empty for all jobs.
func (t Target) key() (string, error) {
	if t.all {
		return "", nil
	}
	return keyOf(KeyPrefix, t.job, "Target", "job", "names no job: use Job or AllJobs")
}

// keyOf returns the key of a job's or an election's lease.
func keyOf(prefix, name, option, kind, none string) (string, error) {
	most := redlock.MaxKeyLength - len(prefix)
	return prefix + name, cmp.Or(refuse(name == "", option, "%s", none),
		refuse(len(name) > most, option, "the %s's name has %d bytes, more than %d", kind, len(name), most))
}

// keyAnd returns key, after it has checked a text that people read.
func (t Target) keyAnd(option, text string) (string, error) {
	key, err := t.key()
	return key, cmp.Or(err, checkText(option, text))
}

// ErrUnknown means that the outcome of an order is not known: the order may be in force, or come
// into force later.
var ErrUnknown = errors.New("admin: the outcome is not known")

// PauseOptions say how long a job is paused, and why.
type PauseOptions struct {
	Until  time.Time // ticks that are due before it are skipped; zero: until Resume
	Reason string    // for people; at most MaxText bytes of UTF-8
	Force  bool      // also a job that no replica is known to have, such as one of `tenure run`
}

// Paused is the pause of one job, or of all jobs.
type Paused struct {
	Target Target
	Until  time.Time // zero: until Resume
	Since  time.Time // by the median of the nodes' clocks
	By     string    // the actor who paused
	Reason string
	Nodes  int // nodes that are known to have the pause
	// Running are the known runs that began before the pause and go on. For AllJobs these are runs
	// of the jobs that replicas name on their cards as running. See Wait.
	Running []Run
}

// Pause keeps all replicas from beginning ticks of the job. Once Pause has returned nil no replica
// begins such a tick, whatever happens to replicas and nodes. Ticks that are due before the end of
// the pause are skipped, and not run later. A run that has begun goes on.
//
// Pause takes a few round trips, and then waits for 400 ms. A replica begins a run at most 400 ms
// after it has asked the nodes for pauses; later it asks again. So a run that has not seen the
// pause has begun when Pause returns.
//
// A pause replaces an earlier one of the same Target. It is lost if a quorum of nodes loses its
// data at once.
//
// A job with gocron.WithDisabledDistributedJobLocker(true) cannot be paused, and a pause of all
// jobs does not stop it: each replica runs it without a lease, and asks no node.
//
// Errors: ErrNoJob if no replica is known to have the job, because its name may be misspelt (not
// with Force); *OptionError; *redlock.QuorumError (redlock.ErrNoQuorum), redlock.ErrClosed and,
// while another caller pauses or resumes the same Target, redlock.ErrHeld: then nothing was done;
// ErrUnknown if the pause may be in force or not; or ctx's own error. If ctx ends during the wait
// of 400 ms the pause is in force, and Pause returns it with the error.
func (c *Client) Pause(ctx context.Context, t Target, o PauseOptions) (Paused, error) {
	key, err := t.keyAnd("PauseOptions.Reason", o.Reason)
	if err == nil && !t.all && !o.Force {
		_, _, err = c.definition(ctx, t.job)
	}
	if err != nil {
		return Paused{}, err
	}
	var p pause.Pause
	var unwaited error // why the wait after the pause was cut short: the pause itself is in force
	err = c.enact(ctx, OrderPause, t.job, o.Reason, func(ctx context.Context) (detail string, err error) {
		if p, _, err = pause.Set(ctx, c.q, key, pause.Pause{Until: o.Until, By: c.actor, Why: o.Reason}); !p.Since.IsZero() {
			unwaited, err = err, nil
		} else if errors.Is(err, pause.ErrPassed) {
			err = &OptionError{"PauseOptions.Until", fmt.Sprintf("the end %s has passed: it would pause nothing", o.Until.Format(time.RFC3339Nano))}
		}
		return "", err
	})
	if err != nil {
		return Paused{}, fmt.Errorf("admin: cannot pause %v: %w", t, err)
	}
	if read, unread := pause.Read(context.WithoutCancel(ctx), c.q, key); unread == nil && read[0].Ballot == p.Ballot {
		p = read[0]
	}
	paused := newPaused(t, p)
	if unwaited != nil {
		return paused, fmt.Errorf("admin: %v is paused, and what began before was not waited for: %w", t, ended(ctx))
	}
	paused.Running = c.runningOf(ctx, t)
	return paused, nil
}

// runningOf returns the runs that go on, as a quorum of nodes has them: the run of one job, or for
// AllJobs those of the jobs that replicas name as running.
func (c *Client) runningOf(ctx context.Context, t Target) (all []Run) {
	jobs := map[string]bool{t.job: true}
	if t.all {
		delete(jobs, "")
		replicas, _ := c.Replicas(ctx)
		for _, r := range replicas {
			for _, run := range r.Running {
				jobs[run.Job] = true
			}
		}
	}
	for _, job := range slices.Sorted(maps.Keys(jobs)) {
		if run, err := c.Running(ctx, job); err == nil {
			all = append(all, run)
		}
	}
	return all
}

func newPaused(t Target, p pause.Pause) Paused {
	return Paused{Target: t, Until: p.Until, Since: p.Since, By: p.By, Reason: p.Why, Nodes: p.Nodes}
}

// Resume ends the pause of the job, or the pause of all jobs. The two are separate: a job under
// both stays paused until the other one is resumed too. Ticks that are due from now on are run.
//
// Errors are those of Pause, and ErrNotPaused if there was no pause to end. Such a Resume still
// takes back the parts that a failed Pause may have left on some nodes. It is not entered into the
// journal of orders.
func (c *Client) Resume(ctx context.Context, t Target, reason string) error {
	key, err := t.keyAnd("reason", reason)
	if err != nil {
		return err
	}
	err = c.enact(ctx, OrderResume, t.job, reason, func(ctx context.Context) (string, error) {
		_, was, err := pause.Resume(ctx, c.q, key, c.actor, reason)
		if err == nil && !was.Stands() {
			err = fmt.Errorf("%w: %v", ErrNotPaused, t)
			if p, unread := c.Paused(ctx, t); unread == nil {
				err = fmt.Errorf("%w by itself: %v are, by %s", err, p.Target, p.By)
			}
		}
		return "", err
	})
	if err != nil && !errors.Is(err, ErrNotPaused) {
		return fmt.Errorf("admin: cannot resume %v: %w", t, err)
	}
	return err
}

// ErrNotPaused means that there is no such pause: of the job, or of all jobs.
var ErrNotPaused = errors.New("admin: not paused")

// Paused reads the pause that keeps the job's ticks from being run now: the job's own, or else the
// pause of all jobs.
//
// Errors: ErrNotPaused, *OptionError, *redlock.QuorumError (redlock.ErrNoQuorum),
// redlock.ErrClosed, or ctx's own error.
func (c *Client) Paused(ctx context.Context, t Target) (Paused, error) {
	key, err := t.key()
	if err = cmp.Or(err, checkContext(ctx)); err != nil {
		return Paused{}, err
	}
	keys := []string{key, ""}
	if t.all {
		keys = keys[:1]
	}
	pauses, err := pause.Read(ctx, c.q, keys...)
	if err != nil {
		return Paused{}, fmt.Errorf("admin: cannot tell whether %v is paused: %w", t, err)
	}
	if p := pausedBy(t, pauses...); p != nil {
		return *p, nil
	}
	return Paused{}, ErrNotPaused
}

// pausedBy returns the first pause that is in force, or nil. The pauses are that of t, and then
// that of all jobs.
func pausedBy(t Target, pauses ...pause.Pause) *Paused {
	for i, p := range pauses {
		if p.Stands() {
			return new(newPaused([]Target{t, AllJobs}[i], p))
		}
	}
	return nil
}

// Run is a run of a job that has not ended.
type Run struct {
	Job          string
	Replica      string    // identity of the process that runs it, see redlock.WithIdentity
	Tick         time.Time // zero for a run that is no tick, or if the tick is not known
	Began        time.Time // by the replica's clock; zero if not known
	Attempt      int       // 1, or more if the tick was begun before; 0 if not known
	Why          string    // see scheduler.Run; empty if not known
	FencingToken uint64
	// LeaseLeft is the time until the lease of the run expires, unless it is extended; zero if not
	// known.
	LeaseLeft time.Duration
}

// RunID identifies a run.
type RunID struct {
	Job          string
	FencingToken uint64
}

// ID returns the RunID of the run, for Cancel.
func (r Run) ID() RunID { return RunID{r.Job, r.FencingToken} }

// ErrNotRunning means that no replica runs the job.
var ErrNotRunning = errors.New("admin: not running")

// Running reads which replica runs a job now.
//
// Errors: ErrNotRunning, also while fewer nodes than a quorum have the lease of a run;
// *OptionError, *redlock.QuorumError (redlock.ErrNoQuorum), redlock.ErrClosed, or ctx's own error.
func (c *Client) Running(ctx context.Context, job string) (Run, error) {
	run, err := c.holder(ctx, job)
	if err != nil {
		return Run{}, err
	}
	if l, err := c.log(ctx, job); err == nil {
		run.add(l.record)
	}
	return run, nil
}

// holder reads which replica holds the lease of a job for a run.
func (c *Client) holder(ctx context.Context, job string) (Run, error) {
	key, err := Job(job).key()
	if err != nil {
		return Run{}, err
	}
	h, err := c.q.Holder(ctx, key)
	switch {
	case errors.Is(err, redlock.ErrNotHeld), err == nil && h.Payload == joblog.Brief:
		return Run{}, ErrNotRunning
	case err != nil:
		return Run{}, fmt.Errorf("admin: cannot tell who runs %q: %w", job, err)
	}
	return Run{Job: job, Replica: h.Identity, FencingToken: h.FencingToken, LeaseLeft: h.TTL}, nil
}

// add copies the details of the run from the job's record, if the record is of this run.
func (r *Run) add(rec joblog.Record) {
	if is := rec.Run; is.Token == r.FencingToken {
		r.Tick, r.Began, r.Attempt, r.Why = is.Tick, is.Began, is.Attempt, string(is.Why)
	}
}

// log is the progress of a job, with its pauses.
type log struct {
	record joblog.Record
	pauses []pause.Pause // the job's own, and that of all jobs
	now    time.Time     // the median of the nodes' clocks
}

// keepLog is the least time for which nodes keep a record that a read has restored on them, or a
// backfill has written. Schedulers keep it longer.
const keepLog = 24 * time.Hour

// log reads the record and the pauses of a job from a quorum of nodes.
func (c *Client) log(ctx context.Context, job string) (l log, err error) {
	key, err := Job(job).key()
	if err = cmp.Or(err, checkContext(ctx)); err != nil {
		return l, err
	}
	states, err := register.Of(c.q, key, keepLog).Read(ctx, pause.Of(c.q, key), pause.Of(c.q, ""))
	if err != nil {
		return l, fmt.Errorf("admin: cannot tell how far %q has come: %w", job, err)
	}
	l.now = states[0].Now
	if l.record, err = joblog.Parse(states[0].Value, l.now); err != nil {
		return l, states[0].Unreadable(err)
	}
	l.pauses, err = pause.ParseAll(states[1:])
	return l, err
}

// Wait returns when no replica runs the job. It asks four times a second. While too few nodes
// answer it goes on asking.
//
// Errors: *OptionError, redlock.ErrClosed, or ctx's own error.
func (c *Client) Wait(ctx context.Context, job string) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	for {
		_, err := c.Running(ctx, job)
		switch {
		case errors.Is(err, ErrNotRunning):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("admin: a run of %q may go on: %w", job, ended(ctx))
		case err != nil && !errors.Is(err, redlock.ErrNoQuorum):
			return err
		}
		_ = clock.Sleep(ctx, repeatEvery)
	}
}

// ended returns the error of a context that has ended: its own, and its cause where that says more.
func ended(ctx context.Context) error {
	own, why := ctx.Err(), context.Cause(ctx)
	if errors.Is(own, why) {
		return own
	}
	return fmt.Errorf("%w: %w", own, why)
}

func checkContext(ctx context.Context) error {
	return refuse(ctx == nil, "ctx", "is nil: use context.Background() where there is no other")
}
