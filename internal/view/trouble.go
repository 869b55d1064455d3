package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Nodes are the nodes of a process, and those that replicas name.
type Nodes struct {
	All []Node
	// Turned has since when a node votes for this process, or does not; zero if that is not known.
	Turned map[string]time.Time
}

// Trouble is a problem that some nodes have in common: a missing vote, a vote for some processes
// only, or a warning of a node that votes.
type Trouble struct {
	State string   // silent, quarantine, differs (the processes see it apart), or none: not known
	Word  string   // for people
	Nodes []string // that have it
	Why   string
	Hint  string
	Since Time // zero if not known
	Until Time // the end of a quarantine
	Grave bool // two leases may be live at once
}

// Line says it in a line.
func (t Trouble) Line() string {
	line := strings.Join(t.Nodes, ", ") + ": " + t.Word + ": " + t.Why
	if t.Hint != "" {
		line = strings.TrimSuffix(line, ".") + ". " + t.Hint
	}
	return line
}

// OthersHaveMore reports whether this process has no quorum, and a replica has one.
func (s Nodes) OthersHaveMore() bool {
	q, votes, enough := s.Quorum(), make(map[string]int), false
	for _, n := range s.All {
		for _, seen := range n.SeenBy {
			if seen.Votes && s.fresh(n, seen) {
				votes[seen.Replica]++
			}
			enough = enough || votes[seen.Replica] >= q.Need
		}
	}
	return enough && q.Spare != nil && *q.Spare < 0
}

// Stalled reports whether no replica can run anything, as far as is known.
func (s Nodes) Stalled() bool {
	return len(s.All) > 0 && s.Quorum().Left() < 0 && !s.OthersHaveMore()
}

