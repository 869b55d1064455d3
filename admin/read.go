package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
)

// Replica is a process, as its card describes it. A process writes its card every ten seconds, so
// the data is as old as Age. The card of a killed process stays for half a minute.
type Replica struct {
	ID          string // random, new with each start
	Identity    string // see redlock.WithIdentity
	Host        string
	PID         int
	Program     string // path of its main package
	Version     string // of the program, or the revision it was built from
	Began       time.Time
	Nodes       []Seen        // how the process sees the nodes
	Running     []Run         // the runs that go on in the process
	Leads       []string      // elections that it leads
	Stands      []string      // elections in which it is a candidate and does not lead
	Candidacies []Candidacy   // its part in each election of Leads and Stands
	Jobs        []string      // the jobs of its schedulers
	Cut         bool          // some entries did not fit on the card
	Age         time.Duration // time since a node last received the card, by that node's clock
	Sources     int           // nodes that have the card
}

// Candidacy is the part of a process in an election: its leader, or a candidate.
type Candidacy struct {
	Election string
	Identity string // under which the process leads, see elector.WithIdentity
}

// Seen is the view that a process has of a node.
type Seen struct {
	Replica string        // Identity of the process
	Node    string        // the name of the node in that process
	Votes   bool          // the node votes for that process
	Why     string        // an error.type, also of a warning; empty if nothing is wrong
	Since   time.Time     // by its clock: when this view began, or the process did; zero if not told
	Was     []Turn        // earlier views, the latest first
	Age     time.Duration // Age of the process's card
}

// Turn is an earlier view that a process had of a node, from Since until the next Turn. A process
// looks at its nodes every ten seconds. Its card has the last five turns.
type Turn struct {
	Votes bool
	Why   string
	Since time.Time
}

// Replicas reads which processes live, in the order of their identities. A process has a card if a
// scheduler or an elector in it writes one.
//
// Errors: *redlock.QuorumError (redlock.ErrNoQuorum) if no node answered, redlock.ErrClosed, or
// ctx's own error.
func (c *Client) Replicas(ctx context.Context) ([]Replica, error) {
	var all []Replica
	for card, err := range board.Of(c.q).Cards(ctx, bulletin.Processes) {
		if err != nil {
			return nil, fmt.Errorf("admin: cannot read which replicas live: %w", err)
		}
		if p, ok := bulletin.Parse[bulletin.Process](card.Text); ok {
			all = append(all, newReplica(p, card))
		}
	}
	slices.SortFunc(all, func(a, b Replica) int { return strings.Compare(a.Identity+a.ID, b.Identity+b.ID) })
	return all, nil
}

func newReplica(p bulletin.Process, card bulletin.Card) Replica {
	r := Replica{
		ID: card.ID, Identity: p.Identity, Host: p.Host, PID: p.PID, Program: p.Program, Version: p.Version, Began: timeOf(p.Began),
		Jobs: p.Jobs, Cut: p.Cut, Age: card.Age, Sources: card.Nodes,
	}
	for _, n := range p.Nodes {
		seen := Seen{Replica: p.Identity, Node: n.Node, Votes: n.Votes, Why: n.Why, Since: timeOf(n.Since), Age: card.Age}
		for _, t := range n.Was {
			seen.Was = append(seen.Was, Turn{t.Votes, t.Why, timeOf(t.Since)})
		}
		r.Nodes = append(r.Nodes, seen)
	}
	for _, run := range p.Running {
		r.Running = append(r.Running, Run{Job: run.Job, Replica: run.By, Tick: timeOf(run.Tick), Began: timeOf(run.Began), Attempt: run.Attempt, Why: run.Why, FencingToken: run.Token})
	}
	for _, e := range p.Elections {
		r.Candidacies = append(r.Candidacies, Candidacy{e.Election, cmp.Or(e.Identity, p.Identity)})
		if e.Term != 0 {
			r.Leads = append(r.Leads, e.Election)
		} else {
			r.Stands = append(r.Stands, e.Election)
		}
	}
	return r
}

