package scheduler

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/redlock"
)

// Defaults and bounds. Each option that changes one names it.
const (
	// DefaultMinHold is longer than the difference between the clocks of machines that NTP keeps,
	// well under a second, and the try timeout together.
	DefaultMinHold = 2 * time.Second
	// DefaultTryTimeout leaves room for a few rounds to slow nodes (a node has at most 500 ms by
	// default) and is shorter than any interval worth locking.
	DefaultTryTimeout = time.Second
	// MinTryTimeout is about one round trip within a region.
	MinTryTimeout = 10 * time.Millisecond
	// DefaultKeyPrefix keeps jobs apart from other uses of the same Quorum.
	DefaultKeyPrefix = "job/"
	// MaxKeyPrefixLength in bytes leaves at least as many of redlock.MaxKeyLength for the names of
	// jobs.
	MaxKeyPrefixLength = redlock.MaxKeyLength / 2
)

// LockerOption configures a Locker.
type LockerOption interface{ applyLocker(*lockerConfig) error }

// CommonOption configures a Locker or a Scheduler.
type CommonOption interface {
	LockerOption
	Option
}

type lockerOption func(*lockerConfig) error

func (o lockerOption) applyLocker(c *lockerConfig) error { return o(c) }

type commonOption func(*commonConfig) error

func (o commonOption) applyLocker(c *lockerConfig) error { return o(&c.commonConfig) }
func (o commonOption) apply(c *config) error             { return o(&c.commonConfig) }

// commonConfig is how jobs' leases are acquired.
type commonConfig struct {
	ttl        time.Duration // zero means the Quorum's
	tryTimeout time.Duration
	keyPrefix  string
	logger     *slog.Logger
	lease      []redlock.LeaseOption
}

func defaultCommonConfig() commonConfig {
	return commonConfig{tryTimeout: DefaultTryTimeout, keyPrefix: DefaultKeyPrefix, logger: slog.Default()}
}

// key returns the key of the lease of the job that is called name.
func (c *commonConfig) key(name string) (string, error) {
	const option = "gocron.WithName"
	if name == "" {
		return "", &OptionError{Option: option, Reason: "the job's name is empty: give it one of its own"}
	}
	if !utf8.ValidString(name) {
		return "", &OptionError{Option: option, Reason: fmt.Sprintf("the job's name %q is not UTF-8: nothing could show it", name)}
	}
	if longest := redlock.MaxKeyLength - len(c.keyPrefix); len(name) > longest {
		return "", &OptionError{Option: option, Reason: fmt.Sprintf(
			"the job's name has %d bytes, more than %d: give it a shorter one", len(name), longest)}
	}
	return c.keyPrefix + name, nil
}

// checkLease has the Quorum look at what the leases will be acquired with.
func (c *commonConfig) checkLease(q *redlock.Quorum, opts ...redlock.LeaseOption) error {
	s, err := q.Settings(c.keyPrefix, opts...)
	if invalid := new(redlock.OptionError); errors.As(err, &invalid) {
		return &OptionError{Option: invalid.Option, Reason: invalid.Reason, Err: invalid}
	}
	switch {
	case err != nil:
		return err
	case !s.AutoExtend:
		return &OptionError{Option: "redlock.WithoutAutoExtend", Reason: "of the Quorum or of the leases, is not for jobs: nobody could extend the lease of a run"}
	case s.Numbered:
		return &OptionError{Option: "WithLeaseOptions", Reason: "redlock.WithSequence and WithTick are not for jobs: a Scheduler numbers its ticks by itself"}
	}
	return nil
}

// lockerConfig is a Locker's configuration.
type lockerConfig struct {
	commonConfig
	minHold time.Duration
}

// WithTTL sets the TTL of the jobs' leases: how long a job that was running on a crashed replica is
// refused to the others. Default: the Quorum's TTL. At least redlock.MinTTL, above the minimum
// hold, and at most the Quorum's redlock.WithMaxTTL, which is at most a day.
func WithTTL(ttl time.Duration) CommonOption {
	return commonOption(func(c *commonConfig) error {
		if ttl < redlock.MinTTL {
			return &OptionError{Option: "WithTTL", Reason: fmt.Sprintf("%v is below the minimum of %v", ttl, redlock.MinTTL)}
		}
		c.ttl = ttl
		return nil
	})
}

