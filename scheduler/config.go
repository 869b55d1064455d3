package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

// Defaults and bounds. Each option that changes one names it.
const (
	// DefaultStopTimeout is gocron's own.
	DefaultStopTimeout = 10 * time.Second
	// Grace is how late a tick is still run without WithCatchUp, if nobody has run it: by a replica
	// that was not the leader when the tick came and has been elected since, or by one that could
	// not reach a quorum. It is longer than the clocks of machines that NTP keeps differ, than a
	// hand-over in order takes, and than a busy machine stands still. A later tick of the job ends
	// it earlier.
	Grace = 5 * time.Second
	// MinInterval is the least time between two ticks of a job. A timer may fire a little before
	// its tick by the clock, and ticks that are half as far apart would be taken for one.
	MinInterval = 2 * tickTolerance
	// MaxCatchUp bounds how many missed ticks of a job are run after each other. The newest are.
	MaxCatchUp = 1000
	// minKeep is the least time for which the nodes remember a job's last tick.
	minKeep = 24 * time.Hour
	// MaxSpan bounds the interval of a duration job and the window of WithCatchUp: ten years.
	MaxSpan = 10 * 365 * 24 * time.Hour
	// MaxTimeout bounds the try timeout and the stop timeout.
	MaxTimeout = 24 * time.Hour
)

// Option configures a Scheduler.
type Option interface{ apply(*config) error }

// JobOption configures a job. Given to New it is the default of all jobs; for single ones there is
// Scheduler.With.
type JobOption interface {
	Option
	applyJob(*jobConfig) error
}

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type jobOption func(*jobConfig) error

func (o jobOption) apply(c *config) error       { return o(&c.job) }
func (o jobOption) applyJob(c *jobConfig) error { return o(c) }

// config is a Scheduler's configuration.
type config struct {
	commonConfig
	job         jobConfig
	election    string // empty for none
	elector     []elector.Option
	clock       clockwork.Clock
	location    *time.Location
	stopTimeout time.Duration
	context     context.Context // whose values the jobs' contexts have
	gocron      []gocron.SchedulerOption
	global      []gocron.JobOption // go before those of each job
	tracer      tracers
	tell        tell
}

// tell is what a Scheduler does not tell people, and how.
type tell struct{ noCard, noHistory, noOrders, errorTexts bool }

// ofElector is the same for the election.
func (t tell) ofElector() (opts []elector.Option) {
	if t.noCard {
		opts = append(opts, elector.WithoutCard())
	}
	if t.noHistory {
		opts = append(opts, elector.WithoutHistory())
	}
	if t.noOrders {
		opts = append(opts, elector.WithoutOrders())
	}
	return opts
}

// jobConfig is what may differ from job to job.
type jobConfig struct {
	delivery redlock.Delivery
	catchUp  CatchUp
	window   time.Duration
	overlap  Overlap
}

// CatchUp is what becomes of ticks that no replica ran.
type CatchUp int

// The policies.
const (
	CatchUpNone   CatchUp = iota // they are lost, as with gocron alone
	CatchUpLatest                // the latest one is run
	CatchUpAll                   // each is run, in order
)

// String returns "none", "latest" or "all".
func (c CatchUp) String() string {
	switch c {
	case CatchUpNone:
		return "none"
	case CatchUpLatest:
		return "latest"
	case CatchUpAll:
		return "all"
	default:
		return fmt.Sprintf("CatchUp(%d)", int(c))
	}
}

// Overlap is what becomes of a tick that comes while an earlier run of the job goes on, on whatever
// replica.
type Overlap int

// The policies.
const (
	OverlapSkip  Overlap = iota // it is skipped
	OverlapQueue                // it is run when the earlier run is done; of several the last
)

// String returns "skip" or "queue".
func (o Overlap) String() string {
	switch o {
	case OverlapSkip:
		return "skip"
	case OverlapQueue:
		return "queue"
	default:
		return fmt.Sprintf("Overlap(%d)", int(o))
	}
}

