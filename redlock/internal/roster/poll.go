package roster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// poll is one look at the rosters of the nodes.
type poll struct {
	*Roster

	goesOn  bool          // the process was admitted when the poll began, so nothing stops it
	asked   bool          // replies are those of this poll
	seats   []seat        // a copy, taken over last by takeSeats
	replies []vote.Reply  // the replies to the last question
	heard   int           // how many nodes have answered
	lists   []*wire.Fault // of each node: how a list there differs; nil for not
	twins   []*wire.Fault // of each node: another server that was found under its name; nil for none
}

// poll reads the rosters of all nodes in reach. If the process has wanted leases, it also writes
// the entries of the process. It decides on servers that join; if none joins, a process that has
// entered writes at once. It is called with the turn.
//
// If ctx ends, poll decides nothing. It does nothing at all if the process was refused a moment
// ago, because all servers join at about the same time. A process that only looks need not decide:
// it reports.
func (r *Roster) poll(ctx context.Context) {
	if r.Refused() != nil && r.now() < r.retry {
		return
	}
	began := r.now()
	r.due.Store(r.next())
	n := len(r.seats)
	p := &poll{Roster: r, goesOn: r.Admitted(), lists: make([]*wire.Fault, n), twins: make([]*wire.Fault, n)}
	p.takeSeats()
	if r.entered && !slices.ContainsFunc(p.seats, func(s seat) bool { return s.joins }) {
		p.replies = r.last // nothing is to be decided before the process writes its entries again
	} else {
		p.ask(ctx, func(int) []string { return wire.RosterWords(nil, nil) })
		p.takeSeats() // with all that have joined meanwhile
		p.compare()
	}
	wrote := r.Enters() && (r.entered || cmp.Or(p.lists...) == nil && min(p.heard, voters(p.seats)) >= r.cfg.Need)
	if wrote {
		notes := p.notes()
		p.ask(ctx, func(i int) []string {
			return wire.RosterWords(slices.Concat(p.known(i).Stale, p.succeeded(i)), slices.Concat(p.known(i).Ahead, notes))
		})
		p.compare()
	}
	if ctx.Err() != nil {
		return
	}
	r.began, r.last = began, p.replies
	joins := slices.ContainsFunc(p.seats, func(s seat) bool { return s.joins })
	if joins || r.Enters() || r.cfg.Quarantine() > r.cfg.Lifetime+time.Second {
		p.decide(wrote)
	}
	if why := r.Refused(); why != nil && r.Enters() {
		p.withdraw(why, wrote)
	}
	p.report()
}

// takeSeats copies what is known of the nodes now.
func (p *poll) takeSeats() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seats = slices.Clone(p.Roster.seats)
}

// notes returns the entries of the process: its list, and the servers that it has found.
func (p *poll) notes() []wire.Entry {
	all := []wire.Entry{p.self}
	for i, s := range p.seats {
		if p.finds(i) && (s.counts || p.twins[i] == nil) {
			all = append(all, wire.Entry{Field: []string{wire.RosterServer, p.cfg.Names[i], s.id}, Says: []string{p.cfg.Identity, p.address(i)}, Life: p.self.Life})
		}
	}
	return all
}

// finds reports whether the known server process of a node is there now, whether or not it may
// count.
func (p *poll) finds(i int) bool {
	s, since := p.seats[i], p.now().Add(-p.cfg.LookEvery*3/2-p.cfg.Timeout) // one answer may be lost
	return p.cfg.RestartGate && s.heard >= since && (s.counts && !p.isAway(i) || s.joins && answered(&p.replies[i]))
}

// succeeded returns the entries at a node about servers that have ended: the process has found
// another server at the same address. The process removes these entries, because a process that
// reaches the server at another address cannot know that the old one has ended. It does so even
// while it may not count the new server: that is the case for every process that has written such
// an entry.
func (p *poll) succeeded(at int) (all [][2]string) {
	known := p.known(at)
	for _, e := range known.Entries {
		if e.Field[0] != wire.RosterServer {
			continue
		}
		if i := slices.Index(p.cfg.Names, e.Field[1]); i >= 0 && p.finds(i) && p.seats[i].id != e.Field[2] && p.hasGone(e, p.address(i)) {
			all = append(all, e.Written(known.At-e.Age))
		}
	}
	return all
}

// hasGone reports whether the server of an entry has ended: it was at the address where another one
// answers now, and was not seen for a lifetime.
func (p *poll) hasGone(e wire.Entry, address string) bool {
	return e.Says[1] == address && e.Age > p.cfg.Lifetime
}

// known returns the roster that a node has answered; a zero one if it has not.
func (p *poll) known(i int) *wire.Roster {
	return cmp.Or(p.replies[i].More().Roster, new(wire.Roster))
}

func (r *Roster) address(i int) string { return r.cfg.Node(i).Address() }

