package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/timetable"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// Defaults and bounds. Each option that changes one names it.
const (
	// DefaultStopTimeout is gocron's own.
	DefaultStopTimeout = 10 * time.Second
	// MaxTimeout bounds the stop timeout.
	MaxTimeout = 24 * time.Hour
	// Grace is how late a tick is still run without WithCatchUp. It is longer than the clocks of
	// machines that NTP keeps differ, than a hand-over in order takes, and than a busy machine
	// stands still.
	Grace = joblog.Grace
	// MinInterval is the least time between two ticks of a job.
	MinInterval = timetable.MinInterval
	// MaxSpan bounds the interval of a job and the window of WithCatchUp: ten years.
	MaxSpan = timetable.MaxSpan
	// MaxRetries bounds WithRetry.
	MaxRetries = 100
	// KeyPrefix goes before a job's name in the key of its lease, and keeps jobs apart from other
	// uses of the same Quorum.
	KeyPrefix = "job/"
)

// Option configures a Scheduler.
type Option interface{ apply(*config) error }

// LockerOption configures a Locker.
type LockerOption interface{ applyLocker(*config) error }

// CommonOption configures a Locker or a Scheduler.
type CommonOption interface {
	LockerOption
	Option
}

// option is all of them. What it is returned as says where it may be given.
type option func(*config) error

func (o option) applyLocker(c *config) error { return o(c) }
func (o option) apply(c *config) error       { return o(c) }

// config is a Scheduler's configuration, or a Locker's.
type config struct {
	logger *slog.Logger
	lease  []redlock.LeaseOption

	// Of a Scheduler.
	election    string // empty for none
	elector     []elector.Option
	location    *time.Location
	stopTimeout time.Duration
	gocron      []gocron.SchedulerOption
	jobs        []gocron.JobOption // go before those of each job
	tracer      *Tracer
	tell        Telling
	wall        func() time.Time // the wall clock; tests move it

	// Of a Locker.
	tryTimeout time.Duration
	minHold    time.Duration
}

// newConfig is what options say of what is to use a Quorum.
func newConfig[O any](q *redlock.Quorum, name string, opts []O, apply func(O, *config) error) (*config, error) {
	c := &config{
		logger: slog.Default(), location: time.Local, stopTimeout: DefaultStopTimeout, tracer: &Tracer{}, wall: clock.Wall,
		tryTimeout: DefaultTryTimeout, minHold: DefaultMinHold,
	}
	if err := cmp.Or(timetable.Refuse(q == nil, "q", "is nil: make a Quorum with redlock.Open"), noneIsNil(name, opts)); err != nil {
		return nil, err
	}
	for _, o := range opts {
		if err := apply(o, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// noneIsNil refuses a list of options, which are functions or interfaces, with one that is nil.
func noneIsNil[O any](name string, opts []O) error {
	for i := range opts {
		if reflect.ValueOf(&opts[i]).Elem().IsNil() {
			return &OptionError{Option: name, Reason: fmt.Sprintf("option %d is nil", i)}
		}
	}
	return nil
}

// WithElection makes the replicas of the Scheduler elect a leader, which alone runs jobs as long as
// it leads. Each run still has a lease of its own, and no tick is run twice across a hand-over.
// Without this option every replica asks for every tick, and they share the work.
//
// The options are those of elector.New. Its drain timeout is the Scheduler's stop timeout unless
// they say otherwise. Two Schedulers of one process that name the same election on one Quorum would
// take the leadership from each other, and New refuses the second.
func WithElection(name string, opts ...elector.Option) Option {
	return option(func(c *config) error {
		c.election, c.elector = name, opts
		return timetable.Refuse(name == "", "WithElection", "the name is empty: name what is led")
	})
}

// WithLocation sets the time zone of schedules. It has to be the same on every replica: "02:30" in
// two zones are two ticks. Default time.Local, as gocron's, which is what each machine's TZ says;
// New logs it. A crontab can name a zone of its own: CRON_TZ=Europe/Berlin.
func WithLocation(location *time.Location) Option {
	return option(func(c *config) error {
		c.location = location
		return timetable.Refuse(location == nil, "WithLocation", "nil; use time.UTC or time.Local")
	})
}

// WithStopTimeout sets how long Shutdown and StopJobs wait for runs. Default DefaultStopTimeout.
// More than zero, and at most MaxTimeout, a day.
func WithStopTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		c.stopTimeout = d
		return timetable.Within("WithStopTimeout", d, 1, MaxTimeout)
	})
}

