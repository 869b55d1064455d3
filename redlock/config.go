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
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// config is a Quorum's configuration.
type config struct {
	prefix       string
	prefixed     bool // the prefix was given
	drift        float64
	nodeTimeout  time.Duration // zero means that it follows the TTL
	logger       *slog.Logger
	tracers      tracers
	certificates func(url string, o *valkey.ClientOption) // of FromEnv; called before clientOption
	clientOption func(url string, o *valkey.ClientOption)
	lease        leaseConfig
	named        bool // by WithIdentity

	maxTTL         time.Duration // longest TTL of any lease under the prefix
	clockSkew      time.Duration
	others         limits // of other processes
	restartGate    bool
	acceptReplicas bool

	plain   *leaseConfig // of a lease without options
	channel string       // what the names of channels begin with
}

// leaseConfig is the part of the configuration that may differ from lease to lease.
type leaseConfig struct {
	ttl      time.Duration
	interval time.Duration // as given; zero means TTL/3, or for a lease the Quorum's
	minHold  time.Duration
	manual   bool
	identity string
	payload  string

	// Arguments of commands, in ms.
	ttlText string
	turn    string // for how long a key is reserved for a waiter that is called
	queue   string // for how long a queue lives after a waiter last joined it or asked
}

func newConfig(opts []Option) (*config, error) {
	c := &config{
		prefix:      DefaultPrefix,
		drift:       DefaultDrift,
		logger:      slog.Default(),
		lease:       leaseConfig{ttl: DefaultTTL},
		clockSkew:   DefaultClockSkew,
		others:      limits{all: make(map[int][2]time.Duration)},
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
	c.channel = wire.Channels(c.prefix)
	err := c.lease.check(c)
	if err == nil {
		c.plain, err = c.forLease(nil)
	}
	return c, err
}

// forLease returns the configuration of a lease with these options. It is not changed any more:
// leases without options share one.
func (c *config) forLease(opts []LeaseOption) (*leaseConfig, error) {
	if len(opts) == 0 && c.plain != nil {
		return c.plain, nil
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

// derive computes what the options have not set.
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
	_, reserves := wire.ReservedFor(identity)
	control := strings.IndexFunc(identity, isControl)
	return cmp.Or(
		refuse(identity == "" || len(identity) > MaxIdentityLength, "WithIdentity", "must be 1 to %d bytes, not %d", MaxIdentityLength, len(identity)),
		refuse(control >= 0, "WithIdentity", "contains the control character %.1q", identity[max(control, 0):]),
		refuse(reserves, "WithIdentity", "%.40q begins as the text does by which a node keeps a key for a waiter: others would read another name", identity),
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

// longestTTL is the longest TTL of any lease under the prefix, as far as is known.
func (c *config) longestTTL() time.Duration {
	ttl, _ := c.others.longest(0)
	return max(c.maxTTL, ttl)
}

// limits has, for each node, the longest TTL and the largest skew that processes of the prefix
// declare there. It is safe for concurrent use.
type limits struct {
	mu  sync.Mutex
	all map[int][2]time.Duration // guarded by mu
}

// learn records what a node says.
func (l *limits) learn(node int, ttl, skew time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[node] = [2]time.Duration{ttl, skew}
}

// longest returns the longest TTL (which is 0) or the largest skew (which is 1), and a node that
// says it.
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

// longer says why the quarantine is longer than this process needs, and names a node that says so;
// empty if it is not longer.
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

// skew is how far the servers' clocks may be apart, by the largest declaration that is known.
func (c *config) skew() time.Duration {
	skew, _ := c.others.longest(1)
	return max(c.clockSkew, skew)
}

// quarantine is how long a server process must have been up before it votes. It has the longest
// TTL, so that every lease that the server has forgotten is over, and the allowance for clock skew,
// so that the server's next token is above every token that it has forgotten. Both are counted by a
// clock that may be fast by the drift. A second is added because INFO rounds start and present down
// to whole seconds.
//
// Twice the skew takes the place of a TTL that is shorter. A token may be a skew above the median
// of the servers' clocks when it is granted, and the next one a skew below it, see
// docs/guarantees.md.
func (c *config) quarantine() time.Duration { return c.quarantineFor(c.longestTTL(), c.skew()) }

// quarantineFor is the quarantine for a longest TTL and a skew.
func (c *config) quarantineFor(ttl, skew time.Duration) time.Duration {
	longest := max(ttl, 2*skew) + skew
	seconds := math.Ceil((float64(longest)*(1+c.drift) + float64(driftFloor)) / float64(time.Second))
	return time.Duration(seconds+1) * time.Second
}

// sampleEvery is the longest time between two looks at a server's clock. Within the Quorum's TTL a
// jump stands out that is as large as the drift allowance of a lease with that TTL. The allowance
// of a lease with a shorter TTL is smaller, see docs/guarantees.md.
func (c *config) sampleEvery() time.Duration { return min(c.lease.ttl, node.MaxSampleEvery) }

// inspectEvery is the time between two questions to a server that votes for its process, role and
// policy. A server that is demoted and promoted again between two of them is not noticed.
func (c *config) inspectEvery() time.Duration { return max(c.sampleEvery(), minInspectEvery) }

const minInspectEvery = 2 * time.Second