// JobStatus is the state of a job, as its replicas describe it and the nodes record it.
type JobStatus struct {
	Name     string
	Schedule string
	Zone     string // of the schedule; empty if it needs none
	Program  string // path of the main package that runs it
	Election string // the election whose leader runs the job; empty if any replica does
	Delivery string
	CatchUp  string
	Window   time.Duration // how old a tick may be that is caught up; zero for none
	Overlap  string
	Orders   bool   // replicas take orders for it
	Runbook  string // an address that any writer of the nodes may have set; empty for none

	// Next is the next tick; zero if not known. It is as old as Age.
	Next time.Time
	// Late means that a tick seems to be missed, and the job is neither running nor paused. Either
	// Next passed more than half a minute ago and no run of it is known, or its run ended that long
	// ago and no replica has named the tick after it.
	Late    bool
	Running *Run     // nil for none
	Last    *PastRun // the newest run that has ended; nil for none
	Paused  *Paused  // the job's own pause, or that of all jobs; nil for none
	// Succeeded is the time at which a run last ended well; zero for never. Overdue means that the
	// last success is longer ago than the job allows (scheduler.WithSucceedWithin).
	Succeeded time.Time
	Overdue   bool
	Backfill  *Backfill // the rest of the backfill that goes on; nil for none
	// Err says why some fields are not known: Last, or all that are read from a quorum.
	Err error

	Age     time.Duration // of the replicas' description
	Sources int           // nodes that have the description
}

// lateAfter is how long after a tick a card may still name that tick as the next one.
const lateAfter = bulletin.ProcessLifetime

