// Package demo is the demonstration: three replicas of a service on five nodes. The reader of a
// page kills, freezes and partitions replicas and nodes. A ledger checks that the leases hold: a
// tick must not run twice, and two replicas must never be able to rely on a lease at the same time.
//
// The package does not depend on a browser. Config.Launch starts replicas. Demo.Messages returns
// messages for the page, and Demo.Do carries out an order of the page; protocol.go describes both.
//
// Every replica reaches every node over a link, which can be cut. Demo.Serve forwards the
// connections of the links. The writes that replicas report go to a store that checks their fencing
// tokens.
//
// A Demo is a monitor. Its mutex guards all of it, also what its fields point to. Methods are
// called with the mutex held, except those that other packages call, and those that say so.
// Demo.await gives the mutex up while it waits.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/examples/demo/internal/service"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

const (
	ttl = 3 * time.Second
	// stateEvery is how often the state is sent if only the time has changed.
	stateEvery = time.Second
	// observeEvery is the interval at which the nodes are asked whether they vote.
	observeEvery = 500 * time.Millisecond
)

// Process controls one life of a replica. It does not wait for the effect. "kill" ends the replica
// at once, even if it is frozen. "stop" ends it in order. "freeze" stops all its goroutines until
// "thaw".
type Process func(do string)

// Config has the parts of which a demonstration is made. Its functions, and a Process, are called
// with the mutex of the Demo held, and must not call the Demo.
type Config struct {
	Fleet *redlocktest.Fleet // the nodes
	// Launch starts a replica. It calls report for one report after the other, and then exited
	// once.
	Launch func(s service.Settings, report func(service.Report), exited func(error)) (Process, error)
	// Speed sets the speed of time: 1 is real time.
	Speed func(factor float64)
}

// Demo is a demonstration. It is safe for concurrent use, and never ends.
type Demo struct {
	cfg    Config
	orders sync.Mutex // held while an order is carried out, and taken before mu

	mu       sync.Mutex
	more     *sync.Cond // of mu; something has changed
	replicas []*replica
	nodes    []*node
	ledger   *ledger
	seen     uint64 // the largest token that the store has seen
	switches Switches
	speed    float64
	story    *Story
	takeover *Takeover
	leaver   *leaver // the leader that was harmed last; nil once a leader is elected
	flips    int     // how often the restart gate was switched
	lastID   int     // the last ID of an item or a line
	news     []any   // items and lines for the next Messages
	told     State
}

// leaver is a leader that was harmed, and the cause.
type leaver struct {
	name  string
	cause string
	at    time.Time
}

// New returns a demonstration in which nothing runs yet.
func New(cfg Config) *Demo {
	d := &Demo{cfg: cfg, ledger: newLedger(), switches: Switches{Gate: true, Fence: true}, speed: 1}
	d.more = sync.NewCond(&d.mu)
	for i := range cfg.Fleet.Nodes() {
		d.nodes = append(d.nodes, &node{number: i + 1, Node: cfg.Fleet.Node(i), state: Running})
	}
	for i, name := range []string{"a", "b", "c"} {
		d.replicas = append(d.replicas, &replica{number: i, name: name, state: Dead, cut: make([]bool, len(d.nodes))})
	}
	return d
}

// Run starts the replicas, and then asks the nodes whether they vote, until ctx ends or it fails.
func (d *Demo) Run(ctx context.Context) error {
	var err error
	d.mu.Lock()
	for _, r := range d.replicas {
		err = errors.Join(err, d.start(r))
	}
	d.mu.Unlock()
	var q *redlock.Quorum
	defer func() { _ = q.Close() }() // also if it is nil
	for as := ""; err == nil; err = ctx.Err() {
		d.mu.Lock()
		s := d.settings()
		d.mu.Unlock()
		if s.Prefix != as {
			_ = q.Close()
			as = s.Prefix
			if q, err = redlock.Open(s.Nodes, append(s.QuorumOptions(), redlock.WithIdentity("the demonstration"),
				redlock.WithClientOption(func(url string, o *valkey.ClientOption) { d.cfg.Fleet.ClientOption(url, o) }))...); err != nil {
				break
			}
		}
		d.observed(q.Nodes(ctx))
		select {
		case <-time.After(observeEvery):
		case <-ctx.Done():
		}
	}
	return err
}

// settings returns the settings of replicas that start from now on. Processes with the restart gate
// and processes without it must not share a prefix. So after the gate was switched the service has
// a new prefix, and begins without data.
func (d *Demo) settings() service.Settings {
	return service.Settings{
		Prefix: fmt.Sprintf("demo-%d", d.flips), Nodes: d.cfg.Fleet.URLs(), TTL: ttl, Gate: d.switches.Gate,
	}
}

