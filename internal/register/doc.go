// Package register keeps what nodes must not forget: a value under a key, of at most MaxValue
// bytes, which the holder of a lease reads and writes on a quorum. Three things outlive a lease
// this way: which ticks were run, what is paused, and who took an order.
//
// It is the read-modify-write register of Paxos (CASPaxos) whose ballots are the fencing tokens of
// leases. The lease makes it live, as there is one writer at a time. It is right without: a holder
// whose lease has ended may act at any time, and so may two holders at once. A node promises a
// ballot when that reads, and takes no write of a lower one from then on.
//
// A use is: acquire a lease; Begin, which reads; decide; Write; and act once Write has returned
// nil. Each further Write of the same Turn needs no read.
//
//	t, states, err := register.Of(q, "ticks/report", day).Begin(ctx, lease, pause)
//	...
//	err = t.Write(ctx, granted) // nil: a quorum has it, and whoever reads later sees it
//
// Whoever only wants to know reads without a lease (Read), which promises nothing and disturbs no
// holder. What it returns may be out of date when it arrives.
//
// Nodes forget: a server that was restarted or emptied does not know a register any more, and has
// no vote for it until it was restored from the others. A Begin, a Write and a Read restore what
// they meet; Keep restores what nobody asks for. docs/reference.md has the format, and the model of
// tools/model has every rule, with what happens without it.
package register
