package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/admin"
)

// The states of jobs.
const (
	Failing = "failing" // the last run failed, or none has succeeded for longer than the job allows
	Late    = "late"    // a tick was due, and was not run
	Running = "running"
	Paused  = "paused"
	Unknown = "unknown" // nothing worse is known, and not all could be read
	OK      = "ok"
)

// States is the states of jobs, the worst first. A job may be in several.
var States = []string{Failing, Late, Running, Paused, Unknown, OK}

// Job is the state of a job.
type Job struct {
	Name      string `json:"name"`
	State     string `json:"state"` // Paused, or else the first of States that holds
	Schedule  string `json:"schedule"`
	Zone      string `json:"zone"`
	Program   string `json:"program"`
	Election  string `json:"election"` // the election whose leader runs it; null if any replica does
	Delivery  string `json:"delivery"`
	CatchUp   string `json:"catch_up"`
	Window    Span   `json:"window_ms"` // how old a tick may be that is caught up
	Overlap   string `json:"overlap"`
	Orders    bool   `json:"orders"` // replicas take orders for it
	Runbook   string `json:"runbook"`
	Next      Time   `json:"next"`
	Late      bool   `json:"late"`
	Failing   bool   `json:"failing"`
	Overdue   bool   `json:"overdue"`   // no run has succeeded for longer than the job allows
	Succeeded Time   `json:"succeeded"` // when a run last succeeded
	Backfill  *Fill  `json:"backfill"`
	Running   *Run   `json:"running"`
	Last      *Past  `json:"last"`
	Paused    *Pause `json:"paused"`
	Error     string `json:"error"` // why a part is not known
	Said      Time   `json:"said"`  // when a replica wrote the definition
	Read      Time   `json:"read"`  // when the nodes were asked
	Sources   int    `json:"sources"`

	Runs  []Past `json:"-"` // the newest first, if they were read
	Named Time   `json:"-"` // Next when all could be read last, if a part is not known now
	Due   Time   `json:"-"` // the first tick that waits for a quorum
}

// NewJob returns a job that was read at a time.
func NewJob(j admin.JobStatus, read time.Time) *Job {
	d := &Job{
		Name: j.Name, Schedule: j.Schedule, Zone: j.Zone, Program: j.Program, Election: j.Election, Delivery: j.Delivery, CatchUp: j.CatchUp, Overlap: j.Overlap,
		Window: Span(j.Window), Orders: j.Orders, Runbook: j.Runbook, Next: At(j.Next), Late: j.Late, Overdue: j.Overdue, Succeeded: At(j.Succeeded), Error: Error(j.Err),
		Said: At(read.Add(-j.Age)), Read: At(read), Sources: j.Sources, Failing: j.Overdue,
	}
	if j.Backfill != nil {
		d.Backfill = &Fill{At(j.Backfill.From), At(j.Backfill.To)}
	}
	// A lease may stay after its run, for the minimum hold.
	if r := j.Running; r != nil && (j.Last == nil || j.Last.FencingToken != r.FencingToken) {
		d.Running = NewRun(*r)
	}
	if j.Last != nil {
		d.Last = new(NewPast(*j.Last))
		d.Failing = d.Overdue || d.Last.Failed()
	}
	d.State = States[slices.IndexFunc(States, d.Is)]
	if j.Paused != nil { // known, even if other parts are not
		d.State, d.Paused = Paused, NewPause(*j.Paused)
	}
	return d
}

// Is reports whether a job is in a state.
func (d *Job) Is(state string) bool {
	switch state {
	case Failing:
		return d.Failing
	case Late:
		return d.Late
	case Running:
		return d.Running != nil
	case Paused:
		return d.Paused != nil
	case Unknown:
		return d.Error != ""
	case OK:
		return !d.Failing && !d.Late && d.Running == nil && d.Paused == nil && d.Error == ""
	}
	return false
}

// Counts is the number of jobs in each state.
type Counts struct {
	Total   int `json:"total"`
	Failing int `json:"failing"`
	Late    int `json:"late"`
	Running int `json:"running"`
	Paused  int `json:"paused"`
	Unknown int `json:"unknown"`
	OK      int `json:"ok"`
}

