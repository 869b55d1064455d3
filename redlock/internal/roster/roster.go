// Package roster decides whether a process may acquire leases on its nodes.
//
// Two lists of nodes are two locks: a process with the nodes a, b and c has a quorum in a and c,
// and a process with a, b and d has another quorum in b and d. So nodes have names. Each node keeps
// a roster, a hash (roster.lua) that says which lists of names the processes have that use the
// node, and which server process they have found under each name. An entry is fresh for a lifetime.
//
// The rule is: refuse on entry, report in flight. Before a lease of a process counts, the process
// enters: it writes its list, and the servers that it has found, to all nodes in reach. Each node
// answers in the same step what was there before, so of two processes that begin at once at least
// one finds the other. A process that finds another list counts nothing, takes its own list back,
// says whose list it has found, and tries again. A process that finds another server under a name
// does not count the server that it has there itself. A process that has entered goes on, whatever
// it reads later, and reports the difference.
//
// A process reads the rosters of all nodes before it writes anything new. So a process with a wrong
// list, which tries again and again, keeps no other process out. A process that acquires nothing
// only reads.
//
// With each look at a server a process that was not refused writes its entries again, because it
// extends its leases. Once a quorum has taken the entries, leases that the process is granted count
// for an Absence; after that it enters anew.
//
// The longest TTL and the clock skew are not compared. Each process uses the largest values that
// any list says, see Limits. docs/guarantees.md has the cases that this package does not see.
package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Node is one of the process's nodes.
type Node interface {
	Send(r *node.Request)
	Status() *node.Status
	Address() string
	Reply(call *wire.Call, a node.Answer) vote.Reply // makes an answer the reply of a round
}

// Matter is a subject that people are told of.
type Matter uint8

// The matters.
const (
	Stopped   Matter = iota // the process counts nothing
	Differing               // as a node knows, other processes go on with another list, or with another server under a name
	Refused                 // as a node knows, other processes were refused
)

// Config is what a Roster needs to know.
type Config struct {
	Names []string       // of the nodes
	Node  func(int) Node // each of them
	Need  int            // how many are a quorum
	Keys  *wire.Keys     // of the roster on each node
	Clock *clock.Clock

	Identity     string        // of the process
	MaxTTL, Skew time.Duration // as the process was configured, whatever others use
	RestartGate  bool
	Timeout      time.Duration        // for the answer of a node
	LookEvery    time.Duration        // how often a server that votes is looked at
	Lifetime     time.Duration        // of entries, for the quarantine that its own leases need: see the function Lifetime
	Quarantine   func() time.Duration // that the leases of all processes need
	Background   func(func()) bool    // runs it on a goroutine of its own; false if the process ends, and it does not run

	// Longest takes over the longest TTL and skew of all lists that a node knows.
	Longest func(i int, ttl, skew time.Duration)
	// Tell tells of a matter on a node, or of the process (node 0); a nil fault says that it is
	// over.
	Tell func(about Matter, i int, why *wire.Fault)
}

// Lifetime returns for how long a server process is known under its name after it was seen: a
// quarantine, less the second by which a quarantine is rounded. So an entry keeps the next process
// at the same address from voting for no longer than its quarantine does. A list, and a server at
// another address, count for a grace longer: a process goes on for an Absence after it was heard,
// and its entry about a server may be a look older than that.
func Lifetime(quarantine time.Duration) time.Duration { return quarantine - time.Second }

const (
	// Absence is how long a process or a server may go without an answer: after that the process
	// enters anew, and the server joins anew. It is two intervals of looks at a server's clock.
	Absence     = 2 * node.MaxSampleEvery
	grace       = Absence + node.MaxSampleEvery
	refusedLife = time.Minute // how long other processes hear of a process that was refused
)

