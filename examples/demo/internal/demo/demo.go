// Package demo is the demonstration: three replicas of a service on five nodes, which the reader of
// a page kills, freezes and partitions, while a ledger looks for what must never happen: a tick
// that runs twice, or two leases that two replicas could rely on at once.
//
// It knows nothing of browsers. Config.Launch starts replicas, and the page hears from it in
// messages and tells it orders, which protocol.go describes: Demo.Messages has what is new, Demo.Do
// takes an order.
//
// Every replica reaches every node over a link, which Demo.Serve forwards, so that it can be cut.
// What the replicas report that they write comes to a store that checks their fencing tokens.
package demo

import (
	"context"
	"encoding/json"
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
	// stateEvery is how often the state is told also if it is the same but for the time.
	stateEvery = time.Second
	// observeEvery is how often the nodes are asked whether they vote.
	observeEvery = 500 * time.Millisecond
)

// Process does something to one life of a replica, and does not wait for it: "kill" ends it at
// once, frozen or not, "stop" in order, and "freeze" has nothing of it run until "thaw".
type Process func(do string)

// Config is what a demonstration is made of.
type Config struct {
	Fleet *redlocktest.Fleet // the nodes
	// Launch starts a replica. Its reports come one after the other, and exited is called once,
	// after the last.
	Launch func(s service.Settings, report func(service.Report), exited func(error)) (Process, error)
	// Speed sets how fast time goes.
	Speed func(factor float64)
}

// Demo is a demonstration. It is safe for concurrent use, and never ends.
type Demo struct {
	cfg    Config
	orders sync.Mutex // held while an order is carried out
	links  [][]*link  // by replica and node

	mu       sync.Mutex
	replicas []*replica    // guarded by mu, as is what they point to
	nodes    []*node       // guarded by mu, as is what they point to
	ledger   *ledger       // guarded by mu
	seen     uint64        // guarded by mu; the largest token that the store has seen
	switches Switches      // guarded by mu
	speed    float64       // guarded by mu
	story    *Story        // guarded by mu
	takeover *Takeover     // guarded by mu
	leaver   *leaver       // guarded by mu; the leader that was harmed last, until another one leads
	flips    int           // guarded by mu; how often the restart gate was switched
	lastID   int           // guarded by mu; of an item or a line
	news     []any         // guarded by mu; items and lines to be told
	told     State         // guarded by mu
	more     chan struct{} // guarded by mu; closed with the next change
}

// leaver is a leader that was harmed.
type leaver struct {
	name  string
	cause string
	at    time.Time
}

// New makes a demonstration. Nothing runs yet.
func New(cfg Config) *Demo {
	d := &Demo{cfg: cfg, ledger: newLedger(), switches: Switches{Gate: true, Fence: true}, speed: 1, more: make(chan struct{})}
	for i := range cfg.Fleet.Nodes() {
		d.nodes = append(d.nodes, &node{number: i + 1, Node: cfg.Fleet.Node(i), state: Running})
	}
	for i, name := range []string{"a", "b", "c"} {
		d.replicas = append(d.replicas, &replica{number: i, name: name, state: Dead})
		var row []*link
		for range d.nodes {
			row = append(row, newLink())
		}
		d.links = append(d.links, row)
	}
	return d
}

// Run starts the replicas, and asks the nodes whether they vote, for ever.
func (d *Demo) Run() error {
	for _, r := range d.replicas {
		if err := d.start(r); err != nil {
			return err
		}
	}
	var q *redlock.Quorum
	for as := ""; ; time.Sleep(observeEvery) {
		d.mu.Lock()
		s := d.settings()
		d.mu.Unlock()
		if s.Prefix != as {
			_ = q.Close() // a nil one, too
			var err error
			if q, err = redlock.Open(s.Nodes, append(s.QuorumOptions(), redlock.WithIdentity("the demonstration"),
				redlock.WithClientOption(func(url string, o *valkey.ClientOption) { d.cfg.Fleet.ClientOption(url, o) }))...); err != nil {
				return err
			}
			as = s.Prefix
		}
		d.observed(q.Nodes(context.Background()))
	}
}

// settings are those of the replicas that are started from now on. It is called with mu held.
// Processes with the restart gate and without do not go together, so a service whose gate was
// switched has another name on the nodes: it begins anew.
func (d *Demo) settings() service.Settings {
	return service.Settings{
		Prefix: fmt.Sprintf("demo-%d", d.flips), Nodes: d.cfg.Fleet.URLs(), TTL: ttl, Gate: d.switches.Gate,
	}
}

// Messages are those of what has changed since the last call. Each item and line is told as it is
// now, and the state if it is another one, or was not told for a while.
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
			panic(err) // the types of protocol.go have nothing that JSON lacks
		}
		messages = append(messages, text)
	}
	return messages
}

// tell has the page told of an item or a line, and wakes the story that waits. It is called with mu
// held, as are those below.
func (d *Demo) tell(what any) {
	if !slices.Contains(d.news, what) {
		d.news = append(d.news, what)
	}
	d.changed()
}

// changed wakes the story that waits.
func (d *Demo) changed() {
	close(d.more)
	d.more = make(chan struct{})
}

// look has the ledger checked, and tells what it has found.
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

// state is the present.
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
		for n, l := range d.links[r.number] {
			if l.isCut() {
				state.Cut = append(state.Cut, n+1)
			}
		}
		s.Replicas = append(s.Replicas, state)
	}
	votes := 0
	for _, n := range d.nodes {
		state := NodeState{Number: n.number, State: n.state, Votes: n.votes, Why: n.why, Cut: make([]string, 0)}
		for i, r := range d.replicas {
			if d.links[i][n.number-1].isCut() {
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

// node is one of the nodes. The Demo's mutex guards it.
type node struct {
	*redlocktest.Node
	number int
	state  string
	votes  bool   // as the demonstration's own Quorum sees it
	why    string // it does not vote
	known  bool   // it has voted
	told   bool   // that it votes
	outage *Item  // nil for none
}

// observed takes note of which nodes vote. A change is told when it was seen twice: on a busy
// machine an answer may come late once.
func (d *Demo) observed(nodes []redlock.NodeStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.changed()
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

// reason is why a node does not vote, in a few words; empty if it does.
func reason(s redlock.NodeStatus) string {
	if !s.Votes && !s.QuarantinedUntil.IsZero() {
		return "quarantined until " + s.QuarantinedUntil.Format(time.TimeOnly)
	}
	return redlock.ErrorType(s.Err)
}

// beginOutage puts an outage on the timeline, and endOutage ends it.
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