// compare finds the lists and servers in the replies that differ.
func (p *poll) compare() {
	for at := range p.replies {
		if p.known(at).Reserved {
			p.lists[at] = &wire.Fault{Condition: wire.OtherVersion, Detail: fmt.Sprintf("%s holds something under %s, which this version of the library does not know", p.address(at), p.cfg.Keys.Fences)}
		}
		for _, e := range p.known(at).Entries {
			switch e.Field[0] {
			case wire.RosterList:
				p.lists[at] = cmp.Or(p.lists[at], p.another(e, at))
			case wire.RosterServer:
				if i := slices.Index(p.cfg.Names, e.Field[1]); i >= 0 {
					p.twins[i] = cmp.Or(p.twins[i], p.twin(i, e, at))
				}
			}
		}
	}
}

// another returns how the list of an entry differs from the process's own; nil if it does not.
func (p *poll) another(e wire.Entry, at int) *wire.Fault {
	names, own := e.Field[4:], p.self.Field[4:]
	detail := fmt.Sprintf("%s has the nodes %s, and this process has %s", e.Says[0], strings.Join(names, ", "), strings.Join(own, ", "))
	if slices.Equal(names, own) {
		if e.Field[1] == p.self.Field[1] {
			return nil
		}
		detail = e.Says[0] + " uses the same nodes with another restart gate: give all processes WithoutRestartGate or none"
	}
	return &wire.Fault{Condition: wire.AnotherList, Detail: fmt.Sprintf("%s (seen %v ago, as %s knows)", detail, e.Age, p.address(at))}
}

// twin returns how the server of an entry differs from the one that the process has found under
// that name; nil if it does not.
func (p *poll) twin(i int, e wire.Entry, at int) *wire.Fault {
	id, here := p.seats[i].id, p.address(i)
	if id == "" || id == e.Field[2] || p.hasGone(e, here) {
		return nil
	}
	return &wire.Fault{Condition: wire.SeveralServers, Detail: fmt.Sprintf("%s is the server %.8s at %s for this process, and %.8s at %s for %s, which saw it %v ago (%s knows)",
		e.Field[1], id, here, e.Field[2], e.Says[1], e.Says[0], e.Age, p.address(at))}
}

// decide decides which servers that join count, and whether the process is refused or admitted.
func (p *poll) decide(wrote bool) {
	r := p.Roster
	var refused *wire.Fault
	if !p.goesOn {
		refused = cmp.Or(p.lists...)
	}
	r.retry = r.now().Add(retryAfter())
	r.mu.Lock()
	for i := range r.seats {
		s, why := &r.seats[i], cmp.Or(refused, p.twins[i])
		switch {
		case s.tries != p.seats[i].tries: // it joined after the poll took the seats
		case s.joins && answered(&p.replies[i]):
			if r.cfg.RestartGate && r.now().Sub(s.since) < r.cfg.Quarantine() {
				why = cmp.Or(why, &wire.Fault{Condition: wire.Quarantined, Detail: "others use a longer TTL or clock skew than this process"})
			}
			if k := slices.IndexFunc(r.seats, func(o seat) bool { return o.counts && s.id != "" && o.id == s.id }); k >= 0 {
				why = &wire.Fault{Condition: wire.Duplicate, Detail: "it is the same server process as " + r.address(k)}
			}
			s.why = why
			s.joins, s.counts = false, s.why == nil
		case !p.goesOn && why != nil:
			s.why, s.counts = why, false
		}
	}
	r.mu.Unlock()
	switch {
	case refused != nil:
		r.entered = false
	case wrote && p.heard >= r.cfg.Need:
		r.entered = true
		r.until.Store(int64(r.began.Add(Absence)))
	}
	if was := r.refused.Swap(refused); was != refused {
		r.find(Stopped, 0, refused)
	}
}

// withdraw tells other processes that this one was refused. It also removes the list that the
// process has written, except from nodes that had the same list before: there it is another
// process's as well.
func (p *poll) withdraw(why *wire.Fault, wrote bool) {
	told := []wire.Entry{{Field: []string{wire.RosterRefused, p.cfg.Identity}, Says: append([]string{string(why.Condition)}, p.self.Field[4:]...), Life: refusedLife}}
	before := p.replies
	p.ask(context.Background(), func(i int) []string {
		known, told := before[i].More().Roster, slices.Concat(p.known(i).Ahead, told)
		if !wrote || known == nil || slices.ContainsFunc(known.Entries, func(e wire.Entry) bool { return slices.Equal(e.Field, p.self.Field) }) {
			return wire.RosterWords(nil, told)
		}
		return wire.RosterWords([][2]string{p.self.Written(known.At)}, told)
	})
	p.replies = before
}

