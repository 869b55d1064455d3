package redlock

import (
	"cmp"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Defaults and bounds. Each option that changes one names it.
const (
	DefaultTTL    = 10 * time.Second // expiry of a key on the servers
	MinTTL        = time.Second      // below it, drift and scheduling delays eat the validity
	DefaultPrefix = "tenure"         // first part of every key on the servers
	DefaultDrift  = 0.01             // clock drift allowance, as a fraction of the TTL (Redlock's own example value)
	MaxKeyLength  = 1024             // bytes
	// DefaultClockSkew is the greatest difference that is expected between any two machines' wall
	// clocks.
	DefaultClockSkew = 2 * time.Second
	// MaxKeep bounds lifetimes on the nodes: a century.
	MaxKeep = wire.MaxKeep
	// MaxIdentityLength bounds the identity in bytes, because it is part of every key's value.
	MaxIdentityLength = 256
	// MaxPayloadLength bounds the payload in bytes, because it is sent with every extension.
	MaxPayloadLength = wire.MaxPayloadLength

	// driftFloor is the fixed part of the drift allowance.
	driftFloor = node.DriftFloor
	// minExtendInterval keeps a lease from being extended all the time.
	minExtendInterval = 10 * time.Millisecond
	// extendFraction: a lease is extended every TTL/3, so that two attempts may fail outright.
	extendFraction = 3
	// retryFraction: a failed extension is tried again after TTL/20, and then later each time.
	retryFraction = 20
	// A node's timeout is TTL/20 within these bounds: far below the TTL, so that a slow node costs
	// little of the validity, and well above a round trip between regions.
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
	OpLeave   Op = "leave"   // takes a waiter that has given up out of the queue
)

// Option configures a Quorum.
type Option interface{ applyQuorum(*config) error }

// LeaseOption configures one lease.
type LeaseOption interface{ applyLease(*leaseConfig) error }

// CommonOption is both: given to Open it is the default for every lease, given to Acquire or
// TryAcquire it holds for that lease.
type CommonOption interface {
	Option
	LeaseOption
}

type quorumOption func(*config) error

func (o quorumOption) applyQuorum(c *config) error { return o(c) }

type leaseOption func(*leaseConfig) error

func (o leaseOption) applyLease(l *leaseConfig) error { return o(l) }

type commonOption func(*leaseConfig) error

func (o commonOption) applyQuorum(c *config) error     { return o(&c.lease) }
func (o commonOption) applyLease(l *leaseConfig) error { return o(l) }

// refuse is the error of an option where its value breaks a bound; nil where it does not.
func refuse(broken bool, option, why string, args ...any) error {
	if !broken {
		return nil
	}
	return &OptionError{option, fmt.Sprintf(why, args...)}
}

// WithTTL sets how long a key lives on the servers after the last successful extension, and with it
// how long a successor waits when the holder dies. Default DefaultTTL, at least MinTTL and at most
// 24 hours.
//
// For a Quorum it sets three things more:
//   - The longest TTL of its leases, unless WithMaxTTL does. All processes of the prefix use the
//     largest.
//   - How often a server's clock is looked at: once in that time, and every ten seconds at least.
//   - How small a jump of that clock is seen. A lease with a much shorter TTL than its Quorum's
//     allows for less than that.
func WithTTL(ttl time.Duration) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		l.ttl = ttl
		return cmp.Or(
			refuse(ttl < MinTTL, "WithTTL", "%v is below the minimum of %v", ttl, MinTTL),
			refuse(ttl > maxMaxTTL, "WithTTL", "%v is above the maximum of %v: extensions keep a lease for as long as its work takes", ttl, maxMaxTTL),
			refuse(ttl%time.Millisecond != 0, "WithTTL", "%v is not a whole number of milliseconds", ttl),
		)
	})
}

// WithExtendInterval sets how often a held lease is extended. Default TTL/3. At least 10 ms, and
// short enough for two attempts within the TTL: the error names the longest interval. That is below
// the TTL's maximum of 24 hours in any case.
//
// The default, and the interval of a Quorum, are shortened for a lease whose own TTL leaves no room
// for them. An interval that is given together with the lease is refused if it does not fit.
func WithExtendInterval(d time.Duration) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		l.interval = d
		return cmp.Or(
			refuse(d <= 0, "WithExtendInterval", "%v is not positive; to extend by hand use WithoutAutoExtend", d),
			refuse(d < minExtendInterval, "WithExtendInterval", "%v is below the minimum of %v", d, minExtendInterval),
			refuse(d > maxMaxTTL, "WithExtendInterval", "%v is above the maximum of %v", d, maxMaxTTL),
		)
	})
}

// WithoutAutoExtend leaves extending to the caller's Lease.Extend. Without such a call the lease
// ends at its deadline. A node that refused the lease, because a rival's attempt was there for a
// moment, gets its key with the next Extend only. Until then the lease may be on a bare quorum of
// nodes, and does not survive a restart of one of them.
func WithoutAutoExtend() CommonOption {
	return commonOption(func(l *leaseConfig) error { l.manual = true; return nil })
}

// WithMinHold keeps the key on the servers for at least d after it was acquired: a release before
// that shortens the key's TTL to what is left of d instead of deleting it. The lease itself ends at
// the release in either case. Default zero. It must be below the TTL, and so below 24 hours.
func WithMinHold(d time.Duration) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		l.minHold = d
		return refuse(d < 0, "WithMinHold", "%v is negative", d)
	})
}

