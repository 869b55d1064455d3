package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
)

// Node is a node as this process sees it, and as each replica sees it.
type Node struct {
	Node             string    `json:"node"`
	ThisProcess      bool      `json:"this_process"` // a node of this process; else only replicas name it
	Votes            *bool     `json:"votes"`        // for this process; null if the node refuses its user, who then may not know
	Reachable        bool      `json:"reachable"`
	Role             string    `json:"role"`
	Version          string    `json:"version"`
	Uptime           Span      `json:"uptime_ms"`
	Latency          Span      `json:"latency_ms"`
	QuarantinedUntil Time      `json:"quarantined_until"`
	Error            string    `json:"error"`
	ErrorType        string    `json:"error_type"`
	Warnings         []Warning `json:"warnings"`
	SeenBy           []Seen    `json:"seen_by"`
}

// Cause returns the error without the name of the node and of the operation.
func (n Node) Cause() string {
	said := strings.TrimPrefix(n.Error, "node "+n.Node+": ")
	if _, cause, is := strings.Cut(said, ": "); is && said != n.Error {
		return cause
	}
	return said
}

// Warning is a weakness of a node that votes.
type Warning struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Seen is how a process sees a node.
type Seen struct {
	Replica string `json:"replica"`
	Node    string `json:"node"`
	Votes   bool   `json:"votes"`
	Why     string `json:"why"`
	Since   Time   `json:"since"`
	Was     []Turn `json:"was"` // the latest first
	Said    Time   `json:"said"`
}

// Turn is how a process saw a node from a time on.
type Turn struct {
	Votes bool   `json:"votes"`
	Why   string `json:"why"`
	Since Time   `json:"since"`
}

// newSeen returns how a process sees a node, read at a time.
func newSeen(s admin.Seen, read time.Time) Seen {
	was := All(s.Was, func(t admin.Turn) Turn { return Turn{t.Votes, t.Why, At(t.Since)} })
	return Seen{s.Replica, s.Node, s.Votes, s.Why, At(s.Since), was, At(read.Add(-s.Age))}
}

// Warns reports whether the node votes for a replica with a warning that it has not for this
// process.
func (n Node) Warns(s Seen) bool {
	return s.Votes && s.Why != "" && !slices.ContainsFunc(n.Warnings, func(w Warning) bool { return w.Type == s.Why })
}

// NewNode returns a node that was read at a time. A node that only replicas name neither answers
// nor has an error.
func NewNode(n redlock.NodeStatus, seen []admin.Seen, read time.Time) Node {
	d := Node{
		Node: n.Node, ThisProcess: n.Reachable || n.Err != nil, Reachable: n.Reachable, Role: n.Role, Version: n.Version, Uptime: Span(n.Uptime), Latency: Span(n.Latency),
		QuarantinedUntil: At(n.QuarantinedUntil), Error: Error(n.Err), ErrorType: redlock.ErrorType(n.Err), SeenBy: All(seen, func(s admin.Seen) Seen { return newSeen(s, read) }),
		Warnings: All(n.Warnings, func(w error) Warning { return Warning{redlock.ErrorType(w), Error(w)} }),
	}
	if d.ThisProcess && (n.Votes || !Refused(n.Err)) {
		d.Votes = &n.Votes
	}
	return d
}

// Refused reports whether a node refuses this user, for a wrong password or a missing right. This
// says nothing of the cluster, and the user may not know whether the node votes.
func Refused(err error) bool {
	return err != nil && slices.Contains([]string{string(redlock.ConditionNoAuth), string(redlock.ConditionNoPermission)}, redlock.ErrorType(err))
}

// Quorum counts this process's nodes, and those that vote.
type Quorum struct {
	Total  int  `json:"total"`
	Votes  int  `json:"votes"` // for this process
	Need   int  `json:"need"`
	Spare  *int `json:"spare"`  // how many more may fail; negative without a quorum; null if this user may not know
	Hidden int  `json:"hidden"` // nodes that refuse this user, who may not know whether they vote
	Told   int  `json:"told"`   // those of Hidden that vote for a replica
	Denied int  `json:"denied"` // those of Hidden that vote for none of the replicas that tell
	Since  Time `json:"since"`  // since when too few vote; null if enough do, or if it is not known
}