// lost returns since when fewer nodes than a quorum vote, as far as this process and replicas have
// seen; zero if that is not known. A node that refuses this user is lost if replicas say so. A node
// is lost when the last replica that saw it vote saw it go. If none did, the earliest view counts.
func (s Nodes) lost(nodes []Node, q Quorum) Time {
	var since []time.Time
	for _, n := range nodes {
		var first, last time.Time
		if n.Votes != nil {
			first = s.Turned[n.Node]
		}
		for _, seen := range n.SeenBy {
			at, went := seen.gone()
			if went && at.After(last) {
				last = at
			} else if !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		votes := n.Votes != nil && *n.Votes || n.Votes == nil && slices.ContainsFunc(n.SeenBy, func(seen Seen) bool { return seen.Votes })
		if at := cmp.Or(last, first); n.ThisProcess && !votes && !at.IsZero() {
			since = append(since, at)
		}
	}
	slices.SortFunc(since, time.Time.Compare)
	if spare := q.Total - q.Need; spare < len(since) {
		return At(since[spare])
	}
	return Time{}
}

// gone returns since when a node has not voted for a replica, and whether the replica saw it vote
// before; zero if it votes, or if that is not told.
func (s Seen) gone() (since time.Time, went bool) {
	if s.Votes {
		return since, false
	}
	since = s.Since.Time
	for _, t := range s.Was {
		if t.Votes {
			return since, true
		}
		since = t.Since.Time
	}
	return since, false
}

// LookedAt is within what time a replica has seen a change of a node's vote and written its card.
// It looks every ten seconds.
const LookedAt = 12 * time.Second

// fresh reports whether a replica's view of a node is newer than the last change of the node's vote
// for this process. So a card counts if it was written more than LookedAt after the change. If the
// node refuses this user, the replica knows more than this process, and any card since the change
// counts.
func (s Nodes) fresh(n Node, seen Seen) bool {
	turned := s.Turned[n.Node]
	if n.Votes != nil {
		turned = turned.Add(LookedAt)
	}
	return seen.Said.After(turned)
}

// Quorum counts the nodes that vote. For nodes that refuse this user it leaves out what replicas
// saw before the refusal, which is out of date.
func (s Nodes) Quorum() (q Quorum) {
	nodes := slices.Clone(s.All)
	for i, n := range nodes {
		if n.Votes == nil {
			nodes[i].SeenBy = slices.DeleteFunc(slices.Clone(n.SeenBy), func(seen Seen) bool { return !s.fresh(n, seen) })
		}
	}
	if q = QuorumOf(nodes); q.Total > 0 && q.Left() < 0 {
		q.Since = s.lost(nodes, q)
	}
	return q
}

// Troubles returns the problems of the nodes.
func (s Nodes) Troubles() (all []Trouble) {
	add := func(n Node, t Trouble) {
		for i := range all {
			if all[i].Word == t.Word && all[i].Why == t.Why {
				all[i].Nodes = append(all[i].Nodes, n.Node)
				return
			}
		}
		t.Nodes = []string{n.Node}
		all = append(all, t)
	}
	for _, n := range s.All {
		if !n.ThisProcess {
			continue
		}
		var yes, no []string
		var refusal Seen
		warned := make(map[string][]string) // replicas by the warning with which the node votes for them
		for _, seen := range n.SeenBy {
			if !s.fresh(n, seen) {
				continue
			} else if seen.Votes {
				yes = append(yes, seen.Replica)
				if n.Warns(seen) {
					warned[seen.Why] = append(warned[seen.Why], seen.Replica)
				}
			} else {
				no, refusal = append(no, seen.Replica), seen
			}
		}
		cause, _, _ := strings.Cut(n.Cause(), " (give ") // the hint says it in fewer words
		cause, _, _ = strings.Cut(cause, " (seen ")      // it differs between nodes, and changes
		if dialled, is := strings.CutPrefix(cause, "dial tcp "); is {
			_, cause, _ = strings.Cut(dialled, ": ") // the table of nodes shows the address
		}
		silent := Trouble{State: "silent", Word: "no vote", Why: cause, Since: At(s.Turned[n.Node])}
		switch {
		case n.Votes == nil:
			if q := s.Quorum(); len(yes) == 0 && (q.Spare != nil || len(no) > 0) { // no replica has its vote either
				if n.ErrorType == string(redlock.ConditionNoPermission) {
					silent.Hint = "tenure doctor says which right to give."
				}
				if len(no) == 0 {
					silent.State, silent.Word, silent.Why = "none", "not known", "it refuses this user: "+cause
				}
				add(n, silent)
			}
		case *n.Votes && len(no) > 0:
			why := "It votes for this process, and not for " + some(no)
			if refusal.Why != "" {
				why += " (" + strings.ReplaceAll(refusal.Why, "_", " ") + ")"
			}
			add(n, Trouble{State: "differs", Word: "seen apart", Why: why + ".", Hint: "Look at the way from there to the node.", Since: refusal.Since})
		case *n.Votes:
		case !n.QuarantinedUntil.IsZero():
			why := "It may have forgotten leases, so it does not vote for a while."
			if n.ErrorType == string(redlock.ConditionClockJumped) {
				why = "Its clock jumped forward. " + why
			}
			add(n, Trouble{State: "quarantine", Word: "quarantine", Why: why, Hint: "It votes again by itself.", Until: n.QuarantinedUntil})
		case n.Reachable:
			if n.ErrorType == string(redlock.ConditionAnotherList) {
				silent.Hint = "Give all processes the same nodes."
			}
			add(n, silent)
		case len(yes) > 0:
			silent.State, silent.Word, silent.Why = "differs", "seen apart", "It votes for "+some(yes)+", and not for this process: "+cause
			silent.Hint = "Look at the way from here to the node."
			add(n, silent)
		default:
			if silent.Word = "silent"; !strings.HasSuffix(cause, ")") { // else the cause has advice
				silent.Hint = "See whether it is up, stopped or overloaded, and whether its address is right."
			}
			add(n, silent)
		}
		for _, why := range slices.Sorted(maps.Keys(warned)) {
			add(n, Trouble{State: "differs", Word: "warning", Why: "It votes for " + some(warned[why]) + ", with a warning: " + strings.ReplaceAll(why, "_", " ")})
		}
		for _, w := range n.Warnings {
			if of := redlock.Condition(w.Type); n.Votes == nil || *n.Votes { // else it has a reason already
				apart := of == redlock.ConditionSeveralServers || of == redlock.ConditionAnotherList && !strings.Contains(w.Text, "processes were refused")
				add(n, Trouble{State: "differs", Word: "warning", Why: w.Text, Grave: apart})
			}
		}
	}
	return all
}

// some returns names for a sentence: one or two names, or the number of replicas.
func some(names []string) string {
	if len(names) > 2 {
		return Counted(len(names), "replica")
	}
	return strings.Join(names, " and ")
}
