package redlock

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/quietlog"
)

// Defaults and bounds. Each option that changes one names it.
const (
	DefaultTTL      = 10 * time.Second // expiry of a key on the servers
	MinTTL          = time.Second      // below it, drift and scheduling delays eat the validity
	DefaultPrefix   = "tenure"         // first part of every key on the servers
	DefaultDrift    = 0.01             // clock drift allowance, as a fraction of the TTL (Redlock's own example value)
	DefaultRetryMin = 50 * time.Millisecond
	DefaultRetryMax = time.Second
	MaxKeyLength    = 1024 // bytes
	// MaxIdentityLength bounds the identity in bytes, because it is part of every key's value.
	MaxIdentityLength = 256

	// driftFloor is the fixed part of the drift allowance: server expiry has a resolution of 1 ms, and the
	// client's clock may be off by clock.Tolerance (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
	// subtracts it as CLOCK_DRIFT).
	driftFloor = 2 * time.Millisecond
	// extendFraction: a lease is extended every TTL/3, so that two attempts may fail outright.
	extendFraction = 3
	// retryFraction: a failed extension is tried again every TTL/20.
	retryFraction = 20
	// A node's timeout is TTL/20 within these bounds: far below the TTL, so that a slow node costs little of
	// the validity, and well above a round trip between regions.
	minNodeTimeout = 100 * time.Millisecond
	maxNodeTimeout = 500 * time.Millisecond
)

// Op names an operation on a node.
type Op string

// The operations.
const (
	OpAcquire Op = "acquire"
	OpAgree   Op = "agree" // second round of an acquisition whose nodes disagree about the fencing token
	OpExtend  Op = "extend"
	OpRelease Op = "release"
	OpObserve Op = "observe" // reads by Holder and Nodes
)

// Option configures a Quorum.
type Option interface{ applyQuorum(*config) error }

// LeaseOption configures one lease.
type LeaseOption interface{ applyLease(*leaseConfig) error }

// CommonOption is both: given to Open or New it is the default for every lease, given to Acquire or
// TryAcquire it holds for that lease.
type CommonOption interface {
	Option
	LeaseOption
}

type quorumOption func(*config) error

func (o quorumOption) applyQuorum(c *config) error { return o(c) }

type commonOption func(*leaseConfig) error

func (o commonOption) applyQuorum(c *config) error     { return o(&c.lease) }
func (o commonOption) applyLease(l *leaseConfig) error { return o(l) }

// config is a Quorum's configuration.
type config struct {
	prefix       string
	drift        float64
	retryMin     time.Duration
	retryMax     time.Duration
	nodeTimeout  map[Op]time.Duration // explicit ones only
	logger       *slog.Logger
	tracers      tracers
	clientOption func(url string, o *valkey.ClientOption)
	lease        leaseConfig
}

// leaseConfig is what may differ from lease to lease.
type leaseConfig struct {
	ttl        time.Duration
	interval   time.Duration // zero means TTL/3
	minHold    time.Duration
	manual     bool
	identity   string
	retryAfter time.Duration // derived: TTL/20
}

// WithTTL sets how long a key lives on the servers after the last successful extension, and with it how long
// a successor waits when the holder dies. Default DefaultTTL, at least MinTTL.
func WithTTL(ttl time.Duration) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		if ttl < MinTTL {
			return &OptionError{"WithTTL", fmt.Sprintf("%v is below the minimum of %v", ttl, MinTTL)}
		}
		if ttl%time.Millisecond != 0 {
			return &OptionError{"WithTTL", fmt.Sprintf("%v is not a whole number of milliseconds", ttl)}
		}
		l.ttl = ttl
		return nil
	})
}

// WithExtendInterval sets how often a held lease is extended. Default TTL/3. It must leave room for two
// attempts within the TTL.
func WithExtendInterval(d time.Duration) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		if d <= 0 {
			return &OptionError{"WithExtendInterval", fmt.Sprintf("%v is not positive; to extend by hand use WithoutAutoExtend", d)}
		}
		l.interval = d
		return nil
	})
}

