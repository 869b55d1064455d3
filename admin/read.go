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

// Replica is a process, as its card says. Cards are written every ten seconds, so what one says is
// as old as Age, and a process that was killed is there for half a minute.
type Replica struct {
	ID          string // random, new with each start
	Identity    string // see redlock.WithIdentity
	Host        string
	PID         int
	Program     string // path of its main package
	Version     string // of the program, or the revision it was built from
	Began       time.Time
	Nodes       []Seen        // how it sees the nodes
	Running     []Run         // what it runs
	Leads       []string      // elections
	Stands      []string      // elections in which it is a candidate, and does not lead
	Candidacies []Candidacy   // its parts in elections: in those of Leads and Stands
	Jobs        []string      // that it has
	Cut         bool          // there is more than fitted its card
	Age         time.Duration // of the card: since a node heard it last, by that node's clock
	Sources     int           // nodes that have the card
}

// Candidacy is the part of a process in an election, as its leader or a candidate.
type Candidacy struct {
	Election string
	Identity string // under which it leads, see elector.WithIdentity
}

// Seen is how a process sees a node.
type Seen struct {
	Replica string        // Identity
	Node    string        // as that process knows it
	Votes   bool          // the node votes for that process
	Why     string        // an error.type; empty if nothing is wrong
	Since   time.Time     // by its clock: when that began, or the process itself; zero if it does not say
	Was     []Turn        // before, the latest first
	Age     time.Duration // since it said so, as that of its card
}

// Turn is how a process saw a node from a time on, until the next. A process looks every ten
// seconds, and tells of the last five.
type Turn struct {
	Votes bool
	Why   string
	Since time.Time
}