// Messages returns the messages about changes since the last call. An item or a line is sent as it
// is now. The state is sent if it has changed, and at least once in stateEvery.
func (d *Demo) Messages() (messages [][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.look(time.Now())
	news := d.news
	d.news = nil
	s, last := d.state(), d.told
	if last.Now = s.Now; !reflect.DeepEqual(last, s) || s.Now-d.told.Now >= stateEvery.Milliseconds() {
		d.told = s
		news = append([]any{s}, news...)
	}
	for _, m := range news {
		text, err := json.Marshal(m)
		if err != nil {
			panic(err) // JSON can encode all types of protocol.go
		}
		messages = append(messages, text)
	}
	return messages
}

// tell queues an item or a line for the page, and wakes a story that waits.
func (d *Demo) tell(what any) {
	if !slices.Contains(d.news, what) {
		d.news = append(d.news, what)
	}
	d.more.Broadcast()
}

// look checks the ledger and queues its findings.
func (d *Demo) look(now time.Time) {
	found, changed := d.ledger.check(now)
	for _, text := range found {
		d.say(Bad, "%s", text)
	}
	for _, i := range changed {
		d.tell(i)
	}
	d.ledger.forget(now)
}

// say adds a line to the log.
func (d *Demo) say(kind, format string, args ...any) {
	d.lastID++
	d.tell(&Line{Type: "line", ID: d.lastID, At: time.Now().UnixMilli(), Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// add adds an item to the timeline.
func (d *Demo) add(i Item) *Item {
	d.lastID++
	i.Type, i.ID = "item", d.lastID
	d.tell(&i)
	return &i
}

// state returns the current state.
func (d *Demo) state() State {
	now := time.Now()
	s := State{
		Type: "state", Now: now.UnixMilli(), Counters: d.ledger.counters, Switches: d.switches, Speed: d.speed,
		Story: d.story, Takeover: d.takeover,
	}
	leads := "Nobody leads."
	if r := d.leader(now); r != nil {
		s.Leader, s.Term = r.name, r.term.item.Token
		leads = fmt.Sprintf("%s leads since %s.", r.name, time.UnixMilli(r.term.item.From).Format(time.TimeOnly))
	}
	for _, r := range d.replicas {
		state := ReplicaState{Name: r.name, State: r.state, Leads: r.name == s.Leader, Cut: make([]int, 0)}
		for n, cut := range r.cut {
			if cut {
				state.Cut = append(state.Cut, n+1)
			}
		}
		s.Replicas = append(s.Replicas, state)
	}
	votes := 0
	for _, n := range d.nodes {
		state := NodeState{Number: n.number, State: n.state, Votes: n.votes, Why: n.why, Cut: make([]string, 0)}
		for _, r := range d.replicas {
			if r.cut[n.number-1] {
				state.Cut = append(state.Cut, r.name)
			}
		}
		if n.votes {
			votes++
		}
		s.Nodes = append(s.Nodes, state)
	}
	quorum := len(d.nodes)/2 + 1
	s.Sentence = fmt.Sprintf("%d of %d nodes vote; %d more may fail. %s", votes, len(d.nodes), votes-quorum, leads)
	if votes < quorum {
		s.Sentence = fmt.Sprintf("%d of %d nodes vote, too few: a quorum is %d, and no lease can be acquired or kept. %s",
			votes, len(d.nodes), quorum, leads)
	}
	return s
}

// node is one of the nodes.
type node struct {
	*redlocktest.Node
	number int
	state  string
	votes  bool   // as the demonstration's own Quorum sees it
	why    string // why it does not vote
	known  bool   // it has voted at least once
	told   bool   // the vote that was last told
	outage *Item  // nil for none
}

// observed records which nodes vote. It is called without the mutex. It tells of a change when two
// looks in a row have seen it, because on a busy machine a single answer may be late.
func (d *Demo) observed(nodes []redlock.NodeStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.more.Broadcast()
	for i, s := range nodes {
		n := d.nodes[i]
		again := n.votes == s.Votes
		n.votes, n.why = s.Votes, reason(s)
		if !again || n.told == s.Votes && n.known {
			continue
		}
		switch {
		case n.known && s.Votes:
			d.say(Info, "node %d votes", n.number)
		case n.known:
			d.say(Info, "node %d does not vote: %s", n.number, n.why)
		}
		n.told, n.known = s.Votes, s.Votes || n.known
	}
}

// reason returns in a few words why a node does not vote, or "" if it does.
func reason(s redlock.NodeStatus) string {
	if !s.Votes && !s.QuarantinedUntil.IsZero() {
		return "quarantined until " + s.QuarantinedUntil.Format(time.TimeOnly)
	}
	return redlock.ErrorType(s.Err)
}

// beginOutage adds an outage to the timeline. It ends an earlier one in the same place. endOutage
// ends it.
func (d *Demo) beginOutage(of **Item, i Item) {
	d.endOutage(of)
	i.Kind, i.From = KindOutage, time.Now().UnixMilli()
	*of = d.add(i)
}

func (d *Demo) endOutage(of **Item) {
	if *of != nil {
		(*of).To = time.Now().UnixMilli()
		d.tell(*of)
		*of = nil
	}
}
