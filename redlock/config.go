package redlock

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/roster"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// config is a Quorum's configuration.
type config struct {
	prefix       string
	prefixed     bool // it was given
	drift        float64
	nodeTimeout  time.Duration // zero means that it follows the TTL
	logger       *slog.Logger
	tracers      tracers
	certificates func(url string, o *valkey.ClientOption) // of FromEnv; before clientOption
	clientOption func(url string, o *valkey.ClientOption)
	lease        leaseConfig
	named        bool // by WithIdentity

	maxTTL         time.Duration // longest TTL of any lease under the prefix
	clockSkew      time.Duration
	others         limits // that other processes use
	restartGate    bool
	acceptReplicas bool

	plain   leaseConfig // of a lease without options
	channel string      // what the names of channels begin with
}

// leaseConfig is what may differ from lease to lease.
type leaseConfig struct {
	ttl      time.Duration
	interval time.Duration // as given; zero means TTL/3, or for a lease the Quorum's
	minHold  time.Duration
	manual   bool
	identity string
	payload  string

	// Arguments of commands, in ms.
	ttlText string
	turn    string // for how long a key is reserved for the one that is called
	queue   string // for how long a queue lives after the last that joined it or asked
}

func newConfig(opts []Option) (*config, error) {
	c := &config{
		prefix:      DefaultPrefix,
		drift:       DefaultDrift,
		logger:      slog.Default(),
		lease:       leaseConfig{ttl: DefaultTTL},
		clockSkew:   DefaultClockSkew,
		restartGate: true,
	}
	for _, o := range opts {
		if o == nil {
			return nil, &OptionError{"Option", "nil option"}
		}
		if err := o.applyQuorum(c); err != nil {
			return nil, err
		}
	}
	if c.named = c.lease.identity != ""; !c.named {
		c.lease.identity = defaultIdentity()
	}
	if c.maxTTL == 0 {
		c.maxTTL = c.lease.ttl
	}
	if err := c.lease.check(c); err != nil {
		return nil, err
	}
	c.plain = c.lease
	c.plain.interval = 0
	c.plain.derive(c)
	c.channel = wire.Channels(c.prefix)
	return c, nil
}

// forLease returns the configuration of one lease, which is not changed any more: leases without
// options share it.
func (c *config) forLease(opts []LeaseOption) (*leaseConfig, error) {
	if len(opts) == 0 {
		return &c.plain, nil
	}
	l := new(leaseConfig)
	*l = c.lease
	l.interval = 0
	for _, o := range opts {
		if o == nil {
			return nil, &OptionError{"LeaseOption", "nil option"}
		}
		if err := o.applyLease(l); err != nil {
			return nil, err
		}
	}
	if err := l.check(c); err != nil {
		return nil, err
	}
	l.derive(c)
	return l, nil
}

// derive fills in what the lease itself was not given.
func (l *leaseConfig) derive(c *config) {
	if l.interval == 0 {
		l.interval = min(cmp.Or(c.lease.interval, l.ttl/extendFraction), c.longestInterval(l.ttl))
	}
	l.ttlText, l.turn, l.queue = milliseconds(l.ttl), milliseconds(min(c.timeout(l.ttl), maxTurn)), milliseconds(queueLives*l.ttl)
}

// longestInterval is how far apart the extensions of a lease may be: a first attempt that times
// out, the pause, and a second attempt must fit into the validity. It is a fifth of the TTL at
// least.
func (c *config) longestInterval(ttl time.Duration) time.Duration {
	latest := c.validity(ttl) - 2*c.timeout(ttl) - ttl/retryFraction
	return time.Duration(float64(latest) / (1 + pauseJitter))
}

// check validates the combination of what was given.
func (l *leaseConfig) check(c *config) error {
	longest := c.longestInterval(l.ttl)
	return cmp.Or(
		refuse(l.ttl > c.maxTTL, "WithTTL", "%v is more than the longest TTL of %v that the Quorum was told: give the Quorum WithMaxTTL(%v)", l.ttl, c.maxTTL, l.ttl),
		refuse(c.nodeTimeout > l.ttl/4, "WithNodeTimeout", "%v is more than a quarter of the TTL of %v", c.nodeTimeout, l.ttl),
		refuse(l.minHold >= l.ttl, "WithMinHold", "%v is not below the TTL of %v", l.minHold, l.ttl),
		refuse(!l.manual && l.interval > longest, "WithExtendInterval", "%v leaves no room for two attempts within a TTL of %v: use at most %v",
			l.interval, l.ttl, longest.Truncate(time.Millisecond)),
	)
}

