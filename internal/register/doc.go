// Package register keeps a value under a key on a quorum of nodes, of at most MaxValue bytes. The
// holder of a lease reads and writes it, and it outlives the lease. Registers hold which ticks were
// run, what is paused, and which process took an order.
//
// A register is the read-modify-write register of Paxos (CASPaxos), with the fencing tokens of
// leases as its ballots. The lease makes it live, because it leaves one writer at a time. Safety
// does not need the lease: a holder whose lease has ended may act at any time, and two holders may
// act at once. A node that is read with a ballot promises it, and refuses writes of lower ballots
// from then on.
//
// To use one: acquire a lease; call Begin, which reads; decide; call Write; act once Write has
// returned nil. Each further Write of the same Turn needs no read.
//
//	t, states, err := register.Of(q, "ticks/report", day).Begin(ctx, lease, pause)
//	...
//	err = t.Write(ctx, granted) // nil: a quorum has it, and every later read sees it
//
// Read needs no lease. It promises nothing and disturbs no holder, and its result may be out of
// date when it arrives.
//
// Nodes forget: a server that was restarted or emptied no longer knows a register, and has no vote
// for it until it was restored from the others. Begin, Write and Read restore the registers that
// they touch; Keep restores the others. docs/reference.md has the format. The model in tools/model
// has every rule, and what happens without it.
package register
