// Package elector elects one leader among replicas, on a quorum lease of package redlock.
//
//	e, err := elector.New(q, "webhook-sender")
//	...
//	err = e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
//		return send(ctx, term.Number()) // until ctx ends
//	})
//
// # The life of a replica
//
//	         ┌──────────────────────────── pause ◀─────────────────────────────┐
//	         ▼                                                                  │
//	Run ─▶ candidate ── lease acquired ─▶ leader ── ctx ends, Resign, ─▶ draining ── lead returned ─▶ released
//	         ▲                             │          lead returns         │                          (resigned)
//	         │                             │                               │ drain timeout
//	         │                             │ lease lost                    ▼
//	         └──── lead returned ◀─────────┴───── (lost) ◀───────── lease runs out
//
// A candidate waits. The resignation of the leader wakes it, or the expiry of a dead leader's
// lease. Otherwise it asks about once a TTL.
//
// A leader's lease is extended every third of its TTL. A replica leads while its IsLeader says so.
// IsLeader compares the clock at the call, so no message and no goroutine has to arrive in time for
// it to be right.
//
// # The trust window
//
// Between the last successful extension and the lease's deadline (its TTL less the allowance for
// drift) this replica may act as the leader without asking any node. No other replica can be
// elected in that time. The term's context ends at the deadline at the latest. If lead goes on
// after that, because it has not looked at its context yet, it may overlap with the next leader:
// the gap between the deadline and the expiry of the keys, one percent of the TTL and 2 ms, is for
// clocks and not for work. A resource that must have one writer takes Term.Number with each write,
// and refuses smaller numbers.
//
// # Seen from outside
//
// A replica tells people on the nodes when its terms begin and end, that it is a candidate and
// since when it leads, and takes an operator's order to resign its term; see WithoutHistory,
// WithoutCard and WithoutOrders. None of that decides who leads, and no term waits for it. A
// process that is no candidate sees who leads with Observe.
//
// # When things fail
//
//   - The leader's process dies: its lease expires within a TTL of its last extension, and a
//     candidate is elected within milliseconds of that.
//   - The leader loses a minority of the nodes: nothing happens.
//   - The leader loses a quorum: it tries to extend until the deadline; then its context ends and
//     it is a candidate again. No replica leads until a quorum is back.
//   - The leader is partitioned from the others, which have a quorum: as before, and one of the
//     others is elected after the deadline, when the keys have expired.
//   - The process is paused or suspended: at its first question it learns that it no longer leads.
//   - lead does not return: the lease is left to run out, so that another can be elected when the
//     deadline has passed. This replica does not campaign before lead has returned, and Healthy
//     reports it.
package elector