// Add counts a job.
func (c *Counts) Add(d *Job) {
	c.Total++
	for i, count := range []*int{&c.Failing, &c.Late, &c.Running, &c.Paused, &c.Unknown, &c.OK} {
		if d.Is(States[i]) {
			*count++
		}
	}
}

// Run is a run that goes on.
type Run struct {
	Job       string `json:"job"`
	Replica   string `json:"replica"`
	Tick      Time   `json:"tick"` // null for an ordered run
	Began     Time   `json:"began"`
	Attempt   Number `json:"attempt"`
	Why       string `json:"why"`
	Token     Number `json:"token"`
	LeaseLeft Span   `json:"lease_left_ms"`
}

// NewRun returns a run as it was read.
func NewRun(r admin.Run) *Run {
	return &Run{r.Job, r.Replica, At(r.Tick), At(r.Began), Number(r.Attempt), r.Why, Number(r.FencingToken), Span(r.LeaseLeft)}
}

// Since returns when the run began; if that is not known, its tick.
func (r *Run) Since() Time { return cmp.Or(r.Began, r.Tick) }

// Past is a run that has ended.
type Past struct {
	Job      string    `json:"job"`
	Replica  string    `json:"replica"`
	Tick     Time      `json:"tick"` // null for an ordered run
	Began    Time      `json:"began"`
	Took     Span      `json:"took_ms"` // null if the task was not called
	Outcome  string    `json:"outcome"`
	Error    string    `json:"error"`
	Attempt  Number    `json:"attempt"`
	Attempts []Attempt `json:"attempts"` // the last eight calls of the task, the oldest first; empty if there was one
	Why      string    `json:"why"`
	Report   string    `json:"report"`
	Token    Number    `json:"token"`
	TraceID  string    `json:"trace_id"`
	TraceURL string    `json:"trace_url"` // only if the page was told how to link to traces
	Order    string    `json:"order"`     // the id of the order that asked for the run
	Sources  int       `json:"sources"`
}

// Attempt is a call of a task, within a run of several.
type Attempt struct {
	Began Time   `json:"began"`
	Took  Span   `json:"took_ms"`
	Error string `json:"error"`
}

// NewPast returns an ended run as it was read.
func NewPast(r admin.PastRun) Past {
	return Past{
		Job: r.Job, Replica: r.Replica, Tick: At(r.Tick), Began: At(r.Began), Took: Span(r.Took), Outcome: string(r.Outcome), Error: r.Error, Attempt: Number(r.Attempt),
		Why: r.Why, Report: r.Report, Token: Number(r.FencingToken), TraceID: r.TraceID, Order: r.Order, Sources: r.Sources,
		Attempts: All(r.Attempts, func(a admin.Attempt) Attempt { return Attempt{At(a.Began), Span(a.Took), a.Error} }),
	}
}

// Ended returns when the run ended; if that is not known, its tick.
func (r *Past) Ended() Time {
	if r.Began.IsZero() {
		return r.Tick
	}
	return At(r.Began.Add(time.Duration(r.Took)))
}

// Failed reports whether the run failed. A run that an operator cancelled did not fail.
func (r *Past) Failed() bool { return admin.PastRun{Outcome: admin.Outcome(r.Outcome)}.Failed() }

// Skip is ticks that were not run, and the reason.
type Skip struct {
	Job     string `json:"job"`
	Reason  string `json:"reason"`
	Tick    Time   `json:"tick"` // the last of them
	Count   int    `json:"count"`
	Replica string `json:"replica"`
	By      string `json:"by"`
	At      Time   `json:"at"`
	Sources int    `json:"sources"`
}

// NewSkip returns a skip as it was read.
func NewSkip(s admin.Skip) Skip {
	return Skip{s.Job, s.Reason, At(s.Tick), s.Count, s.Replica, s.By, At(s.At), s.Sources}
}

// Pause is the pause of a job, or of all jobs.
type Pause struct {
	All    bool   `json:"all"`
	Until  Time   `json:"until"` // null: until it is resumed
	Since  Time   `json:"since"`
	By     string `json:"by"`
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// NewPause returns a pause as it was read.
func NewPause(p admin.Paused) *Pause {
	return &Pause{p.Target == admin.AllJobs, At(p.Until), At(p.Since), p.By, p.Reason, p.Nodes}
}

// Fill is the range of a backfill's ticks.
type Fill struct {
	From Time `json:"from"`
	To   Time `json:"to"`
}