// QuorumOf counts the nodes of this process.
func QuorumOf(nodes []Node) (q Quorum) {
	for _, n := range nodes {
		if !n.ThisProcess {
			continue
		}
		q.Total++
		switch {
		case n.Votes == nil:
			q.Hidden++
			if slices.ContainsFunc(n.SeenBy, func(s Seen) bool { return s.Votes }) {
				q.Told++
			} else if len(n.SeenBy) > 0 {
				q.Denied++
			}
		case *n.Votes:
			q.Votes++
		}
	}
	q.Need = q.Total/2 + 1
	if q.Votes >= q.Need || q.Votes+q.Hidden < q.Need {
		q.Spare = new(q.Votes - q.Need)
	}
	return q
}

// Left returns Spare. If this user may not know that, it returns the most that it can be by what
// replicas say.
func (q Quorum) Left() int {
	if q.Spare != nil {
		return *q.Spare
	}
	return q.Votes + q.Hidden - q.Denied - q.Need
}

// Voting says how many nodes vote, as far as this user may know.
func (q Quorum) Voting() string {
	votes, far := q.Votes, ""
	switch {
	case q.Spare == nil:
		votes, far = q.Votes+q.Told, ", as replicas say"
	case *q.Spare < 0 && q.Hidden > 0:
		votes, far = q.Votes+q.Hidden, " at most"
	}
	return fmt.Sprintf("%d of %d nodes vote%s", votes, q.Total, far)
}

// Sentence says how many nodes vote and how many more may fail.
func (q Quorum) Sentence() string {
	switch {
	case q.Left() < 0:
		since := ""
		if !q.Since.IsZero() {
			since = " since " + q.Since.Clock(time.Now()) + " UTC"
		}
		return fmt.Sprintf("%s, and %d are needed: nothing is granted%s.", q.Voting(), q.Need, since)
	case q.Spare == nil && q.Told+q.Denied == 0:
		return fmt.Sprintf("How many of the %d nodes vote is not known: they refuse the user of this process.", q.Total)
	case q.Spare == nil:
		return q.Voting() + ": the user of this process may not ask the nodes."
	}
	fail := fmt.Sprintf("%d more may fail", *q.Spare)
	switch {
	case q.Total == 1:
		fail = "it may not fail"
	case *q.Spare == 0:
		fail = "none more may fail"
	}
	return fmt.Sprintf("%s; %s.", q.Voting(), fail)
}

// Replica is a process.
type Replica struct {
	ID       string   `json:"id"`
	Identity string   `json:"identity"`
	Host     string   `json:"host"`
	PID      Number   `json:"pid"`
	Program  string   `json:"program"`
	Version  string   `json:"version"`
	Began    Time     `json:"began"`
	Leads    []string `json:"leads"`
	Stands   []string `json:"stands"`
	Jobs     []string `json:"jobs"`
	Running  []*Run   `json:"running"`
	Cut      bool     `json:"cut"`  // there is more than fitted into its card
	Said     Time     `json:"said"` // when it wrote its card
	Sources  int      `json:"sources"`
	Nodes    []Seen   `json:"nodes"`
}

// NewReplica returns a process that was read at a time.
func NewReplica(r admin.Replica, read time.Time) Replica {
	return Replica{
		ID: r.ID, Identity: r.Identity, Host: r.Host, PID: Number(r.PID), Program: r.Program, Version: r.Version, Began: At(r.Began), Leads: list(r.Leads), Stands: list(r.Stands),
		Jobs: list(r.Jobs), Running: All(r.Running, NewRun), Cut: r.Cut, Said: At(read.Add(-r.Age)), Sources: r.Sources,
		Nodes: All(r.Nodes, func(s admin.Seen) Seen { return newSeen(s, read) }),
	}
}

// Election is an election, with its leader and its past terms.
type Election struct {
	Name       string   `json:"name"`
	Leader     *Leader  `json:"leader"` // null if there is none, or if that is not known, see error
	Candidates []string `json:"candidates"`
	Terms      []Term   `json:"terms"` // the newest first
	Error      string   `json:"error"`
	Read       Time     `json:"read"`
}

// Leader is the leader of an election.
type Leader struct {
	Identity  string `json:"identity"`
	Payload   string `json:"payload"`
	Term      Number `json:"term"`
	Since     Time   `json:"since"`
	LeaseLeft Span   `json:"lease_left_ms"` // when it was read; null if the key does not expire
}

// Term is a time in office.
type Term struct {
	Number   Number `json:"number"`
	Identity string `json:"identity"`
	Began    Time   `json:"began"`
	Ended    Time   `json:"ended"`
	How      string `json:"how"`
	Reason   string `json:"reason"`
	Gap      Span   `json:"gap_ms"`
	Sources  int    `json:"sources"`
}

