package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Topology is a set of servers and clients, and the faults that strike them.
type Topology struct {
	Name     string
	Jobs     bool // clients are replicas with jobs; else they take leases
	Servers  int
	Clients  int
	Memory   bool          // the servers keep nothing on disk, so that RestartKeep fails
	TLS      bool          // the servers have certificates
	Distance time.Duration // round trip of a client to all servers but the one near it; 0 for none
	Near     time.Duration // round trip to the server near it
	Ahead    time.Duration // the most by which a client's clock is wrong
	Leaps    bool          // clients' clocks leap as well, and the most wrong ones are set right
	Streams  []Stream
}

// Stream is a sequence of faults, one after the other.
type Stream struct {
	Kinds   []Kind        // a kind that is listed twice is twice as likely
	Every   time.Duration // mean time from one fault to the next
	Most    int           // the most targets that are not well at a time; 0 if faults of a target only must not overlap
	Longest time.Duration // the longest duration of a fault; 0 for the longest of its kind
	InTurn  bool          // strikes the target that was struck longest ago
	All     bool          // strikes all targets at once
}

const (
	// Keys is the number of keys that clients take leases of.
	Keys = 4
	// PausedJobs is how many jobs an operator pauses.
	PausedJobs = 2
	// MaxAhead is the most by which a replica's clock is wrong.
	MaxAhead = 800 * ms
	// Skew is the clock skew that clients allow for. It is small so that the quarantine is short.
	Skew = 500 * ms
	// Beat is the interval of ticks that replicas are stopped at: some jobs tick at each beat, by
	// each replica's clock.
	Beat = 2 * time.Second
	// TTL is the TTL of runs that replicas share. LeaderTTL is the TTL of a leader's runs, and the
	// longest of all. Both are short, so that much happens.
	TTL       = time.Second
	LeaderTTL = 2 * time.Second
)

var (
	links = []Kind{Cut, BlackHole, DropRequests, DropReplies, Latency, Bandwidth, SlowClose}
	// rolls are stops in order, which do not excuse a tick that no replica runs.
	rolls  = []Kind{RollAtTick, RollAtTick, RollAtTick, RollAtTick, RollAtTick, RollAtTick, Roll, Roll}
	pauses = Stream{Kinds: []Kind{Pause}, Every: 3 * time.Second}
	// freezes strike one server, for less or more than a node timeout. stalls strike all servers
	// for a moment: longer than a node timeout, shorter than the time that is left for a tick.
	freezes = Stream{Kinds: []Kind{FreezeServer}, Every: 12 * time.Second}
	stalls  = Stream{Kinds: []Kind{FreezeServer}, Every: 15 * time.Second, Longest: 900 * ms, All: true}
	deploys = Stream{Kinds: []Kind{Deploy}, Every: 35 * time.Second}
	back    = Stream{Kinds: []Kind{TakenBack}, Every: 25 * time.Second}
)

// Topologies returns all topologies. Each leads to situations that the others cannot reach.
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
		// Nothing happens. This shows what the machine can carry.
		{Name: "calm", Jobs: true, Servers: 5, Clients: 5},
	}
}

// Find returns the topology of that name.
func Find(name string) (Topology, error) {
	var names []string
	for _, t := range Topologies() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Topology{}, fmt.Errorf("no topology %q: there are %s", name, strings.Join(names, ", "))
}

// Distances returns the round trips of a client to each server. Client i is near server i.
func (t Topology) Distances(client int) []time.Duration {
	all := slices.Repeat([]time.Duration{t.Distance}, t.Servers)
	all[client%t.Servers] = t.Near
	return all
}
