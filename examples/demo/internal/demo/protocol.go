package demo

import "github.com/tenure-dev/tenure/examples/demo/internal/service"

// The states of a replica or a node.
const (
	Starting = "starting"
	Running  = "running"
	Frozen   = "frozen"
	Stopping = "stopping"
	Dead     = "dead"
)

// State is the whole current state, in one message. Times are Unix milliseconds, and durations are
// milliseconds.
type State struct {
	Type     string         `json:"type"` // "state"
	Now      int64          `json:"now"`
	Sentence string         `json:"sentence"` // the state in words
	Leader   string         `json:"leader"`   // empty for none
	Term     uint64         `json:"term"`
	Counters Counters       `json:"counters"`
	Switches Switches       `json:"switches"`
	Speed    float64        `json:"speed"` // the speed of time
	Story    *Story         `json:"story"` // nil while no story is told
	Takeover *Takeover      `json:"takeover"`
	Replicas []ReplicaState `json:"replicas"`
	Nodes    []NodeState    `json:"nodes"`
}

// Counters has the numbers of ticks, violations and late writes.
type Counters struct {
	Ticks    int `json:"ticks"`    // ticks that ran
	Twice    int `json:"twice"`    // attempts that ran more than once
	Overlaps int `json:"overlaps"` // pairs of leases that two replicas could rely on at once
	Refused  int `json:"refused"`  // late writes that the store refused
	Accepted int `json:"accepted"` // late writes that the store accepted, because the check was off
}

// Switches are the safeguards that can be switched off.
type Switches struct {
	Gate  bool `json:"gate"`  // the restart gate of the replicas
	Fence bool `json:"fence"` // the store's check of fencing tokens
}

// Story is the story that is being told.
type Story struct {
	Name string `json:"name"`
	Text string `json:"text"` // the current step
}

// Takeover is the last time that a replica took over from another one. Bound is the longest time
// that is promised for After: half a second after a stop in order, for processes that have to be
// woken, and a TTL more after other harm. Bound is 0, for no promise, if the lease was lost for
// want of a quorum.
type Takeover struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Cause string `json:"cause"` // what happened to the replica before: an Order.Do, or "lost"
	After int64  `json:"after"`
	Bound int64  `json:"bound"`
}

// ReplicaState is the state of a replica.
type ReplicaState struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Leads bool   `json:"leads"`
	Cut   []int  `json:"cut"` // numbers of the nodes that it cannot reach
}

// NodeState is the state of a node.
type NodeState struct {
	Number int      `json:"number"` // from 1
	State  string   `json:"state"`
	Votes  bool     `json:"votes"` // as the demonstration's own Quorum sees it
	Why    string   `json:"why"`   // why it does not vote
	Cut    []string `json:"cut"`   // names of the replicas that cannot reach it
}

// The kinds of Item.
const (
	KindTerm   = service.OfTerm // a lease on the election
	KindRun    = service.OfRun  // a lease on the job, and the run under it
	KindWrite  = "write"        // a write to the store
	KindOutage = "outage"       // a replica or a node that was harmed
)

// Item is an entry of the timeline. When it changes, it is sent again with the same ID.
type Item struct {
	Type    string `json:"type"` // "item"
	ID      int    `json:"id"`
	Kind    string `json:"kind"`
	Replica string `json:"replica"` // empty for a node's outage
	Node    int    `json:"node"`    // 0 for none
	From    int64  `json:"from"`
	To      int64  `json:"to"`    // 0 while it goes on
	Until   int64  `json:"until"` // deadline of the lease, as far as it is known; 0 for none
	Token   uint64 `json:"token"` // the fencing token; for a term it is the term's number
	Tick    int64  `json:"tick"`
	Attempt int    `json:"attempt"`
	End     string `json:"end"` // how it ended: released, lost or killed; for a write: accepted or refused
	Late    bool   `json:"late"`
	Bad     bool   `json:"bad"` // it is part of a violation
	Text    string `json:"text"`
}

// The kinds of Line.
const (
	Info  = "info"
	Fault = "fault"
	Good  = "good"
	Bad   = "bad"
)

// Line is a line of the log for people.
type Line struct {
	Type string `json:"type"` // "line"
	ID   int    `json:"id"`
	At   int64  `json:"at"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Order is an action that the reader of the page asks for. Do is one of
//
//	kill, freeze, thaw, restart   a replica, or a node (with Data or without)
//	stop                          a replica, in order
//	partition, heal               a replica and a node, or one of them from all of the others
//	jump                          a node's wall clock, by five seconds
//	deploy, late, amnesia         a story
//	mend                          everything that was harmed
//	switch                        Name ("gate" or "fence") On or off
//	speed                         time, by Factor
type Order struct {
	Do      string  `json:"do"`
	Replica string  `json:"replica,omitempty"`
	Node    int     `json:"node,omitempty"`
	Data    bool    `json:"data,omitempty"`
	Name    string  `json:"name,omitempty"`
	On      bool    `json:"on,omitempty"`
	Factor  float64 `json:"factor,omitempty"`
}
