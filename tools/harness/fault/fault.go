// Package fault is the vocabulary of what the nemesis does: kinds of faults, and what they strike.
package fault

import "time"

// Kind is what happens. Those of clients are in the plans of the programs, which treat clients
// differently.
type Kind string

// The kinds of faults; what comes then, comes when the fault is over. Those of links strike the
// connections of one side of the clients, or of both, to a server.
const (
	RestartKeep  Kind = "restart-keep"  // server: SIGKILL, then started again with its data
	RestartEmpty Kind = "restart-empty" // server: SIGKILL, then started again without its data
	FreezeServer Kind = "freeze-server" // server: SIGSTOP, then SIGCONT
	ScriptFlush  Kind = "script-flush"  // server: SCRIPT FLUSH
	FlushAll     Kind = "flushall"      // server: FLUSHALL while it runs
	ClockForward Kind = "clock-forward" // server: its wall clock jumps forward, then back
	ClockBack    Kind = "clock-back"    // server: its wall clock jumps back, then forward

	Cut          Kind = "cut"           // link: connections are closed and new ones refused
	BlackHole    Kind = "black-hole"    // link: nothing arrives in either direction
	DropRequests Kind = "drop-requests" // link: what clients send is lost
	DropReplies  Kind = "drop-replies"  // link: requests arrive, what the server answers is lost
	Latency      Kind = "latency"       // link: both directions are delayed
	Bandwidth    Kind = "bandwidth"     // link: both directions are narrow
	SlowClose    Kind = "slow-close"    // link: the end of a connection is delayed
)

// OnLink reports whether the kind strikes links.
func (k Kind) OnLink() bool {
	switch k {
	case Cut, BlackHole, DropRequests, DropReplies, Latency, Bandwidth, SlowClose:
		return true
	}
	return false
}

// Side selects clients: they reach the servers by two sets of links.
type Side int

// The sides. Clients with even numbers are on the left.
const (
	Both Side = iota
	Left
	Right
)

func (s Side) String() string { return [...]string{"both sides", "left", "right"}[s] }

// SideOf is the side of a client.
func SideOf(client int) Side { return Left + Side(client%2) }

// Fault is what happens to servers or to links to them.
type Fault struct {
	Kind   Kind
	Nodes  []int         // servers, counted from zero
	Side   Side          // for faults of links
	Amount time.Duration // of a jump, of a latency, or the delay of a close
	Rate   int           // KB/s
}