// WithIdentity names the holder, for Holder and for the errors of other callers. Default: host
// name, process id and a random part. The identity is not a secret and need not be unique: a random
// value, new for every attempt, protects the key.
func WithIdentity(identity string) CommonOption {
	return commonOption(func(l *leaseConfig) error {
		l.identity = identity
		return checkIdentity(identity)
	})
}

// WithPayload has the nodes keep a text with the lease, such as the address at which the holder's
// service is found. Other callers get it in Holder.Payload, from Quorum.Holder and in a HeldError.
// It is any bytes, at most MaxPayloadLength of them. Default none; an empty text is none.
//
// It decides nothing, and is fixed for the life of the lease: to change it, release the lease and
// acquire it again. It is no secret: every client that can read the nodes can read it. Nothing
// proves to a reader who wrote it. Errors, logs and traces of this library do not show it.
//
// Each acquisition, extension and release sends it to each node, and each node keeps it with the
// key, escaped as in the query of a URL: up to three bytes for one. The option may be used for
// several leases at a time.
func WithPayload(payload string) LeaseOption {
	return leaseOption(func(l *leaseConfig) error {
		l.payload = payload
		return refuse(len(payload) > MaxPayloadLength, "WithPayload", "must be at most %d bytes, not %d", MaxPayloadLength, len(payload))
	})
}

// WithPrefix sets the first part of every key on the servers. Default DefaultPrefix. Quorums with
// different prefixes do not see each other's keys. Give each service that shares nodes with others
// a prefix of its own, such as its name: under one prefix, equal keys, elections and jobs of two
// services are the same. A Quorum without this option says so in the log, at level Info.
//
// It has 1 to 128 bytes. It has no braces, which mark the key within its names on the servers, none
// of the characters of an ACL's patterns (*, ?, [, ] and \), no blanks and no control characters. A
// user of an ACL with ~PREFIX:* may also use each prefix that begins with PREFIX and a colon.
func WithPrefix(prefix string) Option {
	return quorumOption(func(c *config) error {
		odd := func(r rune) bool { return r == ' ' || isControl(r) || strings.ContainsRune(`{}*?[]\`, r) }
		c.prefix, c.prefixed = prefix, true
		return refuse(prefix == "" || len(prefix) > 128 || strings.ContainsFunc(prefix, odd), "WithPrefix",
			`must be 1 to 128 bytes without { or }, which mark the key within its names on the servers, blanks, control characters, and *?[]\, which have a meaning in ACLs`)
	})
}

// WithNodeTimeout sets how long one node may take for an operation before the round goes on without
// it. Default TTL/20, held between 100 ms and 500 ms. At least 1 ms and at most a quarter of the
// TTL of every lease, 6 hours for the longest.
func WithNodeTimeout(d time.Duration) Option {
	return quorumOption(func(c *config) error {
		c.nodeTimeout = d
		return refuse(d < time.Millisecond, "WithNodeTimeout", "%v is below 1ms", d)
	})
}

// WithDrift sets the allowance for clocks that run at different rates, as a fraction of the TTL; 2
// ms are always added. Default DefaultDrift. Between 0 and 0.2.
func WithDrift(fraction float64) Option {
	return quorumOption(func(c *config) error {
		c.drift = fraction
		return refuse(!(fraction >= 0 && fraction <= 0.2), "WithDrift", "%v is not between 0 and 0.2", fraction)
	})
}

// WithLogger sets where the Quorum reports nodes that fail and recover, nodes that lose and regain
// their vote, and configurations that deserve a warning. A line is written when something begins
// and when it ends. A trouble that lasts is repeated after 1 minute, 3, 7, 15, 31 and 63, and then
// once an hour. A node that keeps failing for less than a second is reported once a minute. Ends
// are at level Info, such as "node votes". The handler is called by the goroutines that serve all
// leases, so it must not block. Default: slog.Default as it is when the Quorum is made.
func WithLogger(l *slog.Logger) Option {
	return quorumOption(func(c *config) error {
		c.logger = l
		return refuse(l == nil, "WithLogger", "nil; for silence use slog.New(slog.DiscardHandler)")
	})
}

// WithTracer sets the tracer; see AcquireTracer. Electors and Clients of package admin on the
// Quorum use it too, as far as it implements their tracers, unless they are given a tracer of their
// own. A Scheduler has scheduler.WithTracer. Default none, which costs one nil check.
func WithTracer(t AcquireTracer) Option {
	return quorumOption(func(c *config) error {
		c.tracers = newTracers(t)
		v := reflect.ValueOf(t) // of a nil pointer too, which comes with an error: it would end the process
		return refuse(!v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil(), "WithTracer", "nil; leave the option out for no tracing")
	})
}

// WithClientOption lets fn adjust the valkey-go options of every node that Open connects to: TLS,
// credentials, a dialer. fn is called once for each URL. The options on which the protocol depends
// are set after fn and cannot be changed: no retries, no connection lifetime, one pipelined
// connection, no client-side caching, no commands to replicas, no redirection. More than one
// address is refused, and so is a Sentinel's group.
//
// TCP keep-alive is what KeepAliveConfig of the Dialer says, if that is enabled. If not, a dead
// connection is found within 8 s. A DialCtxFn that does not use the Dialer that it is given has to
// set keep-alive itself, and has to end when its context does. An AuthCredentialsFn gets no
// context: while it blocks, its node is asked nothing, and Healthy does not know of it. Have it
// answer from memory.
func WithClientOption(fn func(url string, o *valkey.ClientOption)) Option {
	return quorumOption(func(c *config) error {
		c.clientOption = fn
		return refuse(fn == nil, "WithClientOption", "nil")
	})
}
