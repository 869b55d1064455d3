package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Topology is what there is, and what happens to it.
type Topology struct {
	Name     string
	Jobs     bool // clients are replicas with jobs; else they take leases
	Servers  int
	Clients  int
	Memory   bool          // the servers keep nothing on disk
	TLS      bool          // the servers have certificates
	Distance time.Duration // round trip of each client to all servers but the one that it is near; 0 for none
	Near     time.Duration // round trip to that one
	Ahead    time.Duration // by how much a client's clock is wrong at most
	Leaps    bool          // clients' clocks leap as well, and the most wrong ones are set right
	Streams  []Stream
}

// Stream is faults, one after the other.
type Stream struct {
	Kinds   []Kind        // one that is listed twice is twice as likely
	Every   time.Duration // from one to the next, about
	Most    int           // targets that are not well at a time; 0 if they only must not be struck at the same time
	Longest time.Duration // that one goes on, if not as long as its kind does
	InTurn  bool          // strikes the target that was struck longest ago
	All     bool          // strikes all targets at once
}

const (
	// Keys is how many clients take leases of.
	Keys = 4
	// PausedJobs is how many jobs an operator pauses.
	PausedJobs = 2
	// MaxAhead is by how much a replica's clock is wrong at most.
	MaxAhead = 800 * ms
	// Skew is what clients allow for. It is small so that the quarantine is short.
	Skew = 500 * ms
	// Beat is what replicas are stopped at: some jobs tick at each, by each replica's clock.
	Beat = 2 * time.Second
	// TTL is that of runs that replicas share, and LeaderTTL the longest, that of the leader's:
	// short, so that much happens.
	TTL       = time.Second
	LeaderTTL = 2 * time.Second
)

var (
	links = []Kind{Cut, BlackHole, DropRequests, DropReplies, Latency, Bandwidth, SlowClose}
	// rolls are stops in order, which are no excuse for a tick that nobody runs.
	rolls  = []Kind{RollAtTick, RollAtTick, RollAtTick, RollAtTick, RollAtTick, RollAtTick, Roll, Roll}
	pauses = Stream{Kinds: []Kind{Pause}, Every: 3 * time.Second}
	// freezes are of one server, shorter or longer than a node timeout; stalls are of all for a
	// moment: longer than a node timeout, shorter than what is left of a tick's time.
	freezes = Stream{Kinds: []Kind{FreezeServer}, Every: 12 * time.Second}
	stalls  = Stream{Kinds: []Kind{FreezeServer}, Every: 15 * time.Second, Longest: 900 * ms, All: true}
	deploys = Stream{Kinds: []Kind{Deploy}, Every: 35 * time.Second}
	back    = Stream{Kinds: []Kind{TakenBack}, Every: 25 * time.Second}
)

// Topologies returns all topologies. Each makes happen what the others cannot.
func Topologies() []Topology {
	return []Topology{
		{
			Name: "leases", Servers: 5, Clients: 8, TLS: true, Ahead: Skew * 4 / 5,
			Streams: []Stream{
				{Every: 350 * ms, Most: 2, Kinds: []Kind{
					RestartKeep, RestartEmpty, FreezeServer, FreezeServer, ClockForward, ClockForward, ClockBack,
					Cut, BlackHole, DropRequests, DropReplies, Latency, Bandwidth,
				}},
				{Kinds: []Kind{ScriptFlush, SlowClose}, Every: 2 * time.Second},
				{Kinds: []Kind{Kill, KillHolder, KillHolder, Freeze, FreezeHolder, FreezeHolder, Roll}, Every: time.Second, Most: 6},
				{Kinds: []Kind{OtherList}, Every: 6 * time.Second},
				{Kinds: []Kind{Episode}, Every: 5 * time.Second},
			},
		},
		// Everything at once, and clocks that are as wrong as they may be.
		{
			Name: "five", Jobs: true, Servers: 5, Clients: 5, Ahead: MaxAhead, Leaps: true,
			Streams: []Stream{
				{Kinds: []Kind{Kill, Freeze, Roll, RollAtTick}, Every: 2 * time.Second, Most: 3},
				{Kinds: []Kind{Blackout}, Every: 40 * time.Second}, deploys, back,
				{Kinds: append([]Kind{RestartKeep, RestartEmpty, RestartKeep, RestartEmpty, ScriptFlush}, links...), Every: 2 * time.Second, Most: 1},
				freezes, stalls, pauses,
			},
		},
		// One of three servers is away most of the time. Replicas ask at the same moment, each of
		// them nearer to another server.
		{
			Name: "three", Jobs: true, Servers: 3, Clients: 5, Distance: 10 * ms, Near: ms,
			Streams: []Stream{
				{Kinds: append(rolls, Kill, Freeze), Every: 4 * time.Second, Most: 3}, deploys, back,
				{Kinds: []Kind{RestartKeep, RestartEmpty}, Every: 2 * time.Second, Most: 1, Longest: 12 * time.Second},
				freezes, stalls, pauses,
			},
		},
		// Answers take long, and replicas are stopped while they wait for them.
		{
			Name: "far", Jobs: true, Servers: 5, Clients: 5, Distance: 50 * ms, Near: 50 * ms,
			Streams: []Stream{
				{Kinds: append(rolls, Kill), Every: 3 * time.Second, Most: 3}, deploys, back,
				{Kinds: []Kind{RestartKeep, RestartEmpty}, Every: 2 * time.Second, Most: 1}, freezes, stalls, pauses,
			},
		},
		// Every server forgets everything, one after the other, and the leader changes after that.
		{
			Name: "memory", Jobs: true, Servers: 3, Clients: 5, Memory: true, Ahead: MaxAhead, Leaps: true,
			Streams: []Stream{
				{Kinds: append(rolls, Kill, Freeze), Every: 4 * time.Second, Most: 3}, deploys, back,
				{Kinds: []Kind{RestartEmpty}, Every: 2 * time.Second, Most: 1, Longest: time.Second, InTurn: true}, pauses,
			},
		},
		// Nothing happens: what the machine can carry.
		{Name: "calm", Jobs: true, Servers: 5, Clients: 5},
	}
}

// Find returns the topology of that name.
func Find(name string) (Topology, error) {
	all := Topologies()
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	if i := slices.Index(names, name); i >= 0 {
		return all[i], nil
	}
	return Topology{}, fmt.Errorf("no topology %q: there are %s", name, strings.Join(names, ", "))
}

// Distances returns the round trips of a client to each server; nil if there are none worth
// speaking of. Client i is near server i.
func (t Topology) Distances(client int) (all []time.Duration) {
	for server := range t.Servers {
		switch {
		case t.Distance == 0:
			return nil
		case server == client%t.Servers:
			all = append(all, t.Near)
		default:
			all = append(all, t.Distance)
		}
	}
	return all
}
