// Package schedule decides which faults happen when. A seed determines all of it: kinds, targets, times and amounts.
package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Kind is what happens.
type Kind string

// The kinds of faults. Those of links strike the connections of one side of the clients, or of both, to a server.
const (
	RestartKeep  Kind = "restart-keep"  // server: SIGKILL, and started again with its data when the fault is over
	RestartEmpty Kind = "restart-empty" // server: SIGKILL, and started again without its data
	FreezeServer Kind = "freeze-server" // server: SIGSTOP, then SIGCONT
	ScriptFlush  Kind = "script-flush"  // server: SCRIPT FLUSH
	FlushAll     Kind = "flushall"      // server: FLUSHALL while it runs
	ClockForward Kind = "clock-forward" // server: its wall clock jumps forward, and back when the fault is over
	ClockBack    Kind = "clock-back"    // server: its wall clock jumps back, and forward when the fault is over

	Cut          Kind = "cut"           // link: connections are closed and new ones refused
	BlackHole    Kind = "black-hole"    // link: nothing arrives in either direction
	DropRequests Kind = "drop-requests" // link: what clients send is lost
	DropReplies  Kind = "drop-replies"  // link: requests arrive, what the server answers is lost
	Latency      Kind = "latency"       // link: both directions are delayed
	Bandwidth    Kind = "bandwidth"     // link: both directions are narrow
	SlowClose    Kind = "slow-close"    // link: the end of a connection is delayed

	KillClient   Kind = "kill-client"   // client: SIGKILL, and a new process when the fault is over
	KillHolder   Kind = "kill-holder"   // the same, of the client that holds a key
	FreezeClient Kind = "freeze-client" // client: SIGSTOP, then SIGCONT
	FreezeHolder Kind = "freeze-holder" // the same, of the client that holds a key
)

// Side selects clients: they reach the servers by two sets of links.
type Side int

// The sides. Clients with even numbers are on the left.
const (
	Both Side = iota
	Left
	Right
)

func (s Side) String() string { return [...]string{"both sides", "left", "right"}[s] }

// Fault is one thing that happens.
type Fault struct {
	At     time.Duration // from the start
	For    time.Duration // until it is put right; zero for what needs no putting right
	Kind   Kind
	Nodes  []int         // servers, for faults of servers and links
	Side   Side          // for faults of links
	Client int           // for KillClient and FreezeClient
	Key    int           // for KillHolder and FreezeHolder
	Amount time.Duration // of a jump, of a latency, or the delay of a close
	Rate   int           // KB/s
	Part   string        // of which episode, if of any
}

// OnLink reports whether the kind strikes links.
func (k Kind) OnLink() bool {
	switch k {
	case Cut, BlackHole, DropRequests, DropReplies, Latency, Bandwidth, SlowClose:
		return true
	}
	return false
}

// OnClient reports whether the kind strikes clients.
func (k Kind) OnClient() bool {
	switch k {
	case KillClient, KillHolder, FreezeClient, FreezeHolder:
		return true
	}
	return false
}

func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8.3fs  %-14s ", f.At.Seconds(), f.Kind)
	switch f.Kind {
	case KillClient, FreezeClient:
		fmt.Fprintf(&b, "client %d", f.Client)
	case KillHolder, FreezeHolder:
		fmt.Fprintf(&b, "holder of key %d", f.Key)
	default:
		b.WriteString("server")
		for _, n := range f.Nodes {
			fmt.Fprintf(&b, " %d", n+1)
		}
	}
	if f.Kind.OnLink() {
		fmt.Fprintf(&b, ", %s", f.Side)
	}
	if f.Amount != 0 {
		fmt.Fprintf(&b, ", by %s", f.Amount)
	}
	if f.Rate != 0 {
		fmt.Fprintf(&b, ", to %d KB/s", f.Rate)
	}
	if f.For != 0 {
		fmt.Fprintf(&b, ", for %s", f.For)
	}
	if f.Part != "" {
		fmt.Fprintf(&b, "  (%s)", f.Part)
	}
	return b.String()
}
