package scheduler

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/redlock"
)

// Defaults and bounds of a Locker.
const (
	// DefaultMinHold is longer than the difference between the clocks of machines that NTP keeps,
	// well under a second, and the try timeout together.
	DefaultMinHold = 2 * time.Second
	// DefaultTryTimeout leaves room for a few rounds to slow nodes (a node has at most 500 ms by
	// default) and is shorter than any interval worth locking.
	DefaultTryTimeout = time.Second
	// MinTryTimeout is about one round trip within a region.
	MinTryTimeout = 10 * time.Millisecond
)

// LockerOption configures a Locker.
type LockerOption interface{ applyLocker(*lockerConfig) error }

type lockerOption func(*lockerConfig) error

func (o lockerOption) applyLocker(c *lockerConfig) error { return o(c) }

// lockerConfig is a Locker's configuration.
type lockerConfig struct {
	tryTimeout time.Duration
	minHold    time.Duration
	logger     *slog.Logger
	lease      []redlock.LeaseOption
}

// keyOf returns the key of the lease of the job that is called name.
func keyOf(name string) (string, error) {
	const option = "gocron.WithName"
	if name == "" {
		return "", &OptionError{Option: option, Reason: "the job has no name: by it replicas agree on what they run, so give it one that stays the same"}
	}
	if !utf8.ValidString(name) {
		return "", &OptionError{Option: option, Reason: fmt.Sprintf("the job's name %q is not UTF-8: nothing could show it", name)}
	}
	if longest := redlock.MaxKeyLength - len("pause/"+KeyPrefix); len(name) > longest {
		return "", &OptionError{Option: option, Reason: fmt.Sprintf(
			"the job's name has %d bytes, more than %d: give it a shorter one", len(name), longest)}
	}
	return KeyPrefix + name, nil
}

// invalidLease is redlock's error about an option of leases, in the words of this package.
func invalidLease(err error) error {
	if invalid := new(redlock.OptionError); errors.As(err, &invalid) {
		return &OptionError{Option: invalid.Option, Reason: invalid.Reason, Err: invalid}
	}
	return err
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
func WithTryTimeout(d time.Duration) LockerOption {
	return lockerOption(func(c *lockerConfig) error {
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

func newLockerConfig(opts []LockerOption) (*lockerConfig, error) {
	c := &lockerConfig{tryTimeout: DefaultTryTimeout, minHold: DefaultMinHold, logger: slog.Default()}
	for i, o := range opts {
		if o == nil {
			return nil, &OptionError{Option: "LockerOption", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		if err := o.applyLocker(c); err != nil {
			return nil, err
		}
	}
	c.lease = append(c.lease, redlock.WithMinHold(c.minHold))
	return c, nil
}
