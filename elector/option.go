package elector

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// DefaultBackoffMin is the shortest pause after a term in which lead failed, and the pause after
// one that was given up, in which others may take over.
const DefaultBackoffMin = time.Second

// MaxPause bounds the drain timeout and the pauses between terms. Who wants to stop for longer ends
// Run.
const MaxPause = 24 * time.Hour

// minPause keeps a candidate whose lead fails at once from asking the nodes all the time.
const minPause = time.Millisecond

// KeyPrefix comes before the name of an election in the key of its lease.
const KeyPrefix = "election/"

// Option configures an Elector.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type config struct {
	lease      []redlock.LeaseOption
	identity   string        // that of the lease
	drain      time.Duration // zero means the TTL
	backoffMin time.Duration
	backoffMax time.Duration // zero means the TTL
	logger     *slog.Logger
	campaigns  CampaignTracer
	changes    ChangeTracer

	withoutHistory, withoutCard, withoutOrders bool
}

// WithTTL sets the TTL of the leader's lease, and with it how long a crashed leader stays in
// office. Default: the Quorum's. At most the Quorum's redlock.WithMaxTTL.
func WithTTL(ttl time.Duration) Option {
	return WithLeaseOptions(redlock.WithTTL(ttl))
}

// WithIdentity sets the name under which this replica leads; see Leader. Default: the Quorum's, if
// that was given one with redlock.WithIdentity. Otherwise each Elector has a name of its own, made
// of host name, process id, a random part and a number. Two replicas of one name look like one.
func WithIdentity(identity string) Option {
	return WithLeaseOptions(redlock.WithIdentity(identity))
}

// WithPayload sets a text that this replica's lease carries while it leads, for Leader.Payload: the
// address at which its service is found, say. It is any bytes, at most redlock.MaxPayloadLength of
// them, and the same in all terms of the Elector. It is no secret, and is sent with each extension.
// See redlock.WithPayload. Default none.
func WithPayload(payload string) Option {
	return WithLeaseOptions(redlock.WithPayload(payload))
}

// WithLeaseOptions passes options to the leader's lease. They are validated by New, which refuses
// redlock.WithoutAutoExtend: a leader leads for as long as it can. A minimum hold of the Quorum
// (redlock.WithMinHold) is not the lease's. One that is given here keeps the next leader waiting.
func WithLeaseOptions(opts ...redlock.LeaseOption) Option {
	return option(func(c *config) error {
		c.lease = append(c.lease, opts...)
		return nil
	})
}

// WithDrainTimeout sets how long lead may take to return after its term's context has ended, before
// the lease is no longer extended. Default: the TTL. More than zero, at most MaxPause, a day.
func WithDrainTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		c.drain = d
		return cmp.Or(refuse(d <= 0, "WithDrainTimeout", "%v is not positive", d),
			refuse(d > MaxPause, "WithDrainTimeout", "%v is above the maximum of %v", d, MaxPause))
	})
}

// WithBackoff sets the bounds of the pause between a term in which lead failed and the next
// campaign. It starts at min, doubles with each failure in a row up to max, and has jitter; a term
// longer than max resets it. Defaults: DefaultBackoffMin and the TTL. Both are between 1 ms and
// MaxPause, a day. min is also the pause after a term that was given up.
func WithBackoff(min, max time.Duration) Option {
	return option(func(c *config) error {
		c.backoffMin, c.backoffMax = min, max
		return cmp.Or(
			refuse(min <= 0 || max < min, "WithBackoff", "%v to %v: both must be positive and the second at least the first", min, max),
			refuse(min < minPause || max > MaxPause, "WithBackoff", "%v to %v: both must be between %v and %v", min, max, minPause, MaxPause))
	})
}

// WithLogger sets where transitions, one line each, and overrun drain timeouts are logged. Default:
// slog.Default as it is when the Elector is made. "elected" and "resigned" are at level Info, a
// loss and a lead that failed at level Warn.
func WithLogger(l *slog.Logger) Option {
	return option(func(c *config) error {
		c.logger = l
		return refuse(l == nil, "WithLogger", "nil; for silence use slog.New(slog.DiscardHandler)")
	})
}

// WithTracer sets the tracer; see CampaignTracer. Default: the Quorum's (redlock.WithTracer), if it
// is one; or else none, which costs one nil check.
func WithTracer(t CampaignTracer) Option {
	return option(func(c *config) error {
		c.trace(t)
		return refuse(t == nil, "WithTracer", "nil; leave the option out for no tracing")
	})
}

func (c *config) trace(t CampaignTracer) {
	c.campaigns = t
	c.changes, _ = t.(ChangeTracer)
}

// WithoutHistory leaves the beginnings and the ends of this replica's terms out of the election's
// history on the nodes. The history has an entry of at most 1 KiB for each, the last 40, kept for
// 40 days. Each is one more command to each node. Without them, Observe learns of this replica
// about a TTL later.
func WithoutHistory() Option {
	return option(func(c *config) error {
		c.withoutHistory = true
		return nil
	})
}

// WithoutCard leaves this replica's part in the election out of the card of its process on the
// nodes, which package admin reads. A process writes its card every 10 s, with one command to each
// node, for all that it takes part in; without any part it writes none.
func WithoutCard() Option {
	return option(func(c *config) error {
		c.withoutCard = true
		return nil
	})
}

// WithoutOrders has this replica take no orders from operators. It takes one: to resign the term
// that it is in. To hear of orders takes one more connection to each node, which those who wait for
// leases in this process use too. Whoever may write to the nodes may give orders.
func WithoutOrders() Option {
	return option(func(c *config) error {
		c.withoutOrders = true
		return nil
	})
}

func newConfig(q *redlock.Quorum, opts []Option) (*config, error) {
	c := &config{backoffMin: DefaultBackoffMin, logger: slog.Default()}
	if t, ok := q.Tracer().(CampaignTracer); ok {
		c.trace(t)
	}
	for _, o := range opts {
		if o == nil {
			return nil, &OptionError{Option: "Option", Reason: "nil option"}
		}
		if err := o.apply(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkLease has the Quorum look at what the lease will be acquired with.
func (c *config) checkLease(q *redlock.Quorum, election string) error {
	extends, err := bridge.Extends(q, KeyPrefix+election, c.lease)
	if err != nil {
		return invalidLease(err)
	}
	return refuse(!extends, "lease", "redlock.WithoutAutoExtend, of the Quorum or of the lease, is not for an election: nobody could extend its lease")
}

func invalidLease(err error) error {
	return &OptionError{Option: "lease", Reason: strings.TrimPrefix(err.Error(), "redlock: "), Err: err}
}
