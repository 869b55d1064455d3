package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

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
	// DefaultStopTimeout is the same as gocron's.
	DefaultStopTimeout = 10 * time.Second
	// MaxTimeout bounds the stop timeout.
	MaxTimeout = 24 * time.Hour
	// Grace is how late a tick may still run without WithCatchUp. It is longer than clocks that NTP
	// keeps differ, longer than a hand-over in order takes, and longer than a busy machine stands
	// still.
	Grace = joblog.Grace
	// MinInterval is the shortest time between two ticks of a job.
	MinInterval = timetable.MinInterval
	// MaxSpan bounds the interval of a job and the window of WithCatchUp: ten years.
	MaxSpan = timetable.MaxSpan
	// MaxRetries bounds WithRetry.
	MaxRetries = 100
	// KeyPrefix comes before a job's name in the key of its lease. It keeps jobs apart from other
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

// option implements all of these interfaces. The interface as which a function returns it says
// where it may be given.
type option func(*config) error

func (o option) applyLocker(c *config) error { return o(c) }
func (o option) apply(c *config) error       { return o(c) }

// config is the configuration of a Scheduler or of a Locker.
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

// newConfig returns the configuration that options make of the defaults.
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

// noneIsNil refuses a list that has a nil option. Options are functions or interfaces.
func noneIsNil[O any](name string, opts []O) error {
	for i := range opts {
		if reflect.ValueOf(&opts[i]).Elem().IsNil() {
			return &OptionError{Option: name, Reason: fmt.Sprintf("option %d is nil", i)}
		}
	}
	return nil
}

// WithElection has the replicas of the Scheduler elect a leader. Only the leader runs jobs. Each
// run still has a lease of its own, and no tick runs twice across a hand-over. Without this option
// every replica asks for every tick, and the replicas share the work.
//
// The options are those of elector.New. The drain timeout is the Scheduler's stop timeout unless an
// option changes it. Two Schedulers of one process that name the same election on one Quorum would
// take the leadership from each other, so New refuses the second.
func WithElection(name string, opts ...elector.Option) Option {
	return option(func(c *config) error {
		c.election, c.elector = name, opts
		return timetable.Refuse(name == "", "WithElection", "the name is empty: name what is led")
	})
}

// WithLocation sets the time zone of schedules. It must be the same on every replica: "02:30" in
// two zones is two ticks. Default: time.Local, as with gocron, which each machine's TZ sets; New
// logs it. A crontab can name a zone of its own: CRON_TZ=Europe/Berlin.
func WithLocation(location *time.Location) Option {
	return option(func(c *config) error {
		c.location = location
		return timetable.Refuse(location == nil, "WithLocation", "nil; use time.UTC or time.Local")
	})
}

// WithStopTimeout sets how long Shutdown and StopJobs wait for runs. Default: DefaultStopTimeout.
// More than zero, and at most MaxTimeout, a day.
func WithStopTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		c.stopTimeout = d
		return timetable.Within("WithStopTimeout", d, 1, MaxTimeout)
	})
}

// WithLogger sets the logger of the Locker or the Scheduler. At warning level it gets ticks that
// perhaps no replica has run, leases that were lost while their job ran, and errors of clocks,
// names and schedules; at debug level, ticks that another replica has. A Scheduler also logs the
// errors of tasks, and at error level their panics. gocron logs none of these by itself. Default:
// slog.Default at the call of New or NewLocker.
func WithLogger(l *slog.Logger) CommonOption {
	return option(func(c *config) error {
		c.logger = l
		return timetable.Refuse(l == nil, "WithLogger", "nil; for silence use slog.New(slog.DiscardHandler)")
	})
}

// WithLeaseOptions adds options of the jobs' leases, such as redlock.WithIdentity and
// redlock.WithTTL. The TTL is how long, after a crash of the replica that ran a job, the other
// replicas cannot run the job. redlock.WithoutAutoExtend is refused. redlock.WithMinHold has no
// effect; that of a Locker is an option of its own (WithMinHold).
func WithLeaseOptions(opts ...redlock.LeaseOption) CommonOption {
	return option(func(c *config) error {
		c.lease = append(c.lease, opts...)
		return noneIsNil("WithLeaseOptions", opts)
	})
}