// WithCatchUp has ticks run late that no replica ran at their time, because too few nodes could be
// reached, no replica was up, there was no leader, the replica that had been granted one was
// stopped before it began, or (with WithDelivery(redlock.AtLeastOnce)) because the replica that ran
// one died. A tick that is older than window, which is at most MaxSpan, is not run any more; that
// of a duration job ages from the end of its interval. Default CatchUpNone, with which a tick is
// run Grace late at most.
//
// The nodes remember the last tick of each job. If they know of none, because the job is new or
// their data was lost, nothing is caught up. Ticks that a run overlapped (WithOverlap) were not
// missed: those that came no later after the run's own tick than the run took. A run that begins
// late overlaps no others, so a job whose task takes longer than its interval catches up as well.
func WithCatchUp(window time.Duration, policy CatchUp) JobOption {
	return jobOption(func(c *jobConfig) error {
		switch {
		case policy < CatchUpNone || policy > CatchUpAll:
			return &OptionError{Option: "WithCatchUp", Reason: fmt.Sprintf("%v is none of CatchUpNone, CatchUpLatest and CatchUpAll", policy)}
		case policy != CatchUpNone && window <= 0:
			return &OptionError{Option: "WithCatchUp", Reason: fmt.Sprintf("the window of %v is not positive", window)}
		case window < 0 || window > MaxSpan:
			return &OptionError{Option: "WithCatchUp", Reason: fmt.Sprintf("the window of %v is not between 0 and %v", window, MaxSpan)}
		}
		c.catchUp, c.window = policy, window
		return nil
	})
}

// WithDelivery tells whether a tick whose run was cut short, by the death of its replica, the loss
// of its lease, or a panic, is run again: redlock.AtMostOnce, which is the default, or
// redlock.AtLeastOnce, which needs WithCatchUp. A run that returns, with an error or without, is
// complete; so is one that an operator has cancelled (CancelledError) and that returns.
func WithDelivery(d redlock.Delivery) JobOption {
	return jobOption(func(c *jobConfig) error {
		if d != redlock.AtMostOnce && d != redlock.AtLeastOnce {
			return &OptionError{Option: "WithDelivery", Reason: fmt.Sprintf("%v is neither redlock.AtMostOnce nor redlock.AtLeastOnce", d)}
		}
		c.delivery = d
		return nil
	})
}

// WithOverlap sets what becomes of a tick that comes while an earlier run of the job goes on.
// Default OverlapSkip. A job that is given gocron.WithSingletonMode has OverlapSkip for
// gocron.LimitModeReschedule and OverlapQueue for gocron.LimitModeWait, whatever else is set: runs
// exclude each other on all replicas in any case.
func WithOverlap(o Overlap) JobOption {
	return jobOption(func(c *jobConfig) error {
		if o != OverlapSkip && o != OverlapQueue {
			return &OptionError{Option: "WithOverlap", Reason: fmt.Sprintf("%v is neither OverlapSkip nor OverlapQueue", o)}
		}
		c.overlap = o
		return nil
	})
}

func (c *jobConfig) check() error {
	if c.delivery == redlock.AtLeastOnce && c.catchUp == CatchUpNone {
		return &OptionError{Option: "WithDelivery", Reason: "redlock.AtLeastOnce runs a tick again whose run was cut short: " +
			"say with WithCatchUp for how long"}
	}
	return nil
}

// WithElection makes the replicas of the Scheduler elect a leader, which alone runs jobs as long as
// it leads. Each run still has a lease of its own, and no tick is run twice across a hand-over.
// Without this option every replica tries to run every tick, and they share the work.
//
// The options are those of elector.New. Its drain timeout is the Scheduler's stop timeout unless
// they say otherwise.
func WithElection(name string, opts ...elector.Option) Option {
	return option(func(c *config) error {
		if name == "" {
			return &OptionError{Option: "WithElection", Reason: "the name is empty: name what is led"}
		}
		c.election, c.elector = name, opts
		return nil
	})
}

// WithClock sets the clock that ticks are timed by. Default: the real one. Leases go by real time
// whatever the clock says.
func WithClock(clock clockwork.Clock) Option {
	return option(func(c *config) error {
		if clock == nil {
			return &OptionError{Option: "WithClock", Reason: "nil; leave the option out for the real clock"}
		}
		c.clock = clock
		return nil
	})
}

// WithLocation sets the time zone of schedules. It has to be the same on every replica: "02:30" in
// two zones are two ticks. Default time.Local, as gocron's, which is what each machine's TZ says:
// New logs which zone that is. A crontab can name a zone of its own: CRON_TZ=Europe/Berlin.
func WithLocation(location *time.Location) Option {
	return option(func(c *config) error {
		if location == nil {
			return &OptionError{Option: "WithLocation", Reason: "nil; use time.UTC or time.Local"}
		}
		c.location = location
		return nil
	})
}

