// Package plan decides which faults happen when. A seed determines all of it: kinds, targets, times
// and amounts.
package plan

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is a kind of fault.
type Kind string

// Target is the kind of thing that a fault strikes.
type Target string

// The targets.
const (
	Server   Target = "server"
	Links    Target = "links"
	Client   Target = "client"
	Clients  Target = "clients" // all clients
	Holder   Target = "holder"  // the client that holds a key
	Job      Target = "job"
	Stranger Target = "stranger"
)

// nature is the properties that all faults of a kind share.
type nature struct {
	on          Target
	least, most time.Duration // duration of a fault
	amount      time.Duration // the largest
	recovers    time.Duration // until the target is well again
}

const (
	ms = time.Millisecond
	// Recovery is the longest time for which a server does not vote after a restart or a jump of
	// its clock. It is the sum of the longest TTL or three times the skew, the skew by clocks that
	// may be fast (rounded up twice), and a second until every client has noticed.
	Recovery = LeaderTTL + Skew + 3*time.Second
	// MaxJump is the most by which a server's clock is moved.
	MaxJump   = 3 * time.Second
	rollTakes = 4 * time.Second // least time until the client may be struck again
	// DeployTakes is the time within which a deploy tells all clients to stop.
	DeployTakes = 3 * time.Second
)

// natures are the natures of all kinds.
var natures = make(map[Kind]nature)

func kind(name Kind, n nature) Kind {
	natures[name] = n
	return name
}

// The kinds of faults. What follows "then" happens when the fault is over. A fault of links
// strikes the connections to a server from the clients of one side, or of both.
var (
	// RestartKeep: SIGKILL, then started again with its data.
	RestartKeep = kind("restart-keep", nature{Server, 100 * ms, 2 * time.Second, 0, Recovery})
	// RestartEmpty: SIGKILL, then started again without its data.
	RestartEmpty = kind("restart-empty", nature{Server, 100 * ms, 2 * time.Second, 0, Recovery})
	// FreezeServer: SIGSTOP, then SIGCONT.
	FreezeServer = kind("freeze-server", nature{Server, 50 * ms, 3 * time.Second, 0, 0})
	// ScriptFlush: SCRIPT FLUSH.
	ScriptFlush = kind("script-flush", nature{Server, 0, 0, 0, 0})
	// ClockForward: its wall clock jumps forward, then back.
	ClockForward = kind("clock-forward", nature{Server, 500 * ms, 4 * time.Second, MaxJump, Recovery})
	// ClockBack: its wall clock jumps back, then forward.
	ClockBack = kind("clock-back", nature{Server, 500 * ms, 4 * time.Second, MaxJump, Recovery})
	// Expire: its certificate expires, then it gets a new one.
	Expire = kind("expire", nature{Server, 6 * time.Second, 8 * time.Second, 0, 0})

	// Cut: connections are closed and new ones refused.
	Cut = kind("cut", nature{Links, 100 * ms, 3 * time.Second, 0, 0})
	// BlackHole: nothing arrives in either direction.
	BlackHole = kind("black-hole", nature{Links, 100 * ms, 3 * time.Second, 0, 0})
	// DropRequests: requests are lost.
	DropRequests = kind("drop-requests", nature{Links, 100 * ms, 3 * time.Second, 0, 0})
	// DropReplies: requests arrive, replies are lost.
	DropReplies = kind("drop-replies", nature{Links, 100 * ms, 3 * time.Second, 0, 0})
	// Latency: both directions are delayed.
	Latency = kind("latency", nature{Links, 100 * ms, 3 * time.Second, 500 * ms, 0})
	// Bandwidth: both directions are narrow.
	Bandwidth = kind("bandwidth", nature{Links, 100 * ms, 3 * time.Second, 0, 0})
	// SlowClose: the end of a connection is delayed.
	SlowClose = kind("slow-close", nature{Links, 100 * ms, 3 * time.Second, 2 * time.Second, 0})

	// Kill: SIGKILL, and a new process when the fault is over.
	Kill = kind("kill", nature{Client, 100 * ms, 4 * time.Second, 0, time.Second})
	// KillHolder: the same of the client that holds a key.
	KillHolder = kind("kill-holder", nature{Holder, 100 * ms, 4 * time.Second, 0, 0})
	// Freeze: SIGSTOP, then SIGCONT.
	Freeze = kind("freeze", nature{Client, 100 * ms, 6 * time.Second, 0, time.Second})
	// FreezeHolder: the same of the client that holds a key.
	FreezeHolder = kind("freeze-holder", nature{Holder, 100 * ms, 6 * time.Second, 0, 0})
	// Roll: stopped in order, and a new process as soon as it has ended.
	Roll = kind("roll", nature{Client, 0, 0, 0, rollTakes})
	// RollAtTick: the same, a moment before or after a beat of the jobs (Beat), by its clock.
	RollAtTick = kind("roll-at-tick", nature{Client, 0, 0, 0, rollTakes + Beat})

	// Blackout: all clients, SIGKILL, and new processes when the fault is over.
	Blackout = kind("blackout", nature{Clients, 500 * ms, 4 * time.Second, 0, time.Second})
	// Deploy: all clients, rolled to the next version one after the other, without waiting for each
	// other.
	Deploy = kind("deploy", nature{Clients, DeployTakes, DeployTakes, 0, rollTakes})
	// TakenBack: some clients, rolled to the next version, then to the one before.
	TakenBack = kind("taken-back", nature{Clients, DeployTakes, DeployTakes, 0, rollTakes})

	// Pause: an operator pauses a job, then resumes it.
	Pause = kind("pause", nature{Job, 500 * ms, 8 * time.Second, 0, time.Second})
	// OtherList: a process with another list of nodes begins, then stops.
	OtherList = kind("other-list", nature{Stranger, 2 * time.Second, 5 * time.Second, 0, time.Second})

	// Episode stands for all faults of an episode, see episodes.
	Episode Kind = "episode"
)

