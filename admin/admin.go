package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// DefaultKeyPrefix goes before the names of jobs in the keys of their leases, as in package
// scheduler.
const DefaultKeyPrefix = "job/"

// DefaultOrderTimeout is for how long an order waits for a replica.
const DefaultOrderTimeout = 10 * time.Second

// Client reads and gives orders. It is safe for concurrent use.
type Client struct {
	q         *redlock.Quorum
	actor     string
	keyPrefix string
	timeout   time.Duration
	tracer    OrderTracer // nil for none
	logger    *slog.Logger
}

// Option configures a Client.
type Option func(*Client) error

// OptionError reports an argument that cannot be used.
type OptionError struct{ Option, Reason string }

func (e *OptionError) Error() string { return fmt.Sprintf("admin: %s: %s", e.Option, e.Reason) }

// WithActor says who gives the orders, for logs and for those who ask who paused a job. At most
// redlock.MaxPauseText bytes of UTF-8. Default: the identity of the Quorum's leases.
func WithActor(name string) Option {
	return func(c *Client) error {
		if name == "" || len(name) > redlock.MaxPauseText {
			return &OptionError{"WithActor", fmt.Sprintf("has %d bytes, not 1 to %d", len(name), redlock.MaxPauseText)}
		}
		if !utf8.ValidString(name) {
			return &OptionError{"WithActor", "is no UTF-8"}
		}
		c.actor = name
		return nil
	}
}

// WithKeyPrefix is for schedulers with the option of that name.
func WithKeyPrefix(prefix string) Option {
	return func(c *Client) error {
		if prefix == "" {
			return &OptionError{"WithKeyPrefix", "is empty"}
		}
		c.keyPrefix = prefix
		return nil
	}
}

// WithLogger sets where orders are logged, at level Info. Default slog.Default().
func WithLogger(l *slog.Logger) Option {
	return func(c *Client) error {
		if l == nil {
			return &OptionError{"WithLogger", "nil logger"}
		}
		c.logger = l
		return nil
	}
}

// WithOrderTimeout sets for how long RunNow, Resign and Cancel wait for a replica; from 1 s to an
// hour. Default DefaultOrderTimeout.
func WithOrderTimeout(d time.Duration) Option {
	return func(c *Client) error {
		if d < time.Second || d > time.Hour {
			return &OptionError{"WithOrderTimeout", fmt.Sprintf("%v is not from 1 s to 1 h", d)}
		}
		c.timeout = d
		return nil
	}
}

// WithTracer has a tracer told of orders that are given here. Default: the Quorum's
// (redlock.WithTracer), if it is one.
func WithTracer(t OrderTracer) Option {
	return func(c *Client) error {
		if t == nil {
			return &OptionError{"WithTracer", "nil tracer; leave the option out for none"}
		}
		c.tracer = t
		return nil
	}
}