// WithoutAutoExtend leaves extending to the caller's Lease.Extend. Without it the lease ends at its deadline.
func WithoutAutoExtend() CommonOption {
	return commonOption(func(l *leaseConfig) error { l.manual = true; return nil })
}

// WithMinHold keeps the key on the servers for at least d after it was acquired: a release before that
// shortens the key's TTL to what is left of d instead of deleting it. The lease itself ends at the release in
// either case. Default zero. It must be below the TTL.
func WithMinHold(d time.Duration) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		if d < 0 {
			return &OptionError{"WithMinHold", fmt.Sprintf("%v is negative", d)}
		}
		l.minHold = d
		return nil
	})
}

// WithIdentity names the holder, for Holder and for the error that others get. Default: host name, process id
// and a random part. It is not a secret and need not be unique: what protects a key is a random value that is
// new for every attempt.
func WithIdentity(identity string) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		if err := checkIdentity(identity); err != nil {
			return err
		}
		l.identity = identity
		return nil
	})
}

// WithPrefix sets the first part of every key on the servers. Default DefaultPrefix. Quorums with different
// prefixes do not see each other's keys.
func WithPrefix(prefix string) Option {
	return quorumOption(func(c *config) error {
		if prefix == "" || len(prefix) > 128 || strings.ContainsAny(prefix, "{}") {
			return &OptionError{"WithPrefix", "must be 1 to 128 bytes without { or }, which place a key's state on one cluster slot"}
		}
		c.prefix = prefix
		return nil
	})
}

// WithNodeTimeout sets how long one node may take for an operation (all of them when none is named) before
// the round goes on without it. Default TTL/20, held between 100 ms and 500 ms. At most a quarter of the TTL.
func WithNodeTimeout(d time.Duration, ops ...Op) Option {
	return quorumOption(func(c *config) error {
		if d < time.Millisecond {
			return &OptionError{"WithNodeTimeout", fmt.Sprintf("%v is below 1ms", d)}
		}
		if len(ops) == 0 {
			ops = []Op{OpAcquire, OpAgree, OpExtend, OpRelease, OpObserve}
		}
		for _, op := range ops {
			c.nodeTimeout[op] = d
		}
		return nil
	})
}

// WithDrift sets the allowance for clocks that run at different rates, as a fraction of the TTL; 2 ms are
// always added. Default DefaultDrift. Between 0 and 0.2.
func WithDrift(fraction float64) Option {
	return quorumOption(func(c *config) error {
		if !(fraction >= 0 && fraction <= 0.2) {
			return &OptionError{"WithDrift", fmt.Sprintf("%v is not between 0 and 0.2", fraction)}
		}
		c.drift = fraction
		return nil
	})
}

// WithRetry sets the bounds between which Acquire waits, doubling and with full jitter, after an attempt that
// failed for lack of a quorum. Defaults DefaultRetryMin and DefaultRetryMax. How it waits for a holder is not
// changed by it.
func WithRetry(min, max time.Duration) Option {
	return quorumOption(func(c *config) error {
		if min <= 0 || max < min {
			return &OptionError{"WithRetry", fmt.Sprintf("%v to %v: both must be positive and the second at least the first", min, max)}
		}
		c.retryMin, c.retryMax = min, max
		return nil
	})
}

// WithLogger sets where the Quorum reports nodes that fail and recover and configurations that deserve a
// warning. Default: slog.Default, warnings only.
func WithLogger(l *slog.Logger) Option {
	return quorumOption(func(c *config) error {
		if l == nil {
			return &OptionError{"WithLogger", "nil; for silence use slog.New(slog.DiscardHandler)"}
		}
		c.logger = l
		return nil
	})
}

// WithTracer sets the tracer; see AcquireTracer. Default none, which costs one nil check.
func WithTracer(t AcquireTracer) Option {
	return quorumOption(func(c *config) error {
		if t == nil {
			return &OptionError{"WithTracer", "nil; leave the option out for no tracing"}
		}
		c.tracers = newTracers(t)
		return nil
	})
}