// On returns what the kind strikes.
func (k Kind) On() Target { return natures[k].on }

// Side is a group of clients. Each side reaches the servers by its own set of links.
type Side int

// The sides. Clients with even numbers are on the left.
const (
	Both Side = iota
	Left
	Right
)

func (s Side) String() string { return [...]string{"both sides", "left", "right"}[s] }

// SideOf returns the side of a client.
func SideOf(client int) Side { return Left + Side(client%2) }

// Fault is one fault of a schedule.
type Fault struct {
	Kind    Kind
	At      time.Duration // from the start
	For     time.Duration // until it is put right; zero if nothing has to be put right
	Targets []int         // servers, clients, keys or jobs, counted from zero
	Side    Side          // for faults of links
	Amount  time.Duration // of a jump, of a latency, or the delay of a close; for RollAtTick from the beat
	Part    string        // the episode that it belongs to; empty for none
}

// Turns returns the names of the fault's targets, in order. The fault waits until no other fault
// strikes them.
func (f Fault) Turns() (names []string) {
	on := f.Kind.On()
	if on == Holder {
		return nil // the holder is known only when the fault happens
	}
	if on == Clients {
		on = Client
	}
	for _, n := range f.Targets {
		names = append(names, fmt.Sprint(on, " ", n))
	}
	return names
}

// Jump returns by how much the fault moves a server's clock until the fault is put right.
func (f Fault) Jump() time.Duration {
	return map[Kind]time.Duration{ClockForward: 1, ClockBack: -1}[f.Kind] * f.Amount
}

func (f Fault) String() string {
	return fmt.Sprintf("%8.3fs  %-14s %s %v, %s, by %s, for %s  (%s)", f.At.Seconds(), f.Kind, f.Kind.On(), f.Targets, f.Side, f.Amount, f.For, f.Part)
}

// Dice draw random values that a seed determines.
type Dice struct{ *rand.Rand }

// NewDice returns the dice of a seed. Each stream of a seed draws its own values.
func NewDice(seed, stream uint64) Dice { return Dice{rand.New(rand.NewPCG(seed, stream))} }

// Between draws a duration in whole milliseconds.
func (d Dice) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64((high-low)/ms)+1))*ms
}
