package model

import (
	"fmt"
	"math/bits"
	"strings"
)

// RosterConfig is a configuration of the model of the roster: processes that may have different
// lists of nodes, and what they write on the nodes so that no two of them each find a quorum.
//
// A node keeps a list for Lifetime ticks after it was written. For Known ticks it keeps which
// server processes found under a name. A process starts with a look at all nodes of its list that
// it reaches, and goes on if none of them has another list. Then it writes to each of them its
// list, and the servers whose names no other process knows for other servers. Each node answers
// what it had before. If a node had another list, the process puts back what was there. If no node
// had, and a quorum took the list, the process is admitted and counts these servers.
//
// With every tick, an admitted process writes the same again to the nodes that it reaches, whatever
// they have. It stops counting a server that it has not reached for more than Silence ticks, until
// it has asked whether others know another server under that name. A process that has not reached a
// quorum for that long must start anew.
//
// Keys are left out. A process relies on a vote that it may have had of a node for TTL ticks. Two
// processes could have a lease each if each has a quorum of votes, and these quorums have no node
// in common.
type RosterConfig struct {
	Name     string
	Lists    []nodeSet // of the processes; each process may start again after its end
	Cuts     []nodeSet // for each process, the nodes that it may be cut off from, at any moment
	Twins    bool      // the servers c and d have one name
	Starts   int       // of processes, in all
	Restarts int       // in all
	Restart  nodeSet   // the nodes that are restarted

	TTL      int // ticks for which a vote is relied on
	Silence  int // ticks after which a node that is out of reach is not counted
	Lifetime int // ticks for which a list is on a node
	Known    int // ticks for which it is known which server has a name
	Gate     int // ticks after its restart for which a node does not vote

	Only   Property // the property that is looked at; none for both
	Defect Defect
}

// nodeSet is a set of nodes.
type nodeSet uint8

func (m nodeSet) has(n int) bool { return m>>n&1 == 1 }
func (m nodeSet) size() int      { return bits.OnesCount8(uint8(m)) }
func (m nodeSet) quorum() int    { return m.size()/2 + 1 }
func (m *nodeSet) set(n int)     { *m |= 1 << n }
func (m *nodeSet) clear(n int)   { *m &^= 1 << n }

// all yields the nodes of the set.
func (m nodeSet) all(yield func(n int) bool) {
	for n := 0; m>>n != 0; n++ {
		if m.has(n) && !yield(n) {
			return
		}
	}
}

func letterSets(lists ...string) (all []nodeSet) {
	for _, l := range lists {
		all = append(all, letterSet(l))
	}
	return all
}

// letterSet returns the nodes that letters stand for, a for n1 and so on.
func letterSet(s string) (m nodeSet) {
	for _, c := range s {
		m.set(int(c - 'a'))
	}
	return m
}

func (m nodeSet) String() string {
	var names []string
	for n := range m.all {
		names = append(names, fmt.Sprint("n", n+1))
	}
	return strings.Join(names, "+")
}

// rosterDefects are all defects of the model of the roster: mistakes in which processes are
// admitted and which nodes are counted.
var rosterDefects defects

var (
	ReadsFirst      = rosterDefects.add("a process reads before it writes, not after")
	OthersCounted   = rosterDefects.add("only the node that disagrees is left out")
	ServersIgnored  = rosterDefects.add("another server under a name counts")
	CountsOn        = rosterDefects.add("a process that was cut off goes on")
	FromAdmission   = rosterDefects.add("the absence counts from the admission")
	OthersWithdrawn = rosterDefects.add("what another wrote is withdrawn")
	ForgottenAtOnce = rosterDefects.add("what was known of a server goes with its restart")
	WaitersRefresh  = rosterDefects.add("a process that was never admitted refreshes")
	StepsBack       = rosterDefects.add("a process steps back in flight")
	NotAsked        = rosterDefects.add("not asked before it is written")
	NotWithdrawn    = rosterDefects.add("nothing is withdrawn")
)

// rosterDesign has two lists with two nodes in common.
var rosterDesign = RosterConfig{
	Lists: letterSets("abc", "abd"), Starts: 2,
	TTL: 1, Silence: 1, Lifetime: 3, Known: 3, Gate: 2,
}

func (c RosterConfig) but(name string, change func(*RosterConfig)) RosterConfig {
	c.Name = name
	change(&c)
	return c
}

