// Package bulletin has the formats of what schedulers and electors tell people on the board
// (package board), and of the orders that they take: JSON objects, in which v is the version. It
// does no I/O.
//
// Whoever may write to the nodes may write anything. Parse functions take any bytes; what does not
// fit is left out, and texts are cut. A version that is not known is read as far as it is
// understood.
package bulletin

import (
	"slices"
	"time"
	"unicode/utf8"
)

const version = 1

// Card is what a process says of itself, or of what it knows, until it expires. One of the same
// kind and id takes its place.
type Card struct {
	Kind     string        // one of those below
	ID       string        // whose it is
	Text     string        // UTF-8
	Lifetime time.Duration // after which it expires; zero takes it down

	Age   time.Duration // of one that was read: since it was put up on the node that heard it last
	Nodes int           // that have it
}

// Entry is what has happened, in a journal.
type Entry struct {
	Journal string // its kind, or the kind, a slash, and whose it is
	Text    string // UTF-8
	// Class has an entry take the place of the newest one if that is of the same class, and add to
	// its count. It has no blanks. Empty for none.
	Class string
	Most  int           // entries that the journal keeps
	Keep  time.Duration // for how long the journal is kept when nothing is added any more

	At    time.Time // when it was written; zero to write it with the median of the servers' clocks
	Count int       // how many of its class followed one another; to write, zero is 1
	Nodes int       // that have it
}

// Kinds of cards and of journals. Those of runs and skips are followed by the key of the job, and
// those of terms by the election. A run that failed is in a second journal, too, in which it
// outlives those that end well.
const (
	Processes = "processes"

	Jobs   = "jobs"
	Runs   = "runs"
	Failed = "failed" // also the outcome
	Skips  = "skips"
	Terms  = "terms"
	Orders = "orders"
)

// Bounds, in bytes and in numbers.
const (
	MaxCardText  = 4096
	MaxID        = 2048 // of a card, and the name of a journal
	MaxEntryText = 2048
	MaxClass     = 64
	MaxEntries   = 400 // of a journal
	MaxRuns      = 200 // of that of a job, and of those that failed, in the second one
	MaxFailed    = 50

	keep       = 40 * 24 * time.Hour // a monthly job's last run is still there
	maxRunText = 1024                // the texts of the runs of a job take 250 KiB at most
	mostSkips  = 10
	mostTerms  = 40 // a beginning and an end each
	mostOrders = MaxEntries
	// JobLifetime is how long the definition of a job stays that no replica has any more.
	JobLifetime = 30 * time.Minute
	// TellEvery is how often a process tells what it has to tell.
	TellEvery = 10 * time.Second
	// ProcessLifetime is how long the card of a process stays that tells nothing any more.
	ProcessLifetime = 3 * TellEvery
	// maxText bounds each text, in bytes. Names by which something is found are not cut: the key
	// and the name of a job, the target of an order, and what a process lists.
	maxText = 256
	maxID   = 64 // of an order
)

// Job is the definition of a job.
type Job struct {
	V        int    `json:"v"`
	Job      string `json:"job"`
	Key      string `json:"key"` // of its lease
	Schedule string `json:"schedule"`
	Zone     string `json:"zone,omitempty"`
	Program  string `json:"program,omitempty"`
	Election string `json:"election,omitempty"`
	Delivery string `json:"delivery,omitempty"`
	CatchUp  string `json:"catch_up,omitempty"`
	Overlap  string `json:"overlap,omitempty"`
	Next     int64  `json:"next,omitempty"`   // the tick after the last that was due; ms
	Within   int64  `json:"within,omitempty"` // how long a success may be ago; ms
	By       string `json:"by"`               // the identity of who wrote it
	Orders   bool   `json:"orders"`           // that one takes orders
}

// Run is a run of a job: one that goes on, in the card of its process, or one that has ended, in
// the job's journal.
type Run struct {
	V       int    `json:"v,omitempty"`
	Job     string `json:"job,omitempty"`
	Tick    int64  `json:"tick,omitempty"` // ms; 0 for a run that was asked for
	By      string `json:"by"`             // identity
	Began   int64  `json:"began"`          // ms, by the clock of the process
	Took    int64  `json:"took,omitempty"` // us
	Outcome string `json:"outcome,omitempty"`
	Error   string `json:"error,omitempty"` // error.type, or the text where the program wants that
	Attempt int    `json:"attempt,omitempty"`
	Why     string `json:"why,omitempty"` // a joblog.Why
	Token   uint64 `json:"token"`
	Trace   string `json:"trace,omitempty"`
	Order   string `json:"order,omitempty"`  // the id of the order that asked for it
	Report  string `json:"report,omitempty"` // what the task says that it has done
}

