// Package roster decides whether a process may acquire leases on its nodes.
//
// Two lists of nodes are two locks: a process with the nodes a, b and c has a quorum in a and c,
// and one with a, b and d has another in b and d. So nodes have names, and each node keeps, in a
// hash (roster.lua), which lists of names the processes have that use it, and which server process
// was found under each name. An entry is fresh for a while after it was written last.
//
// The rule is: refuse on entry, report in flight. Before anything counts that a process is granted,
// it writes its list, and the servers that it has found, to all nodes in reach. Each answers in the
// same step what was there before, so of two processes one finds the other's entry. If that is
// another list, the process counts nothing, takes back what it has written, says whose list it is,
// and tries again. If another server is known under a name, it counts nothing from the one that it
// has found there. A process that counts goes on whatever it reads later, and says so.
//
// It asks all nodes before it writes to any, so one with a wrong list, which tries again and again,
// keeps nobody out. A process that acquires nothing writes nothing.
//
// What a process has written is repeated with each look at a server. It counts for an absence after
// it was heard last, and what it may have had then is over before its entries are not fresh.
//
// The longest TTL and the clock skew are not compared. Each process uses the largest that any says,
// see Limits. docs/guarantees.md has what is not seen.
package roster

import (
	"cmp"
	"context"
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

// Observer hears what is found out. Its methods are called with no lock held, and may be called at
// the same time.
type Observer interface {
	Lead(i int, lead *time.Duration, now clock.Instant) // what a node keeps of how far its clock is ahead
	Unwritten(i int, why *wire.Fault)                   // a node has not been able to keep who uses it for some time; nil for that it is again
	Differs(i int, why *wire.Fault)                     // what others at a node have that go on beside this process; nil for nothing, or not any more
	Refused(i int, others []wire.Refusal)               // processes that were refused, as a node knows them
	Longer(why *wire.Fault)                             // others have begun to use a longer TTL or skew, and which node says so
}

// Config is what a Roster needs to know.
type Config struct {
	Names []string       // of the nodes
	Node  func(int) Node // each of them
	Need  int            // how many are a quorum

	Keys         *wire.Keys    // of the roster on each node
	Identity     string        // of the process
	MaxTTL, Skew time.Duration // as the process was told, whatever others use
	RestartGate  bool
	Timeout      time.Duration        // for the answer of a node
	LookEvery    time.Duration        // how often a server that votes is looked at
	Quarantine   func() time.Duration // which the Limits may prolong
	Lifetime     time.Duration        // see Lifetime, for the sake of its own leases
	Limits       *Limits
	Clock        *clock.Clock
	Waits        *vote.Waits
	Leads        func(now clock.Instant) []*time.Duration // how far each server's clock is ahead; nil where that is not known for sure
	Background   func(func()) bool                        // runs it, unless the process ends
	Observer     Observer
}

// Limits are the largest values that other processes of the prefix use; 0 for none that is known.
// They are safe for concurrent use.
type Limits struct{ ttl, skew atomic.Int64 }

// TTL is the longest TTL.
func (l *Limits) TTL() time.Duration { return time.Duration(l.ttl.Load()) }

// Skew is the largest clock skew.
func (l *Limits) Skew() time.Duration { return time.Duration(l.skew.Load()) }

// Set replaces them.
func (l *Limits) Set(ttl, skew time.Duration) {
	l.ttl.Store(int64(ttl))
	l.skew.Store(int64(skew))
}

// Roster is what a process knows of those that use its nodes. It is safe for concurrent use.
type Roster struct {
	cfg  Config
	self wire.List

	due   atomic.Int64  // the clock.Instant from which on to refresh
	until atomic.Int64  // the clock.Instant until which the process is admitted
	polls chan struct{} // has room for who polls

	mu      sync.Mutex
	enters  bool          // guarded by mu; the process is to acquire leases
	entry   chan struct{} // guarded by mu; closed when the entry that is under way is over; nil for none
	seats   []seat        // guarded by mu; of each node
	begun   bool          // guarded by mu; the first poll is over
	settled chan struct{} // guarded by mu; closed when a seat is settled
	refused *wire.Fault   // guarded by mu; why the process counts nothing; nil for not
	retry   clock.Instant // guarded by mu; when it asks again
}

// seat is one of the process's nodes.
type seat struct {
	claim   string        // run_id of the server process that has the node's vote
	joins   *joining      // that is to count; nil for none
	id      string        // of the server process that counts, or counted last; empty without restart gate
	counts  bool          // it does
	seen    clock.Instant // when that one answered last
	settled bool          // its first look is over
	failing int           // how often in a row it could not be told
	logged  bool          // that it could not

	ttl, skew time.Duration // the largest that it knows
}

// joining is a server process that is to count.
type joining struct {
	id    string
	age   time.Duration // what counts for the quarantine
	over  bool          // it was decided
	why   error
	retry time.Duration // after how long to try again; 0 as for any other reason
}

// A process that was refused tries again after two to three seconds: another one may try at the
// same time.
const (
	retryEvery  = 2 * time.Second
	retrySpread = time.Second
)

// Lifetime is for how long a server process is known under its name after it was seen: a quarantine
// less the second by which that is rounded, so that its successor may vote as soon as it may.
func Lifetime(quarantine time.Duration) time.Duration { return quarantine - time.Second }

// Absence is after how long without an answer a process does not count any more, or a server for
// it. It is two of the looks at a server's clock. A list is fresh for a lifetime after that: then
// the leases are over, too.
const Absence = 2 * node.MaxSampleEvery

// refusedFor is for how long others hear of a process that was refused.
const refusedFor = time.Minute

// leadFor is for how long a node knows by how much its clock leads.
const leadFor = 24 * time.Hour

// New makes a Roster of a process that has not entered.
func New(cfg Config) *Roster {
	r := &Roster{cfg: cfg, seats: make([]seat, len(cfg.Names)), settled: make(chan struct{}), polls: make(chan struct{}, 1)}
	r.self = wire.List{Names: slices.Sorted(slices.Values(cfg.Names)), Gate: cfg.RestartGate, MaxTTL: cfg.MaxTTL, Skew: cfg.Skew, By: cfg.Identity}
	return r
}

func (r *Roster) now() clock.Instant { return r.cfg.Clock.Now() }

// Admitted reports whether what the process is granted counts.
func (r *Roster) Admitted() bool { return r.admittedFor(0) }

// admittedFor reports whether it will for so long.
func (r *Roster) admittedFor(d time.Duration) bool {
	return r.now().Add(d) < clock.Instant(r.until.Load())
}

// Refused is why the process counts nothing; nil for not.
func (r *Roster) Refused() *wire.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Enters reports whether the process has wanted leases.
func (r *Roster) Enters() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.enters
}

