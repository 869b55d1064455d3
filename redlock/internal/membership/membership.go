// Package membership decides which servers count for a process.
//
// Two lists of nodes are two locks: a process with the nodes a, b and c has a quorum in a and c,
// and one with a, b and d has another in b and d. So each node keeps with which other servers the
// processes that use it vouch for it (belong.lua), and a server counts for a process when all of
// that agrees: fresh servers and those of the process together are no more than it has nodes, and
// the number of nodes is the same. A server that nobody has seen for a lifetime is an empty seat,
// which another may take.
//
// The rule is: refuse on entry, report in flight. A process that begins asks all nodes in reach
// before it writes to any, and counts none if one of them disagrees: it would be a danger to those
// that go on, so it waits, and says who they are. A process whose nodes were a quorum once never
// stops for what it finds later. A server that comes later (it was restarted, or was out of reach)
// counts for it if all others that count agree, too.
//
// Servers are known by their run_id, which is new with each process of a server; without a restart
// gate by an id that is kept with their data, because a server may then vote as soon as it is back.
//
// A process that acquires nothing asks, and never enters: its list is no danger to anybody, and
// keeps nobody out.
//
// The longest TTL and the clock skew are not compared. Each process uses the largest that any says,
// see Limits. docs/guarantees.md has what is not seen.
package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// Observer hears what is found out in flight. Its methods are called with no lock held, and may be
// called at the same time.
type Observer interface {
	Lead(i int, lead *time.Duration, now clock.Instant) // what a node keeps of how far its clock is ahead
	Unwritten(i int, why *wire.Fault)                   // a node has not been able to keep who uses it for some time; nil for that it is again
	Differs(i int, why *wire.Fault)                     // how others' list at a node differs; nil for not, or not any more
	Longer(why *wire.Fault)                             // others have begun to use a longer TTL or skew, and which node says so
}