// Outcomes of runs.
const (
	OK        = "ok"
	Panicked  = "panicked"
	Lost      = "lost" // the lease, so that another replica may have begun
	Cancelled = "cancelled"
	Stopped   = "stopped"   // it was told to end, and returned an error
	NotBegun  = "not_begun" // the task was not called
	CutShort  = "cut_short" // its replica was killed, and another one has seen that
)

// HasFailed reports whether a run with an outcome did not end well. One that an operator ended, or
// its replica as that stopped, did not fail.
func HasFailed(outcome string) bool {
	return outcome != OK && outcome != Cancelled && outcome != Stopped
}

// Skip is a tick, or several of the same reason, that a replica did not run.
type Skip struct {
	V      int    `json:"v"`
	Job    string `json:"job,omitempty"`
	Tick   int64  `json:"tick"`           // the last; ms
	Reason string `json:"reason"`         // one of scheduler's, each of which is a class
	By     string `json:"by"`             // identity of who skipped it
	Holder string `json:"held,omitempty"` // who held or ran it, or paused it
}

// Candidacy is a part that a process has in an election, in its card.
type Candidacy struct {
	Election string `json:"election"`
	Identity string `json:"identity"`
	Term     uint64 `json:"term,omitempty"`  // while it leads
	Since    int64  `json:"since,omitempty"` // ms
}

// Term is a beginning or an end of a term.
type Term struct {
	V        int    `json:"v"`
	Election string `json:"election,omitempty"`
	Term     uint64 `json:"term"`
	By       string `json:"by"`
	Event    string `json:"event"` // elected, resigned or lost
	Reason   string `json:"reason,omitempty"`
	At       int64  `json:"at"`               // ms, by the clock of the leader
	Vacant   int64  `json:"vacant,omitempty"` // of a beginning: for how long nobody had led; ms, 0 if that is not known
}

// Order is one that was given, or what came of it: both are entries of the journal of orders, with
// one id.
type Order struct {
	V      int    `json:"v"`
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Target string `json:"target,omitempty"` // a job or an election; empty for all jobs
	Number uint64 `json:"number,omitempty"` // the term to resign, or the token of the run to cancel
	By     string `json:"by"`               // who gave it, or who took it
	Why    string `json:"why,omitempty"`
	Within int64  `json:"within,omitempty"` // for how long it is wanted after it was heard; ms
	Result string `json:"result,omitempty"` // empty while it is an order
	Detail string `json:"detail,omitempty"`
	Run    *Run   `json:"run,omitempty"` // that was begun
}

// mostWithin bounds for how long an order is wanted.
const mostWithin = time.Hour

func within(ms int64) int64 { return min(max(ms, 0), mostWithin.Milliseconds()) }

// Kinds of orders.
const (
	Pause  = "pause"
	Resume = "resume"
	RunNow = "run_now"
	Resign = "resign"
	Cancel = "cancel"
	// Backfill of a Target; Detail has its ticks.
	Backfill = "backfill"
)

// Results of orders.
const (
	Done    = "done"
	Refused = "refused" // Detail is an error.type, such as a scheduler.Reason
	// NotRunning is the Detail of an order to cancel a run whose task has returned.
	NotRunning = "not_running"
	Unknown    = "unknown"
	// Nobody is of an order that no replica took, and that none will: who gave it has taken it
	// back.
	Nobody = "nobody"
	// Taken is none yet: By has claimed the order, and begins to carry it out.
	Taken = "taken"
)

// Elected is the event that begins a term. Those that end it are elector.Resigned and elector.Lost.
const Elected = "elected"

// Process is the card of a process.
type Process struct {
	V         int         `json:"v"`
	Process   string      `json:"process"` // a random name
	Identity  string      `json:"identity"`
	Host      string      `json:"host"`
	PID       int         `json:"pid"`
	Program   string      `json:"program"`
	Version   string      `json:"version"`
	Began     int64       `json:"began"`
	Nodes     []NodeSeen  `json:"nodes"`
	Running   []Run       `json:"running"`
	Elections []Candidacy `json:"elections"`
	Jobs      []string    `json:"jobs"`
	Cut       bool        `json:"cut"` // not all fitted
}

// NodeSeen is how a process sees a node, and saw it before.
type NodeSeen struct {
	Node string `json:"node"`
	Turn
	Was []Turn `json:"was,omitempty"` // the latest first
}

// Turn is how a process sees a node from a time on.
type Turn struct {
	Votes bool   `json:"votes"`
	Why   string `json:"why,omitempty"` // an error.type
	Since int64  `json:"since,omitempty"`
}

// mostTurns are those before: a node that was restarted has three.
const mostTurns = 5

