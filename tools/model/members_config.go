package model

import (
	"math/bits"
	"strings"
)

// MemberConfig is a configuration of the model of members: processes that may have different lists
// of nodes, and what they write on the nodes so that no two of them each find a quorum.
//
// A node has the ids of servers, each for Lifetime ticks from when it was written. A process starts
// with a look at all nodes of its list that it reaches and that vote; it goes on if none of them
// has ids that make more than N with those that it reaches. Then it writes these ids to each, where
// the node compares once more in the same step. If any refuses, it takes back what it has added. If
// none does, and a quorum took them, it is admitted and counts these nodes. With every tick an
// admitted process writes what it counts to the nodes that it reaches, and also to those of its
// list that it does not count if they take it, which restarted nodes do before they vote. A node
// that it has not reached for more than Silence ticks it counts no more, and without a quorum of
// them it must start anew. It adds a node if that and all that it counts take it.
//
// Keys are left out. A vote that a process may have had of a node is relied on for TTL ticks, and
// two processes could have a lease each if votes for both are a quorum each and on no common node.
type MemberConfig struct {
	Name     string
	Lists    []memberSet // of the processes; each comes again after its end, any number of times
	Cuts     []memberSet // for each process, the nodes that it may be cut off from, at any moment
	Restarts int         // in all
	Restart  memberSet   // the nodes that are restarted

	TTL      int // for which a vote is relied on
	Silence  int // after which a node that is out of reach is not counted
	Lifetime int // of an id on a node
	Gate     int // ticks after its restart in which a node does not vote

	// Patient processes start when all nodes that they reach vote, and start anew if one that they
	// asked is restarted.
	Patient bool
	// Strangers are compared too: processes that had no common node in reach when the later one was
	// admitted.
	Strangers bool
	Only      Property // the property that is looked at; none for both
	Defect    MemberDefect
}

// memberSet is a set of nodes, or of ids.
type memberSet uint8

func (m memberSet) has(n int) bool { return m>>n&1 == 1 }
func (m memberSet) size() int      { return bits.OnesCount8(uint8(m)) }
func (m memberSet) quorum() int    { return m.size()/2 + 1 }
func (m *memberSet) set(n int)     { *m |= 1 << n }
func (m *memberSet) clear(n int)   { *m &^= 1 << n }

func letterSets(lists ...string) (all []memberSet) {
	for _, l := range lists {
		all = append(all, letterSet(l))
	}
	return all
}

func letterSet(s string) (m memberSet) {
	for _, c := range s {
		m.set(int(c - 'a'))
	}
	return m
}

func (m memberSet) String() string {
	var b strings.Builder
	for n := range memberIDs {
		if m.has(n) {
			b.WriteByte(byte('a' + n))
		}
	}
	return b.String()
}

// MemberDefect is a deliberate mistake in who is admitted, and what is counted.
type MemberDefect uint8

// The defects.
const (
	MemberSound        MemberDefect = iota
	OthersCounted                   // a node that refuses is left out, and the others are counted
	SizesIgnored                    // the number of nodes is not compared
	CountsOn                        // a node that was out of reach for long is counted when it is back
	AddedAlone                      // a node is added without asking those that are counted
	AddedByReach                    // a node is added if those take it that are in reach
	RefreshedByReach                // only the ids of nodes in reach are written again
	RestartedUnclaimed              // nothing is written to a restarted node before it is added
	AdmittedUngated                 // a node that does not vote yet counts for an admission
	OldIDsNotRenewed                // what is there already keeps its age when a process starts
	OthersWithdrawn                 // what is taken back is gone also where another process wrote it since
	LookersWrite                    // who only looks writes
	WaitersRefresh                  // who was not admitted keeps ids alive
	NotAsked                        // a process that starts writes at once
	NotWithdrawn                    // a process that is refused takes nothing back
)

var memberDefectNames = [...]string{
	MemberSound:        "none",
	OthersCounted:      "only the node that refuses is left out",
	SizesIgnored:       "the number of nodes is not compared",
	CountsOn:           "a node is counted for ever",
	AddedAlone:         "a node is added without asking the others",
	AddedByReach:       "a node is added without those out of reach",
	RefreshedByReach:   "only what is in reach is refreshed",
	RestartedUnclaimed: "a restarted node is not claimed",
	AdmittedUngated:    "a node that does not vote admits",
	OldIDsNotRenewed:   "an admission does not renew",
	OthersWithdrawn:    "what another wrote is withdrawn",
	LookersWrite:       "who looks writes",
	WaitersRefresh:     "who waits refreshes",
	NotAsked:           "not asked before it is written",
	NotWithdrawn:       "nothing is withdrawn",
}

func (d MemberDefect) String() string { return memberDefectNames[d] }

