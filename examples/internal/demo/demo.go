package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/demo/service"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Process is one life of a replica, as Config.Launch starts it.
type Process interface {
	PID() int // 0 where there is none
	// Kill ends it at once, frozen or not, and Stop in order, without waiting for it.
	Kill() error
	Stop()
	// Freeze has nothing of it run until Thaw; its clocks go on.
	Freeze() error
	Thaw() error
}

// Config is what a demonstration is made of.
type Config struct {
	Where    string             // Processes or Browser
	Replicas int                // how many
	Service  service.Settings   // of all replicas; their names and numbers are filled in
	Fleet    *redlocktest.Fleet // the nodes; nil for real servers, which are left alone
	Hosts    []string           // the nodes' addresses, for people

	// Dial connects with a node, by its number from 1.
	Dial func(ctx context.Context, node int) (net.Conn, error)
	// Observe opens a Quorum with which the demonstration sees who votes. It is no replica's, and
	// its connections are never cut.
	Observe func(s service.Settings) (*redlock.Quorum, error)
	// Launch starts a replica. Its reports come one after the other, and exited is called once,
	// after the last.
	Launch func(s service.Settings, report func(service.Report), exited func(error)) (Process, error)
	// Speed sets how fast time goes; nil where that cannot be set.
	Speed func(factor float64) error
}

const (
	// lookEvery is how often the ledger is checked, and the state looked at.
	lookEvery = 100 * time.Millisecond
	// stateEvery is how often the state is told also if it is the same but for the time.
	stateEvery = time.Second
	// observeEvery is how often the nodes are asked whether they vote.
	observeEvery = 500 * time.Millisecond
)

// Demo is a demonstration. It is safe for concurrent use. Make one with New, call Run, and Close it
// when Run has returned.
type Demo struct {
	cfg    Config
	ctx    context.Context // of everything that goes on beside Run; ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	orders sync.Mutex // held while an order is carried out
	links  [][]*link  // by replica and node

	mu       sync.Mutex
	replicas []*replica // guarded by mu, as is what they point to
	nodes    []*node    // guarded by mu, as is what they point to
	ledger   *ledger    // guarded by mu
	store    store      // guarded by mu
	switches Switches   // guarded by mu
	speed    float64    // guarded by mu
	story    *Story     // guarded by mu
	takeover *Takeover  // guarded by mu
	leaver   *leaver    // guarded by mu; the leader that was harmed last, until another one leads
	claimed  uint64     // guarded by mu; the largest token that was claimed
	feed     *feed      // guarded by mu
	watching *watch     // guarded by mu
	stopping bool       // guarded by mu; no replica is started any more
	flips    int        // guarded by mu; how often the restart gate was switched

	unguarded bool // guarded by mu; a safeguard was off at some time
}

// leaver is a leader that was harmed.
type leaver struct {
	name  string
	cause string
	at    time.Time
}

// New makes a demonstration. Nothing runs yet.
func New(cfg Config) *Demo {
	d := &Demo{cfg: cfg, ledger: newLedger(), switches: Switches{Gate: true, Fence: true}, speed: 1, feed: newFeed()}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	for i, host := range cfg.Hosts {
		n := &node{number: i + 1, host: host, state: Running}
		if cfg.Fleet == nil {
			n.state = Server
		}
		d.nodes = append(d.nodes, n)
	}
	for i := range cfg.Replicas {
		d.replicas = append(d.replicas, &replica{number: i, name: string(rune('a' + i)), state: Dead})
		row := make([]*link, len(cfg.Hosts))
		for n := range row {
			row[n] = newLink()
		}
		d.links = append(d.links, row)
	}
	return d
}

