// Package redlock holds leases on keys over a quorum of independent Valkey (or Redis) masters,
// after the Redlock algorithm
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
//
// A lease is held while a majority of the nodes has its key. It is extended in the background until
// it is released, and its context ends at the deadline at the latest, so the holder knows of a loss
// before another can hold the key. Quorum.Do acquires, works and releases; TryAcquire and Acquire
// return the Lease itself:
//
//	q, err := redlock.Open([]string{"valkey://a", "valkey://b", "valkey://c"}, redlock.WithPrefix("billing"))
//	...
//	err = q.Do(ctx, "reports/nightly", func(ctx context.Context, l *redlock.Lease) error {
//		return build(ctx, l.FencingToken()) // ctx ends with the caller's and with the lease
//	})
//
// The prefix is the service's name. Services with different prefixes do not
// see each other's keys, so no service has to know the names of another.
//
// # States
//
//	             a quorum grants in time
//	TryAcquire ─────────────────────────▶ held ──── Release ────────────────▶ released
//	Acquire  │                            │  ▲
//	         │ held by another,           │  │ an extension succeeds
//	         │ no quorum, timeout,        └──┘ before the deadline
//	         ▼ ctx ended                  │
//	       error                          ├──── deadline passes ────────────▶ lost (deadline)
//	       (granted parts                 ├──── a quorum no longer has it ──▶ lost (refused)
//	       are rolled back)               └──── Quorum.Close ───────────────▶ lost (closed)
//
// Released and lost are final. The lease's context is cancelled on the way out of held, before
// anything else happens, with ErrReleased or a *LostError as its cause.
//
// # Rules
//
//   - An operation goes to all nodes at once and ends as soon as its outcome is certain. A node that
//     is slow or gone costs at most its own timeout, and only if its answer would decide.
//   - A lease is extended every third of its TTL. After a failure it is tried again after a
//     twentieth, and then later each time, until the deadline. A node that lost the key gets it back.
//   - The deadline is the TTL after the lease was asked for, less one percent for clocks that run at
//     different rates and 2 ms. No decision depends on a client's wall clock.
//   - A process that was paused may act after its lease has ended. A resource can refuse that, by a
//     fencing token (Lease.FencingToken) smaller than the largest that it has seen.
//   - A server that was restarted, or whose clock jumped forward, has no vote until every lease that
//     it may have forgotten has expired: WithMaxTTL, WithClockSkew and a little later. Nodes with
//     replicas, and the same server twice, are refused. Quorum.Nodes and the log say why, with a
//     *ConditionError.
//   - A process that begins with other nodes than the running processes have is refused.
//
// # The guarantee
//
// At most one lease on a key is live, provided that all processes use the same nodes, database
// number and prefix, that clocks run at the same rate within the drift allowance, that the nodes of
// a lease keep its key for as long as they run (no FLUSHALL, no eviction), and that no server's
// wall clock jumps forward unseen. Acquiring and keeping a lease needs a quorum within reach.
// docs/guarantees.md has the reasons, and what the guarantee does not cover.
package redlock
