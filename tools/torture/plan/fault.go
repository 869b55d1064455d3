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

// The kinds of faults. An action after "then" follows when the fault is over. A fault of links
// strikes the connections to a server from the clients of one side, or of both.
const (
	RestartKeep  Kind = "restart-keep"  // server: SIGKILL, then started again with its data
	RestartEmpty Kind = "restart-empty" // server: SIGKILL, then started again without its data
	FreezeServer Kind = "freeze-server" // server: SIGSTOP, then SIGCONT
	ScriptFlush  Kind = "script-flush"  // server: SCRIPT FLUSH
	ClockForward Kind = "clock-forward" // server: its wall clock jumps forward, then back
	ClockBack    Kind = "clock-back"    // server: its wall clock jumps back, then forward
	Expire       Kind = "expire"        // server: its certificate expires, then it gets a new one

	Cut          Kind = "cut"           // link: connections are closed and new ones refused
	BlackHole    Kind = "black-hole"    // link: nothing arrives in either direction
	DropRequests Kind = "drop-requests" // link: requests are lost
	DropReplies  Kind = "drop-replies"  // link: requests arrive, replies are lost
	Latency      Kind = "latency"       // link: both directions are delayed
	Bandwidth    Kind = "bandwidth"     // link: both directions are narrow
	SlowClose    Kind = "slow-close"    // link: the end of a connection is delayed

	Kill         Kind = "kill"          // client: SIGKILL, and a new process when the fault is over
	KillHolder   Kind = "kill-holder"   // the same of the client that holds a key
	Freeze       Kind = "freeze"        // client: SIGSTOP, then SIGCONT
	FreezeHolder Kind = "freeze-holder" // the same of the client that holds a key
	Roll         Kind = "roll"          // client: stopped in order, and a new process as soon as it has ended
	RollAtTick   Kind = "roll-at-tick"  // the same, a moment before or after a beat of the jobs (Beat), by its clock

	Blackout  Kind = "blackout"   // all clients: SIGKILL, and new processes when the fault is over
	Deploy    Kind = "deploy"     // all clients: rolled one after the other, without waiting for each other, to the next version
	TakenBack Kind = "taken-back" // some clients: rolled to the next version, then to the one before

	Pause     Kind = "pause"      // an operator pauses a job, then resumes it
	OtherList Kind = "other-list" // a process with another list of nodes begins, then stops

	Episode Kind = "episode" // stands for all faults of an episode, see episodes
)

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

var natures = map[Kind]nature{
	RestartKeep:  {Server, 100 * ms, 2 * time.Second, 0, Recovery},
	RestartEmpty: {Server, 100 * ms, 2 * time.Second, 0, Recovery},
	FreezeServer: {Server, 50 * ms, 3 * time.Second, 0, 0},
	ScriptFlush:  {Server, 0, 0, 0, 0},
	ClockForward: {Server, 500 * ms, 4 * time.Second, MaxJump, Recovery},
	ClockBack:    {Server, 500 * ms, 4 * time.Second, MaxJump, Recovery},
	Expire:       {Server, 6 * time.Second, 8 * time.Second, 0, 0},

	Cut:          {Links, 100 * ms, 3 * time.Second, 0, 0},
	BlackHole:    {Links, 100 * ms, 3 * time.Second, 0, 0},
	DropRequests: {Links, 100 * ms, 3 * time.Second, 0, 0},
	DropReplies:  {Links, 100 * ms, 3 * time.Second, 0, 0},
	Latency:      {Links, 100 * ms, 3 * time.Second, 500 * ms, 0},
	Bandwidth:    {Links, 100 * ms, 3 * time.Second, 0, 0},
	SlowClose:    {Links, 100 * ms, 3 * time.Second, 2 * time.Second, 0},

	Kill:         {Client, 100 * ms, 4 * time.Second, 0, time.Second},
	KillHolder:   {Holder, 100 * ms, 4 * time.Second, 0, 0},
	Freeze:       {Client, 100 * ms, 6 * time.Second, 0, time.Second},
	FreezeHolder: {Holder, 100 * ms, 6 * time.Second, 0, 0},
	Roll:         {Client, 0, 0, 0, rollTakes},
	RollAtTick:   {Client, 0, 0, 0, rollTakes + Beat},

	Blackout:  {Clients, 500 * ms, 4 * time.Second, 0, time.Second},
	Deploy:    {Clients, DeployTakes, DeployTakes, 0, rollTakes},
	TakenBack: {Clients, DeployTakes, DeployTakes, 0, rollTakes},

	Pause:     {Job, 500 * ms, 8 * time.Second, 0, time.Second},
	OtherList: {Stranger, 2 * time.Second, 5 * time.Second, 0, time.Second},
}

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
