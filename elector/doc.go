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
// A candidate waits until the leader resigns or a dead leader's lease expires. Either wakes it.
// Otherwise it asks the nodes about once a TTL.
//
// A leader's lease is extended every third of its TTL. A replica is the leader while its IsLeader
// returns nil. IsLeader compares the clock at the call, so it is right even if a message or a
// goroutine is late.
//
// # The trust window
//
// The trust window lasts from the last successful extension to the lease's deadline, which is the
// TTL less the allowance for drift. In it this replica may act as the leader without asking any
// node, because no other replica can be elected. The term's context ends at the deadline at the
// latest. If lead has not looked at its context and goes on after that, it may overlap with the
// next leader. The gap between the deadline and the expiry of the keys, one percent of the TTL and
// 2 ms, is for clocks and not for work. A resource that must have one writer takes Term.Number with
// each write, and refuses smaller numbers.
//
// # Seen from outside
//
// A replica writes to the nodes, for people to read, when its terms begin and end, that it is a
// candidate, and since when it leads. It also takes an operator's order to resign its term. See
// WithoutHistory, WithoutCard and WithoutOrders. None of that decides which replica leads, and no
// term waits for it. A process that is no candidate follows the leader with Observe.
//
// # When things fail
//
//   - The leader's process dies: its lease expires within a TTL of its last extension, and a
//     candidate is elected within milliseconds of the expiry.
//   - The leader loses a minority of the nodes: nothing happens.
//   - The leader loses a quorum: it tries to extend until the deadline; then its context ends and
//     it is a candidate again. No replica leads until a quorum is back.
//   - The leader is partitioned from the other replicas, which have a quorum: its term ends in the
//     same way. One of the others is elected after the deadline, when the keys have expired.
//   - The process is paused or suspended: its first call of IsLeader says that it no longer leads.
//   - lead does not return: the lease is left to run out, so that another replica can be elected
//     after the deadline. This replica does not campaign before lead has returned, and Healthy
//     reports it.
package elector
