package elector

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// DefaultBackoffMin is the shortest pause after a term in which lead failed. It is also the pause
// after a term that was given up, in which others may take over.
const DefaultBackoffMin = time.Second

// MaxPause bounds the drain timeout and the pauses between terms. To pause for longer, end Run.
const MaxPause = 24 * time.Hour

// minPause keeps a candidate whose lead fails at once from asking the nodes all the time.
const minPause = time.Millisecond

// KeyPrefix comes before the name of an election in the key of its lease.
const KeyPrefix = "election/"

// Option configures an Elector.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// always returns an Option that cannot be refused.
func always(do func(*config)) Option {
	return option(func(c *config) error {
		do(c)
		return nil
	})
}

type config struct {
	lease      []redlock.LeaseOption
	identity   string        // the lease's, with the Quorum's as its default
	drain      time.Duration // zero means the TTL
	backoffMin time.Duration
	backoffMax time.Duration // zero means the TTL
	logger     *slog.Logger
	campaigns  CampaignTracer
	changes    ChangeTracer

	withoutHistory, withoutCard, withoutOrders bool
}

// WithTTL sets the TTL of the leader's lease, and so how long a crashed leader stays in office.
// Default: the Quorum's. At most the Quorum's redlock.WithMaxTTL.
func WithTTL(ttl time.Duration) Option {
	return WithLeaseOptions(redlock.WithTTL(ttl))
}

// WithIdentity sets the name under which this replica leads; see Leader. Default: the identity of
// the Quorum, if redlock.WithIdentity set one. Otherwise each Elector has a name of its own, made
// of host name, process id, a random part and a number. Observers cannot tell two replicas of one
// name apart.
func WithIdentity(identity string) Option {
	return WithLeaseOptions(redlock.WithIdentity(identity))
}

// WithPayload sets a text that this replica's lease carries while it leads, for Leader.Payload: the
// address of its service, for example. It may be any bytes, at most redlock.MaxPayloadLength of
// them, and is the same in all terms of the Elector. It is no secret, and is sent with each
// extension. See redlock.WithPayload. Default: none.
func WithPayload(payload string) Option {
	return WithLeaseOptions(redlock.WithPayload(payload))
}

// WithLeaseOptions passes options to the leader's lease. New validates them, and refuses
// redlock.WithoutAutoExtend, because a leader leads for as long as it can. The Quorum's minimum
// hold (redlock.WithMinHold) does not apply to the lease. A minimum hold that is given here keeps
// the next leader waiting.
func WithLeaseOptions(opts ...redlock.LeaseOption) Option {
	return always(func(c *config) { c.lease = append(c.lease, opts...) })
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
// campaign. The pause starts at min, doubles with each failure in a row up to max, and has jitter.
// A term longer than max resets it. Defaults: DefaultBackoffMin and the TTL. Both are between 1 ms
// and MaxPause, a day. min is also the pause after a term that was given up.
func WithBackoff(min, max time.Duration) Option {
	return option(func(c *config) error {
		c.backoffMin, c.backoffMax = min, max
		return cmp.Or(
			refuse(min <= 0 || max < min, "WithBackoff", "%v to %v: both must be positive and the second at least the first", min, max),
			refuse(min < minPause || max > MaxPause, "WithBackoff", "%v to %v: both must be between %v and %v", min, max, minPause, MaxPause))
	})
}

// WithLogger sets the logger for transitions, one line each, and for overrun drain timeouts.
// Default: slog.Default at the call of New. "elected" and "resigned" are at level Info. A loss and
// a lead that failed are at level Warn.
func WithLogger(l *slog.Logger) Option {
	return option(func(c *config) error {
		c.logger = l
		return refuse(l == nil, "WithLogger", "nil; for silence use slog.New(slog.DiscardHandler)")
	})
}

// WithTracer sets the tracer; see CampaignTracer. Default: the Quorum's (redlock.WithTracer), if it
// implements CampaignTracer; else none, which costs one nil check.
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
// history on the nodes. The history keeps the last 40 of them for 40 days, in an entry of at most 1
// KiB each. Each entry is one more command to each node. Without the entries, Observe learns of
// this replica about a TTL later.
func WithoutHistory() Option {
	return always(func(c *config) { c.withoutHistory = true })
}

// WithoutCard leaves this replica's part in the election out of the card of its process on the
// nodes, which package admin reads. A process writes one card for all its parts every 10 s, with
// one command to each node. A process without any part writes none.
func WithoutCard() Option {
	return always(func(c *config) { c.withoutCard = true })
}

// WithoutOrders has this replica ignore the orders of operators. Without this option it carries out
// one kind of order: to resign the term that it is in. Hearing orders takes one more connection to
// each node, shared with this process's waits for leases. Every client that may write to the nodes
// may give orders.
func WithoutOrders() Option {
	return always(func(c *config) { c.withoutOrders = true })
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

// checkLease has the Quorum validate the options of the lease, and refuses a lease that is not
// extended.
func (c *config) checkLease(q *redlock.Quorum, election string) error {
	extends, err := bridge.Extends(q, KeyPrefix+election, c.lease)
	return cmp.Or(invalidLease(err),
		refuse(!extends, "lease", "redlock.WithoutAutoExtend, of the Quorum or of the lease, is not for an election: nobody could extend its lease"))
}

func invalidLease(err error) error {
	if err == nil {
		return nil
	}
	return &OptionError{Option: "lease", Reason: strings.TrimPrefix(err.Error(), "redlock: "), Err: err}
}
