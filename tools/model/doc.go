// Package model checks the lease protocol of package redlock by visiting every state of a small
// model of it. Two or three attempts try to hold one lease on three to five nodes. Messages are
// late or lost, nodes crash and come back empty, and clocks are off by as much as they may be. The
// package also takes rules away, one at a time, and shows what breaks. testdata/searches.md has the
// results of a run.
//
// # Time
//
// Time passes in ticks, which are the same for all nodes and clients. Between two ticks, events
// happen in any order. Three numbers stand for clocks that run at different rates. A key expires at
// its TTL or up to Drift ticks earlier, at the worst moment. A lease is relied on for Validity,
// which is the TTL less Drift. A restarted node votes after Gate ticks, which is the quarantine as
// a fast clock measures it. Clocks that err to the other side only keep others out longer.
//
// # Messages
//
// Commands from one attempt to one node run in the order in which they were sent, after any time or
// never. A client decides with some of the answers that were given by then; the others are late or
// lost. So there is no step for the receipt of an answer. There is none for a command that is
// refused either, because it might as well be in flight for ever. A command that is lost has a step
// only if another one waits behind it. A lease sends each node at most one extension in a tick. At
// most two are in flight to a node: a second one only if the connection of the first has broken,
// and then the answer to the first is not heard.
//
// A node's answer to an extension is a proof, from the sending on, or ends one. It is heard at once
// or never. A step for hearing it late would add nothing: until then the lease has less, and
// afterwards the same. A defect for which that does not hold is searched with a step for hearing,
// and so is everything in the test of the reductions.
//
// An attempt that stays in a split vote asks nodes again with the same owner value and the same
// proposal. A refused command is as good as one in flight, so asking again matters only where the
// first command was granted or lost. With AsksOn an attempt sends a node another SET and ZADD at
// any moment before it has its quorum, and two of each may be in flight. The pauses and the ranking
// of rivals decide when the code does that, which does not matter here.
//
// # Crashes
//
// A node crashes and comes back, empty, in one step. A node that is down is the same as a node that
// nothing reaches for a while. A command in flight to the node is lost, or, if it was not written
// yet, is sent to it anew. Answers that the node gave are not lost.
//
// # Generations
//
// A node runs every command that reaches it. A client counts the answer if the node had been up for
// the quarantine when the command was written, and did not crash in between. A command may be
// written long after its attempt began. So the model counts the answer if the node has been up for
// the quarantine when it runs the command, which is more than the code counts. A command that does
// not count is carried out all the same, and its effect is found later.
//
// # Tokens
//
// An attempt proposes one token, drawn when it begins: at least the median of the servers' clocks
// as the client knows it, or one more than the largest counter that it has seen. It may have seen
// counters or not. A node sets the key and then raises its counter to the proposal; other commands
// may come between, and the second may be lost, as if they were no script. A node that granted and
// then raised its counter, strictly, is one of the quorum that the token needs. If fewer have, or
// the clocks demand more by the time of the grant, a second round proposes more to nodes that
// granted. It raises their counters whoever has the key there. All of that counts until the proofs
// of the acquisition end; a second round gives none.
//
// Tokens, counters and clocks are relative to now and are forgotten when they are too low to
// matter, so that time needs no end; token.go says why that changes nothing. The model of leases
// alone leaves out tokens and the second round. It has no limit on attempts, restarts, extensions
// or time, and is finite by itself. With tokens, attempts and restarts are limited. Raises that
// cannot count are no steps, see dropRaises; one of an attempt that has ended is then not seen.
//
// # What is not modelled
//
// The model leaves out the loss of the counters of a running node (FLUSHALL), a server's wall clock
// that jumps, the minimum and maximum hold, waiting, and replicas. It also leaves out everything
// that is code and not protocol: it shows that the rules are enough, not that package redlock keeps
// them. A command that arrives after the release that followed it is modelled where Unordered says
// so.
//
// # The search
//
// The search goes breadth first, so a counterexample is a shortest one, and uses all processors. A
// state is stored as a hash of 128 bits. States that differ only in the names of nodes or attempts
// are one state. Two tests repeat small searches without that and without the other reductions.
package model
