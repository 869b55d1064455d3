// Package roster decides whether a process may acquire leases on its nodes.
//
// Two lists of nodes are two locks: a process with the nodes a, b and c has a quorum in a and c,
// and one with a, b and d has another in b and d. So nodes have names, and each node keeps, in a
// hash (roster.lua), which lists of names the processes have that use it, and which server process
// they have found under each name. What a process has written is fresh for a lifetime.
//
// The rule is: refuse on entry, report in flight. Before a lease counts that a process is granted,
// it writes its list and the servers that it has found to all nodes in reach. Each answers in the
// same step what was there before, so of two processes that begin at once one at least finds the
// other. If that has another list, the process counts nothing, takes its own back, says whose list
// it is, and tries again. If others have found another server under a name, it counts nothing from
// the one that it has found. A process that goes on does so whatever it reads later, and says it.
//
// It reads everywhere before it writes anything new, so one with a wrong list, which tries again
// and again, keeps nobody out. A process that acquires nothing reads only.
//
// With each look at a server a process writes again what it has, for as long as it was not refused:
// it extends its leases. What it is granted counts for an absence after a quorum has taken that;
// then it enters anew.
//
// The longest TTL and the clock skew are not compared. Each process uses the largest that any list
// says, see Limits. docs/guarantees.md has what is not seen.
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
	Send(r *node.Request) error
	Status() *node.Status
	Address() string
	Reply(call *wire.Call, a node.Answer) vote.Reply // an answer as rounds take it
}

// Matter is what people are told of.
type Matter uint8

// The matters.
const (
	Stopped   Matter = iota // the process counts nothing
	Differing               // others go on beside it with another list, or another server under a name, as a node knows
	Refused                 // other processes were refused, as a node knows
)

// Config is what a Roster needs to know.
type Config struct {
	Names []string       // of the nodes
	Node  func(int) Node // each of them
	Need  int            // how many are a quorum
	Keys  *wire.Keys     // of the roster on each node
	Clock *clock.Clock
	Waits *vote.Waits

	Identity     string        // of the process
	MaxTTL, Skew time.Duration // as the process was told, whatever others use
	RestartGate  bool
	Timeout      time.Duration        // for the answer of a node
	LookEvery    time.Duration        // how often a server that votes is looked at
	Lifetime     time.Duration        // see Lifetime, for the sake of its own leases
	Quarantine   func() time.Duration // for those of all processes
	Background   func(func()) bool    // runs it, unless the process ends

	// Longest takes over the longest TTL and skew of all lists that a node knows.
	Longest func(i int, ttl, skew time.Duration)
	// Tell tells of a node, or of 0; a nil fault is for that it is not so.
	Tell func(about Matter, i int, why *wire.Fault)
}

// Lifetime is for how long a server process is known under its name after it was seen: a quarantine
// less the second by which that is rounded, so that the next process at the same address may vote
// as soon as it may. A list, and a server at another address, count for a grace more: a process
// goes on for an Absence after it was heard, and had written a look before that which servers it
// counts.
func Lifetime(quarantine time.Duration) time.Duration { return quarantine - time.Second }

const (
	// Absence is after how long without an answer a process has to enter anew, and a server to
	// join. It is two of the looks at a server's clock.
	Absence     = 2 * node.MaxSampleEvery
	grace       = Absence + node.MaxSampleEvery
	refusedLife = time.Minute // for which others hear of a process that was
)

// Roster is what a process knows of those that use its nodes. It is safe for concurrent use.
type Roster struct {
	cfg  Config
	self wire.Entry // its list

	enters  atomic.Bool                // the process is to acquire leases
	refused atomic.Pointer[wire.Fault] // why it counts nothing; nil for not
	until   atomic.Int64               // the clock.Instant until which it goes on
	due     atomic.Int64               // from which on to refresh
	turn    chan struct{}              // has room for who polls

	// Of who polls.
	began, retry clock.Instant // when the last poll began that was not given up, and the next may once it was refused
	last         []vote.Reply  // to that
	entered      bool          // and was not refused since: it writes on, as its leases may live on

	mu      sync.Mutex
	seats   []seat   // guarded by mu; of each node
	found   []func() // guarded by mu; tell what polls have found
	telling bool     // guarded by mu
}

