// Package plan decides which faults happen when. A seed determines all of it: kinds, targets, times
// and amounts.
package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is what happens.
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

	Kill       Kind = "kill"         // client: SIGKILL, and a new process when the fault is over
	Freeze     Kind = "freeze"       // client: SIGSTOP, then SIGCONT
	Roll       Kind = "roll"         // client: stopped in order, and a new process as soon as it has ended
	RollAtTick Kind = "roll-at-tick" // the same, a moment before or after a beat of the jobs (Beat), by its clock

	KillHolder   Kind = "kill-holder"   // Kill of the client that holds a key
	FreezeHolder Kind = "freeze-holder" // Freeze of the client that holds a key

	Blackout Kind = "blackout" // all clients: SIGKILL, and new processes when the fault is over
	Deploy   Kind = "deploy"   // all clients: rolled one after the other, without waiting for each other

	Pause Kind = "pause" // an operator pauses a job, then resumes it
)

// The kinds by what they strike.
var (
	onLink   = []Kind{Cut, BlackHole, DropRequests, DropReplies, Latency, Bandwidth, SlowClose}
	onServer = []Kind{RestartKeep, RestartEmpty, FreezeServer, ScriptFlush, FlushAll, ClockForward, ClockBack}
	onHolder = []Kind{KillHolder, FreezeHolder}
	onAll    = []Kind{Blackout, Deploy}
)

// OnLink reports whether the kind strikes links.
func (k Kind) OnLink() bool { return slices.Contains(onLink, k) }

// OnServer reports whether the kind strikes servers.
func (k Kind) OnServer() bool { return slices.Contains(onServer, k) }

// OnHolder reports whether the kind strikes the client that holds a key.
func (k Kind) OnHolder() bool { return slices.Contains(onHolder, k) }

// OnAll reports whether the kind strikes all clients.
func (k Kind) OnAll() bool { return slices.Contains(onAll, k) }

// OnOne reports whether the kind strikes one client.
func (k Kind) OnOne() bool {
	return k.OnHolder() || k == Kill || k == Freeze || k == Roll || k == RollAtTick
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

// Fault is one thing that happens.
type Fault struct {
	Kind    Kind
	At      time.Duration // from the start
	For     time.Duration // until it is put right; zero for what needs no putting right
	Servers []int         // counted from zero
	Side    Side          // for faults of links
	Client  int           // for faults of one client
	Key     int           // whose holder is struck, or the job that is paused
	Amount  time.Duration // of a jump, of a latency, or the delay of a close; for RollAtTick from the beat
	Rate    int           // KB/s
	Part    string        // of which episode, if of any
}

// Targets are what the fault strikes: it waits for the faults of these before it.
func (f Fault) Targets() (targets []string) {
	switch {
	case f.Kind.OnAll():
		for number := range Replicas {
			targets = append(targets, fmt.Sprint("client ", number))
		}
	case f.Kind.OnHolder(): // whoever that is then
	case f.Kind.OnOne():
		targets = append(targets, fmt.Sprint("client ", f.Client))
	case f.Kind == Pause:
		targets = append(targets, fmt.Sprint("job ", f.Key))
	default:
		what := "server "
		if f.Kind.OnLink() {
			what = "links "
		}
		for _, n := range f.Servers {
			targets = append(targets, fmt.Sprint(what, n))
		}
	}
	return targets
}

func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8.3fs  %-14s ", f.At.Seconds(), f.Kind)
	switch {
	case f.Kind.OnAll():
		b.WriteString("all clients")
	case f.Kind.OnHolder():
		fmt.Fprintf(&b, "holder of key %d", f.Key)
	case f.Kind.OnOne():
		fmt.Fprintf(&b, "client %d", f.Client)
	case f.Kind == Pause:
		fmt.Fprintf(&b, "job %d", f.Key)
	default:
		b.WriteString("server")
		for _, n := range f.Servers {
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

// dice draw what a seed determines.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

// between draws a duration in whole milliseconds.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}