// Roster is what a process knows of the processes that use its nodes. It is safe for concurrent
// use.
type Roster struct {
	cfg  Config
	self wire.Entry // the process's list

	enters  atomic.Bool                // the process has wanted leases
	refused atomic.Pointer[wire.Fault] // why the process counts nothing; nil if it was not refused
	until   atomic.Int64               // the clock.Instant until which its leases count
	due     atomic.Int64               // the clock.Instant from which on Refresh polls
	turn    chan struct{}              // of capacity 1; full while a goroutine polls, which has the turn

	// Used only with the turn.
	began, retry clock.Instant // when the last poll began that was not given up; when a process that was refused may poll again
	last         []vote.Reply  // the replies to that poll
	entered      bool          // the process has entered, and was not refused since: it writes its entries again, because its leases may live on

	mu      sync.Mutex
	seats   []seat   // guarded by mu; of each node
	found   []func() // guarded by mu; each tells something that polls have found
	telling bool     // guarded by mu; a goroutine calls one of found
}

// seat is the state of one of the process's nodes.
type seat struct {
	id     string        // run_id of the server process that joins or counts, or did; empty if the server does not tell it
	since  clock.Instant // the quarantine of that process is counted from then on
	tries  int           // how often Join was called
	joins  bool          // it waits for a decision
	counts bool          // it may vote
	why    *wire.Fault   // why it does not count; nil for no reason
	heard  clock.Instant // when that process was asked last of what it has answered; 0 if it cannot be reached

	ttl, skew time.Duration // the longest in the lists that it had while it counted
}

// New makes a Roster of a process that has not entered.
func New(cfg Config) *Roster {
	field := []string{wire.RosterList, fmt.Sprint(cfg.RestartGate), cfg.MaxTTL.String(), cfg.Skew.String()}
	names := slices.Sorted(slices.Values(cfg.Names))
	return &Roster{cfg: cfg, seats: make([]seat, len(names)), turn: make(chan struct{}, 1), self: wire.Entry{
		Field: append(field, names...), Says: []string{cfg.Identity}, Life: cfg.Lifetime + grace,
	}}
}

func (r *Roster) now() clock.Instant { return r.cfg.Clock.Now() }

// Admitted reports whether leases that the process is granted now count.
func (r *Roster) Admitted() bool { return r.now() < clock.Instant(r.until.Load()) }

// Refused returns why the process counts nothing; nil if it was not refused.
func (r *Roster) Refused() *wire.Fault { return r.refused.Load() }

// Enters reports whether the process has wanted leases.
func (r *Roster) Enters() bool { return r.enters.Load() }

// Against returns why the grants of a node do not count although the node may vote; nil if they do.
func (r *Roster) Against(i int) *wire.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.Refused(), r.seats[i].why)
}

// strangers are conditions that a server may tell a new connection. The server may then be another
// process than the one that was known.
var strangers = []wire.Condition{wire.NoAuth, wire.TooManyUsers, wire.Protected, wire.Loading}

// hears notes that a node has answered what it was sent at that time, or cannot be reached. An
// answer says where a server was when it was asked: this process may have stood still since. While
// a server joins, another one may have answered. A timeout changes nothing yet.
func (r *Roster) hears(i int, rep *vote.Reply, sent clock.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := wire.FaultOf(rep.Err)
	switch {
	case answered(rep) && !why.IsAny(strangers...):
		if s := &r.seats[i]; !s.joins {
			s.heard = max(s.heard, sent)
		}
	case rep.Err != nil && !errors.Is(rep.Err, node.ErrTimeout):
		r.seats[i].heard = 0
	}
}

// Counts reports whether a node's server counts. A server that votes and does not count must Join
// again.
func (r *Roster) Counts(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seats[i].counts
}

// Enter writes the process's entries to its nodes, before it acquires anything. It returns why the
// process is refused. If it returns nil the process may still not be admitted, because it did not
// reach a quorum: see Admitted. Enter blocks until the nodes have answered or their time is over,
// or ctx ends.
func (r *Roster) Enter(ctx context.Context) *wire.Fault {
	lasts := func() bool { return r.now().Add(r.cfg.Timeout) < clock.Instant(r.until.Load()) }
	if lasts() {
		return nil
	}
	r.enters.Store(true)
	r.mu.Lock()
	votes := voters(r.seats)
	r.mu.Unlock()
	if votes < r.cfg.Need {
		return r.Refused() // the process enters with the last server of a quorum that joins
	}
	came := r.now()
	r.inTurn(ctx, func() {
		if r.began <= came && !lasts() {
			r.poll(context.Background()) // the next caller needs the outcome, even if this one has less time
		}
	})
	return r.Refused()
}