// timeout is how long a node may take for an operation on a lease of that TTL.
func (c *config) timeout(ttl time.Duration) time.Duration {
	if c.nodeTimeout > 0 {
		return c.nodeTimeout
	}
	return min(max(ttl/retryFraction, minNodeTimeout), maxNodeTimeout)
}

// validity is how long a lease may be relied on, counted from the start of the round that set its
// keys to ttl: the TTL less the allowance for clocks that run at different rates.
func (c *config) validity(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*c.drift) - driftFloor
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func checkIdentity(identity string) error {
	_, member := wire.MemberIdentity(identity)
	control := strings.IndexFunc(identity, isControl)
	return cmp.Or(
		refuse(identity == "" || len(identity) > MaxIdentityLength, "WithIdentity", "must be 1 to %d bytes, not %d", MaxIdentityLength, len(identity)),
		refuse(control >= 0, "WithIdentity", "contains the control character %.1q", identity[max(control, 0):]),
		refuse(member, "WithIdentity", "%.40q begins as the text does by which a node keeps a waiter: others would read another name", identity),
	)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown-host"
	}
	clean := strings.Map(func(r rune) rune {
		if isControl(r) {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("%.128s-%d-%s", clean, os.Getpid(), wire.RandomText(6))
}

// longestTTL is that of any lease under the prefix, as far as is known.
func (c *config) longestTTL() time.Duration {
	ttl, _ := c.others.longest(0)
	return max(c.maxTTL, ttl)
}

// limits are the longest TTL and the largest skew that processes of the prefix say on each node.
// They are safe for concurrent use.
type limits struct {
	mu  sync.Mutex
	all map[int][2]time.Duration // guarded by mu
}

// learn takes over what a node says.
func (l *limits) learn(node int, ttl, skew time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[int][2]time.Duration)
	}
	l.all[node] = [2]time.Duration{ttl, skew}
}

// longest is the largest of the first or second of them, and a node that says it.
func (l *limits) longest(which int) (d time.Duration, node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, said := range l.all {
		if said[which] > d {
			d, node = said[which], i
		}
	}
	return d, node
}

// longer is why the quarantine is longer than this process needs, by a node that says so; empty if
// it is not.
func (q *Quorum) longer() string {
	ttl, node := q.cfg.others.longest(0)
	skew, other := q.cfg.others.longest(1)
	switch {
	case skew > q.cfg.clockSkew:
		node = other
	case ttl <= q.cfg.maxTTL:
		return ""
	}
	return fmt.Sprintf("others use a longer TTL or clock skew than this process, and so a longer quarantine: a TTL of %v, a skew of %v, by %s on %s",
		ttl, skew, q.rosterKeys.Lock, q.nodes[node].addr)
}

// skew is how far clocks may be apart.
func (c *config) skew() time.Duration {
	skew, _ := c.others.longest(1)
	return max(c.clockSkew, skew)
}

// lifetime is for how long others know what this process has said of its nodes.
func (c *config) lifetime() time.Duration {
	return roster.Lifetime(c.quarantineFor(c.maxTTL, c.clockSkew))
}

// quarantine is how long a process must have been up before it votes: the longest TTL, so that
// every lease it has forgotten is over; the allowance for clock skew, so that its next token is
// above every one it has forgotten; both by a clock that may be fast by the drift; and a second,
// because INFO rounds start and present down to whole seconds.
//
// Twice the skew is the least: tokens may be a skew above the median of the servers' clocks when
// they are granted, and a skew below it when the next one is, see docs/guarantees.md.
func (c *config) quarantine() time.Duration { return c.quarantineFor(c.longestTTL(), c.skew()) }

// quarantineFor is that for leases of such a TTL, and such clocks.
func (c *config) quarantineFor(ttl, skew time.Duration) time.Duration {
	longest := max(ttl, 2*skew) + skew
	seconds := math.Ceil((float64(longest)*(1+c.drift) + float64(driftFloor)) / float64(time.Second))
	return time.Duration(seconds+1) * time.Second
}

// sampleEvery is how often at least a server's clock is looked at. Over the Quorum's TTL a jump as
// large as the allowance for drift of a lease with that TTL stands out. A lease with a shorter TTL
// allows for less, see docs/guarantees.md.
func (c *config) sampleEvery() time.Duration { return min(c.lease.ttl, node.MaxSampleEvery) }

// inspectEvery is how often a server that votes is asked for its process, role and policy: one that
// was demoted and promoted again in between is not noticed.
func (c *config) inspectEvery() time.Duration { return max(c.sampleEvery(), minInspectEvery) }

const minInspectEvery = 2 * time.Second