// seat is one of the process's nodes.
type seat struct {
	id     string        // run_id of the server process that joins or counts, or did; empty where it does not tell
	since  clock.Instant // when that began to be well
	tries  int           // how often one has joined
	joins  bool          // it is to be decided
	counts bool          // it may vote
	why    *wire.Fault   // not
	heard  clock.Instant // when it has answered last; 0 where it cannot be reached

	ttl, skew time.Duration // the longest that it knew while it counted
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

// Admitted reports whether leases that the process is granted count.
func (r *Roster) Admitted() bool { return r.now() < clock.Instant(r.until.Load()) }

// Refused is why the process counts nothing; nil for not.
func (r *Roster) Refused() *wire.Fault { return r.refused.Load() }

// Enters reports whether the process has wanted leases.
func (r *Roster) Enters() bool { return r.enters.Load() }

// Against is why nothing counts of what a node grants, although that may vote; nil for nothing.
func (r *Roster) Against(i int) *wire.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.Refused(), r.seats[i].why)
}

// strangers are conditions of which a server tells a new connection: it may be another process than
// the one that was known.
var strangers = []wire.Condition{wire.NoAuth, wire.TooManyUsers, wire.Protected, wire.Loading}

// hears notes that a node has answered, or cannot be reached. That it is silent tells nothing yet.
func (r *Roster) hears(i int, rep *vote.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := wire.FaultOf(rep.Err)
	switch {
	case answered(rep) && (why == nil || !slices.Contains(strangers, why.Condition)):
		r.seats[i].heard = r.now()
	case rep.Err != nil && !errors.Is(rep.Err, node.ErrTimeout):
		r.seats[i].heard = 0
	}
}

// Counts reports whether a node's server counts. One that votes and does not is to Join again.
func (r *Roster) Counts(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seats[i].counts
}

// Enter has a process write that it uses its nodes, before it acquires anything, and returns why
// it is refused. It returns when ctx ends, and a process that does not reach a quorum is not
// admitted.
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
			r.poll(context.Background()) // also for who comes next, if the caller has less time
		}
	})
	return r.Refused()
}

// voters is how many servers count, or join.
func voters(seats []seat) (n int) {
	for _, s := range seats {
		if s.counts || s.joins {
			n++
		}
	}
	return n
}

// inTurn does what polls while nobody else does. It returns when ctx ends, and f goes on.
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

// polls does what polls and has the turn, and has it told what was found.
func (r *Roster) polls(f func()) {
	f()
	<-r.turn
	r.tell()
}

// find notes what is to be told.
func (r *Roster) find(about Matter, i int, why *wire.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, func() { r.cfg.Tell(about, i, why) })
}

// tell tells what was found, in that order, while nobody else does. Who is told may acquire leases,
// and poll.
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

// Join has a server process count for a node, or returns why it may not, and after how long to try
// again. id is its run_id, empty if it does not tell, and age what counts for the quarantine. It is
// called beside the node's writer, and ends with ctx.
func (r *Roster) Join(ctx context.Context, i int, id string, age time.Duration) (retry time.Duration, err error) {
	r.mu.Lock()
	s := &r.seats[i]
	*s = seat{id: id, since: r.now().Add(-age), joins: true, tries: s.tries + 1, ttl: s.ttl, skew: s.skew}
	r.mu.Unlock()
	r.inTurn(ctx, func() {
		r.mu.Lock()
		joins := s.joins // others may have been decided with this one
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

// retryAfter is when a process that was refused tries again: another one may try at the same time.
func retryAfter() time.Duration { return 2*time.Second + rand.N(time.Second) }

// Restarted notes that a node does not vote for a quarantine: its server does not count, and hears
// at once who uses it.
func (r *Roster) Restarted(i int) {
	r.mu.Lock()
	r.seats[i].counts = false
	r.mu.Unlock()
	r.due.Store(0)
	r.Refresh()
}

// Refresh writes again what the process has, in the background, once in a while: see next. It is
// called when a node is looked at. A process that has not entered only reads: who was refused, and
// whether others still keep servers from voting for longer than it needs itself.
func (r *Roster) Refresh() {
	if now, due := r.now(), r.due.Load(); now < clock.Instant(due) || !r.due.CompareAndSwap(due, r.next()) {
		return
	}
	r.cfg.Background(func() {
		select {
		case r.turn <- struct{}{}:
			r.polls(func() { r.poll(context.Background()) })
		default: // servers that join would wait for it
			r.due.Store(0)
		}
	})
}

// next is when to write again what was written now, at the earliest: with the look at the latest
// that comes a whole one after that, which is within a lifetime.
func (r *Roster) next() int64 { return int64(r.now().Add(r.cfg.LookEvery / 4)) }