// New makes a Client on a Quorum with the nodes and the prefix of the replicas. It does no I/O, and
// the Quorum stays the caller's.
func New(q *redlock.Quorum, opts ...Option) (*Client, error) {
	if q == nil {
		return nil, &OptionError{"New", "nil Quorum"}
	}
	c := &Client{q: q, actor: q.Identity(), keyPrefix: DefaultKeyPrefix, timeout: DefaultOrderTimeout, logger: slog.Default()}
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

// key is the key of the lease of what it is for.
func (c *Client) key(t Target) (string, error) {
	switch {
	case t.all:
		return redlock.AllKeys, nil
	case t.job == "":
		return "", &OptionError{"Target", "names no job: use Job or AllJobs"}
	case len(c.keyPrefix)+len(t.job) > redlock.MaxKeyLength:
		return "", &OptionError{"Target", fmt.Sprintf("the job's name has %d bytes, more than %d", len(t.job), redlock.MaxKeyLength-len(c.keyPrefix))}
	}
	return c.keyPrefix + t.job, nil
}

// PauseOptions say for how long a job is paused, and why.
type PauseOptions struct {
	Until  time.Time // ticks that are due before it are skipped; zero: until Resume
	Reason string    // for people; at most redlock.MaxPauseText bytes of UTF-8
}

// Paused is the pause of a job, or of all.
type Paused struct {
	Target Target
	Until  time.Time // zero: until Resume
	Since  time.Time // by the median of the nodes' clocks
	By     string    // an actor
	Reason string
	Nodes  int // that have it: a quorum at least
	// Running are runs that had begun before, and go on, as far as they are known: of AllJobs those
	// that replicas have on their cards. See Wait.
	Running []Run
}

// Pause has no replica begin a tick of the job any more, once it has returned nil, whatever happens
// to replicas and nodes: what is promised, and what not, is said at redlock.Quorum.Pause. Ticks
// that are due meanwhile are skipped, and not caught up. It takes some seconds: half of the longest
// TTL, and five seconds at most.
//
// A job with gocron.WithDisabledDistributedJobLocker(true) is not paused, neither by itself nor
// with all: each replica runs it without a lease, and asks no node.
//
// Errors: *OptionError; those of redlock.Quorum.Pause, of which redlock.ErrUnknown says that it may
// be in force or not. If ctx ends while Pause waits, the pause stands, and is returned with the
// error.
func (c *Client) Pause(ctx context.Context, t Target, o PauseOptions) (Paused, error) {
	key, err := c.key(t)
	if err != nil {
		return Paused{}, err
	}
	var p redlock.Pause
	err = c.trace(ctx, bulletin.Pause, t.job, o.Reason, func(ctx context.Context) (err error) {
		p, err = c.q.Pause(ctx, key, redlock.PauseOptions{Until: o.Until, By: c.actor, Reason: o.Reason})
		c.enter(ctx, OrderPause, t.job, o.Reason, "", err)
		return err
	})
	if err != nil && p.Version == 0 {
		return Paused{}, fmt.Errorf("admin: cannot pause %v: %w", t, err)
	}
	paused := newPaused(t, p)
	if err != nil {
		return paused, fmt.Errorf("admin: %v is paused, and what began before was not waited for: %w", t, err)
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

func newPaused(t Target, p redlock.Pause) Paused {
	return Paused{Target: t, Until: p.Until, Since: p.Since, By: p.By, Reason: p.Reason, Nodes: p.Nodes}
}

// Resume ends the pause of the job, or that of all; a job that is paused both ways stays paused by
// the other one. Ticks that are due from now on are run.
//
// Where nothing is paused it returns nil, too: it takes back what a Pause that failed has left on
// some nodes. Whether there was a pause to end is known from Paused before the call; package web
// and tenure resume ask that, and answer that there was none.
//
// Errors are those of Pause.
func (c *Client) Resume(ctx context.Context, t Target, reason string) error {
	key, err := c.key(t)
	if err != nil {
		return err
	}
	err = c.trace(ctx, bulletin.Resume, t.job, reason, func(ctx context.Context) error {
		detail := ""
		if p, err := c.q.Paused(ctx, key); err == nil && (p.Resumed || !p.Active(time.Now())) {
			detail = bulletin.NotPaused // Resume takes back what a Pause that failed has left on some nodes
		}
		_, err := c.q.Resume(ctx, key, redlock.PauseOptions{By: c.actor, Reason: reason})
		c.enter(ctx, OrderResume, t.job, reason, detail, err)
		return err
	})
	if err != nil {
		return fmt.Errorf("admin: cannot resume %v: %w", t, err)
	}
	return nil
}

// ErrNotPaused means that a job is not paused, or all are not.
var ErrNotPaused = errors.New("admin: not paused")

// Paused reads the pause that keeps ticks of the job from being run that are due now: its own, or
// that of all jobs.
//
// Errors: ErrNotPaused, *OptionError, *redlock.QuorumError (redlock.ErrNoQuorum),
// redlock.ErrClosed, or ctx's own error.
func (c *Client) Paused(ctx context.Context, t Target) (Paused, error) {
	for _, of := range []Target{t, AllJobs} {
		key, err := c.key(of)
		if err != nil {
			return Paused{}, err
		}
		p, err := c.q.Paused(ctx, key)
		if err != nil {
			return Paused{}, fmt.Errorf("admin: cannot tell whether %v is paused: %w", of, err)
		}
		if !p.Resumed && p.Active(time.Now()) {
			return newPaused(of, p), nil
		}
	}
	return Paused{}, ErrNotPaused
}

// Run is a run of a job that goes on.
type Run struct {
	Job          string
	Replica      string    // identity of the process that runs it, see redlock.WithIdentity
	Tick         time.Time // zero for a run that is no tick, or if that is not known
	Began        time.Time // by the replica's clock; zero if that is not known
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
	key, err := c.key(Job(job))
	if err != nil {
		return Run{}, err
	}
	h, err := c.q.Holder(ctx, key)
	if errors.Is(err, redlock.ErrNotHeld) {
		return Run{}, ErrNotRunning
	} else if err != nil {
		return Run{}, fmt.Errorf("admin: cannot tell who runs %q: %w", job, err)
	}
	run := Run{Job: job, Replica: h.Identity, FencingToken: h.FencingToken, LeaseLeft: h.TTL}
	if h.Sequence != 0 {
		run.Tick = time.UnixMilli(h.Sequence)
	}
	return run, nil
}

// waitEvery is how often Wait asks.
const waitEvery = 250 * time.Millisecond

// Wait returns when no replica runs the job. It asks four times a second, and goes on while too few
// nodes answer.
//
// Errors: *OptionError, redlock.ErrClosed, or ctx's own error.
func (c *Client) Wait(ctx context.Context, job string) error {
	for {
		_, err := c.Running(ctx, job)
		switch {
		case errors.Is(err, ErrNotRunning):
			return nil
		case ctx != nil && ctx.Err() != nil:
			return fmt.Errorf("admin: a run of %q goes on: %w", job, context.Cause(ctx))
		case err != nil && !errors.Is(err, redlock.ErrNoQuorum):
			return err
		}
		select {
		case <-time.After(waitEvery):
		case <-done(ctx):
		}
	}
}

func done(ctx context.Context) <-chan struct{} {
	if ctx == nil {
		return nil
	}
	return ctx.Done()
}