// WithGocron passes options on to gocron.NewScheduler: monitors, a logger, a limit of concurrent
// jobs. New refuses options that this package has to set itself, and the error names what to use
// instead.
func WithGocron(opts ...gocron.SchedulerOption) Option {
	return option(func(c *config) error {
		c.gocron = append(c.gocron, opts...)
		return noneIsNil("WithGocron", opts)
	})
}

// WithJobOptions sets options of all jobs, gocron's and those of this package: event listeners,
// tags, WithCatchUp. Options given to NewJob win over them.
func WithJobOptions(opts ...gocron.JobOption) Option {
	return option(func(c *config) error {
		c.jobs = append(c.jobs, opts...)
		return noneIsNil("WithJobOptions", opts)
	})
}

// Telling is what a Scheduler writes on the nodes for people, who read it with package admin, and
// whether it takes their orders. With the zero value it writes everything but the texts of errors.
type Telling struct {
	// NoCard leaves out that the replica lives, which jobs it has and what it runs. Otherwise each
	// node gets a command about every ten seconds, a card of at most 4 KiB for a replica and one of
	// about 500 bytes for a job. A job without a card can be paused only with
	// admin.PauseOptions.Force, and cannot be backfilled.
	NoCard bool
	// NoHistory leaves out how runs ended and which ticks were skipped. The entry of a run is a
	// command to each node, before the run's lease is released.
	NoHistory bool
	// NoOrders has the replica ignore orders (admin.Client.RunNow and Cancel). To take orders it
	// needs a connection to each node. Every client that may write to the nodes may give orders.
	// Pauses are no orders.
	NoOrders bool
	// ErrorTexts adds the texts of the errors that tasks return, and the place at which a task
	// panicked, cut to 256 bytes. Otherwise only the types of errors are written. Texts may carry
	// secrets, and every client that may read the nodes can read them.
	ErrorTexts bool
}

// ofElector returns the options of elector.New that mean the same.
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

// WithTelling sets what the Scheduler writes on the nodes for people.
func WithTelling(t Telling) Option {
	return option(func(c *config) error { c.tell = t; return nil })
}

// A job's options are options of gocron's NewJob.

// CatchUp says what becomes of ticks that no replica ran at their time.
type CatchUp = joblog.CatchUp

// The policies. Their String is "none", "latest" and "all".
const (
	CatchUpNone   = joblog.CatchUpNone   // the newest is run if it is late by at most Grace
	CatchUpLatest = joblog.CatchUpLatest // the newest is run if it is within the window
	CatchUpAll    = joblog.CatchUpAll    // each within the window is run, in order
)

// Delivery says what becomes of a tick whose run was cut short: its replica was killed, lost the
// lease or panicked, or the task was told to end and returned an error.
type Delivery = joblog.Delivery

// The kinds of delivery. Their String is "at most once" and "at least once".
const (
	AtMostOnce  = joblog.AtMostOnce  // the tick counts as run from the grant on
	AtLeastOnce = joblog.AtLeastOnce // the tick is run again, as long as it is within the window
)

// Overlap says what becomes of ticks that come while a run of the job goes on, on any replica.
type Overlap = joblog.Overlap

// The policies. Their String is "skip", "queue" and "cancel".
const (
	OverlapSkip   = joblog.OverlapSkip   // the ticks are left out
	OverlapQueue  = joblog.OverlapQueue  // the last of the ticks is run after the run, however late
	OverlapCancel = joblog.OverlapCancel // the run is told to end, and then the tick is run
)

// jobConfig is the configuration that the options of one job make.
type jobConfig struct {
	policy  joblog.Policy
	retry   int           // attempts after the first
	backoff time.Duration // before the first retry
	within  time.Duration // WithSucceedWithin; zero for none
	runbook string
}

// jobOption sets a value, or returns why it cannot be used.
type jobOption func(*jobConfig) error