// WithClientOption lets fn adjust the valkey-go options of every node that Open connects to: TLS, credentials,
// a dialer. It is called once for each URL. What the protocol depends on is set after it and cannot be
// changed: no retries, no connection lifetime, one pipelined connection, no client-side caching. New refuses
// this option, because its clients exist already.
func WithClientOption(fn func(url string, o *valkey.ClientOption)) Option {
	return quorumOption(func(c *config) error {
		if fn == nil {
			return &OptionError{"WithClientOption", "nil"}
		}
		c.clientOption = fn
		return nil
	})
}

func newConfig(opts []Option) (*config, error) {
	c := &config{
		prefix:      DefaultPrefix,
		drift:       DefaultDrift,
		retryMin:    DefaultRetryMin,
		retryMax:    DefaultRetryMax,
		nodeTimeout: make(map[Op]time.Duration),
		logger:      quietlog.Default(),
		lease:       leaseConfig{ttl: DefaultTTL},
	}
	for _, o := range opts {
		if o == nil {
			return nil, &OptionError{"Option", "nil option"}
		}
		if err := o.applyQuorum(c); err != nil {
			return nil, err
		}
	}
	if c.lease.identity == "" {
		c.lease.identity = defaultIdentity()
	}
	if err := c.lease.check(c); err != nil {
		return nil, err
	}
	return c, nil
}

// forLease returns the configuration of one lease.
func (c *config) forLease(opts []LeaseOption) (leaseConfig, error) {
	l := c.lease
	for _, o := range opts {
		if o == nil {
			return l, &OptionError{"LeaseOption", "nil option"}
		}
		if err := o.applyLease(&l); err != nil {
			return l, err
		}
	}
	if len(opts) > 0 {
		if err := l.check(c); err != nil {
			return l, err
		}
	}
	l.derive()
	return l, nil
}

func (l *leaseConfig) derive() {
	if l.interval == 0 {
		l.interval = l.ttl / extendFraction
	}
	l.retryAfter = l.ttl / retryFraction
}

// check validates the combination. It works on a copy for the derived values, so that a default interval
// follows a TTL that is set later for a single lease.
func (l *leaseConfig) check(c *config) error {
	d := *l
	d.derive()
	for op, timeout := range c.nodeTimeout {
		if timeout > d.ttl/4 {
			return &OptionError{"WithNodeTimeout", fmt.Sprintf("%v for %s is more than a quarter of the TTL of %v", timeout, op, d.ttl)}
		}
	}
	if d.minHold >= d.ttl {
		return &OptionError{"WithMinHold", fmt.Sprintf("%v is not below the TTL of %v", d.minHold, d.ttl)}
	}
	if !d.manual {
		// A first attempt that times out, the pause, and a second attempt must fit into the validity.
		timeout := c.timeout(OpExtend, d.ttl)
		latest := c.validity(d.ttl) - 2*timeout - d.retryAfter
		if max := time.Duration(float64(latest) / (1 + extendJitter)); d.interval > max {
			return &OptionError{"WithExtendInterval", fmt.Sprintf("%v leaves no room for two attempts within a TTL of %v: use at most %v",
				d.interval, d.ttl, max.Truncate(time.Millisecond))}
		}
	}
	return nil
}

// timeout is how long a node may take for op on a lease of that TTL.
func (c *config) timeout(op Op, ttl time.Duration) time.Duration {
	if d, ok := c.nodeTimeout[op]; ok {
		return d
	}
	return min(max(ttl/retryFraction, minNodeTimeout), maxNodeTimeout)
}

// validity is how long a lease may be relied on, counted from the start of the round that set its keys to
// ttl: the TTL less the allowance for clocks that run at different rates.
func (c *config) validity(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*c.drift) - driftFloor
}

func checkIdentity(identity string) error {
	if identity == "" || len(identity) > MaxIdentityLength {
		return &OptionError{"WithIdentity", fmt.Sprintf("must be 1 to %d bytes, not %d", MaxIdentityLength, len(identity))}
	}
	for i := range len(identity) {
		if identity[i] < ' ' || identity[i] == 0x7f {
			return &OptionError{"WithIdentity", "contains the control character " + strconv.QuoteRune(rune(identity[i]))}
		}
	}
	return nil
}

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown-host"
	}
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("%.128s-%d-%s", clean, os.Getpid(), randomText(6))
}