// RosterDesigns are the configurations in which both properties must hold.
func RosterDesigns() []RosterConfig {
	d := rosterDesign
	return []RosterConfig{
		d.but("roster", func(*RosterConfig) {}),
		d.but("roster, one begins again", func(c *RosterConfig) { c.Starts = 3 }),
		d.but("roster, one begins again, a node of each out of reach", func(c *RosterConfig) { c.Starts, c.Cuts = 3, letterSets("c", "d") }),
		d.but("roster, one begins again, a restart", func(c *RosterConfig) { c.Starts, c.Restarts, c.Restart = 3, 1, letterSet("ac") }),
		d.but("roster, a node out of reach", func(c *RosterConfig) { c.Cuts = letterSets("c", "") }),
		d.but("roster, a node of each out of reach", func(c *RosterConfig) { c.Cuts = letterSets("c", "d") }),
		d.but("roster, a common node out of reach", func(c *RosterConfig) { c.Cuts = letterSets("a", "") }),
		d.but("roster, a restart", func(c *RosterConfig) { c.Restarts, c.Restart = 1, letterSet("ac") }),
		d.but("roster, one out of reach, a restart", func(c *RosterConfig) {
			c.Cuts, c.Restarts, c.Restart, c.Only = letterSets("c", ""), 1, letterSet("a"), OneLock
		}),
		d.but("roster, two restarts", func(c *RosterConfig) { c.Restarts, c.Restart, c.Only = 2, letterSet("a"), OneLock }),
		d.but("roster, longer times", (*RosterConfig).longerTimes),
		d.but("roster, meet on one", (*RosterConfig).meetOnOne),
		d.but("roster, equal lists", func(c *RosterConfig) {
			c.Lists, c.Cuts, c.Restarts, c.Restart = letterSets("abc", "abc"), letterSets("c", ""), 1, letterSet("c")
		}),
		d.but("roster, three processes", (*RosterConfig).threeProcesses),
		d.but("roster, one node and three", func(c *RosterConfig) {
			c.Lists, c.Starts, c.Cuts = letterSets("a", "abc"), 3, letterSets("", "bc")
		}),
		d.but("roster, two servers with one name", func(c *RosterConfig) { c.Twins, c.Cuts = true, letterSets("c", "") }),
		d.but("roster, two servers with one name, a restart", (*RosterConfig).restartOfATwin),
	}
}

func (c *RosterConfig) meetOnOne() { c.Lists, c.Starts = letterSets("abc", "ade"), 3 }

func (c *RosterConfig) longerTimes() { c.TTL, c.Lifetime, c.Known, c.Gate = 2, 4, 4, 3 }

func (c *RosterConfig) restartOfATwin() {
	c.longerTimes()
	c.Twins, c.Restarts, c.Restart = true, 1, letterSet("c")
}

func (c *RosterConfig) threeProcesses() {
	c.Lists, c.Starts, c.Only = letterSets("abc", "a", "a"), 3, OneLock
}

// RosterMistakes are the configurations with a rule taken away, and those that show the limits of
// the rules.
func RosterMistakes() []RosterConfig {
	var all []RosterConfig
	add := func(violates Property, name string, change func(*RosterConfig)) {
		all = append(all, rosterDesign.but(name, func(c *RosterConfig) {
			c.Only = violates
			change(c)
		}))
	}
	for _, d := range rosterDefects {
		add(OneLock, string(d), func(c *RosterConfig) {
			c.Defect = d
			switch d {
			case WaitersRefresh, StepsBack, NotAsked, NotWithdrawn:
				c.Only = FleetGoesOn
			case OthersCounted:
				c.meetOnOne()
			case ServersIgnored:
				c.Twins = true
			case ForgottenAtOnce:
				c.restartOfATwin()
			case CountsOn, FromAdmission:
				c.Lifetime, c.Cuts = 2, letterSets("abc", "")
			case OthersWithdrawn:
				c.threeProcesses()
			}
		})
	}
	for lifetime, name := range map[int]string{1: "the lifetime is the TTL", 2: "the lifetime is a tick too short"} {
		add(OneLock, name, func(c *RosterConfig) { c.Lifetime, c.Cuts = lifetime, letterSets("abc", "") })
	}
	add(OneLock, "limit: the common nodes are out of reach of one", func(c *RosterConfig) { c.Cuts = letterSets("ab", "ab") })
	add(OneLock, "limit: the common node has lost its roster", func(c *RosterConfig) {
		c.meetOnOne()
		c.Restarts, c.Restart = 1, letterSet("a")
	})
	return all
}