// memberDesign has two lists that meet on two nodes; what they do not share may be out of reach.
var memberDesign = MemberConfig{
	Lists: letterSets("abc", "abd"), Cuts: letterSets("c", "d"),
	Restart: letterSet("abcd"), TTL: 1, Silence: 1, Lifetime: 2, Gate: 2, Strangers: true,
}

func (c MemberConfig) but(name string, change func(*MemberConfig)) MemberConfig {
	c.Name = name
	change(&c)
	return c
}

// MemberDesigns are the configurations in which both properties must hold.
func MemberDesigns() []MemberConfig {
	d := memberDesign
	return []MemberConfig{
		d.but("members", func(*MemberConfig) {}),
		d.but("members, one out of reach, a restart", func(c *MemberConfig) {
			c.Cuts, c.Restarts, c.Restart, c.Only = letterSets("c", ""), 1, letterSet("c"), OneLock
		}),
		d.but("members, a restart", func(c *MemberConfig) { c.Cuts, c.Restarts, c.Restart = nil, 1, letterSet("ac") }),
		d.but("members, a common node out of reach", func(c *MemberConfig) {
			c.Cuts, c.Strangers = letterSets("a", "b"), false
		}),
		d.but("members, two nodes out of reach", func(c *MemberConfig) {
			c.Cuts, c.Strangers, c.Only = letterSets("ac", ""), false, OneLock
		}),
		d.but("members, two restarts", func(c *MemberConfig) {
			c.Cuts, c.Restarts, c.Restart, c.Only = nil, 2, letterSet("a"), OneLock
		}),
		d.but("members, longer times", func(c *MemberConfig) {
			c.TTL, c.Lifetime, c.Gate, c.Cuts = 2, 3, 3, letterSets("c", "")
		}),
		d.but("members, meet on one", func(c *MemberConfig) { c.meetOnOne() }),
		d.but("members, meet on one, restarted", func(c *MemberConfig) {
			c.meetOnOne()
			c.Patient, c.Restarts = true, 1
		}),
		d.but("members, equal lists", func(c *MemberConfig) {
			c.Lists, c.Cuts, c.Restarts, c.Restart = letterSets("abc", "abc"), letterSets("c", "c"), 1, letterSet("c")
		}),
		d.but("members, three processes", func(c *MemberConfig) { c.threeProcesses() }),
		d.but("members, one node and three", func(c *MemberConfig) {
			c.Lists, c.Cuts, c.Restarts = letterSets("a", "abc"), letterSets("", "bc"), 0
		}),
	}
}

func (c *MemberConfig) meetOnOne() {
	c.Lists, c.Cuts, c.Restart = letterSets("abc", "ade"), nil, letterSet("a")
}

func (c *MemberConfig) threeProcesses() {
	c.Lists, c.Cuts = letterSets("abc", "abd", "abd"), letterSets("", "", "a")
	c.Strangers, c.Only = false, OneLock
}

// MemberMistake is a configuration in which a property must be seen to be violated.
type MemberMistake struct {
	MemberConfig
	Violates Property
}

// MemberMistakes are the configurations with a rule taken away, and those that show what the rules
// cannot do.
func MemberMistakes() []MemberMistake {
	var all []MemberMistake
	add := func(violates Property, name string, change func(*MemberConfig)) {
		all = append(all, MemberMistake{memberDesign.but(name, func(c *MemberConfig) {
			c.Only = violates
			change(c)
		}), violates})
	}
	for d := OthersCounted; d <= NotWithdrawn; d++ {
		violates := OneLock
		if d >= LookersWrite {
			violates = FleetGoesOn
		}
		add(violates, d.String(), func(c *MemberConfig) {
			c.Defect = d
			switch d {
			case OthersCounted:
				c.meetOnOne()
			case SizesIgnored:
				c.Lists, c.Cuts = letterSets("a", "abc"), nil
			case AddedByReach:
				c.Cuts, c.Strangers = letterSets("abc", ""), false
			case RefreshedByReach, OldIDsNotRenewed:
				c.Cuts, c.Strangers = letterSets("ac", "b"), false
			case RestartedUnclaimed, AdmittedUngated:
				c.meetOnOne()
				c.Patient, c.Restarts = true, 1
			case OthersWithdrawn:
				c.threeProcesses()
			case NotAsked, NotWithdrawn:
				c.Cuts = letterSets("bc", "")
			}
		})
	}
	add(OneLock, "the lifetime is the TTL", func(c *MemberConfig) {
		c.Lifetime, c.Cuts, c.Strangers = 1, letterSets("abc", "abd"), false
	})
	add(OneLock, "limit: the common nodes are out of reach of one", func(c *MemberConfig) {
		c.Cuts = letterSets("ab", "ab")
	})
	add(OneLock, "limit: the common node does not vote", func(c *MemberConfig) {
		c.meetOnOne()
		c.Restarts = 1
	})
	return all
}
