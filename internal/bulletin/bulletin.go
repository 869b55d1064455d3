// Package bulletin has the formats of what schedulers and electors tell people on the board
// (package board), and of the orders that they take. They are JSON objects in which v is the
// version. The package does no I/O.
//
// Any user who may write to the nodes may write anything. So the Parse functions take any bytes:
// they leave out what does not fit, and cut texts. An unknown version is read as far as it is
// understood.
package bulletin

import (
	"cmp"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

const version = 1

// Card is what a process says of itself, or of what it knows, until the card expires. A card
// replaces the card of the same kind and id.
type Card struct {
	Kind     string        // Processes or Jobs
	ID       string        // whose it is
	Text     string        // UTF-8
	Lifetime time.Duration // until it expires; zero takes it down

	Age   time.Duration // when it was read: the time since the node that heard it last put it up
	Nodes int           // that have it, among those that answered
}

// Entry is an event in a journal.
type Entry struct {
	Journal string // its kind, or the kind, a slash, and whose it is
	Text    string // UTF-8
	// Class makes the entry replace the newest one if that has the same Class, and add to its
	// count. It has no blanks; empty for none.
	Class string
	Most  int           // the number of entries that the journal keeps
	Keep  time.Duration // how long the journal is kept after its last entry

	At    time.Time // when it happened; zero to write the median of the servers' clocks
	Count int       // the number of entries of its class in a row; to write, zero is 1
	Nodes int       // that have it, among those that answered
}

// Kinds of cards and of journals. A slash and the key of the job follow the kinds of runs and
// skips; a slash and the election follow the kind of terms. A run that failed is also in a second
// journal, where it outlives runs that end well.
const (
	Processes = "processes"

	Jobs   = "jobs"
	Runs   = "runs"
	Failed = "failed" // also an Outcome
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
	MaxRuns      = 200 // of a job's journal of runs; MaxFailed of its journal of failed runs
	MaxFailed    = 50

	keep       = 40 * 24 * time.Hour // a monthly job's last run is still there
	maxRunText = 1024                // the texts of the runs of a job take 250 KiB at most
	mostSkips  = 10
	mostTerms  = 40 // 20 terms, with a beginning and an end each
	mostOrders = MaxEntries
	// JobLifetime is how long the card of a job stays that no replica has any more.
	JobLifetime = 30 * time.Minute
	// TellEvery is the interval at which a process posts.
	TellEvery = 10 * time.Second
	// ProcessLifetime is how long the card of a process stays that no longer posts.
	ProcessLifetime = 3 * TellEvery
	// maxText bounds each text, in bytes. Names by which something is found are not cut: the key
	// and the name of a job, the target of an order, and the lists of a process.
	maxText = 256
	maxID   = 64 // of an order
)

// Job is the definition of a job, in its card.
type Job struct {
	V        int    `json:"v"`
	Job      string `json:"job" whole:"Job"`
	Key      string `json:"key" whole:"Key"` // of its lease
	Schedule string `json:"schedule"`
	Zone     string `json:"zone,omitempty"`
	Program  string `json:"program,omitempty"`
	Election string `json:"election,omitempty"`
	Delivery string `json:"delivery,omitempty"`
	CatchUp  string `json:"catch_up,omitempty"`
	Overlap  string `json:"overlap,omitempty"`
	Next     int64  `json:"next,omitempty"`   // the first tick after those that were due; ms
	Within   int64  `json:"within,omitempty"` // WithSucceedWithin; ms
	Window   int64  `json:"window,omitempty"` // WithCatchUp; ms
	Runbook  string `json:"runbook,omitempty"`
	By       string `json:"by"`     // the identity of the writer
	Orders   bool   `json:"orders"` // the writer takes orders
}

// Run is a run of a job. A run that goes on is in the card of its process, and a run that has ended
// in the job's journal.
type Run struct {
	V       int    `json:"v,omitempty"`
	Job     string `json:"job,omitempty"`
	Tick    int64  `json:"tick,omitempty"` // ms; 0 for an ordered run
	By      string `json:"by"`             // identity
	Began   int64  `json:"began"`          // ms, by the clock of the process
	Took    int64  `json:"took,omitempty"` // us
	Outcome string `json:"outcome,omitempty"`
	Error   string `json:"error,omitempty"` // error.type, or the text if the program wants that
	Attempt int    `json:"attempt,omitempty"`
	Why     string `json:"why,omitempty"` // a joblog.Why
	Token   uint64 `json:"token"`
	Trace   string `json:"trace,omitempty"`
	Order   string `json:"order,omitempty"`  // the id of the order that asked for the run
	Report  string `json:"report,omitempty"` // the text of the task's Run.Report
	// Attempts are the calls of the task, if there were several; the last mostAttempts of them.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Attempt is a call of a task.
type Attempt struct {
	Began int64  `json:"began"`           // ms
	Took  int64  `json:"took,omitempty"`  // us
	Error string `json:"error,omitempty"` // empty if it is that of the run
}

// mostAttempts bounds Run.Attempts, so that they fit without their texts.
const mostAttempts = 8

// Outcomes of runs.
const (
	OK        = "ok"
	Panicked  = "panicked"
	Lost      = "lost" // the lease was lost: another replica may have begun
	Cancelled = "cancelled"
	Stopped   = "stopped"   // the task was told to end, and returned an error
	NotBegun  = "not_begun" // the task was not called
	CutShort  = "cut_short" // its replica was killed; written by another one
)

// HasFailed reports whether a run with an outcome failed. A run that an operator cancelled, or that
// its replica stopped when it stopped itself, did not fail.
func HasFailed(outcome string) bool {
	return outcome != OK && outcome != Cancelled && outcome != Stopped
}

// Skip is one or several ticks that a replica did not run, all for one reason.
type Skip struct {
	V      int    `json:"v"`
	Job    string `json:"job,omitempty"`
	Tick   int64  `json:"tick"`           // the last of them; ms
	Reason string `json:"reason"`         // a scheduler.Reason; also the Class of the entry
	By     string `json:"by"`             // identity of the replica that skipped it
	Holder string `json:"held,omitempty"` // who held the lease, ran the tick or paused the job
}

// Candidacy is a process's part in an election, in the card of the process.
type Candidacy struct {
	Election string `json:"election" whole:"Election"`
	Identity string `json:"identity"`
	Term     uint64 `json:"term,omitempty"`  // while it leads
	Since    int64  `json:"since,omitempty"` // ms
}

// Term is the beginning or the end of a term.
type Term struct {
	V        int    `json:"v"`
	Election string `json:"election,omitempty"`
	Term     uint64 `json:"term"`
	By       string `json:"by"`
	Event    string `json:"event"` // elected, resigned or lost
	Reason   string `json:"reason,omitempty"`
	At       int64  `json:"at"`               // ms, by the clock of the leader
	Vacant   int64  `json:"vacant,omitempty"` // at a beginning: how long there had been no leader; ms, 0 if not known
}

// Order is an order, or its answer. Both are entries of the journal of orders, with one id.
type Order struct {
	V      int    `json:"v"`
	ID     string `json:"id" whole:"ID"`
	Kind   string `json:"kind"`
	Target string `json:"target,omitempty" whole:"Target"` // a job or an election; empty for all jobs
	Number uint64 `json:"number,omitempty"`                // the term to resign, or the token of the run to cancel
	By     string `json:"by"`                              // the giver of the order, or the taker
	Why    string `json:"why,omitempty"`
	Within int64  `json:"within,omitempty"` // how long the order is valid after it was heard; ms
	Result string `json:"result,omitempty"` // empty: this is an order, and no answer
	Detail string `json:"detail,omitempty"`
	Run    *Run   `json:"run,omitempty"` // the run that was begun
}

// mostWithin bounds Order.Within.
const mostWithin = time.Hour

func within(ms int64) int64 { return min(max(ms, 0), mostWithin.Milliseconds()) }

// Kinds of orders.
const (
	Pause  = "pause"
	Resume = "resume"
	RunNow = "run_now"
	Resign = "resign"
	Cancel = "cancel"
	// Backfill is an order to run past ticks of a Target; Detail has the times.
	Backfill = "backfill"
)

// Results of orders.
const (
	Done    = "done"
	Refused = "refused" // Detail is an error.type, such as a scheduler.Reason
	// NotRunning is the Detail of an order to cancel a run whose task has returned.
	NotRunning = "not_running"
	Unknown    = "unknown"
	// Nobody is the result of an order that no replica took and none will take: its giver has
	// withdrawn it.
	Nobody = "nobody"
	// Taken is not final: By has claimed the order, and begins to carry it out.
	Taken = "taken"
)

// Elected is the event that begins a term. elector.Resigned and elector.Lost end one.
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
	Running   []Run       `json:"running" whole:"Job"`
	Elections []Candidacy `json:"elections"`
	Jobs      []string    `json:"jobs" whole:"Jobs"`
	Cut       bool        `json:"cut"` // these lists are not complete, for want of room
}

// NodeSeen is how a process sees a node, and how it saw the node before.
type NodeSeen struct {
	Node string `json:"node"`
	Turn
	Was []Turn `json:"was,omitempty"` // the latest first
}

// Turn is how a process sees a node, from Since on.
type Turn struct {
	Votes bool   `json:"votes"`
	Why   string `json:"why,omitempty"` // an error.type
	Since int64  `json:"since,omitempty"`
}

// mostTurns bounds NodeSeen.Was. A restart of a node makes three turns.
const mostTurns = 5

// See notes how the process sees the node at a time, in ms since 1970.
func (n *NodeSeen) See(votes bool, why string, at int64) {
	switch {
	case n.Since != 0 && n.Votes == votes && n.Why == why:
		return
	case n.Since != 0:
		n.Was = append([]Turn{n.Turn}, n.Was[:min(len(n.Was), mostTurns-1)]...) // a copy: cards share the old one
	}
	n.Turn = Turn{votes, why, at}
}

// Card makes the card of a process. If it is too long, the past of the nodes is left out, and then
// the longest lists are cut.
func (p Process) Card() Card {
	p.V = version
	for past := true; ; past = false {
		text := encode(p)
		if len(text) <= MaxCardText {
			return Card{Kind: Processes, ID: p.Process, Text: text, Lifetime: ProcessLifetime}
		}
		if past {
			p.Nodes = slices.Clone(p.Nodes)
			for i := range p.Nodes {
				p.Nodes[i].Was = nil
			}
			continue
		}
		p.Cut = true
		longest := slices.MaxFunc([]any{&p.Jobs, &p.Elections, &p.Running, &p.Nodes}, func(x, y any) int { return cmp.Compare(room(x), room(y)) })
		if list := reflect.ValueOf(longest).Elem(); list.Len() > 0 {
			list.SetLen(list.Len() / 2)
		} else {
			p = Process{V: version, Process: p.Process, Identity: cut(p.Identity, maxText), Cut: true}
		}
	}
}

// Card makes the card of a job; false if the job's name or key is empty, too long or not UTF-8.
func (j Job) Card() (Card, bool) {
	j.V = version
	text, ok := fit(&j, MaxCardText)
	return Card{Kind: Jobs, ID: j.Key, Text: text, Lifetime: JobLifetime},
		ok && j.Job != "" && utf8.ValidString(j.Job) && j.Key != "" && len(j.Key) <= MaxID && utf8.ValidString(j.Key)
}

// Entry makes the entry of a run of the job with that key, and shortens texts that are too long. It
// returns false for a key that is too long or not UTF-8.
func (r Run) Entry(key string) (Entry, bool) {
	r.V = version
	return entry(Runs+"/"+key, &r, "", MaxRuns, maxRunText)
}

// Entries makes the entries of a run: the entry of Entry, and for a failed run that of the second
// journal.
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

// Entry makes the entry of skips. The next entry with the same reason replaces it. It returns false
// as that of a Run does.
func (s Skip) Entry(key string, count int) (Entry, bool) {
	s.V = version
	e, ok := entry(Skips+"/"+key, &s, s.Reason, mostSkips, MaxEntryText)
	e.Count = count
	return e, ok
}

// Entry makes the entry of a beginning or an end. It returns false as that of a Run does.
func (t Term) Entry(election string) (Entry, bool) {
	t.V, t.Election = version, election
	return entry(Terms+"/"+election, &t, "", mostTerms, MaxEntryText)
}

// Entry makes the entry of an order or of an answer. It returns false for an invalid id. An order
// is for its target only, so it also returns false if the target of an order is too long or not
// UTF-8; the target of an answer is shortened.
func (o Order) Entry() (Entry, bool) {
	o.V = version
	if o.Run != nil {
		r := *o.Run
		r.V, r.Job, r.Error, r.Attempts = 0, "", "", nil
		o.Run = &r
	}
	var more []*string
	if o.Result != "" {
		more = append(more, &o.Target)
	}
	valid := o.hasID() && utf8.ValidString(o.ID) && (o.Result != "" || utf8.ValidString(o.Target))
	e, ok := entry(Orders, &o, "", mostOrders, MaxEntryText, more...)
	return e, ok && valid
}

func entry(journal string, value interface{ clean() }, class string, most, bytes int, more ...*string) (Entry, bool) {
	text, ok := fit(value, bytes, more...)
	return Entry{Journal: journal, Text: text, Class: class, Most: most, Keep: keep},
		ok && len(journal) <= MaxID && utf8.ValidString(journal)
}