// report tells what differs from a process that goes on, and which other processes were refused.
func (p *poll) report() {
	for i := range p.replies {
		if p.replies[i].More().Roster == nil {
			continue
		}
		var all []string
		var differs, others *wire.Fault
		switch {
		case p.goesOn && p.seats[i].counts:
			differs = cmp.Or(p.lists[i], p.twins[i])
		case p.goesOn:
			differs = p.lists[i]
		}
		for _, e := range p.known(i).Entries {
			own := e.Field[1] == p.cfg.Identity && slices.Equal(e.Says[1:], p.self.Field[4:])
			if e.Field[0] == wire.RosterRefused && !own {
				all = append(all, fmt.Sprintf("%s, with the nodes %s, %v ago", e.Field[1], strings.Join(e.Says[1:], ", "), e.Age.Round(time.Second)))
				others = &wire.Fault{Condition: wire.AnotherList, Detail: "processes were refused: " + strings.Join(all, "; ")}
			}
		}
		p.find(Differing, i, differs)
		p.find(Refused, i, others)
	}
}

// answered reports whether a node has answered, even if with an error.
func answered(rep *vote.Reply) bool {
	return rep.Verdict == wire.OK || rep.Err != nil && wire.IsServerError(rep.Err)
}

// maxPatience bounds how long a poll waits for slow nodes, and so does half a node timeout. It
// applies once a quorum has answered, or while the process acquires nothing: acquisitions wait for
// the poll, and so does a caller that asks for the state of nodes. A node that is slower is out of
// reach, unless its server joins.
const maxPatience = time.Second

// ask asks the nodes in reach. A node that has not answered an earlier question of this poll is out
// of reach.
func (p *poll) ask(ctx context.Context, words func(i int) []string) {
	rd, now, seats := &round{r: p.Roster}, p.now(), p.seats // seats for the timer: p.seats may be replaced once ask has returned
	rd.Start(len(p.lists), len(p.lists))
	rd.Decided = func([]vote.Reply) bool { return false }
	for i := range p.lists {
		n := p.cfg.Node(i)
		if p.asked && !answered(&p.replies[i]) || !p.asked && p.isAway(i) {
			rd.Skip(i, wire.Failed)
			continue
		}
		n.Send(&node.Request{Call: &wire.Call{Op: wire.Enroll, Keys: p.cfg.Keys, Roster: words(i)}, To: rd, Slot: i, Expires: now.Add(p.cfg.Timeout)})
	}
	patience := time.AfterFunc(min(p.cfg.Timeout/2, maxPatience), func() {
		replies := rd.Outcome().Replies
		for i := range replies {
			if seats[i].joins && !answered(&replies[i]) {
				return // it waits for a decision
			}
		}
		if !p.Enters() || heard(replies) >= p.cfg.Need {
			rd.Expire()
		}
	})
	defer patience.Stop()
	_ = rd.Wait(ctx, p.cfg.Timeout)
	p.asked, p.replies = true, rd.Outcome().Replies
	p.heard = heard(p.replies)
	for i := range p.replies {
		p.hear(i)
	}
}

// heard returns how many nodes have answered.
func heard(replies []vote.Reply) (n int) {
	for i := range replies {
		if answered(&replies[i]) {
			n++
		}
	}
	return n
}

// isAway reports whether the last look has not found a node's server, and the server does not join.
func (r *Roster) isAway(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := r.cfg.Node(i).Status()
	return status.Err != nil && !status.Unseen && !r.seats[i].joins
}

// round is a question to several nodes.
type round struct {
	vote.Round

	r *Roster
}

// Answered takes a node's answer.
func (rd *round) Answered(q *node.Request, a node.Answer) {
	rep := rd.r.cfg.Node(q.Slot).Reply(q.Call, a)
	rd.r.hears(q.Slot, &rep, a.Sent) // even if the answer comes too late
	rd.Answer(q.Slot, rep)
}

// hear takes over the longest TTL and skew that a node knows. A server that was restarted may have
// forgotten them, and the process that uses them may not reach it. So the values that the node said
// before stay until its server counts and has this process's own list.
func (p *poll) hear(i int) {
	if p.replies[i].More().Roster == nil {
		return
	}
	ttl, skew, keeps := time.Duration(0), time.Duration(0), !p.entered
	for _, e := range p.known(i).Entries {
		if e.Field[0] == wire.RosterList {
			t, s := Limits(e)
			ttl, skew = max(ttl, t), max(skew, s)
			keeps = keeps || slices.Equal(e.Field, p.self.Field)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.Roster.seats[i]
	if keeps && s.counts {
		s.ttl, s.skew = ttl, skew
	}
	p.cfg.Longest(i, max(ttl, s.ttl), max(skew, s.skew))
}

// Limits returns the longest TTL and the skew in the entry of a list; zeros if they are larger than
// a process may have.
func Limits(list wire.Entry) (ttl, skew time.Duration) {
	ttl, _ = time.ParseDuration(list.Field[2])
	skew, _ = time.ParseDuration(list.Field[3])
	if ttl > 24*time.Hour || skew > time.Minute {
		return 0, 0
	}
	return ttl, skew
}