// Run starts the replicas and watches them until ctx ends. Then it stops them in order, and returns
// an error if one was broken: it ended by itself, or did not stop.
func (d *Demo) Run(ctx context.Context) error {
	d.work.Go(d.observe)
	for _, r := range d.replicas {
		if err := d.start(r); err != nil {
			return errors.Join(err, d.stopAll())
		}
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	told := time.Now()
	for {
		select {
		case <-ctx.Done():
			return d.stopAll()
		case now := <-look.C:
			d.mu.Lock()
			d.look(now)
			if d.tellState(now.Sub(told) >= stateEvery) {
				told = now
			}
			d.mu.Unlock()
		}
	}
}

// look has the ledger checked, and tells what it has found. It is called with mu held.
func (d *Demo) look(now time.Time) {
	found, changed := d.ledger.check(now)
	for _, text := range found {
		d.say(Bad, text)
	}
	for _, i := range changed {
		d.feed.changed(i)
	}
	d.ledger.forget(now)
	d.feed.forget(now)
}

// Close ends what goes on beside Run, and waits for it.
func (d *Demo) Close() {
	d.cancel()
	d.work.Wait()
}

// say adds a line to the log. It is called with mu held.
func (d *Demo) say(kind, text string) { d.feed.line(kind, text) }

// addItem adds an item to the timeline. It is called with mu held.
func (d *Demo) addItem(i Item) *Item { return d.feed.add(i) }

// changedLocked tells the page of the state, if that has changed, and those that wait. It is called
// with mu held.
func (d *Demo) changedLocked() { d.tellState(false) }

// tellState tells of the state if it is another one, or always. It is called with mu held.
func (d *Demo) tellState(always bool) bool { return d.feed.state(d.stateLocked(), always) }

// State is the present.
func (d *Demo) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stateLocked()
}

// Verdict is nil unless a promise was broken: a tick ran twice, or two replicas could rely on a
// lease at once. With a safeguard off that is to be expected, and no error.
func (d *Demo) Verdict() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.ledger.counters; c.Twice+c.Overlaps > 0 && !d.unguarded {
		return fmt.Errorf("%d ticks ran twice, and %d leases overlapped", c.Twice, c.Overlaps)
	}
	return nil
}

// stateLocked is called with mu held.
func (d *Demo) stateLocked() State {
	now := time.Now()
	s := State{
		Type: "state", Now: now.UnixMilli(), Where: d.cfg.Where, Mode: "locker", TTL: d.cfg.Service.TTL.Milliseconds(),
		Counters: d.ledger.counters, Switches: d.switches, Speed: d.speed, Story: d.story, Takeover: d.takeover,
		Orders: d.orderNames(), Replicas: make([]ReplicaState, 0), Nodes: make([]NodeState, 0),
	}
	if d.cfg.Service.Elect {
		s.Mode = "elector"
	}
	var since int64
	if r := d.leader(now); r != nil {
		s.Leader, s.Term, since = r.name, r.term.item.Token, r.term.item.From
	}
	running := ""
	for _, r := range d.replicas {
		state := ReplicaState{Name: r.name, State: r.state, Leads: r.name == s.Leader, Cut: make([]int, 0)}
		if r.proc != nil {
			state.PID = r.proc.PID()
		}
		for n, l := range d.links[r.number] {
			if l.isCut() {
				state.Cut = append(state.Cut, n+1)
			}
		}
		if r.run != nil && r.run.item.Until > s.Now {
			running = r.name
		}
		s.Replicas = append(s.Replicas, state)
	}
	votes := 0
	for _, n := range d.nodes {
		state := NodeState{Number: n.number, Address: n.host, State: n.state, Votes: n.votes, Why: n.why, Cut: make([]string, 0)}
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
	s.Sentence = sentence(s, votes, since, running)
	return s
}

// sentence is the present in words.
func sentence(s State, votes int, since int64, running string) string {
	total, need := len(s.Nodes), len(s.Nodes)/2+1
	text := fmt.Sprintf("%d of %d nodes vote", votes, total)
	switch spare := votes - need; {
	case spare < 0:
		text += fmt.Sprintf(", too few: a quorum is %d, and no lease can be acquired or kept.", need)
	case spare == 0:
		text += "; no more may fail."
	case spare == 1:
		text += "; one more may fail."
	default:
		text += fmt.Sprintf("; %d more may fail.", spare)
	}
	switch {
	case s.Mode == "locker" && running != "":
		return text + fmt.Sprintf(" %s runs the job.", running)
	case s.Mode == "locker":
		return text + " Each tick goes to the replica that gets its lease."
	case s.Leader == "":
		return text + " Nobody leads."
	}
	return text + fmt.Sprintf(" %s leads since %s.", s.Leader, time.UnixMilli(since).Format(time.TimeOnly))
}

// Since returns the messages that are newer than a revision, the first time 0, the revision that
// they lead to, and a channel that is closed when there are more.
func (d *Demo) Since(revision uint64) (messages [][]byte, now uint64, more <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if revision == 0 {
		d.tellState(true)
	}
	return d.feed.since(revision)
}