// Enter has a process write that it uses its nodes, before it acquires anything, and returns why it
// may not. Servers that do not count yet do so when they join. It ends with ctx.
func (r *Roster) Enter(ctx context.Context) *wire.Fault {
	if r.admittedFor(r.cfg.Timeout) {
		return nil
	}
	r.mu.Lock()
	r.enters = true
	counts := 0
	for i := range r.seats {
		if r.seats[i].counts {
			counts++
		}
	}
	why, over := r.refused, r.entry
	if waits := why != nil && r.now() < r.retry; waits || counts < r.cfg.Need {
		r.mu.Unlock()
		return why
	}
	begins := over == nil
	if begins {
		over = make(chan struct{})
		r.entry = over
	}
	r.mu.Unlock()
	if begins && !r.cfg.Background(r.enter) {
		r.endEntry()
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
	return r.Refused()
}

// enter polls for all that wait for it.
func (r *Roster) enter() {
	defer r.endEntry()
	r.inTurn(context.Background(), func() {
		if !r.admittedFor(r.cfg.Timeout) {
			r.poll(context.Background())
		}
	})
}

func (r *Roster) endEntry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.entry)
	r.entry = nil
}

// inTurn does what polls while nobody else does.
func (r *Roster) inTurn(ctx context.Context, f func()) {
	select {
	case r.polls <- struct{}{}:
		f()
		<-r.polls
	case <-ctx.Done():
	}
}

