package redlock

import "time"

// WithMaxTTL declares the longest TTL that this process uses for a lease under the prefix. A server
// that was restarted, or whose clock jumped, is kept from voting for that long and the clock skew:
// until every lease that it may have forgotten is over. Default: the Quorum's TTL. A lease with a
// longer TTL is refused. At most 24 hours.
//
// Processes of a prefix tell each other by way of the nodes, and each uses the longest that any of
// them says, from its next look at a server on (2 to 10 s later). So a deploy may raise or lower
// it, and only a process with leases whose WithTTL is above its Quorum's needs it. Where that is
// not enough, as docs/guarantees.md says, give it to all processes.
func WithMaxTTL(ttl time.Duration) Option {
	return quorumOption(func(c *config) error {
		c.maxTTL = ttl
		return refuse(ttl < MinTTL || ttl > maxMaxTTL, "WithMaxTTL", "%v is not between %v and %v", ttl, MinTTL, maxMaxTTL)
	})
}

// checkTTL warns, once, of a process that uses a longer TTL than any is known to: a restarted
// server might vote too early for it. It is known after a look at a server, if it is of a version
// that says so.
func (q *Quorum) checkTTL(holder Holder) {
	if holder.TTL > q.cfg.longestTTL() && holder.TTL <= maxMaxTTL {
		q.news.is(matter{trouble: longLease}, "", holder.Key, "holder", holder.Identity, "ttl", holder.TTL, "max_ttl", q.cfg.longestTTL())
	}
}

// maxMaxTTL keeps a restarted server from being useless for ever.
const maxMaxTTL = 24 * time.Hour

// WithClockSkew declares how far the wall clocks of the servers may be apart. Three things depend
// on it. A restarted server stays out for as much longer, so that fencing tokens keep their order
// after it has lost its counters. A replica whose clock is ahead of the servers' by more than the
// skew and a second runs no ticks, and its Scheduler does not lead (CheckClock). And a server whose
// clock differs from the median by more is named, see ConditionClockWrong. So do not set it below
// what the clocks keep to in truth: replicas would stop. Each process uses the largest that any of
// the prefix says, as with WithMaxTTL. Default DefaultClockSkew. At most one minute.
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
// promoted replica may lack leases that its master granted; it is kept from voting as a restarted
// server is. What remains is a master that is demoted and promoted again, without a restart,
// between two looks of this client at its role, which are a TTL apart (two to ten seconds, and
// longer while it is out of reach): until the second it votes.
//
// A client that starts after a promotion knows of it from the server alone, which says so
// (master_replid2) until repl-backlog-ttl after its last replica left. Set that to 0, which means
// for ever, or above the quarantine. The default is an hour.
//
// A client that was there goes by the replication id. That changes also when a server gets its
// first replica, and repl-backlog-ttl after it lost the last, which costs its vote for a
// quarantine, too. Leases that are held go on.
func WithReplicas() Option {
	return quorumOption(func(c *config) error { c.acceptReplicas = true; return nil })
}
