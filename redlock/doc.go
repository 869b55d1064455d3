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
// # A round
//
// Every operation goes to all nodes at once and ends as soon as its outcome is certain. A node that
// is slow or gone costs at most its own timeout, and only if its answer would decide. On each node
// the commands for a key run in the order in which they were sent; a release follows its
// acquisition, also when the acquisition has been given up.
//
// The validity of a lease counts from the start of the round that set its keys: the TTL, less one
// percent for clocks that run at different rates and 2 ms for their resolution. Time is measured on
// a clock that neither steps nor stands still while the machine is suspended. Expiry on the servers
// is always relative (PX); no decision depends on a client's wall clock.
//
// # Extending
//
// A lease is extended every third of its TTL, all leases of a Quorum together, by one goroutine and
// one batch a node. A failed extension is repeated every twentieth of the TTL until the deadline. A
// node that lost the key gets it back while the lease is valid. A restarted node gets it back when
// it votes again. If a quorum of nodes answers that it does not have the key, the lease is lost at
// once.
//
// # Fencing tokens
//
// A process can be paused between asking whether it holds a lease and acting on the answer. No lock
// can keep it from acting late. A resource can, if it refuses a fencing token (Lease.FencingToken)
// smaller than the largest it has seen. Tokens come from counters on each node, which keys share,
// and a lease's token is agreed by a quorum of them. Tokens rise, with gaps. Counters live for a
// day after their last use and restart above their past.
//
// # The restart gate
//
// A server that comes back without its data has forgotten the leases it granted, and its vote could
// give a second holder a quorum. It gets no vote until every lease that it may have forgotten has
// expired: the longest TTL (WithMaxTTL) and the clock skew (WithClockSkew) after its start. The
// command that acquires is bound to one server process, so no reconnection goes unnoticed. The same
// rule keeps out a server whose clock jumped forward. Such a node is reported as a *ConditionError,
// in the log and by Nodes; nodes with replicas and the same server twice are refused.
//
// # The guarantee
//
// At most one lease on a key is live, provided that all processes use the same nodes, database
// number and prefix at any time, that clocks run at the same rate within the drift allowance, that
// the nodes of a lease keep its key for as long as they run, and that no server's wall clock jumps
// forward unseen by more than the drift allowance, because key expiry uses it. Acquiring and
// keeping a lease needs a quorum within reach.
//
// A process that begins with other nodes than those that run is refused: its nodes do not vote
// (ConditionAnotherList, ConditionSeveralServers). One that runs already goes on, and is warned.
// docs/guarantees.md says what is not seen.
//
// The library does not detect a running server that loses its data (FLUSHALL, eviction). Nor does
// it detect a clock that jumped before the first look of this process, or by less than the drift
// allowance of the time between two looks (docs/guarantees.md).
package redlock
