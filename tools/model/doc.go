// Package model checks the lease protocol of package redlock by visiting every state of a small
// model of it: two or three attempts to hold one lease on three to five nodes, with messages that
// are late or lost, nodes that crash and come back empty, and clocks that are off by as much as
// they may be. It also takes rules away, one at a time, and sees what breaks. testdata/searches.md
// has what a run finds.
//
// # Time
//
// Time passes in ticks, for everybody at once; what happens between two ticks happens in any order.
// That clocks run at different rates is in three numbers. A key expires at its TTL or up to Drift
// ticks earlier, at the moment that is worst; a lease is relied on for Validity, which is the TTL
// less Drift; a restarted node votes after Gate ticks, which stands for what is left of the
// quarantine when it is measured by a fast clock. Clocks that err to the other side only keep
// others out longer.
//
// # Messages
//
// Commands from one attempt to one node run in the order in which they were sent, after any time or
// never. A client decides with some of the answers that were given by then; the others are late or
// lost. So there is no step for the receipt of an answer, none for a command that is refused (it
// might as well be in flight for ever), and one for a command that is lost only where another is
// waiting behind it. A lease sends each node one extension in a tick at most, and at most two are
// in flight there: a second only when the connection of the first has broken, whose answer is then
// not heard.
//
// What a node answers to an extension is a proof, from the sending on, or ends one. It is heard at
// once or never. That it is heard late is among what happens then: until it is heard the lease has
// less, and afterwards the same. A defect for which that does not hold is searched with a step for
// hearing, and so is everything in the test of the reductions.
//
// An attempt that stays in a split vote asks nodes again with the same owner value. Because a
// refused command is as good as one in flight, that adds something only where the first one was
// granted or lost: with AsksOn an attempt sends a node another acquire at any moment before it has
// its quorum, and two of them may be in flight. The pauses and the ranking of rivals decide when
// the code does that, which is of no account here.
//
// # Crashes
//
// A node crashes and comes back, empty, in one step: while it is down nothing reaches it and nobody
// sees what it has, which is the same as nothing reaching it for a while. What was in flight to it
// is lost, or what was not written yet is sent to it anew; answers it gave are not lost.
//
// # Generations
//
// A node runs whatever reaches it. A client counts what it has done where the command was sent when
// the node had been up for the quarantine, and no crash came between. Vouching is no step: a client
// vouches as soon as it can, because an answer that counts may be ignored. What does not count is
// carried out all the same, and found later.
//
// # Tokens
//
// Tokens, counters and clocks are relative to now and are forgotten when they are too low to
// matter, so that time needs no end; token.go says why that changes nothing. The model of leases
// alone leaves tokens and the second round out, and has no limit on attempts, restarts, extensions
// or time: it is finite by itself. With tokens, attempts and restarts are limited.
//
// # What is not modelled
//
// Losing the counters of a running node (FLUSHALL), a server's wall clock that jumps, the minimum
// and maximum hold, waiting, replicas, and everything that is code and not protocol: the
// model shows that the rules are enough, not that package redlock keeps them. A command that
// arrives after the release that followed it is modelled where Unordered says so.
//
// # The search
//
// Breadth first, so a counterexample is a shortest one, with all processors. A state is stored as a
// hash of 128 bits; states that differ only in the names of nodes or attempts are one. Two tests
// repeat small searches without that and without the other reductions.
package model