// See notes how the process sees the node at a time.
func (n *NodeSeen) See(votes bool, why string, at int64) {
	switch {
	case n.Since != 0 && n.Votes == votes && n.Why == why:
		return
	case n.Since != 0:
		n.Was = append([]Turn{n.Turn}, n.Was[:min(len(n.Was), mostTurns-1)]...) // cards have the old one
	}
	n.Turn = Turn{votes, why, at}
}

// Card makes the card of a process. Where it is too long, the lists that take most room are cut.
func (p Process) Card() Card {
	p.V = version
	for {
		text := encode(p)
		if len(text) <= MaxCardText {
			return Card{Kind: Processes, ID: p.Process, Text: text, Lifetime: ProcessLifetime}
		}
		if !p.Cut { // what was before is worth least
			p.Cut, p.Nodes = true, slices.Clone(p.Nodes)
			for i := range p.Nodes {
				p.Nodes[i].Was = nil
			}
			continue
		}
		nodes, running, elections, jobs := room(p.Nodes), room(p.Running), room(p.Elections), room(p.Jobs)
		switch most := max(nodes, running, elections, jobs); {
		case most <= len("null"):
			p = Process{V: version, Process: p.Process, Identity: cut(p.Identity, maxText), Cut: true}
		case most == jobs:
			p.Jobs = p.Jobs[:len(p.Jobs)/2]
		case most == elections:
			p.Elections = p.Elections[:len(p.Elections)/2]
		case most == running:
			p.Running = p.Running[:len(p.Running)/2]
		default:
			p.Nodes = p.Nodes[:len(p.Nodes)/2]
		}
	}
}

// Card makes the card of a job. It is not ok for a job whose name or key is too long, or no UTF-8.
func (j Job) Card() (Card, bool) {
	j.V = version
	j.clean()
	text, ok := fit(&j, j.texts(), MaxCardText)
	return Card{Kind: Jobs, ID: j.Key, Text: text, Lifetime: JobLifetime},
		ok && j.Job != "" && utf8.ValidString(j.Job) && j.Key != "" && len(j.Key) <= MaxID && utf8.ValidString(j.Key)
}

// Entry makes the entry of a run of the job with that key. It is not ok for a key that is too long,
// or no UTF-8; texts that are too long are shortened.
func (r Run) Entry(key string) (Entry, bool) {
	r.V = version
	r.clean()
	return entry(Runs+"/"+key, &r, r.texts(), "", MaxRuns, maxRunText)
}

// Entries makes all entries of a run: that of Entry, and if it failed, that of the second journal.
func (r Run) Entries(key string) (all []Entry) {
	e, ok := r.Entry(key)
	if ok {
		all = append(all, e)
	}
	if e.Journal, e.Most = Failed+"/"+key, MaxFailed; ok && HasFailed(r.Outcome) {
		all = append(all, e)
	}
	return all
}

// Entry makes the entry of skips, which the next of its reason takes the place of. It is ok as that
// of a run is.
func (s Skip) Entry(key string, count int) (Entry, bool) {
	s.V = version
	s.clean()
	e, ok := entry(Skips+"/"+key, &s, s.texts(), s.Reason, mostSkips, MaxEntryText)
	e.Count = count
	return e, ok
}

// Entry makes the entry of a beginning or an end. It is ok as that of a run is.
func (t Term) Entry(election string) (Entry, bool) {
	t.V, t.Election = version, election
	t.clean()
	return entry(Terms+"/"+election, &t, t.texts(), "", mostTerms, MaxEntryText)
}

// Entry makes the entry of an order, or of what came of it. It is not ok for an id that is none. An
// order is for its target only, so that it is not ok either for one that is too long, or no UTF-8;
// that of what came of it is shortened.
func (o Order) Entry() (Entry, bool) {
	o.V, o.Within = version, within(o.Within)
	if o.Run != nil {
		r := *o.Run
		r.V, r.Job, r.Error = 0, "", ""
		r.clean()
		o.Run = &r
	}
	texts := o.texts()
	if o.Result != "" {
		texts = append(texts, &o.Target)
	}
	valid := o.hasID() && utf8.ValidString(o.ID) && (o.Result != "" || utf8.ValidString(o.Target))
	e, ok := entry(Orders, &o, texts, "", mostOrders, MaxEntryText)
	return e, ok && valid
}

func entry(journal string, value any, texts []*string, class string, most, bytes int) (Entry, bool) {
	text, ok := fit(value, texts, bytes)
	return Entry{Journal: journal, Text: text, Class: class, Most: most, Keep: keep},
		ok && len(journal) <= MaxID && utf8.ValidString(journal)
}