// Claim gives the vote of a server process to a node, or returns the address of the other node that
// has it. A node has one process.
func (r *Roster) Claim(i int, id string) (other string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seats[i].claim = ""
	for k := range r.seats {
		if r.seats[k].claim == id {
			return r.cfg.Node(k).Address()
		}
	}
	r.seats[i].claim = id
	return ""
}

// Settled notes that a node's first look is over: the node may not vote, and is silent or says why.
func (r *Roster) Settled(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle(i)
}

// settle is called with mu held.
func (r *Roster) settle(i int) {
	if !r.seats[i].settled {
		r.seats[i].settled = true
		close(r.settled)
		r.settled = make(chan struct{})
	}
}

// Counts reports whether a node's server counts. One that votes and does not is to Join again.
func (r *Roster) Counts(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seats[i].counts
}

// Restarted notes that a node does not vote for a quarantine: its server does not count, and hears
// at once who uses it.
func (r *Roster) Restarted(i int) {
	r.mu.Lock()
	r.seats[i].counts = false
	r.mu.Unlock()
	r.refresh()
}

// Join has a server count for a node, or returns why it may not, and after how long to try again; 0
// as for any other reason. age is what counts for the quarantine. It is called beside the node's
// writer, and ends with ctx.
func (r *Roster) Join(ctx context.Context, i int, id string, age time.Duration) (retry time.Duration, err error) {
	if !r.cfg.RestartGate {
		id = ""
	}
	j := &joining{id: id, age: age}
	r.mu.Lock()
	r.seats[i].joins, r.seats[i].counts = j, false
	r.settle(i)
	r.mu.Unlock()
	r.inTurn(ctx, func() {
		r.gather(ctx)
		r.mu.Lock()
		if left := r.retry.Sub(r.now()); !j.over && r.refused != nil && left > 0 { // all servers join at about the same time
			j.over, j.why, j.retry, r.seats[i].joins = true, r.refused, left, nil
		}
		over := j.over
		r.mu.Unlock()
		if !over {
			r.poll(ctx)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if !j.over {
		return 0, cmp.Or(ctx.Err(), node.ErrAbandoned)
	}
	return j.retry, j.why
}

// gather waits for the other nodes of a process that begins: each of them may be the one that
// disagrees.
func (r *Roster) gather(ctx context.Context) {
	timer := time.NewTimer(r.cfg.Timeout / 2)
	defer timer.Stop()
	for {
		r.mu.Lock()
		ready := r.begun || !slices.ContainsFunc(r.seats, func(s seat) bool { return !s.settled })
		changed := r.settled
		r.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Refresh says again what the process has, in the background, once in a while. It is called when a
// node is looked at.
func (r *Roster) Refresh() {
	if int64(r.now()) >= r.due.Load() {
		r.refresh()
	}
}

// refresh does so at once. There is one for each look at least, and two in a lifetime. A process
// that counts nothing has servers join.
func (r *Roster) refresh() {
	r.due.Store(int64(r.now().Add(min(r.cfg.LookEvery*3/4, r.cfg.Lifetime/2))))
	r.mu.Lock()
	counts := slices.ContainsFunc(r.seats, func(s seat) bool { return s.counts })
	r.mu.Unlock()
	if counts || r.Longer() != "" {
		r.cfg.Background(func() { r.inTurn(context.Background(), func() { r.poll(context.Background()) }) })
	}
}

func (r *Roster) nextRetry() time.Duration { return retryEvery + rand.N(retrySpread) }