// WithLogger sets where the Locker or the Scheduler reports: at warning level ticks that nobody may
// have run, leases that were lost while their job ran, and what is wrong with clocks, names and
// schedules; at debug level ticks that another replica has. A Scheduler also reports the errors of
// tasks, and at error level their panics. gocron reports none of these by itself. Default:
// slog.Default as it is when they are made.
func WithLogger(l *slog.Logger) CommonOption {
	return option(func(c *config) error {
		c.logger = l
		return timetable.Refuse(l == nil, "WithLogger", "nil; for silence use slog.New(slog.DiscardHandler)")
	})
}

// WithLeaseOptions adds options of the jobs' leases, such as redlock.WithTTL, which says how long a
// job that was running on a crashed replica is refused to the others, and redlock.WithIdentity; but
// not redlock.WithoutAutoExtend. A minimum hold is not kept; that of a Locker has an option of its
// own (WithMinHold).
func WithLeaseOptions(opts ...redlock.LeaseOption) CommonOption {
	return option(func(c *config) error {
		c.lease = append(c.lease, opts...)
		return noneIsNil("WithLeaseOptions", opts)
	})
}

// WithGocron passes options on to gocron.NewScheduler: monitors, a logger, a limit of concurrent
// jobs. Those that this package has to set itself are refused, and the error names what to use
// instead.
func WithGocron(opts ...gocron.SchedulerOption) Option {
	return option(func(c *config) error {
		c.gocron = append(c.gocron, opts...)
		return noneIsNil("WithGocron", opts)
	})
}

// WithJobOptions sets options that all jobs have, gocron's and those of this package: event
// listeners, tags, WithCatchUp. Those given to NewJob win.
func WithJobOptions(opts ...gocron.JobOption) Option {
	return option(func(c *config) error {
		c.jobs = append(c.jobs, opts...)
		return noneIsNil("WithJobOptions", opts)
	})
}

// Telling is what a Scheduler tells people on the nodes, where package admin reads it, and whether
// it takes their orders. The zero value tells all but the texts of errors.
type Telling struct {
	// NoCard has the replica not tell that it lives, which jobs it has and what it runs. Telling
	// costs each node a command about every ten seconds, a card of at most 4 KiB for a replica and
	// one of about 500 bytes for a job. Who pauses such a job needs admin.PauseOptions.Force, and
	// nobody can backfill it.
	NoCard bool
	// NoHistory has it not tell how its runs ended and which ticks were skipped. The entry of a run
	// is a command to each node, before its lease is released.
	NoHistory bool
	// NoOrders has it take no orders (admin.Client.RunNow and Cancel). Taking them needs a
	// connection to each node. Whoever may write to the nodes may give orders; pauses are not among
	// them.
	NoOrders bool
	// ErrorTexts has it tell the texts of the errors that tasks return, and where a task panicked,
	// cut to 256 bytes, and not only their types: texts may carry secrets, which whoever may read
	// the nodes can read then.
	ErrorTexts bool
}

// ofElector is the same for the election.
func (t Telling) ofElector() (opts []elector.Option) {
	if t.NoCard {
		opts = append(opts, elector.WithoutCard())
	}
	if t.NoHistory {
		opts = append(opts, elector.WithoutHistory())
	}
	if t.NoOrders {
		opts = append(opts, elector.WithoutOrders())
	}
	return opts
}

// WithTelling sets what the Scheduler tells people.
func WithTelling(t Telling) Option {
	return option(func(c *config) error { c.tell = t; return nil })
}

// A job's options are options of gocron's NewJob.

// CatchUp is what becomes of ticks that nobody ran at their time.
type CatchUp = joblog.CatchUp

// The policies. Their String is "none", "latest" and "all".
const (
	CatchUpNone   = joblog.CatchUpNone   // the newest is run if it is late by Grace at most
	CatchUpLatest = joblog.CatchUpLatest // the newest is run if it is within the window
	CatchUpAll    = joblog.CatchUpAll    // each within the window is run, in order
)

// Delivery is what a tick becomes whose run was cut short: its replica was killed, lost the lease
// or panicked, or the task was told to end and returned an error.
type Delivery = joblog.Delivery

// The kinds of delivery. Their String is "at most once" and "at least once".
const (
	AtMostOnce  = joblog.AtMostOnce  // it counts as run from the grant on
	AtLeastOnce = joblog.AtLeastOnce // it is run again, as long as it is within the window
)

// Overlap is what becomes of ticks that come while a run of the job goes on, on whatever replica.
type Overlap = joblog.Overlap

// The policies. Their String is "skip", "queue" and "cancel".
const (
	OverlapSkip   = joblog.OverlapSkip   // they are left out
	OverlapQueue  = joblog.OverlapQueue  // the last of them is run when the run is over, however late
	OverlapCancel = joblog.OverlapCancel // the run is told to end, and then the tick is run
)

// jobConfig is what the options of one job say.
type jobConfig struct {
	policy  joblog.Policy
	retry   int           // attempts behind the first
	backoff time.Duration // before the first of them
	within  time.Duration // WithSucceedWithin; zero for none
}