func newJobOption(name string, set jobOption) gocron.JobOption {
	return gocronx.Option("scheduler."+name, set)
}

// WithCatchUp has ticks run late if no replica ran them at their time: no replica was up, or none
// reached a quorum of nodes, or none led. A tick is run if it is not older than the window, which
// is more than zero and at most MaxSpan. Default: CatchUpNone, without a window.
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

// WithDelivery sets what becomes of a tick whose run was cut short. Default: AtMostOnce.
// AtLeastOnce needs WithCatchUp, whose window says for how long the tick may run again.
func WithDelivery(d Delivery) gocron.JobOption {
	return newJobOption("WithDelivery", func(c *jobConfig) error {
		c.policy.Delivery = d
		return timetable.Refuse(d != AtMostOnce && d != AtLeastOnce, "WithDelivery", "%v is neither AtMostOnce nor AtLeastOnce", d)
	})
}

// WithOverlap sets what becomes of ticks that come during a run. Default: OverlapSkip. It is
// gocron.WithSingletonMode for all replicas, and wins over it. Runs exclude each other in any case.
func WithOverlap(o Overlap) gocron.JobOption {
	return newJobOption("WithOverlap", func(c *jobConfig) error {
		c.policy.Overlap = o
		return timetable.Refuse(o < OverlapSkip || o > OverlapCancel, "WithOverlap", "%v is none of OverlapSkip, OverlapQueue and OverlapCancel", o)
	})
}

// WithRetry has a run call its task again if the task returned an error or panicked, at most max
// times. The pause before a call begins with backoff and doubles, up to a minute. The attempts
// belong to one run: the lease is held, gocron sees one run, and a tracer sees each attempt. If the
// replica is killed meanwhile and the tick runs again, the count goes on. max is 1 to MaxRetries,
// backoff is not negative and at most an hour.
func WithRetry(max int, backoff time.Duration) gocron.JobOption {
	return newJobOption("WithRetry", func(c *jobConfig) error {
		c.retry, c.backoff = max, backoff
		return cmp.Or(timetable.Refuse(max < 1 || max > MaxRetries, "WithRetry", "%d retries are not 1 to %d", max, MaxRetries),
			timetable.Within("WithRetry", backoff, 0, time.Hour))
	})
}

// WithSucceedWithin makes a job overdue that has not succeeded for d, counted from its last
// success, or from the time at which it was first made. See Scheduler.Overdue and the metric
// tenure.job.overdue. Being overdue has no other effect. d is more than zero and at most MaxSpan.
func WithSucceedWithin(d time.Duration) gocron.JobOption {
	return newJobOption("WithSucceedWithin", func(c *jobConfig) error {
		c.within = d
		return timetable.Within("WithSucceedWithin", d, 1, MaxSpan)
	})
}

// WithRunbook names the page that says what to do when the job fails. The pages of package web link
// to it where the job is failing or late. url begins with https:// or http://, and has at most
// MaxReport bytes. It is on the nodes for everybody to read: it must not carry a secret.
func WithRunbook(url string) gocron.JobOption {
	return newJobOption("WithRunbook", func(c *jobConfig) error {
		c.runbook = url
		return timetable.Refuse(!strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") || len(url) > MaxReport || !utf8.ValidString(url),
			"WithRunbook", "%.80q is no address of at most %d bytes that begins with https:// or http://", url, MaxReport)
	})
}

// newJobConfig returns the configuration that a definition's options make.
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

// checkLease has the Quorum validate the options of the leases, and refuses leases that are not
// extended.
func checkLease(q *redlock.Quorum, opts []redlock.LeaseOption) error {
	extends, err := bridge.Extends(q, KeyPrefix, opts)
	if invalid := new(redlock.OptionError); errors.As(err, &invalid) {
		return &OptionError{Option: invalid.Option, Reason: invalid.Reason, Err: invalid}
	} else if err != nil {
		return err
	}
	return timetable.Refuse(!extends, "redlock.WithoutAutoExtend", "of the Quorum or of the leases, is not for jobs: nobody could extend the lease of a run")
}