// WithStopTimeout sets how long Shutdown and StopJobs wait for runs. Default DefaultStopTimeout.
// More than zero, and at most MaxTimeout, a day.
func WithStopTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		if d <= 0 {
			return &OptionError{Option: "WithStopTimeout", Reason: fmt.Sprintf("%v is not positive", d)}
		}
		if d > MaxTimeout {
			return &OptionError{Option: "WithStopTimeout", Reason: fmt.Sprintf("%v is above the maximum of %v", d, MaxTimeout)}
		}
		c.stopTimeout = d
		return nil
	})
}

// WithContext sets a context whose values the jobs' contexts have. Its end changes nothing: gocron
// would drop the jobs for good.
func WithContext(ctx context.Context) Option {
	return option(func(c *config) error {
		if ctx == nil {
			return &OptionError{Option: "WithContext", Reason: "nil"}
		}
		c.context = context.WithoutCancel(ctx)
		return nil
	})
}

// WithGocron passes options on to gocron.NewScheduler: monitors, a logger, a limit of concurrent
// jobs. Those that this package has to set itself are refused, and the error names what to use
// instead.
func WithGocron(opts ...gocron.SchedulerOption) Option {
	return option(func(c *config) error {
		for i, o := range opts {
			if o == nil {
				return &OptionError{Option: "WithGocron", Reason: fmt.Sprintf("option %d is nil", i)}
			}
		}
		c.gocron = append(c.gocron, opts...)
		return nil
	})
}

// WithGlobalJobOptions sets options of gocron that all jobs have, such as event listeners or tags.
// Those given to NewJob win. They are looked at as if they were given to NewJob, which refuses
// those that do not fit.
func WithGlobalJobOptions(opts ...gocron.JobOption) Option {
	return option(func(c *config) error {
		for i, o := range opts {
			if o == nil {
				return &OptionError{Option: "WithGlobalJobOptions", Reason: fmt.Sprintf("option %d is nil", i)}
			}
		}
		c.global = append(c.global, opts...)
		return nil
	})
}

func newConfig(q *redlock.Quorum, opts []Option) (*config, error) {
	c := &config{
		commonConfig: defaultCommonConfig(),
		clock:        clockwork.NewRealClock(),
		location:     time.Local,
		stopTimeout:  DefaultStopTimeout,
		context:      context.Background(),
	}
	if t, ok := q.Tracer().(RunTracer); ok {
		c.tracer.set(t)
	}
	for i, o := range opts {
		if o == nil {
			return nil, &OptionError{Option: "Option", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		if err := o.apply(c); err != nil {
			return nil, err
		}
	}
	if c.ttl > 0 {
		c.lease = append(c.lease, redlock.WithTTL(c.ttl))
	}
	return c, c.job.check()
}

// WithoutCard has the replica not tell people that it lives, which jobs it has and what it runs:
// admin.Client.Replicas and Jobs do not show it then. Ticks that were skipped are told with the
// card, so without it they are not told either. Telling costs each node a command about every
// ten seconds, a card of at most 4 KiB for a replica and one of about 500 bytes for a job.
func WithoutCard() Option {
	return option(func(c *config) error { c.tell.noCard = true; return nil })
}

// WithoutHistory has the replica not tell people how its runs ended and which ticks it skipped:
// admin.Client.Runs and Skips do not have them then. An entry goes with the release of a run's
// lease, so telling costs no request, and each node at most 20 entries of about 300 bytes for a
// job.
func WithoutHistory() Option {
	return option(func(c *config) error { c.tell.noHistory = true; return nil })
}

// WithoutOrders has the replica take no orders (admin.Client.RunNow and Cancel). Taking them needs
// a connection to each node on which they are heard, the same on which waiters hear that a lease is
// released. Whoever may write to the nodes may give orders; pauses are not among them.
func WithoutOrders() Option {
	return option(func(c *config) error { c.tell.noOrders = true; return nil })
}

// WithErrorTexts has the replica tell people the texts of the errors that tasks return, cut to 256
// bytes, and not only their types: texts may carry connection strings and other secrets, which
// whoever may read the nodes can read then.
func WithErrorTexts() Option {
	return option(func(c *config) error { c.tell.errorTexts = true; return nil })
}