// jobOption sets something, and returns why it cannot.
type jobOption func(*jobConfig) error

func newJobOption(name string, set jobOption) gocron.JobOption {
	return gocronx.Option("scheduler."+name, set)
}

// WithCatchUp has ticks run late that nobody ran at their time: no replica was up, or none could
// reach a quorum of nodes, or none led. A tick is run if it is not older than the window, which is
// more than zero and at most MaxSpan. Default CatchUpNone, without a window.
func WithCatchUp(window time.Duration, policy CatchUp) gocron.JobOption {
	const name = "WithCatchUp"
	return newJobOption(name, func(c *jobConfig) error {
		if c.policy.CatchUp, c.policy.Window = policy, window; policy == CatchUpNone {
			return timetable.Refuse(window != 0, name, "CatchUpNone has no window: use 0")
		}
		return cmp.Or(timetable.Refuse(policy < CatchUpNone || policy > CatchUpAll, name, "%v is none of CatchUpNone, CatchUpLatest and CatchUpAll", policy),
			timetable.Within(name, window, 1, MaxSpan))
	})
}

// WithDelivery sets what becomes of a tick whose run was cut short. Default AtMostOnce. AtLeastOnce
// needs WithCatchUp, which says for how long.
func WithDelivery(d Delivery) gocron.JobOption {
	return newJobOption("WithDelivery", func(c *jobConfig) error {
		c.policy.Delivery = d
		return timetable.Refuse(d != AtMostOnce && d != AtLeastOnce, "WithDelivery", "%v is neither AtMostOnce nor AtLeastOnce", d)
	})
}

// WithOverlap sets what becomes of ticks that come during a run. Default OverlapSkip. It says what
// gocron.WithSingletonMode says, for all replicas, and wins over it: runs exclude each other
// anyway.
func WithOverlap(o Overlap) gocron.JobOption {
	return newJobOption("WithOverlap", func(c *jobConfig) error {
		c.policy.Overlap = o
		return timetable.Refuse(o < OverlapSkip || o > OverlapCancel, "WithOverlap", "%v is none of OverlapSkip, OverlapQueue and OverlapCancel", o)
	})
}

// WithRetry has a run whose task returned an error, or panicked, call it again, at most max times,
// after a pause that begins with backoff and doubles, up to a minute. The attempts belong to one
// run: the lease is held, gocron sees one run, a tracer each attempt. A replica that is killed
// meanwhile does not begin the count anew. max is 1 to MaxRetries, backoff not negative.
func WithRetry(max int, backoff time.Duration) gocron.JobOption {
	return newJobOption("WithRetry", func(c *jobConfig) error {
		c.retry, c.backoff = max, backoff
		return cmp.Or(timetable.Refuse(max < 1 || max > MaxRetries, "WithRetry", "%d retries are not 1 to %d", max, MaxRetries),
			timetable.Within("WithRetry", backoff, 0, time.Hour))
	})
}

// WithSucceedWithin makes a job overdue that has not succeeded for a time, counted from its last
// success, or from when it was first made: see Scheduler.Overdue and the metric tenure.job.overdue.
// Nothing else follows from it. It is more than zero and at most MaxSpan.
func WithSucceedWithin(d time.Duration) gocron.JobOption {
	return newJobOption("WithSucceedWithin", func(c *jobConfig) error {
		c.within = d
		return timetable.Within("WithSucceedWithin", d, 1, MaxSpan)
	})
}

// newJobConfig is what a definition's options say.
func newJobConfig(d *gocronx.Definition) (c jobConfig, err error) {
	if d.Singleton && d.SingletonMode == gocron.LimitModeWait {
		c.policy.Overlap = joblog.OverlapQueue
	}
	for _, own := range d.Own {
		if o, ok := own.(jobOption); ok {
			if err := o(&c); err != nil {
				return c, err
			}
		}
	}
	c.policy.Limit = int(min(d.LimitedRuns, 1<<30))
	return c, timetable.Refuse(c.policy.Delivery == joblog.AtLeastOnce && c.policy.CatchUp == CatchUpNone, "WithDelivery",
		"AtLeastOnce runs a tick again whose run was cut short: say with WithCatchUp for how long")
}

// checkLease has the Quorum look at what the leases will be acquired with.
func checkLease(q *redlock.Quorum, opts []redlock.LeaseOption) error {
	extends, err := bridge.Extends(q, KeyPrefix, opts)
	if invalid := new(redlock.OptionError); errors.As(err, &invalid) {
		return &OptionError{Option: invalid.Option, Reason: invalid.Reason, Err: invalid}
	} else if err != nil {
		return err
	}
	return timetable.Refuse(!extends, "redlock.WithoutAutoExtend", "of the Quorum or of the leases, is not for jobs: nobody could extend the lease of a run")
}
