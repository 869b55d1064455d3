package roster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// finding is what a poll finds out.
type finding struct {
	nodes  []int         // that are asked
	goesOn bool          // the process counted when it began, so that nothing stops it
	ids    []string      // of each node's server process, where this process vouches for it
	counts []bool        // it did before
	says   []bool        // it answers, so others are told of it
	list   *wire.Fault   // another list; nil for none
	at     int           // the node where that is
	twins  []*wire.Fault // of each node: another server with its name
	wrote  bool          // what the process has was written
	sent   clock.Instant // when
	heard  int           // how many nodes have answered that
}

// stays reports whether a node's server counts whatever others know under its name.
func (f *finding) stays(i int) bool { return f.goesOn && f.counts[i] }

// poll reads what all nodes in reach know, and writes what the process has, if it is to acquire
// leases. Those that join are decided. One poll is under way at a time.
func (r *Roster) poll(ctx context.Context) {
	asked, nodes := r.now(), r.reachable()
	read := r.ask(ctx, nodes, false, func(int) []string { return wire.RosterWords(nil, nil) })
	f, deciding := r.begin(nodes) // now, with all that have joined meanwhile
	for i, j := range deciding {
		rep := &read[i]
		f.says[i] = answered(rep)
		if j == nil {
			continue
		}
		switch {
		case rep.Err != nil && !f.says[i]:
			j.why = rep.Err
		case rep.Verdict == wire.Pending:
			j.why = node.ErrTimeout
		case r.cfg.RestartGate && j.age < r.cfg.Quarantine():
			j.why = &wire.Fault{Condition: wire.Quarantined, Detail: r.Longer()}
		}
		if j.why != nil {
			f.ids[i] = ""
		}
	}
	r.compare(f, read)
	var back func(i int) [][3]string
	for {
		r.mu.Lock()
		if f.wrote || !r.enters || f.list != nil && !f.goesOn {
			break
		}
		r.mu.Unlock()
		back = r.write(ctx, f, asked)
	}
	r.decide(f, deciding)
	refused := r.refused
	told := refused != nil && r.enters
	r.mu.Unlock()
	if told || back != nil {
		r.ask(ctx, f.nodes, false, func(i int) []string {
			var notes []wire.Note
			if told {
				is := wire.Refusal{By: r.cfg.Identity, Why: string(refused.Condition), Names: r.self.Names}
				notes = append(notes, is.Note(refusedFor))
			}
			if back == nil {
				return wire.RosterWords(notes, nil)
			}
			return wire.RosterWords(notes, back(i))
		})
	}
	r.report(f, read)
}

