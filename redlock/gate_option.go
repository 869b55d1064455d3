package redlock

import "time"

// WithMaxTTL declares the longest TTL that this process uses for a lease under the prefix. Default:
// the Quorum's TTL. At most 24 hours. A lease with a longer TTL is refused. A server that was
// restarted, or whose clock jumped, has no vote for that TTL and the clock skew: until every lease
// that it may have forgotten is over.
//
// Processes of a prefix tell each other by way of the nodes. Each uses the longest TTL that any of
// them says, from its next look at a server on (2 to 10 s later). So a deploy may raise or lower
// it, and a process needs this option only if the WithTTL of one of its leases is above its
// Quorum's. Where that is not enough, as docs/guarantees.md says, give the option to all processes.
func WithMaxTTL(ttl time.Duration) Option {
	return quorumOption(func(c *config) error {
		c.maxTTL = ttl
		return refuse(ttl < MinTTL || ttl > maxMaxTTL, "WithMaxTTL", "%v is not between %v and %v", ttl, MinTTL, maxMaxTTL)
	})
}

// checkTTL warns, once, if a holder has a longer TTL than any process is known to use: a restarted
// server might vote too early for it. The TTLs of a process are known after a look at a server, if
// its version of this library declares them.
func (q *Quorum) checkTTL(holder Holder) {
	if holder.TTL > q.cfg.longestTTL() && holder.TTL <= maxMaxTTL {
		q.news.is(matter{trouble: longLease}, "", holder.Key, "holder", holder.Identity, "ttl", holder.TTL, "max_ttl", q.cfg.longestTTL())
	}
}

// maxMaxTTL bounds for how long a restarted server has no vote.
const maxMaxTTL = 24 * time.Hour

// WithClockSkew declares how far the wall clocks of the servers may be apart. Default
// DefaultClockSkew. At least 1 ms and at most one minute. Each process uses the largest that any of
// the prefix says, as with WithMaxTTL. Three things depend on it:
//   - A restarted server stays out for as much longer, so that fencing tokens keep their order
//     after it has lost its counters.
//   - A replica whose clock is ahead of the servers' by more than the skew and a second runs no
//     ticks, and its Scheduler does not lead (CheckClock).
//   - A server whose clock differs from the median by more is named, see ConditionClockWrong.
//
// Do not set it below what the clocks keep to in truth: replicas would stop.
func WithClockSkew(d time.Duration) Option {
	return quorumOption(func(c *config) error {
		c.clockSkew = d
		return refuse(d < time.Millisecond || d > time.Minute, "WithClockSkew", "%v is not between 1ms and 1m", d)
	})
}

// WithoutRestartGate lets a server vote as soon as it answers, however recently it was started. It
// is right for servers that write every change to disk before they answer (appendonly yes,
// appendfsync always) and are always started with what they wrote. With servers that come back
// without their data two leases on a key can be live at once.
func WithoutRestartGate() Option {
	return quorumOption(func(c *config) error { c.restartGate = false; return nil })
}

// WithReplicas accepts nodes that have replicas or were replicas. Replication is asynchronous, so a
// promoted replica may lack leases that its master granted. It is kept from voting as a restarted
// server is. One case remains: a master is demoted and promoted again, without a restart, between
// two looks of this client at its role. Looks are a TTL apart (two to ten seconds, and longer while
// the server is out of reach). Until the second look the server votes.
//
// A client that starts after a promotion knows of it from the server alone, which says so
// (master_replid2) until repl-backlog-ttl after its last replica left. Set repl-backlog-ttl to 0,
// which means for ever, or above the quarantine. Its default is an hour.
//
// A client that was there before the promotion goes by the replication id. The id changes also when
// a server gets its first replica, and repl-backlog-ttl after it lost the last. That costs the
// server's vote for a quarantine, too. Leases that are held go on.
func WithReplicas() Option {
	return quorumOption(func(c *config) error { c.acceptReplicas = true; return nil })
}