// voters returns how many servers count, or join.
func voters(seats []seat) (n int) {
	for _, s := range seats {
		if s.counts || s.joins {
			n++
		}
	}
	return n
}

// inTurn runs f, which polls, while no other goroutine polls, and waits for it. If ctx ends it
// returns, and f goes on.
func (r *Roster) inTurn(ctx context.Context, f func()) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	done := make(chan struct{})
	if !r.cfg.Background(func() {
		defer close(done)
		r.polls(f)
	}) {
		<-r.turn
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// polls runs f, which polls with the turn. Then it passes the turn on, and tells what was found.
func (r *Roster) polls(f func()) {
	f()
	<-r.turn
	r.tell()
}

// find notes something that tell is to tell.
func (r *Roster) find(about Matter, i int, why *wire.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, func() { r.cfg.Tell(about, i, why) })
}

// tell tells what was found, in that order, one at a time and with no lock held: the code that is
// told may acquire leases, and so poll.
func (r *Roster) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.telling && len(r.found) > 0 {
		tell := r.found[0]
		r.found, r.telling = r.found[1:], true
		r.mu.Unlock()
		tell()
		r.mu.Lock()
		r.telling = false
	}
}

// Join makes a server process count for a node, or returns why it may not, and after how long to
// try again. id is its run_id, empty if the server does not tell it, and seen is when it was asked
// for that; age is how much of a quarantine has passed. Join is called on a goroutine beside the
// node's writer. It blocks until the server is decided on, or ctx ends.
func (r *Roster) Join(ctx context.Context, i int, id string, seen clock.Instant, age time.Duration) (retry time.Duration, err error) {
	r.mu.Lock()
	s := &r.seats[i]
	*s = seat{id: id, since: r.now().Add(-age), heard: seen, joins: true, tries: s.tries + 1, ttl: s.ttl, skew: s.skew}
	r.mu.Unlock()
	r.inTurn(ctx, func() {
		r.mu.Lock()
		joins := s.joins // the poll for another server may have decided on this one
		r.mu.Unlock()
		if joins {
			r.poll(ctx)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { s.joins = false }()
	switch why := cmp.Or(s.why, r.Refused()); {
	case why != nil:
		return retryAfter(), why
	case s.joins:
		return 0, cmp.Or(ctx.Err(), node.ErrTimeout)
	}
	return 0, nil
}

// retryAfter returns how long a process that was refused waits before it tries again. It is random,
// because another process may try at the same time.
func retryAfter() time.Duration { return 2*time.Second + rand.N(time.Second) }

// Restarted notes that a node does not vote for a quarantine. Its server does not count any more,
// and is told at once which processes use it.
func (r *Roster) Restarted(i int) {
	r.mu.Lock()
	r.seats[i].counts = false
	r.mu.Unlock()
	r.due.Store(0)
	r.Refresh()
}

// Refresh writes the entries of the process again in the background, if that is due: see next. It
// is called when a node is looked at, and does not block. For a process that has not entered it
// only reads: which processes were refused, and whether others still keep servers from voting for
// longer than this process needs.
func (r *Roster) Refresh() {
	if now, due := r.now(), r.due.Load(); now < clock.Instant(due) || !r.due.CompareAndSwap(due, r.next()) {
		return
	}
	r.cfg.Background(func() {
		select {
		case r.turn <- struct{}{}:
			r.polls(func() { r.poll(context.Background()) })
		default: // another poll runs; servers that join would wait for a second one
			r.due.Store(0)
		}
	})
}

// next returns the earliest time to write again what is written now. The write comes with the first
// look after that. So it comes within one more interval of looks, and within a lifetime.
func (r *Roster) next() int64 { return int64(r.now().Add(r.cfg.LookEvery / 4)) }
