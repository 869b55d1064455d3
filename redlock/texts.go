package redlock

import (
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// texts are arguments of commands that are nearly always the same.
type texts struct {
	ttl     time.Duration // the Quorum's
	ttlText string
	turn    string // for leases with that TTL
	queue   string // for how long a queue lives that a member joins with that TTL
	skew    string
	channel string // what the names of channels begin with
}

func (c *config) texts() texts {
	return texts{
		ttl:     c.lease.ttl,
		ttlText: milliseconds(c.lease.ttl),
		turn:    milliseconds(c.turn(c.lease.ttl)),
		queue:   milliseconds(queueLives * c.lease.ttl),
		skew:    strconv.FormatInt(c.clockSkew.Microseconds(), 10),
		channel: wire.Channels(c.prefix),
	}
}

// skewText is the clock skew in microseconds.
func (q *Quorum) skewText() string {
	if q.cfg.skew() == q.cfg.clockSkew {
		return q.texts.skew
	}
	return strconv.FormatInt(q.cfg.skew().Microseconds(), 10)
}

// milliseconds is the TTL of a lease.
func (t *texts) milliseconds(ttl time.Duration) string {
	if ttl == t.ttl {
		return t.ttlText
	}
	return milliseconds(ttl)
}

// queueLifetime is for how long a queue lives after the last that joined it or asked.
func (t *texts) queueLifetime(ttl time.Duration) string {
	if ttl == t.ttl {
		return t.queue
	}
	return milliseconds(queueLives * ttl)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