// Replicas reads which processes live, in the order of their identities: those with a scheduler or
// an elector that has a card.
//
// Errors: *redlock.QuorumError (redlock.ErrNoQuorum) if no node answered, redlock.ErrClosed, or
// ctx's own error.
func (c *Client) Replicas(ctx context.Context) ([]Replica, error) {
	var all []Replica
	for card, err := range board.Of(c.q).Cards(ctx, bulletin.Processes) {
		if err != nil {
			return nil, fmt.Errorf("admin: cannot read which replicas live: %w", err)
		}
		if p, ok := bulletin.ParseProcess(card.Text); ok {
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

// JobStatus is a job, as the replicas that have it say, and what the nodes know of it.
type JobStatus struct {
	Name     string
	Schedule string
	Zone     string // of the schedule; empty where it needs none
	Program  string // path of the main package that runs it
	Election string // whose leader runs it; empty if any replica does
	Delivery string
	CatchUp  string
	Overlap  string
	Orders   bool // replicas take orders for it

	// Next is the next tick; zero if that is not known. It is as old as Age.
	Next time.Time
	// Late means that Next has passed for longer than a replica takes to say what it does, and no
	// run of it is known; or that one has ended, and for as long no replica has said what comes
	// next.
	Late    bool
	Running *Run     // nil for none
	Last    *PastRun // the newest that has ended; nil for none
	Paused  *Paused  // its own pause, or that of all jobs; nil for none
	// Succeeded is when a run last ended well; zero for never. Overdue means that this is longer
	// ago than the job allows (scheduler.WithSucceedWithin).
	Succeeded time.Time
	Overdue   bool
	Backfill  *Backfill // what is left of one that goes on; nil for none
	// Err is why some of the above is not known: Last, or all that a quorum has to tell.
	Err error

	Age     time.Duration // of what the replicas say
	Sources int           // nodes that have it
}

// lateAfter is for how long after a tick a card may still name it as the next one.
const lateAfter = bulletin.ProcessLifetime

// Jobs reads the jobs of all replicas, in the order of their names. A page of 50 is read at a time,
// and only if more of them are asked for. A job is there for half an hour after the last replica
// that had it. An error ends it, and is one of Replicas.
func (c *Client) Jobs(ctx context.Context) iter.Seq2[JobStatus, error] {
	return func(yield func(JobStatus, error) bool) {
		var out error // why a quorum tells nothing of any job: the others are not asked for, one after the other
		failed := 0   // jobs in a row: one alone may have met a moment
		for card, err := range board.Of(c.q).Cards(ctx, bulletin.Jobs) {
			if err != nil {
				yield(JobStatus{}, fmt.Errorf("admin: cannot read the jobs: %w", err))
				return
			}
			if j, ok := bulletin.ParseJob(card.Text); ok {
				s := c.status(ctx, j, card, out)
				if failed++; s.Err == nil {
					failed = 0
				} else if failed == 3 {
					_, out = pause.Read(ctx, c.q, "") // which each of them has to ask
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
	j, known := bulletin.ParseJob(card.Text) // which is empty where there is none
	if !known {
		err = fmt.Errorf("%w: %q", ErrNoJob, name)
	}
	return j, card, err
}

// status adds what the nodes know to what the replicas say: nothing but the last run where a quorum
// is out.
func (c *Client) status(ctx context.Context, j bulletin.Job, card bulletin.Card, out error) JobStatus {
	s := JobStatus{
		Name: j.Job, Schedule: j.Schedule, Zone: j.Zone, Program: j.Program, Election: j.Election,
		Delivery: j.Delivery, CatchUp: j.CatchUp, Overlap: j.Overlap, Orders: j.Orders,
		Next: timeOf(j.Next), Age: card.Age, Sources: card.Nodes,
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
		// It is run, or left out, and what comes next is not said yet: never, if the last replica
		// has died.
		s.Next, heard = time.Time{}, joblog.Later(l.record.Run.Ended, l.record.Cursor)
	}
	s.Late = l.now.Sub(heard) > lateAfter && s.Paused == nil && s.Running == nil
	return s
}

// Outcome is how a run ended.
type Outcome string

// The outcomes. A replica that was killed says nothing of its run: the next one that has the lease
// tells of it.
const (
	OutcomeOK        Outcome = bulletin.OK
	OutcomeFailed    Outcome = bulletin.Failed    // the task returned an error
	OutcomePanicked  Outcome = bulletin.Panicked  // the task did not return
	OutcomeLost      Outcome = bulletin.Lost      // the lease was lost: another replica may have begun the next run
	OutcomeCancelled Outcome = bulletin.Cancelled // by Cancel
	OutcomeStopped   Outcome = bulletin.Stopped   // the task was told to end, as its job or replica stopped, and returned an error
	OutcomeNotBegun  Outcome = bulletin.NotBegun  // an order had asked for it, and the task was not called
	OutcomeCutShort  Outcome = bulletin.CutShort  // its replica was killed, or lost the lease and told nobody
)

// PastRun is a run that has ended, as its replica says.
type PastRun struct {
	Job          string
	Replica      string        // identity
	Tick         time.Time     // zero for a run that was asked for
	Began        time.Time     // by the replica's clock
	Took         time.Duration // from Began until the task returned or panicked, in whole microseconds; zero if it was not called
	Outcome      Outcome
	Error        string // an error.type, or the error's text where the replica says it (scheduler.Telling)
	Attempt      int    // 1, or more if the tick was begun before
	Why          string // on_time, late, queued, again, ordered or backfill: see scheduler.Run
	Report       string // what its task says that it has done (scheduler.Run.Report)
	FencingToken uint64
	TraceID      string // empty if it was not traced
	Order        string // the ID of the Order that asked for it; empty for a tick
	Sources      int    // nodes that have it
}

// newPastRun reads a run of a job; of any if that is empty. A long name is cut in the entry.
func newPastRun(job string, e bulletin.Entry) (PastRun, bool) {
	r, ok := bulletin.ParseRun(e.Text)
	return PastRun{
		Job: cmp.Or(job, r.Job), Replica: r.By, Tick: timeOf(r.Tick), Began: timeOf(r.Began), Took: time.Duration(r.Took) * time.Microsecond,
		Outcome: Outcome(r.Outcome), Error: r.Error, Attempt: r.Attempt, Why: r.Why, Report: r.Report, FencingToken: r.Token,
		TraceID: r.Trace, Order: r.Order, Sources: e.Nodes,
	}, ok
}

// Failed reports whether it did not end well. One that an operator ended, or that its replica ended
// as that stopped, did not fail.
func (r PastRun) Failed() bool { return bulletin.HasFailed(string(r.Outcome)) }

// Runs reads the last runs of a job that have ended, the newest first, by their tokens: at most
// limit. Nodes keep the last 200, and the last 50 that failed, until 40 days after the last one.
//
// Errors are those of Replicas, and *OptionError.
func (c *Client) Runs(ctx context.Context, job string, limit int) ([]PastRun, error) {
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

// toldLate is how many runs may stand before newer ones: a replica that lost the lease while it was
// frozen tells of its run when it goes on.
const toldLate = 4

// eachOnce leaves out runs that are there twice: of one that its replica tells too, having lost the
// lease, that it was cut short.
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

// FailedRuns reads the last runs that failed of all jobs, the newest first: at most limit. Errors
// are those of Replicas.
func (c *Client) FailedRuns(ctx context.Context, limit int) (all []PastRun, err error) {
	cannot := func(err error) error { return fmt.Errorf("admin: cannot read which runs failed: %w", err) }
	var jobs, journals []string
	for card, err := range board.Of(c.q).Cards(ctx, bulletin.Jobs) {
		if err != nil {
			return nil, cannot(err)
		}
		if j, ok := bulletin.ParseJob(card.Text); ok {
			jobs, journals = append(jobs, j.Job), append(journals, bulletin.Failed+"/"+j.Key)
		}
	}
	for len(jobs) > 0 {
		n := min(len(jobs), bulletin.MaxEntries/bulletin.MaxFailed) // with one command
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

// journal reads that of a job.
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

// Skip is why a tick, or several one after the other for the same reason, were not run. Those that
// another replica ran are none, and neither is a run that was cut short.
type Skip struct {
	Job     string
	Reason  string    // see scheduler.Reason
	Tick    time.Time // the last of them
	Count   int       // of ticks, on all replicas; about
	Replica string    // identity of the one that skipped the last
	By      string    // who held the job, or paused it; empty if that is not known
	At      time.Time // when it was told
	Sources int       // nodes that have it
}

// newSkip reads a skip as newPastRun does a run.
func newSkip(job string, e bulletin.Entry) (Skip, bool) {
	s, ok := bulletin.ParseSkip(e.Text)
	return Skip{Job: cmp.Or(job, s.Job), Reason: s.Reason, Tick: timeOf(s.Tick), Count: e.Count, Replica: s.By, By: s.Holder, At: e.At, Sources: e.Nodes}, ok
}

// Skips reads why ticks of a job were not run, the newest first: at most limit, and 10. A replica
// tells it within ten seconds.
//
// Errors are those of Runs.
func (c *Client) Skips(ctx context.Context, job string, limit int) ([]Skip, error) {
	return journal(ctx, c, bulletin.Skips, job, limit, newSkip)
}

// Election is who leads, and who led.
type Election struct {
	Name       string
	Leader     *Leader  // nil for nobody, or if that is not known, see Err
	Candidates []string // identities under which replicas lead, sorted; see Candidates
	Terms      []Term   // the newest first; at most 20
	Err        error    // why it is not known who leads
}

// Leader is who leads, as a quorum of nodes has it.
type Leader struct {
	Identity  string
	Payload   string // see elector.WithPayload
	Term      uint64
	Since     time.Time     // by the leader's clock; zero if that is not known
	LeaseLeft time.Duration // for how long it leads unless its lease is extended
}

// Term is a time in office, as who had it says.
type Term struct {
	Number   uint64
	Identity string
	Began    time.Time // zero if it is not known any more
	Ended    time.Time // zero for one that lasts, or if it is not known
	How      string    // resigned or lost; empty for one that lasts
	Reason   string    // see elector.Reason; TermCutShort where another one followed
	// Gap is from the end of the term before; zero if that is not known. The clocks of two replicas
	// are in it.
	Gap     time.Duration
	Sources int // nodes that have its beginning
}

// TermCutShort is the Reason of a term whose end nobody told, before another one: its leader was
// killed, or could not reach the nodes. It ended when the keys of its lease expired, if the next
// leader waited for that.
const TermCutShort = "cut_short"

const mostTerms = 20

// Elections reads the elections in which a replica takes part, in the order of their names.
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

// Candidates are those of each election, as replicas say: the identities under which they lead,
// sorted. The leader is one of them, unless it has not said so yet, or says nothing
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
	if name == "" {
		return Election{}, &OptionError{"Election", "names none"}
	}
	e := Election{Name: name}
	entries, err := board.Of(c.q).Journal(ctx, bulletin.Terms+"/"+name, bulletin.MaxEntries)
	if err != nil {
		return e, fmt.Errorf("admin: cannot read the terms of election %q: %w", name, err)
	}
	e.Terms = newTerms(entries)
	h, err := c.q.Holder(ctx, elector.KeyPrefix+name)
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

// newTerms joins beginnings and ends.
func newTerms(entries []bulletin.Entry) []Term {
	known, vacant := make(map[uint64]Term), make(map[uint64]time.Duration)
	for _, entry := range entries {
		t, ok := bulletin.ParseTerm(entry.Text)
		if !ok {
			continue
		}
		term := known[t.Term]
		term.Number, term.Identity = t.Term, cmp.Or(term.Identity, t.By)
		if t.Event == bulletin.Elected {
			term.Began, term.Sources = timeOf(t.At), entry.Nodes
			vacant[t.Term] = time.Duration(t.Vacant) * time.Millisecond
		} else if term.How != string(elector.Lost) { // it may have been told as resigned before that was seen
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
				} // else that nobody led was before it
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

// Node is a node as this process sees it, and as each replica does.
type Node struct {
	redlock.NodeStatus
	SeenBy []Seen // by replicas that know it by the same name
}

// Look asks the nodes how they are (redlock.Quorum.Nodes), and reads nothing that replicas say: it
// costs a node two commands.
func (c *Client) Look(ctx context.Context) []redlock.NodeStatus { return c.q.Nodes(ctx) }

// Nodes asks the nodes how they are (Look), and reads how the replicas see them (Seeing). It
// returns no error: without an answer nobody has seen them.
func (c *Client) Nodes(ctx context.Context) []Node {
	looked := c.Look(ctx)
	replicas, _ := c.Replicas(ctx)
	return Seeing(looked, replicas)
}

// Seeing is how replicas see the nodes that this process has looked at. A node that only replicas
// name, which have other addresses for it, is behind them, with a Node and nothing else of a
// NodeStatus.
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

// timeOf is a time in milliseconds since 1970; zero for none.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