// Jobs reads the jobs of all replicas, in the order of their names. It reads a page of 50 jobs at a
// time, when the caller asks for the next job. A job stays for half an hour after the last replica
// that had it. An error ends the sequence; errors are those of Replicas.
func (c *Client) Jobs(ctx context.Context) iter.Seq2[JobStatus, error] {
	return func(yield func(JobStatus, error) bool) {
		var out error // set once no quorum answers: the jobs that follow are not asked for one by one
		failed := 0   // failed reads in a row; a single one may be a passing fault
		for card, err := range board.Of(c.q).Cards(ctx, bulletin.Jobs) {
			if err != nil {
				yield(JobStatus{}, fmt.Errorf("admin: cannot read the jobs: %w", err))
				return
			}
			if j, ok := bulletin.Parse[bulletin.Job](card.Text); ok {
				s := c.status(ctx, j, card, out)
				if failed++; s.Err == nil {
					failed = 0
				} else if failed == 3 {
					_, out = pause.Read(ctx, c.q, "") // each job asks for this pause as well
				}
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

// ErrNoJob means that no replica is known to have a job.
var ErrNoJob = errors.New("admin: no replica is known to have the job")

// Job reads one job. Errors: ErrNoJob, *OptionError, and those of Replicas.
func (c *Client) Job(ctx context.Context, name string) (JobStatus, error) {
	j, card, err := c.definition(ctx, name)
	if err != nil {
		return JobStatus{}, err
	}
	return c.status(ctx, j, card, nil), nil
}

// definition reads the card of a job.
func (c *Client) definition(ctx context.Context, name string) (j bulletin.Job, card bulletin.Card, err error) {
	key, err := Job(name).key()
	if err != nil {
		return j, card, err
	}
	card, _, err = board.Of(c.q).Card(ctx, bulletin.Jobs, key)
	if err != nil {
		return j, card, fmt.Errorf("admin: cannot read job %q: %w", name, err)
	}
	j, known := bulletin.Parse[bulletin.Job](card.Text) // card.Text is empty if there is no card
	if !known {
		err = fmt.Errorf("%w: %q", ErrNoJob, name)
	}
	return j, card, err
}

// status adds the state on the nodes to the description by the replicas. If out is not nil there is
// no quorum, and status adds only the last run.
func (c *Client) status(ctx context.Context, j bulletin.Job, card bulletin.Card, out error) JobStatus {
	s := JobStatus{
		Name: j.Job, Schedule: j.Schedule, Zone: j.Zone, Program: j.Program, Election: j.Election,
		Delivery: j.Delivery, CatchUp: j.CatchUp, Overlap: j.Overlap, Orders: j.Orders,
		Window: time.Duration(j.Window) * time.Millisecond, Runbook: j.Runbook, Next: timeOf(j.Next), Age: card.Age, Sources: card.Nodes,
	}
	runs, unread := c.Runs(ctx, j.Job, 1)
	if len(runs) > 0 {
		s.Last = &runs[0]
	}
	if s.Err = cmp.Or(out, unread); out != nil {
		return s
	}
	l, err := c.log(ctx, j.Job)
	if err == nil {
		s.Paused, s.Succeeded = pausedBy(Job(j.Job), l.pauses...), l.record.OK.Ended
		if since := joblog.Later(s.Succeeded, l.record.Since); j.Within > 0 && !since.IsZero() {
			s.Overdue = l.now.Sub(since) > time.Duration(j.Within)*time.Millisecond
		}
		if f := l.record.Fill; !f.To.IsZero() {
			s.Backfill = new(newBackfill(f))
		}
	}
	if run, unheld := c.holder(ctx, j.Job); unheld == nil {
		run.add(l.record)
		s.Running = &run
	} else if !errors.Is(unheld, ErrNotRunning) {
		err = unheld
	}
	if s.Err = cmp.Or(err, unread); err != nil || s.Next.IsZero() || !l.now.After(s.Next) {
		return s
	}
	heard := s.Next
	if !l.record.Cursor.Before(s.Next) || !l.record.Run.Tick.Before(s.Next) {
		// The tick was run or skipped, and no replica has named the next one yet. None will if the
		// last replica has died.
		s.Next, heard = time.Time{}, joblog.Later(l.record.Run.Ended, l.record.Cursor)
	}
	s.Late = l.now.Sub(heard) > lateAfter && s.Paused == nil && s.Running == nil
	return s
}

// Outcome is the way in which a run ended.
type Outcome string

// The outcomes. A killed replica cannot report its run: the next holder of the lease reports it as
// cut short.
const (
	OutcomeOK        Outcome = bulletin.OK
	OutcomeFailed    Outcome = bulletin.Failed    // the task returned an error
	OutcomePanicked  Outcome = bulletin.Panicked  // the task did not return
	OutcomeLost      Outcome = bulletin.Lost      // the lease was lost; another replica may have begun the next run
	OutcomeCancelled Outcome = bulletin.Cancelled // Cancel ended it
	OutcomeStopped   Outcome = bulletin.Stopped   // the task was told to end because its job or replica stopped, and returned an error
	OutcomeNotBegun  Outcome = bulletin.NotBegun  // RunNow asked for the run, and the task was not called
	OutcomeCutShort  Outcome = bulletin.CutShort  // the replica was killed, or lost the lease and did not report
)

// PastRun is a run that has ended, as its replica reported it.
type PastRun struct {
	Job          string
	Replica      string        // identity
	Tick         time.Time     // zero for a run that RunNow asked for
	Began        time.Time     // by the replica's clock
	Took         time.Duration // from Began until the task returned or panicked, in whole microseconds; zero if the task was not called
	Outcome      Outcome
	Error        string    // an error.type; or the error's text, if the replica tells texts (scheduler.Telling)
	Attempt      int       // 1, or more if the tick was begun before
	Attempts     []Attempt // the last eight calls of the task, the oldest first, if there were several
	Why          string    // on_time, late, queued, again, ordered or backfill: see scheduler.Run
	Report       string    // the report of the task (scheduler.Run.Report)
	FencingToken uint64
	TraceID      string // empty for a run without a trace
	Order        string // the ID of the Order that asked for it; empty for a tick
	Sources      int    // nodes that have the report
}

// Attempt is a call of a task, within a run that called it several times (scheduler.WithRetry).
type Attempt struct {
	Began time.Time // by the replica's clock
	Took  time.Duration
	Error string // as that of the PastRun, and that one if the call has no other; may be empty
}

// newPastRun reads an entry about a run of the job. If job is empty the name is that in the entry,
// which cuts a long one.
func newPastRun(job string, e bulletin.Entry) (PastRun, bool) {
	r, ok := bulletin.Parse[bulletin.Run](e.Text)
	var attempts []Attempt
	for _, a := range r.Attempts {
		attempts = append(attempts, Attempt{timeOf(a.Began), time.Duration(a.Took) * time.Microsecond, cmp.Or(a.Error, r.Error)})
	}
	return PastRun{
		Job: cmp.Or(job, r.Job), Replica: r.By, Tick: timeOf(r.Tick), Began: timeOf(r.Began), Took: time.Duration(r.Took) * time.Microsecond,
		Outcome: Outcome(r.Outcome), Error: r.Error, Attempt: r.Attempt, Why: r.Why, Report: r.Report, FencingToken: r.Token,
		TraceID: r.Trace, Order: r.Order, Sources: e.Nodes, Attempts: attempts,
	}, ok
}

// Failed reports whether the run did not end well. A run did not fail if an operator cancelled it,
// or if it was stopped with its job or replica.
func (r PastRun) Failed() bool { return bulletin.HasFailed(string(r.Outcome)) }

// Runs reads the last runs of a job that have ended, at most limit, in the order of their tokens,
// the newest first. Nodes keep the last 200 runs and the last 50 that failed, until 40 days after
// the last entry.
//
// Errors are those of Replicas, and *OptionError.
func (c *Client) Runs(ctx context.Context, job string, limit int) ([]PastRun, error) {
	limit = min(limit, bulletin.MaxRuns+bulletin.MaxFailed) // there are no more
	runs, err := journal(ctx, c, bulletin.Runs, job, limit+toldLate, newPastRun)
	if err == nil && len(runs) >= bulletin.MaxRuns && len(runs) < limit {
		var failed []PastRun
		if failed, err = journal(ctx, c, bulletin.Failed, job, bulletin.MaxFailed, newPastRun); err == nil {
			runs = append(runs, failed...)
		}
	}
	if limit < 1 || err != nil {
		return nil, err
	}
	runs = eachOnce(runs)
	slices.SortStableFunc(runs, func(a, b PastRun) int { return cmp.Compare(b.FencingToken, a.FencingToken) })
	return runs[:min(len(runs), limit)], nil
}

// toldLate is how many runs may stand out of order before newer ones. A frozen replica that has
// lost its lease reports its run late, when it continues.
const toldLate = 4

// eachOnce leaves one of two reports of the same run. If a replica lost the lease, the next holder
// reports the run as cut short, and the replica may report it too: its own report is kept.
func eachOnce(runs []PastRun) []PastRun {
	once := runs[:0]
	for _, r := range runs {
		at := slices.IndexFunc(once, func(known PastRun) bool { return known.FencingToken == r.FencingToken })
		if at < 0 || r.FencingToken == 0 {
			once = append(once, r)
		} else if once[at].Outcome == OutcomeCutShort {
			once[at] = r
		}
	}
	return once
}

// FailedRuns reads the last failed runs of all jobs, at most limit, the newest first. Errors are
// those of Replicas.
func (c *Client) FailedRuns(ctx context.Context, limit int) (all []PastRun, err error) {
	cannot := func(err error) error { return fmt.Errorf("admin: cannot read which runs failed: %w", err) }
	var jobs, journals []string
	for card, err := range board.Of(c.q).Cards(ctx, bulletin.Jobs) {
		if err != nil {
			return nil, cannot(err)
		}
		if j, ok := bulletin.Parse[bulletin.Job](card.Text); ok {
			jobs, journals = append(jobs, j.Job), append(journals, bulletin.Failed+"/"+j.Key)
		}
	}
	for len(jobs) > 0 {
		n := min(len(jobs), bulletin.MaxEntries/bulletin.MaxFailed) // as many as one command may read
		lists, err := board.Of(c.q).Journals(ctx, bulletin.MaxFailed, journals[:n]...)
		if err != nil {
			return nil, cannot(err)
		}
		for i, entries := range lists {
			all = append(all, eachOnce(parsed(jobs[i], entries, newPastRun))...)
		}
		slices.SortStableFunc(all, func(a, b PastRun) int { return b.Began.Add(b.Took).Compare(a.Began.Add(a.Took)) })
		all = all[:min(len(all), max(limit, 0))]
		jobs, journals = jobs[n:], journals[n:]
	}
	return all, nil
}

// journal reads the newest entries of a job's journal of a kind.
func journal[T any](ctx context.Context, c *Client, kind, job string, limit int, parse func(string, bulletin.Entry) (T, bool)) ([]T, error) {
	key, err := Job(job).key()
	if err != nil || limit < 1 {
		return nil, err
	}
	entries, err := board.Of(c.q).Journal(ctx, kind+"/"+key, limit)
	if err != nil {
		return nil, fmt.Errorf("admin: cannot read the %s of job %q: %w", kind, job, err)
	}
	return parsed(job, entries, parse), nil
}

func parsed[T any](job string, entries []bulletin.Entry, parse func(string, bulletin.Entry) (T, bool)) (all []T) {
	for _, e := range entries {
		if t, ok := parse(job, e); ok {
			all = append(all, t)
		}
	}
	return all
}

// Skip is a tick, or several ticks in a row with the same reason, that no replica ran. A run that
// was cut short is a PastRun, and no Skip.
type Skip struct {
	Job     string
	Reason  string    // see scheduler.Reason
	Tick    time.Time // the last of the ticks
	Count   int       // of ticks, on all replicas; approximate
	Replica string    // identity of the replica that skipped the last tick
	By      string    // the holder of the job, or the actor who paused it; empty if not known
	At      time.Time // when it was reported
	Sources int       // nodes that have the report
}

// newSkip reads an entry about a skip, with the job's name as in newPastRun.
func newSkip(job string, e bulletin.Entry) (Skip, bool) {
	s, ok := bulletin.Parse[bulletin.Skip](e.Text)
	return Skip{Job: cmp.Or(job, s.Job), Reason: s.Reason, Tick: timeOf(s.Tick), Count: e.Count, Replica: s.By, By: s.Holder, At: e.At, Sources: e.Nodes}, ok
}

// Skips reads the last skips of a job, at most limit, the newest first. Nodes keep 10. A replica
// reports a skip within ten seconds.
//
// Errors are those of Runs.
func (c *Client) Skips(ctx context.Context, job string, limit int) ([]Skip, error) {
	return journal(ctx, c, bulletin.Skips, job, limit, newSkip)
}

// Election is an election with its leader, its candidates and its last terms.
type Election struct {
	Name       string
	Leader     *Leader  // nil if the election has no leader, or if that is not known, see Err
	Candidates []string // the identities under which replicas campaign, sorted; see Candidates
	Terms      []Term   // the newest first; at most 20
	Err        error    // why the leader is not known
}

// Leader is the leader of an election, as a quorum of nodes has it.
type Leader struct {
	Identity  string
	Payload   string // see elector.WithPayload
	Term      uint64
	Since     time.Time     // by the leader's clock; zero if not known
	LeaseLeft time.Duration // time until its lease expires, unless it is extended
}

// Term is a term of a leader, as that leader reported it.
type Term struct {
	Number   uint64
	Identity string
	Began    time.Time // zero if not known any more
	Ended    time.Time // zero while the term lasts, or if not known
	How      string    // resigned or lost; empty while the term lasts
	Reason   string    // see elector.Reason; TermCutShort if the next term began without a report of the end
	// Gap is the time without a leader before this term; zero if not known. It compares the clocks
	// of two replicas.
	Gap     time.Duration
	Sources int // nodes that have the report of its beginning
}

// TermCutShort is the Reason of a term that another term followed and whose end was not reported:
// its leader was killed, or could not reach the nodes. If the next leader waited for the keys of
// its lease to expire, the term ended at that time.
const TermCutShort = "cut_short"

const mostTerms = 20

// Elections reads the elections in which at least one replica takes part, in the order of their
// names.
//
// Errors are those of Replicas.
func (c *Client) Elections(ctx context.Context) ([]Election, error) {
	replicas, err := c.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	candidates := Candidates(replicas)
	var all []Election
	for _, name := range slices.Sorted(maps.Keys(candidates)) {
		e, err := c.Election(ctx, name)
		if err != nil {
			return nil, err
		}
		e.Candidates = candidates[name]
		all = append(all, e)
	}
	return all, nil
}

// Candidates returns the candidates of each election: the identities under which replicas campaign,
// sorted. The leader is one of them, unless its card does not say so yet, or it has no card
// (elector.WithoutCard).
func Candidates(replicas []Replica) map[string][]string {
	all := make(map[string][]string)
	for _, r := range replicas {
		for _, p := range r.Candidacies {
			all[p.Election] = append(all[p.Election], p.Identity)
		}
	}
	for name, identities := range all {
		slices.Sort(identities)
		all[name] = slices.Compact(identities)
	}
	return all
}

// Election reads one election, without its candidates.
//
// Errors are those of Runs.
func (c *Client) Election(ctx context.Context, name string) (Election, error) {
	key, err := keyOf(elector.KeyPrefix, name, "Election", "election", "names no election")
	if err != nil {
		return Election{}, err
	}
	e := Election{Name: name}
	entries, err := board.Of(c.q).Journal(ctx, bulletin.Terms+"/"+name, bulletin.MaxEntries)
	if err != nil {
		return e, fmt.Errorf("admin: cannot read the terms of election %q: %w", name, err)
	}
	e.Terms = newTerms(entries)
	h, err := c.q.Holder(ctx, key)
	switch {
	case err == nil:
		e.Leader = &Leader{Identity: h.Identity, Payload: h.Payload, Term: h.FencingToken, LeaseLeft: h.TTL}
		for _, t := range e.Terms {
			if t.Number == h.FencingToken {
				e.Leader.Since = t.Began
			}
		}
	case !errors.Is(err, redlock.ErrNotHeld):
		e.Err = fmt.Errorf("admin: cannot tell who leads %q: %w", name, err)
	}
	return e, nil
}

// newTerms joins the entries about beginnings and ends into terms.
func newTerms(entries []bulletin.Entry) []Term {
	known, vacant := make(map[uint64]Term), make(map[uint64]time.Duration)
	for _, entry := range entries {
		t, ok := bulletin.Parse[bulletin.Term](entry.Text)
		if !ok {
			continue
		}
		term := known[t.Term]
		term.Number, term.Identity = t.Term, cmp.Or(term.Identity, t.By)
		if t.Event == bulletin.Elected {
			term.Began, term.Sources = timeOf(t.At), entry.Nodes
			vacant[t.Term] = time.Duration(t.Vacant) * time.Millisecond
		} else if term.How != string(elector.Lost) { // a term that was lost may have been reported as resigned before
			term.Ended, term.How, term.Reason = timeOf(t.At), t.Event, t.Reason
		}
		known[t.Term] = term
	}
	var terms []Term
	for i, number := range slices.Sorted(maps.Keys(known)) {
		t := known[number]
		if i > 0 {
			before := &terms[i-1]
			if before.How == "" {
				before.How, before.Reason = string(elector.Lost), TermCutShort
				if ended := t.Began.Add(-vacant[number]); vacant[number] > 0 && ended.After(before.Began) {
					before.Ended = ended
				} // else the vacancy began before that term did: its end is not known
			}
			if !t.Began.IsZero() && !before.Ended.IsZero() {
				t.Gap = max(t.Began.Sub(before.Ended), 0)
			}
		}
		terms = append(terms, t)
	}
	slices.Reverse(terms)
	return terms[:min(len(terms), mostTerms)]
}

// Node is a node as this process sees it, and as each replica sees it.
type Node struct {
	redlock.NodeStatus
	SeenBy []Seen // by replicas that use the same name for the node
}

// Look asks the nodes for their status (redlock.Quorum.Nodes), and does not read the replicas'
// cards. It costs each node two commands.
func (c *Client) Look(ctx context.Context) []redlock.NodeStatus { return c.q.Nodes(ctx) }

// Nodes asks the nodes for their status (Look), and adds how the replicas see them (Seeing). It
// returns no error: if the cards cannot be read, SeenBy is empty.
func (c *Client) Nodes(ctx context.Context) []Node {
	looked := c.Look(ctx)
	replicas, _ := c.Replicas(ctx)
	return Seeing(looked, replicas)
}

// Seeing adds to each node that this process looked at how the replicas see it. Nodes that only
// replicas name, because they use other addresses, come last. Of their NodeStatus only Node is set.
func Seeing(looked []redlock.NodeStatus, replicas []Replica) []Node {
	var nodes []Node
	for _, s := range looked {
		nodes = append(nodes, Node{NodeStatus: s})
	}
	for _, r := range replicas {
		for _, seen := range r.Nodes {
			i := slices.IndexFunc(nodes, func(n Node) bool { return n.Node == seen.Node })
			if i < 0 {
				i = len(nodes)
				nodes = append(nodes, Node{NodeStatus: redlock.NodeStatus{Node: seen.Node}})
			}
			nodes[i].SeenBy = append(nodes[i].SeenBy, seen)
		}
	}
	return nodes
}

// timeOf converts milliseconds since 1970; 0 is the zero time.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