// Config is what a Membership needs to know.
type Config struct {
	Nodes int            // how many there are
	Node  func(int) Node // each of them
	Need  int            // how many are a quorum

	Keys                   *wire.Keys    // of the list on each node
	Identity               string        // of the process
	MaxTTL, Skew           time.Duration // as the process was told, whatever others use
	RestartGate, TakesPart bool
	Timeout                time.Duration        // for the answer of a node
	LookEvery              time.Duration        // how often a server that votes is looked at
	Quarantine             func() time.Duration // which the Limits may prolong
	Lifetime               time.Duration        // of what it writes, for the sake of its own leases
	Limits                 *Limits
	Clock                  *clock.Clock
	Waits                  *vote.Waits
	Leads                  func(now clock.Instant) []*time.Duration // how far each server's clock is ahead; nil where that is not known for sure
	Background             func(func())                             // runs it, unless the process ends
	Observer               Observer
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

// Membership is what a process knows of who belongs to its nodes. It is safe for concurrent use.
type Membership struct {
	cfg Config

	due atomic.Int64 // the clock.Instant from which on to refresh

	mu       sync.Mutex
	seats    []seat        // guarded by mu; of each node
	waiting  []*joining    // guarded by mu; that have not been decided
	deciding bool          // guarded by mu; one of those that join decides for all
	admitted bool          // guarded by mu; a quorum of nodes has counted
	settled  chan struct{} // guarded by mu; closed when a seat is settled
}

// seat is one of the process's nodes.
type seat struct {
	id      string        // of the server that counts, or counted last
	counts  bool          // it does
	seen    clock.Instant // when that one answered last
	settled bool          // its first look is over, since the process began or was refused
	refused bool          // when it was looked at last, because the process does not belong
	failing clock.Instant // since when it cannot be told; 0 for never
	logged  bool          // that it was not
	gone    []vouched     // servers that counted, and in whose place another was found, the latest ones

	ttl, skew time.Duration // the largest that it knows
}

// joining is a server that is to count.
type joining struct {
	seat int
	id   string        // run_id; empty for what is kept with its data
	age  time.Duration // what counts for the quarantine
	done chan struct{}

	// Set before done is closed.
	why   error
	retry time.Duration // after how long to try again; 0 as for any other reason
}

// grace is for how much longer than its lifetime an entry keeps a process out that begins. The one
// that wrote it may have been cut off right before it would have written it again, and its leases
// live on.
//
// A process relies on a server until that has been silent for the absence, its leases for a TTL
// more, which is in the lifetime; and what it has written of the server may be as old as its last
// look.
const grace = Absence + 2*node.MaxSampleEvery

// A process that was refused tries again after two to three seconds: another one may try at the
// same time.
const (
	retryEvery  = 2 * time.Second
	retrySpread = time.Second
)

// Absence is after how long without an answer a server does not count any more: others may take it
// for gone. It is two of the looks at its clock.
const Absence = 2 * node.MaxSampleEvery

// Lifetime is for how long a server is taken for one that a process uses, after that has seen it: a
// quarantine less the second by which that is rounded, so that a server that was restarted finds
// the seat empty when it may vote.
func Lifetime(quarantine time.Duration) time.Duration { return quarantine - time.Second }

// New makes a Membership, of which no server counts yet.
func New(cfg Config) *Membership {
	return &Membership{cfg: cfg, seats: make([]seat, cfg.Nodes), settled: make(chan struct{})}
}

func (m *Membership) lifetime() time.Duration { return Lifetime(m.cfg.Quarantine()) }

func (m *Membership) now() clock.Instant { return m.cfg.Clock.Now() }

func (m *Membership) address(i int) string { return m.cfg.Node(i).Address() }

// Settled notes that a node's first look is over, since the process began or was refused: the node
// may not vote, and is silent or says why.
func (m *Membership) Settled(i int, silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if silent || !m.seats[i].refused {
		m.settleSeat(i)
	}
}

// Counts reports whether a node's server counts. One that votes and does not is to Join again: it
// was taken for gone.
func (m *Membership) Counts(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seats[i].counts
}

// Restarted notes that a node does not vote for a quarantine: its server does not count, and hears
// at once who uses it.
func (m *Membership) Restarted(i int) {
	m.mu.Lock()
	m.seats[i].counts = false
	m.mu.Unlock()
	m.refresh()
}

// Replaced notes that another server process answers for a node than before, so that nobody waits
// for the one that counted longer than its leases last.
func (m *Membership) Replaced(i int, process string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.seats[i]
	if s.id == "" || s.id == process || has(s.gone, s.id) >= 0 || !m.cfg.RestartGate {
		return
	}
	s.gone = append(s.gone[max(len(s.gone)-maxGone+1, 0):], vouched{s.id, m.now()})
}

// maxGone is how many restarts of a server are said to the others, of those within a lifetime and a
// grace.
const maxGone = 4

// settleSeat is called with mu held.
func (m *Membership) settleSeat(i int) {
	if !m.seats[i].settled {
		m.seats[i].settled = true
		close(m.settled)
		m.settled = make(chan struct{})
	}
}

// Join has a server count for a node, or returns why it may not, and after how long to try again; 0
// as for any other reason. age is what counts for the quarantine. It is called beside the node's
// writer, and waits for answers until ctx ends.
func (m *Membership) Join(ctx context.Context, i int, runID string, age time.Duration) (retry time.Duration, err error) {
	j := &joining{seat: i, age: age, done: make(chan struct{})}
	if m.cfg.RestartGate {
		j.id = runID
	}
	m.mu.Lock()
	if s := &m.seats[j.seat]; j.id != "" && s.counts && s.id == j.id && m.now().Sub(s.seen) < Absence {
		m.mu.Unlock()
		return 0, nil
	}
	m.waiting = append(m.waiting, j)
	m.seats[j.seat].refused = false
	m.settleSeat(j.seat)
	decide := !m.deciding
	m.deciding = true
	m.mu.Unlock()
	if decide {
		m.decide(ctx)
	}
	select {
	case <-j.done:
		return j.retry, j.why
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// decide decides for all that wait.
func (m *Membership) decide(ctx context.Context) {
	m.gather(ctx)
	for {
		m.mu.Lock()
		all := m.waiting
		if len(all) == 0 {
			m.deciding = false
			m.mu.Unlock()
			return
		}
		if m.admitted {
			all = all[:1]
		}
		m.waiting = slices.Clone(m.waiting[len(all):])
		m.mu.Unlock()
		m.admit(ctx, all)
		for _, j := range all {
			close(j.done)
		}
	}
}

// gather waits for the other nodes of a process that begins: each of them may be the one that
// disagrees. A node that has not answered in half of its timeout is out of reach: who acquires
// waits no longer than that timeout.
func (m *Membership) gather(ctx context.Context) {
	timer := time.NewTimer(m.cfg.Timeout / 2)
	defer timer.Stop()
	for {
		m.mu.Lock()
		ready := m.admitted || !slices.ContainsFunc(m.seatsOnly(), func(settled bool) bool { return !settled })
		changed := m.settled
		m.mu.Unlock()
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

// seatsOnly tells which seats are settled. Called with mu held.
func (m *Membership) seatsOnly() []bool {
	all := make([]bool, len(m.seats))
	for i := range m.seats {
		all[i] = m.seats[i].settled
	}
	return all
}

// admit finds out whether servers may count, and says so to each of those that join.
func (m *Membership) admit(ctx context.Context, all []*joining) {
	m.mu.Lock()
	m.drop()
	entering := !m.admitted
	for _, j := range all {
		m.seats[j.seat].counts = false // until it is decided
	}
	ids := m.claims()
	for _, j := range all {
		ids[j.seat] = vouched{j.id, m.now()}
	}
	m.mu.Unlock()
	asked := m.poll(ctx, wire.Asking, ids, m.reachable(all))
	if !m.cfg.RestartGate {
		for _, j := range all {
			if known := asked[j.seat].More().Members; known != nil {
				j.id, ids[j.seat].id = known.ID, known.ID
			}
		}
		asked = m.poll(ctx, wire.Asking, ids, m.reachable(all))
	}
	joined := len(all)
	if all = m.answered(all, asked, ids); len(all) == 0 {
		return
	}
	if len(all) < joined {
		asked = m.poll(ctx, wire.Asking, ids, m.reachable(all))
	}
	why := m.disagreement(asked, ids)
	if why == nil && m.cfg.TakesPart {
		wrote := m.poll(ctx, wire.Entering, ids, m.reachable(all))
		why = m.disagreement(wrote, ids)
		if why == nil && !entering && !m.agree(wrote, all, ids) {
			why = &wire.Fault{Condition: wire.Restarted, Detail: "not all of the other nodes answer that this process counts, to ask whether it may"}
		}
		if why != nil {
			m.withdraw(ctx, asked, wrote, ids)
		}
	}
	m.mu.Lock()
	if entering {
		for i := range m.seats {
			m.seats[i].settled = m.seats[i].settled && why == nil
		}
	}
	now, retry := m.now(), retryEvery+rand.N(retrySpread)
	for _, j := range all {
		s := &m.seats[j.seat]
		if j.why, j.retry, s.refused = why, retry, why != nil; why == nil {
			s.id, s.counts, s.seen = j.id, true, now
		}
	}
	counts := 0
	for i := range m.seats {
		if m.seats[i].counts {
			counts++
		}
	}
	m.admitted = m.admitted || counts >= m.cfg.Need
	m.mu.Unlock()
	m.refreshed()
}

// vouched is a server that counts, or is to.
type vouched struct {
	id   string // empty for none
	seen clock.Instant
}

// claims are the servers that count, of all nodes. Called with mu held.
func (m *Membership) claims() []vouched {
	all := make([]vouched, len(m.seats))
	for i := range m.seats {
		if s := &m.seats[i]; s.counts {
			all[i] = vouched{s.id, s.seen}
		}
	}
	return all
}

// has returns where among those a server is; -1 for nowhere.
func has(all []vouched, id string) int {
	return slices.IndexFunc(all, func(c vouched) bool { return c.id != "" && c.id == id })
}

// drop takes servers for gone that have been silent for long. If those that are left are no quorum,
// the process has to begin again. Called with mu held.
func (m *Membership) drop() {
	now, counts := m.now(), 0
	for i := range m.seats {
		s := &m.seats[i]
		if s.counts && now.Sub(s.seen) > Absence {
			s.counts = false
		}
		if s.counts {
			counts++
		}
	}
	m.admitted = m.admitted && counts >= m.cfg.Need
}

// agree reports whether all nodes that count agree to those that join, or could not be told, and
// are still the servers that they were.
func (m *Membership) agree(replies []vote.Reply, all []*joining, ids []vouched) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range replies {
		rep := &replies[i]
		joins := slices.ContainsFunc(all, func(j *joining) bool { return j.seat == i })
		switch {
		case ids[i].id == "":
		case rep.Verdict != wire.OK && (rep.Err == nil || !wire.IsServerError(rep.Err)):
			return false
		case !joins && !m.seats[i].counts:
			return false // it was restarted meanwhile
		}
	}
	return true
}

// answered returns those that may count for all that is known of their own server, and lets the
// others know why not.
func (m *Membership) answered(all []*joining, replies []vote.Reply, ids []vouched) (left []*joining) {
	for _, j := range all {
		rep := &replies[j.seat]
		switch other := m.twin(j, ids); {
		case rep.Err != nil && !wire.IsServerError(rep.Err):
			j.why = rep.Err
		case rep.Verdict == wire.Pending:
			j.why = node.ErrTimeout
		case m.cfg.RestartGate && j.age < m.cfg.Quarantine():
			j.why = &wire.Fault{Condition: wire.Quarantined, Detail: m.Longer()}
		case other >= 0:
			j.why = &wire.Fault{Condition: wire.Duplicate, Detail: "it is the same server as " + m.address(other) + " (both have the id " + j.id + ")"}
			ids[j.seat] = vouched{}
		default:
			left = append(left, j)
			continue
		}
		ids[j.seat] = vouched{}
	}
	return left
}

// twin is another node with the same server, which counts already or joins before that one; -1 for
// none.
func (m *Membership) twin(j *joining, ids []vouched) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range ids {
		if k != j.seat && j.id != "" && ids[k].id == j.id && (k < j.seat || m.seats[k].counts) {
			return k
		}
	}
	return -1
}

// reachable are the nodes that are asked: those that join or count, and others that answer.
func (m *Membership) reachable(all []*joining) (nodes []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.seats {
		joins := slices.ContainsFunc(all, func(j *joining) bool { return j.seat == i })
		if status := m.cfg.Node(i).Status(); joins || m.seats[i].counts || status.Fault != nil {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// poll tells nodes which servers count, or would, and returns their answers, one for each node.
func (m *Membership) poll(ctx context.Context, mode wire.Mode, ids []vouched, nodes []int) []vote.Reply {
	return m.send(ctx, mode, nodes, func(int) *wire.Membership { return m.words(mode, ids) })
}

// words are what is said to each of the nodes.
func (m *Membership) words(mode wire.Mode, ids []vouched) *wire.Membership {
	lifetime := m.lifetime()
	w := &wire.Membership{
		Mode: mode, Nodes: m.cfg.Nodes, MaxTTL: m.cfg.MaxTTL, Skew: m.cfg.Skew,
		Lifetime: m.cfg.Lifetime, Grace: grace, Identity: m.cfg.Identity,
	}
	now := m.now()
	for i, c := range ids {
		if c.id != "" {
			w.Servers = append(w.Servers, wire.Server{ID: c.id, Address: m.address(i), Age: now.Sub(c.seen)})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.seats {
		for _, g := range m.seats[i].gone {
			if has(ids, g.id) < 0 && now.Sub(g.seen) <= lifetime+grace {
				w.Servers = append(w.Servers, wire.Server{ID: g.id, Address: m.address(i), Gone: true})
			}
		}
	}
	return w
}

// send asks nodes, and waits for the node timeout at most.
func (m *Membership) send(ctx context.Context, mode wire.Mode, nodes []int, words func(i int) *wire.Membership) []vote.Reply {
	p := &poll{m: m}
	p.Start(m.cfg.Nodes, m.cfg.Nodes)
	p.Decided = func([]vote.Reply) bool { return false }
	now := m.now()
	expires, leads := now.Add(m.cfg.Timeout), m.cfg.Leads(now)
	for i := range m.cfg.Nodes {
		if !slices.Contains(nodes, i) {
			p.Skip(i, wire.Failed)
			continue
		}
		w := words(i)
		w.Lead = leads[i]
		if !m.cfg.RestartGate {
			w.NewID = m.newID(i)
		}
		r := &node.Request{Call: &wire.Call{Op: wire.Belong, Keys: m.cfg.Keys, Members: w.Words()}, To: p, Slot: i, Expires: expires}
		if err := m.cfg.Node(i).Send(r); err != nil {
			p.Answered(r, node.NotTaken(err))
		}
	}
	_ = p.Wait(ctx, m.cfg.Timeout, m.cfg.Waits)
	replies := p.Outcome().Replies
	m.hear(mode, nodes, replies)
	return replies
}

// newID is the id of a server that has lost its own, or has none yet.
func (m *Membership) newID(i int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seats[i].id == "" {
		m.seats[i].id = wire.NewServerID()
	}
	return m.seats[i].id
}

// poll is a question to several nodes.
type poll struct {
	vote.Round

	m *Membership
}

// Answered takes a node's answer.
func (p *poll) Answered(r *node.Request, a node.Answer) {
	p.Answer(r.Slot, p.m.cfg.Node(r.Slot).Reply(r.Call, a))
}

// hear takes over what nodes know, and tells what they cannot be told.
func (m *Membership) hear(mode wire.Mode, nodes []int, replies []vote.Reply) {
	m.mu.Lock()
	now := m.now()
	var ttl, skew time.Duration
	unwritten := make(map[int]*wire.Fault)
	for i := range m.seats {
		s := &m.seats[i]
		if rep := &replies[i]; slices.Contains(nodes, i) {
			var why *wire.Fault
			votes := m.cfg.Node(i).Status().Reason() == nil
			refused := rep.Err != nil && wire.IsServerError(rep.Err)
			switch {
			case rep.More().Members != nil:
				s.ttl, s.skew = rep.More().Members.MaxTTL, rep.More().Members.Skew
				if text := rep.More().Members.Unwritten; text != "" {
					why = unwrittenBy(errors.New(text))
				}
			case refused:
				why = unwrittenBy(rep.Err)
			}
			// One that refuses to keep the list is there, and others must hear of it when it does
			// again. After an absence another process may have answered.
			if (rep.More().Members != nil || refused) && votes && now.Sub(s.seen) < Absence {
				s.seen = now
			}
			switch {
			case why != nil:
				// A server that refuses more than that loses its vote with the next look.
				if s.failing == 0 {
					s.failing = now
				}
				if votes && now.Sub(s.failing) > m.cfg.LookEvery && !s.logged {
					s.logged = true
					unwritten[i] = why
				}
			case rep.More().Members != nil && mode != wire.Asking:
				if s.logged {
					unwritten[i] = nil
				}
				s.failing, s.logged = 0, false
			}
		}
		ttl, skew = max(ttl, s.ttl), max(skew, s.skew)
	}
	longer := ttl > max(m.cfg.MaxTTL, m.cfg.Limits.TTL()) || skew > max(m.cfg.Skew, m.cfg.Limits.Skew())
	m.cfg.Limits.Set(ttl, skew)
	m.mu.Unlock()
	if longer {
		m.cfg.Observer.Longer(&wire.Fault{Condition: wire.Quarantined, Detail: m.Longer()})
	}
	for i := range replies {
		if known := replies[i].More().Members; known != nil && slices.Contains(nodes, i) {
			m.cfg.Observer.Lead(i, known.Lead, now)
		}
	}
	for i, why := range unwritten {
		m.cfg.Observer.Unwritten(i, why)
	}
}

// Longer is why the quarantine is longer than this process needs, by the nodes that say so; empty
// if it is not.
func (m *Membership) Longer() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ttl, skew := m.cfg.MaxTTL, m.cfg.Skew
	var ttlBy, skewBy string
	for i := range m.seats {
		s, by := &m.seats[i], m.cfg.Keys.Lock+" on "+m.address(i)
		if s.ttl > ttl {
			ttl, ttlBy = s.ttl, fmt.Sprintf(", a TTL of %v by %s", s.ttl, by)
		}
		if s.skew > skew {
			skew, skewBy = s.skew, fmt.Sprintf(", a skew of %v by %s", s.skew, by)
		}
	}
	if ttlBy == "" && skewBy == "" {
		return ""
	}
	return "others use a longer TTL or clock skew than this process, and so a longer quarantine" + ttlBy + skewBy
}

// unwrittenBy is why a server cannot keep who uses it, by its error.
func unwrittenBy(err error) *wire.Fault {
	why := &wire.Fault{Condition: wire.Unsupported, Detail: err.Error(), Err: err}
	if known := wire.FaultOf(err); known != nil {
		why.Condition, why.Detail = known.Condition, known.Cause()
	} else if condition, ok := wire.ConditionOf(err.Error()); ok {
		why.Condition = condition
	}
	why.Detail = "it cannot keep who uses it: " + wire.Short(why.Detail)
	return why
}

// withdraw takes back what was written in vain, but for what was there before.
func (m *Membership) withdraw(ctx context.Context, asked, wrote []vote.Reply, ids []vouched) {
	var nodes []int
	for i := range wrote {
		if wrote[i].Verdict == wire.OK && wrote[i].More().Members != nil && asked[i].More().Members != nil {
			nodes = append(nodes, i)
		}
	}
	m.send(ctx, wire.Leaving, nodes, func(i int) *wire.Membership {
		w := m.words(wire.Leaving, ids)
		w.Servers = nil
		for _, s := range wrote[i].More().Members.Servers {
			were := slices.ContainsFunc(asked[i].More().Members.Servers, func(o wire.Server) bool { return o.ID == s.ID })
			if has(ids, s.ID) >= 0 && !were {
				w.Servers = append(w.Servers, wire.Server{ID: s.ID, Written: wrote[i].More().Members.At - s.Age})
			}
		}
		return w
	})
}

// Refresh says again which servers count, in the background, once in a while. It is called when a
// node is looked at.
func (m *Membership) Refresh() {
	if int64(m.now()) >= m.due.Load() {
		m.refresh()
	}
}

// refresh does so at once. First it asks, so that what it then says is of now. A process that does
// not belong yet asks only, and only where others keep servers from voting for longer than it needs
// itself: they may have ended, or what says so was damaged, and is deleted.
func (m *Membership) refresh() {
	m.mu.Lock()
	goesOn := m.admitted
	m.mu.Unlock()
	m.refreshed()
	if !goesOn && m.Longer() == "" {
		return
	}
	m.cfg.Background(func() {
		say := func(mode wire.Mode) (replies []vote.Reply, ids []vouched) {
			m.mu.Lock()
			m.drop()
			ids = m.claims()
			m.mu.Unlock()
			return m.poll(context.Background(), mode, ids, m.reachable(nil)), ids
		}
		say(wire.Asking)
		if !m.cfg.TakesPart || !goesOn {
			return
		}
		replies, ids := say(wire.Refreshing)
		for i := range replies {
			switch rep := &replies[i]; {
			case ids[i].id == "": // which its status says
				m.cfg.Observer.Differs(i, nil)
			case rep.More().Members != nil:
				m.cfg.Observer.Differs(i, m.difference(i, rep, ids))
			}
		}
	})
}

// refreshed puts the next refresh off: there is one for each look at least, and two in a lifetime.
func (m *Membership) refreshed() {
	every := min(m.cfg.LookEvery*3/4, m.lifetime()/2)
	m.due.Store(int64(m.now().Add(every)))
}

// disagreement is why a process does not belong, by the first node that says so; nil if none does.
func (m *Membership) disagreement(replies []vote.Reply, ids []vouched) error {
	for i := range replies {
		if why := m.difference(i, &replies[i], ids); why != nil {
			return why
		}
	}
	return nil
}

// difference is what differs at a node, which was asked about those servers; nil for nothing.
func (m *Membership) difference(i int, rep *vote.Reply, ids []vouched) *wire.Fault {
	if rep.Verdict != wire.Refused || rep.More().Members == nil {
		return nil
	}
	at := m.address(i)
	var others []string
	for _, s := range rep.More().Members.Servers {
		if has(ids, s.ID) >= 0 {
			continue
		}
		if gate := len(s.ID) == wire.RunIDLength; gate != m.cfg.RestartGate {
			return &wire.Fault{Condition: wire.AnotherList, Detail: fmt.Sprintf("%s uses %s %s the restart gate, and this process does not: "+
				"give all processes WithoutRestartGate or none", s.By, at, map[bool]string{true: "with", false: "without"}[gate])}
		}
		for k := range ids {
			if m.address(k) == s.Address && ids[k].id != "" {
				own, other := apart(ids[k].id, s.ID)
				return &wire.Fault{Condition: wire.SeveralServers, Detail: fmt.Sprintf(
					"%s is the server %s for this process, and %s for %s, which saw it %v ago (%s knows)",
					s.Address, own, other, s.By, s.Age.Round(time.Millisecond), at)}
			}
		}
		others = append(others, fmt.Sprintf("%s (%s, seen %v ago by %s)", s.Address, short(s.ID), s.Age.Round(time.Millisecond), s.By))
	}
	detail := fmt.Sprintf("other processes use %s together with %s, which this one does not", at, strings.Join(others, " and "))
	if n := rep.More().Members.Nodes; n == 0 {
		detail = fmt.Sprintf("the first line of %s on %s is damaged: the processes that use it put it right with their next look; else delete that key there", m.cfg.Keys.Lock, at)
	} else if n != m.cfg.Nodes {
		detail = fmt.Sprintf("other processes use %s as one of %d nodes, and this one has %d", at, n, m.cfg.Nodes)
		if len(rep.More().Members.Servers) > 0 {
			detail += fmt.Sprintf("; one of them is %s", rep.More().Members.Servers[0].By)
		}
		detail += fmt.Sprintf("; if none has so many, delete the key %s there", m.cfg.Keys.Lock)
	} else if len(others) == 0 {
		detail = fmt.Sprintf("other processes use %s together with more servers than nodes", at)
	}
	return &wire.Fault{Condition: wire.AnotherList, Detail: detail}
}

// short is the beginning of a server's id, for people.
func short(id string) string { return fmt.Sprintf("%.8s", id) }

// apart are the beginnings of two ids, from where they differ on if that is later.
func apart(one, other string) (a, b string) {
	same := 0
	for same < min(len(one), len(other)) && one[same] == other[same] {
		same++
	}
	if same < len(short(one)) {
		return short(one), short(other)
	}
	return "..." + short(one[same:]), "..." + short(other[same:])
}
