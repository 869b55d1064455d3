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

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// KeyPrefix goes before the names of jobs in the keys of their leases, as in package scheduler.
const KeyPrefix = "job/"

// DefaultOrderTimeout is for how long an order waits for a replica.
const DefaultOrderTimeout = 10 * time.Second

// Client reads and gives orders. It is safe for concurrent use.
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

// MaxText bounds the name of an actor, and why an order is given, in bytes.
const MaxText = pause.MaxText

// refuse is the error about an argument if that is wrong.
func refuse(wrong bool, option, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// checkText checks a text for people.
func checkText(option, text string) error {
	return cmp.Or(refuse(len(text) > MaxText, option, "has %d bytes, more than %d", len(text), MaxText),
		refuse(!utf8.ValidString(text), option, "is no UTF-8"))
}

// WithActor says who gives the orders, for logs and for those who ask who paused a job. At most
// MaxText bytes of UTF-8. Default: the identity of the Quorum's leases.
func WithActor(name string) Option {
	return func(c *Client) error {
		c.actor = name
		return cmp.Or(refuse(name == "", "WithActor", "is empty"), checkText("WithActor", name))
	}
}

// WithLogger sets where orders are logged: at level Info, and one that failed as a warning.
// Default: slog.Default as it is when the Client is made.
func WithLogger(l *slog.Logger) Option {
	return func(c *Client) error {
		c.logger = l
		return refuse(l == nil, "WithLogger", "nil logger")
	}
}

// WithOrderTimeout sets for how long RunNow, Resign and Cancel wait for a replica; from 1 s to an
// hour. Default DefaultOrderTimeout.
func WithOrderTimeout(d time.Duration) Option {
	return func(c *Client) error {
		c.timeout = d
		return refuse(d < time.Second || d > time.Hour, "WithOrderTimeout", "%v is not from 1 s to 1 h", d)
	}
}

// WithTracer has a tracer told of orders that are given here. Default: the Quorum's
// (redlock.WithTracer), if it is one.
func WithTracer(t OrderTracer) Option {
	return func(c *Client) error {
		c.tracer = t
		return refuse(t == nil, "WithTracer", "nil tracer; leave the option out for none")
	}
}

// New makes a Client on a Quorum with the nodes and the prefix of the replicas. It does no I/O, and
// the Quorum stays the caller's.
func New(q *redlock.Quorum, opts ...Option) (*Client, error) {
	if q == nil {
		return nil, &OptionError{"New", "nil Quorum"}
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

// As returns a Client like this one whose orders are given by another actor, as WithActor says: for
// a program that passes on the orders of several people. Errors are *OptionError.
func (c *Client) As(actor string) (*Client, error) {
	as := *c
	if err := WithActor(actor)(&as); err != nil {
		return nil, err
	}
	return &as, nil
}

// Target is what an order is for. The zero Target is none.
type Target struct {
	job string
	all bool
}

// Job is one job, by its name.
func Job(name string) Target { return Target{job: name} }

// AllJobs are all jobs of the prefix, also those that are added later.
var AllJobs = Target{all: true}

// String returns "all jobs", or the word job and the job's name in quotation marks.
func (t Target) String() string {
	if t.all {
		return "all jobs"
	}
	return fmt.Sprintf("job %q", t.job)
}

// key is the key of the job's lease; empty for all jobs.
func (t Target) key() (string, error) {
	if t.all {
		return "", nil
	}
	const most = redlock.MaxKeyLength - len(KeyPrefix)
	return KeyPrefix + t.job, cmp.Or(refuse(t.job == "", "Target", "names no job: use Job or AllJobs"),
		refuse(len(t.job) > most, "Target", "the job's name has %d bytes, more than %d", len(t.job), most))
}

// keyAnd is key, and checks a text for people.
func (t Target) keyAnd(option, text string) (string, error) {
	key, err := t.key()
	return key, cmp.Or(err, checkText(option, text))
}

// ErrUnknown means that it is not known what came of an order: it may be in force, or come into
// force.
var ErrUnknown = errors.New("admin: the outcome is not known")

// PauseOptions say for how long a job is paused, and why.
type PauseOptions struct {
	Until  time.Time // ticks that are due before it are skipped; zero: until Resume
	Reason string    // for people; at most MaxText bytes of UTF-8
	Force  bool      // also a job that no replica is known to have, such as one of `tenure run`
}

// Paused is the pause of a job, or of all.
type Paused struct {
	Target Target
	Until  time.Time // zero: until Resume
	Since  time.Time // by the median of the nodes' clocks
	By     string    // an actor
	Reason string
	Nodes  int // that are known to have it
	// Running are runs that had begun before, and go on, as far as they are known: of AllJobs those
	// that replicas have on their cards. See Wait.
	Running []Run
}

// Pause has no replica begin a tick of the job any more, once it has returned nil, whatever happens
// to replicas and nodes. Ticks that are due before the end are skipped, and not run later; a run
// that has begun goes on. It takes a few round trips, and then waits for 400 ms: a replica begins a
// run within that time after it has asked whether the job is paused, or not at all.
//
// A pause that is there is replaced. It is not kept by nodes of which a quorum loses its data at
// once.
//
// A job with gocron.WithDisabledDistributedJobLocker(true) is not paused, neither by itself nor
// with all: each replica runs it without a lease, and asks no node.
//
// Errors: ErrNoJob without Force, as the name may be misspelt; *OptionError; *redlock.QuorumError
// (redlock.ErrNoQuorum) and redlock.ErrClosed where nothing was done; ErrUnknown if it may be in
// force or not; or ctx's own error. If ctx ends while Pause waits, the pause stands, and is
// returned with the error.
func (c *Client) Pause(ctx context.Context, t Target, o PauseOptions) (Paused, error) {
	key, err := t.keyAnd("PauseOptions.Reason", o.Reason)
	if err == nil && !t.all && !o.Force {
		_, _, err = c.definition(ctx, t.job)
	}
	if err != nil {
		return Paused{}, err
	}
	var p pause.Pause
	var unwaited error // for what stands, and so is done
	err = c.enact(ctx, OrderPause, t.job, o.Reason, func(ctx context.Context) (detail string, err error) {
		if p, _, err = pause.Set(ctx, c.q, key, pause.Pause{Until: o.Until, By: c.actor, Why: o.Reason}); !p.Since.IsZero() {
			unwaited, err = err, nil
		} else if errors.Is(err, pause.ErrPassed) {
			err = &OptionError{"PauseOptions.Until", fmt.Sprintf("the end %v has passed: it would pause nothing", o.Until)}
		}
		return "", err
	})
	if err != nil {
		return Paused{}, fmt.Errorf("admin: cannot pause %v: %w", t, err)
	}
	if read, unread := pause.Read(context.WithoutCancel(ctx), c.q, key); unread == nil && read[0].Since.Equal(p.Since) {
		p = read[0]
	}
	paused := newPaused(t, p)
	if unwaited != nil {
		return paused, fmt.Errorf("admin: %v is paused, and what began before was not waited for: %w", t, unwaited)
	}
	paused.Running = c.runningOf(ctx, t)
	return paused, nil
}

// runningOf are the runs that a quorum of nodes has, of a job, or of those that replicas run.
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

// Resume ends the pause of the job, or that of all; a job that is paused both ways stays paused by
// the other one. Ticks that are due from now on are run.
//
// Errors are those of Pause, and ErrNotPaused where there was no pause to end: then it has taken
// back what a Pause that failed may have left on some nodes, and is no order in the journal.
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

// ErrNotPaused means that a job is not paused, or all are not.
var ErrNotPaused = errors.New("admin: not paused")

// Paused reads the pause that keeps ticks of the job from being run that are due now: its own, or
// that of all jobs.
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

// pausedBy is the pause that is in force, of what it is for and of all jobs; nil for none.
func pausedBy(t Target, pauses ...pause.Pause) *Paused {
	for i, p := range pauses {
		if p.Stands() {
			return new(newPaused([]Target{t, AllJobs}[i], p))
		}
	}
	return nil
}

// Run is a run of a job that goes on.
type Run struct {
	Job          string
	Replica      string    // identity of the process that runs it, see redlock.WithIdentity
	Tick         time.Time // zero for a run that is no tick, or if that is not known
	Began        time.Time // by the replica's clock; zero if that is not known
	Attempt      int       // 1, or more if the tick was begun before; 0 if that is not known
	Why          string    // see scheduler.Run; empty if that is not known
	FencingToken uint64
	// LeaseLeft is for how long the run keeps others out unless it is extended; zero if that is not
	// known.
	LeaseLeft time.Duration
}

// RunID names a run.
type RunID struct {
	Job          string
	FencingToken uint64
}

// ID names the run, for Cancel.
func (r Run) ID() RunID { return RunID{r.Job, r.FencingToken} }

// ErrNotRunning means that no replica runs the job.
var ErrNotRunning = errors.New("admin: not running")

// Running reads which replica runs a job now.
//
// Errors: ErrNotRunning, also while too few nodes have a run for it to be one; *OptionError,
// *redlock.QuorumError (redlock.ErrNoQuorum), redlock.ErrClosed, or ctx's own error.
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

// holder reads who has the lease of a job to run it.
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

// add adds what the job's record has of the run.
func (r *Run) add(rec joblog.Record) {
	if is := rec.Run; is.Token == r.FencingToken {
		r.Tick, r.Began, r.Attempt, r.Why = is.Tick, is.Began, is.Attempt, string(is.Why)
	}
}

// log is how far a job has come, and its pauses.
type log struct {
	record joblog.Record
	pauses []pause.Pause // its own, and that of all jobs
	now    time.Time     // the median of the nodes' clocks
}

// keepLog is for how long a record is kept at least that is restored for a reader.
const keepLog = 24 * time.Hour

// log reads what a quorum of nodes has of a job.
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
	for _, s := range states[1:] {
		p, err := pause.Parse(s)
		if err != nil {
			return l, err
		}
		l.pauses = append(l.pauses, p)
	}
	return l, nil
}

// Wait returns when no replica runs the job. It asks four times a second, and goes on while too few
// nodes answer.
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
			return fmt.Errorf("admin: a run of %q goes on: %w", job, context.Cause(ctx))
		case err != nil && !errors.Is(err, redlock.ErrNoQuorum):
			return err
		}
		again(ctx)
	}
}

func checkContext(ctx context.Context) error {
	return refuse(ctx == nil, "ctx", "is nil: use context.Background() where there is no other")
}