// reachable are the nodes that are asked: those that join or count, and others that answer.
func (r *Roster) reachable() (nodes []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.seats {
		s, status := &r.seats[i], r.cfg.Node(i).Status()
		if s.joins != nil || s.counts || status.Reason() == nil || status.Fault != nil {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// begin is what is asked about, and those of the nodes that join.
func (r *Roster) begin(nodes []int) (*finding, []*joining) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.seats)
	f := &finding{nodes: nodes, goesOn: r.Admitted(), ids: make([]string, n), counts: make([]bool, n), says: make([]bool, n), twins: make([]*wire.Fault, n)}
	deciding := make([]*joining, n)
	for i := range r.seats {
		s := &r.seats[i]
		if s.counts && r.now().Sub(s.seen) > Absence {
			s.counts = false
		}
		if f.counts[i] = s.counts; s.counts {
			f.ids[i] = s.id
			f.goesOn = f.goesOn || !r.enters
		}
		if s.joins != nil && slices.Contains(nodes, i) {
			deciding[i], f.ids[i] = s.joins, s.joins.id
		}
	}
	return f, deciding
}

// write has the nodes keep what the process has, and compares it with what was there before. It
// returns what each node is to take back; nil for nothing.
func (r *Roster) write(ctx context.Context, f *finding, seen clock.Instant) (back func(i int) [][3]string) {
	now := r.now()
	notes, places := []wire.Note{r.self.Note(r.cfg.Lifetime + Absence)}, []int{-1} // of whose server a note is
	for i, id := range f.ids {
		if id != "" && f.says[i] && (f.twins[i] == nil || f.stays(i)) {
			known := wire.Known{Name: r.cfg.Names[i], ID: id, By: r.cfg.Identity, Age: now.Sub(seen)}
			notes, places = append(notes, known.Note(r.cfg.Lifetime)), append(places, i)
		}
	}
	leads := r.cfg.Leads(now)
	wrote := r.ask(ctx, f.nodes, true, func(i int) []string {
		if leads[i] == nil {
			return wire.RosterWords(notes, nil)
		}
		return wire.RosterWords(append(slices.Clip(notes), wire.LeadNote(*leads[i], leadFor)), nil)
	})
	f.wrote, f.sent, f.heard = true, now, heard(wrote)
	r.compare(f, wrote)
	refused := f.list != nil && !f.goesOn
	if !refused && !slices.ContainsFunc(places[1:], func(at int) bool { return f.twins[at] != nil && !f.stays(at) }) {
		return nil
	}
	return func(i int) (back [][3]string) {
		known := wrote[i].More().Roster
		for k, n := range notes {
			if at := places[k]; known != nil && (refused || at >= 0 && f.twins[at] != nil && !f.stays(at)) {
				back = append(back, [3]string{n.Field, n.Value(known.At), known.Values[n.Field]})
			}
		}
		return back
	}
}

// decide settles those that join, and whether the process counts. Called with mu held.
func (r *Roster) decide(f *finding, deciding []*joining) {
	now, retry := r.now(), r.nextRetry()
	r.begun, r.refused, r.retry = true, nil, now.Add(retry)
	if !f.goesOn {
		r.refused = f.list
	}
	for i := range r.seats {
		s := &r.seats[i]
		switch {
		case f.goesOn || deciding[i] != nil:
		case s.counts && f.twins[i] != nil:
			s.counts = false
			r.refused = cmp.Or(r.refused, f.twins[i])
		case !s.counts && r.cfg.Node(i).Status().Reason() == nil: // its gate closes with the next look
			f.heard = 0
		}
	}
	for i, j := range deciding {
		s := &r.seats[i]
		if j == nil || s.joins != j {
			continue
		}
		s.joins, j.over = nil, true
		why := cmp.Or(r.refused, f.twins[i])
		if f.goesOn && r.enters && f.heard < r.cfg.Need {
			why = cmp.Or(why, &wire.Fault{Condition: wire.Restarted, Detail: "too few nodes answer, to ask whether others know another server under its name"})
		}
		switch {
		case j.why != nil:
		case why != nil:
			j.why, j.retry = why, retry
		default:
			s.id, s.counts = j.id, true
		}
	}
	if f.heard >= r.cfg.Need && r.refused == nil {
		r.until.Store(int64(f.sent.Add(Absence)))
	}
}

// heard is how many nodes have answered.
func heard(replies []vote.Reply) (n int) {
	for i := range replies {
		if answered(&replies[i]) {
			n++
		}
	}
	return n
}

// answered reports whether a node has answered, if only with an error.
func answered(rep *vote.Reply) bool {
	return rep.Verdict == wire.OK || rep.Err != nil && wire.IsServerError(rep.Err)
}

// ask asks nodes, each with words of its own. It returns an answer for each node. Once a quorum has
// answered, one that has not in half of its timeout is out of reach.
func (r *Roster) ask(ctx context.Context, nodes []int, writes bool, words func(i int) []string) []vote.Reply {
	p, now := &round{r: r}, r.now()
	p.Start(len(r.seats), len(r.seats))
	p.Decided = func(replies []vote.Reply) bool {
		return r.now().Sub(now) >= r.cfg.Timeout/2 && heard(replies) >= r.cfg.Need
	}
	for i := range r.seats {
		if !slices.Contains(nodes, i) {
			p.Skip(i, wire.Failed)
			continue
		}
		call := &wire.Call{Op: wire.Enroll, Keys: r.cfg.Keys, Roster: words(i)}
		q := &node.Request{Call: call, To: p, Slot: i, Expires: now.Add(r.cfg.Timeout)}
		if err := r.cfg.Node(i).Send(q); err != nil {
			p.Answered(q, node.NotTaken(err))
		}
	}
	patience := time.AfterFunc(r.cfg.Timeout/2, func() {
		if heard(p.Outcome().Replies) >= r.cfg.Need {
			p.Expire()
		}
	})
	defer patience.Stop()
	_ = p.Wait(ctx, r.cfg.Timeout, r.cfg.Waits)
	replies := p.Outcome().Replies
	r.hear(nodes, replies, now, writes)
	return replies
}

// round is a question to several nodes.
type round struct {
	vote.Round

	r *Roster
}

// Answered takes a node's answer.
func (p *round) Answered(q *node.Request, a node.Answer) {
	p.Answer(q.Slot, p.r.cfg.Node(q.Slot).Reply(q.Call, a))
}