// Lasted returns the length of a term that has ended; zero if that is not known.
func (t Term) Lasted() Span {
	if t.Began.IsZero() || t.Ended.IsZero() {
		return 0
	}
	return Span(max(t.Ended.Sub(t.Began.Time), 0))
}

// NewElection returns an election that was read at a time.
func NewElection(e admin.Election, read time.Time) Election {
	d := Election{Name: e.Name, Candidates: list(e.Candidates), Error: Error(e.Err), Read: At(read)}
	if l := e.Leader; l != nil {
		d.Leader = &Leader{Identity: l.Identity, Payload: l.Payload, Term: Number(l.Term), Since: At(l.Since)}
		if l.LeaseLeft != redlock.NoExpiry {
			d.Leader.LeaseLeft = Span(l.LeaseLeft)
		}
	}
	d.Terms = All(e.Terms, func(t admin.Term) Term {
		return Term{Number(t.Number), t.Identity, At(t.Began), At(t.Ended), t.How, t.Reason, Span(t.Gap), t.Sources}
	})
	return d
}

// TermChange is the beginning or the end of a term.
type TermChange struct {
	Election string `json:"election"`
	Term     Number `json:"term"`
	Identity string `json:"identity"`
	Event    string `json:"event"` // elected, resigned or lost
	Reason   string `json:"reason"`
}

// NewTermChange returns a change as it was heard.
func NewTermChange(c admin.TermChange) *TermChange {
	return &TermChange{c.Election, Number(c.Term), c.Identity, c.Event, c.Reason}
}

// Order is an order, and its answer.
type Order struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Target   string `json:"target"` // a job or an election; null for all jobs
	All      bool   `json:"all"`
	By       string `json:"by"`
	Why      string `json:"why"`
	At       Time   `json:"at"`
	Result   string `json:"result"` // done, refused, unknown, taken; null without an answer
	Detail   string `json:"detail"`
	TakenBy  string `json:"taken_by"`
	Answered Time   `json:"answered"`
	Token    Number `json:"token"` // of the run that the order began, or was to cancel
	Sources  int    `json:"sources"`
}

// NewOrder returns an order as it was read.
func NewOrder(o admin.Order) Order {
	return Order{
		ID: o.ID, Kind: string(o.Kind), Target: o.Target, All: o.Target == "", By: o.By, Why: o.Why, At: At(o.At), Result: o.Result, Detail: o.Detail,
		TakenBy: o.TakenBy, Answered: At(o.Answered), Token: Number(o.Run.FencingToken), Sources: o.Sources,
	}
}

// Overview is the summary of a cluster.
type Overview struct {
	Quorum    Quorum     `json:"quorum"`
	Replicas  *int       `json:"replicas"` // null if they could not be read
	Elections []Election `json:"elections"`
	Jobs      *Counts    `json:"jobs"` // null if not all could be read
	Failing   []*Job     `json:"failing"`
	Late      []*Job     `json:"late"`
	Running   []*Job     `json:"running"`
	Paused    []*Job     `json:"paused"`
	Next      []*Job     `json:"next"` // in the order of their next ticks
}

// NewOverview returns an overview without jobs.
func NewOverview(q Quorum) Overview {
	return Overview{Quorum: q, Elections: []Election{}, Failing: []*Job{}, Late: []*Job{}, Running: []*Job{}, Paused: []*Job{}, Next: []*Job{}}
}

// Problem is the reason for which a part is not shown, or not as it is now.
type Problem struct {
	Part string `json:"part"`
	Text string `json:"text"`
}

// nextListed bounds Overview.Next.
const nextListed = 10

// Add adds a job to each list of a state that it is in, up to most jobs a list, and to Next.
func (o *Overview) Add(d *Job, most int) {
	for i, jobs := range []*[]*Job{&o.Failing, &o.Late, &o.Running, &o.Paused} {
		if d.Is(States[i]) && len(*jobs) < most {
			*jobs = append(*jobs, d)
		}
	}
	if d.Next.IsZero() || d.Late || d.Paused != nil {
		return
	}
	at, _ := slices.BinarySearchFunc(o.Next, d, func(x, d *Job) int {
		if x.Next.After(d.Next.Time) {
			return 1
		}
		return -1 // jobs that are due at the same time stay in their order
	})
	if at < nextListed {
		o.Next = slices.Insert(o.Next, at, d)
		o.Next = o.Next[:min(len(o.Next), nextListed)]
	}
}
