package plan

import (
	"fmt"
	"strings"
	"time"
)

// Topology is where jobs run, and what happens there.
type Topology struct {
	Name     string
	Servers  int
	Memory   bool          // the servers keep nothing on disk
	Distance time.Duration // round trip of each replica to all servers but the one that it is near; 0 for none
	Near     time.Duration // round trip to that one
	Ahead    time.Duration // by how much a replica's clock is wrong at most
	Leaps    bool          // replicas' clocks leap as well

	Kinds      []Kind        // of faults of single replicas; one that is listed twice is twice as likely
	Gap        time.Duration // between two of them, at most
	Blackouts  time.Duration // about so far apart; 0 for never
	Deploys    time.Duration // the same
	Restarts   []Kind        // of servers; and faults of their links, but for those of a distance
	Outage     time.Duration // how long a restarted server is away at most
	InTurn     bool          // servers are restarted one after the other
	Freezes    time.Duration // servers are frozen about so far apart; 0 for never
	Everywhere bool          // now and then all servers at once
	Pauses     time.Duration // between two pauses of a job, about; 0 for never
}

const (
	// Replicas is how many there are in every topology.
	Replicas = 5
	// Servers is how many there are in the first topology, and for leases.
	Servers = 5
	// PausedJobs is how many jobs an operator pauses.
	PausedJobs = 2
	// MaxAhead is by how much a replica's clock is wrong at most.
	MaxAhead = 800 * time.Millisecond
	// Skew is what clients allow for. It is small so that the quarantine is short.
	Skew = 500 * time.Millisecond
	// Beat is what replicas are stopped at: some jobs tick at each, by each replica's clock.
	Beat = 2 * time.Second
	// TTL is that of runs that replicas share, and LeaderTTL of the leader's: short, so that much
	// happens.
	TTL       = time.Second
	LeaderTTL = 2 * time.Second
)

// Topologies returns all topologies. Each makes happen what the others cannot.
func Topologies() []Topology {
	return []Topology{
		// Everything at once, and clocks that are as wrong as they may be.
		{
			Name: "five", Servers: Servers, Ahead: MaxAhead, Leaps: true,
			Kinds: []Kind{Kill, Freeze, Roll, RollAtTick}, Gap: 3 * time.Second, Blackouts: 40 * time.Second, Deploys: 45 * time.Second,
			Restarts: append([]Kind{RestartKeep, RestartEmpty, RestartKeep, RestartEmpty, ScriptFlush}, onLink...), Outage: 2 * time.Second, Freezes: 6 * time.Second, Everywhere: true, Pauses: 4 * time.Second,
		},
		// One of three servers is away most of the time. Replicas ask at the same moment, each of
		// them nearer to another server.
		{
			Name: "three", Servers: 3, Distance: 10 * time.Millisecond, Near: time.Millisecond,
			Kinds: mostlyRolls(Kill, Freeze), Gap: 6 * time.Second, Deploys: time.Minute,
			Restarts: []Kind{RestartKeep, RestartEmpty}, Outage: 12 * time.Second, Freezes: 10 * time.Second, Everywhere: true, Pauses: 4 * time.Second,
		},
		// Answers take long, and replicas are stopped while they wait for them.
		{
			Name: "far", Servers: 5, Distance: 50 * time.Millisecond, Near: 50 * time.Millisecond,
			Kinds: mostlyRolls(Kill), Gap: 4 * time.Second, Deploys: time.Minute,
			Restarts: []Kind{RestartKeep, RestartEmpty}, Outage: 2 * time.Second, Freezes: 10 * time.Second, Everywhere: true, Pauses: 4 * time.Second,
		},
		// Every server forgets everything, one after the other, and the leader changes after that.
		{
			Name: "memory", Servers: 3, Memory: true, Ahead: MaxAhead, Leaps: true,
			Kinds: mostlyRolls(Kill, Freeze), Gap: 6 * time.Second, Deploys: 40 * time.Second,
			Restarts: []Kind{RestartEmpty}, Outage: time.Second, InTurn: true, Pauses: 4 * time.Second,
		},
	}
}

// mostlyRolls are kinds among which stops in order, which are no excuse for a tick that nobody
// runs, are so frequent that there are times without the others.
func mostlyRolls(others ...Kind) []Kind {
	return append([]Kind{RollAtTick, RollAtTick, RollAtTick, RollAtTick, RollAtTick, RollAtTick, Roll, Roll}, others...)
}

// Find returns the topology of that name.
func Find(name string) (Topology, error) {
	for _, t := range Topologies() {
		if t.Name == name {
			return t, nil
		}
	}
	return Topology{}, fmt.Errorf("no topology %q: there are %s", name, strings.Join(Names(), ", "))
}

// Names are those of all topologies.
func Names() []string {
	var names []string
	for _, t := range Topologies() {
		names = append(names, t.Name)
	}
	return names
}

// Distances returns the round trips of each replica to each server; nil if there are none worth
// speaking of. Replica i is near server i.
func (t Topology) Distances(replicas int) [][]time.Duration {
	if t.Distance == 0 {
		return nil
	}
	all := make([][]time.Duration, replicas)
	for i := range all {
		for server := range t.Servers {
			d := t.Distance
			if server == i%t.Servers {
				d = t.Near
			}
			all[i] = append(all[i], d)
		}
	}
	return all
}