// WithMinHold keeps a job's lease from other replicas for at least d, also when the job is done
// sooner: then the lease's TTL is shortened to what is left of d instead of freeing it at once.
// Default DefaultMinHold, 2 s. Not negative, and below the TTL, and so below a day.
//
// It must be longer than the replicas' clocks differ and an attempt may take (WithTryTimeout), or a
// quick job may run more than once for a tick, and SHORTER THAN THE SHORTEST INTERVAL of the jobs,
// less these two, or their next tick is refused as well:
//
//	clock difference between replicas + try timeout  <  d  <  shortest interval of any job
//
// Zero frees the lease as soon as the job is done; that is right only for jobs that always take
// longer than these two.
func WithMinHold(d time.Duration) LockerOption {
	return lockerOption(func(c *lockerConfig) error {
		if d < 0 {
			return &OptionError{Option: "WithMinHold", Reason: fmt.Sprintf("%v is negative; zero frees the lease when the job is done", d)}
		}
		c.minHold = d
		return nil
	})
}

// WithTryTimeout bounds the one attempt that Locker.Lock makes. Default DefaultTryTimeout, 1 s; at
// least MinTryTimeout, 10 ms, and at most MaxTimeout, a day. It is not a time to wait for the
// holder, which Lock never does. gocron schedules a job's next tick only when Lock has returned, so
// keep it below the shortest interval.
func WithTryTimeout(d time.Duration) CommonOption {
	return commonOption(func(c *commonConfig) error {
		if d < MinTryTimeout {
			return &OptionError{Option: "WithTryTimeout", Reason: fmt.Sprintf("%v is below the minimum of %v", d, MinTryTimeout)}
		}
		if d > MaxTimeout {
			return &OptionError{Option: "WithTryTimeout", Reason: fmt.Sprintf("%v is above the maximum of %v", d, MaxTimeout)}
		}
		c.tryTimeout = d
		return nil
	})
}

// WithKeyPrefix sets what goes before a job's name in the key of its lease. Default
// DefaultKeyPrefix. It is 1 to MaxKeyPrefixLength bytes long and does not start with }. Services
// that share nodes and redlock's own prefix need different ones where their jobs have the same
// names.
func WithKeyPrefix(prefix string) CommonOption {
	return commonOption(func(c *commonConfig) error {
		switch {
		case prefix == "" || len(prefix) > MaxKeyPrefixLength:
			return &OptionError{Option: "WithKeyPrefix", Reason: fmt.Sprintf("must be 1 to %d bytes, not %d", MaxKeyPrefixLength, len(prefix))}
		case prefix[0] == '}':
			return &OptionError{Option: "WithKeyPrefix", Reason: "must not start with }, which would end the braces around the key in its names on the servers"}
		}
		c.keyPrefix = prefix
		return nil
	})
}

// WithLogger sets where the Locker or the Scheduler reports: at warning level jobs that were
// skipped for any other reason than that another replica has them, leases that were lost while
// their job ran, names made by the compiler, and intervals shorter than the minimum hold; at debug
// level jobs that another replica has. A Scheduler also reports the errors of tasks, and at error
// level their panics. gocron reports none of these by itself. Default:
// slog.Default as it is when they are made.
func WithLogger(l *slog.Logger) CommonOption {
	return commonOption(func(c *commonConfig) error {
		if l == nil {
			return &OptionError{Option: "WithLogger", Reason: "nil; for silence use slog.New(slog.DiscardHandler)"}
		}
		c.logger = l
		return nil
	})
}

// WithLeaseOptions adds options of the jobs' leases, such as redlock.WithIdentity; but neither
// redlock.WithoutAutoExtend nor numbers (redlock.WithSequence, redlock.WithTick). Of a Locker, TTL
// and minimum hold have options of their own (WithTTL, WithMinHold), which win over redlock's. A
// Scheduler has none for the minimum hold: with redlock.WithMinHold ticks that come within it are
// skipped as overlapped.
func WithLeaseOptions(opts ...redlock.LeaseOption) CommonOption {
	return commonOption(func(c *commonConfig) error {
		for i, o := range opts {
			if o == nil {
				return &OptionError{Option: "WithLeaseOptions", Reason: fmt.Sprintf("option %d is nil", i)}
			}
		}
		c.lease = append(c.lease, opts...)
		return nil
	})
}

func newLockerConfig(opts []LockerOption) (*lockerConfig, error) {
	c := &lockerConfig{commonConfig: defaultCommonConfig(), minHold: DefaultMinHold}
	for i, o := range opts {
		if o == nil {
			return nil, &OptionError{Option: "LockerOption", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		if err := o.applyLocker(c); err != nil {
			return nil, err
		}
	}
	c.lease = append(c.lease, redlock.WithMinHold(c.minHold))
	if c.ttl > 0 {
		c.lease = append(c.lease, redlock.WithTTL(c.ttl))
	}
	return c, nil
}
