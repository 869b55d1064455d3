package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
)

func newJobs(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jobs [NAME...]",
		Short: "The jobs: schedule, next tick, last run, who runs them, which are late or paused",
		Example: `  tenure jobs
  tenure jobs nightly-report -o json`,
		ValidArgsFunction: p.completeJobs,
	}
	p.asks(cmd, func(ctx context.Context, c *cluster, names []string) (document, error) {
		d := jobsDocument{Now: now(), Jobs: []jobDocument{}}
		if len(names) > 0 {
			for _, name := range names {
				j, err := c.Job(ctx, name)
				if err != nil {
					return nil, err
				}
				d.Jobs = append(d.Jobs, newJobDocument(j))
			}
			return d, nil
		}
		for j, err := range c.Jobs(ctx) {
			if err != nil {
				return nil, err
			}
			d.Jobs = append(d.Jobs, newJobDocument(j))
		}
		return d, nil
	})
	return cmd
}

// jobsDocument is what `tenure jobs` shows.
type jobsDocument struct {
	Now  stamp         `json:"now"`
	Jobs []jobDocument `json:"jobs"`
}

type jobDocument struct {
	Name     string         `json:"name"`
	State    string         `json:"state"` // running, late, paused, failing, ok or unknown
	Schedule string         `json:"schedule"`
	Zone     string         `json:"zone"`
	Program  string         `json:"program"`
	Election string         `json:"election"`
	Delivery string         `json:"delivery"`
	CatchUp  string         `json:"catch_up"`
	Overlap  string         `json:"overlap"`
	Orders   bool           `json:"orders"`
	Next     stamp          `json:"next"`
	Late     bool           `json:"late"`
	OK       stamp          `json:"ok"` // when a run last ended well
	Overdue  bool           `json:"overdue"`
	Backfill *fillDocument  `json:"backfill"`
	Running  *runDocument   `json:"running"`
	Last     *pastDocument  `json:"last"`
	Paused   *pauseDocument `json:"paused"`
	Error    string         `json:"error"`
	Age      ms             `json:"age_ms"`
	Sources  int            `json:"sources"`
}

// runDocument is a run that goes on.
type runDocument struct {
	Job       string `json:"job"`
	Replica   string `json:"replica"`
	Tick      stamp  `json:"tick"`
	Began     stamp  `json:"began"`
	Attempt   int    `json:"attempt"`
	Why       string `json:"why"`
	Token     uint64 `json:"token"`
	LeaseLeft ms     `json:"lease_left_ms"`
}

func newRunDocument(r admin.Run) *runDocument {
	return &runDocument{r.Job, r.Replica, stamp{r.Tick}, stamp{r.Began}, r.Attempt, r.Why, r.FencingToken, ms(r.LeaseLeft)}
}

// fillDocument is ticks that a backfill runs.
type fillDocument struct {
	From stamp `json:"from"`
	To   stamp `json:"to"`
}

func newFillDocument(b admin.Backfill) *fillDocument {
	return &fillDocument{stamp{b.From}, stamp{b.To}}
}

// pauseDocument is a pause of a job, or of all.
type pauseDocument struct {
	All    bool   `json:"all"`
	Until  stamp  `json:"until"` // null: until it is resumed
	Since  stamp  `json:"since"`
	By     string `json:"by"`
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

func newPauseDocument(p admin.Paused) *pauseDocument {
	return &pauseDocument{p.Target == admin.AllJobs, stamp{p.Until}, stamp{p.Since}, p.By, p.Reason, p.Nodes}
}

func newJobDocument(j admin.JobStatus) jobDocument {
	d := jobDocument{
		Name: j.Name, State: stateOf(j), Schedule: j.Schedule, Zone: j.Zone, Program: j.Program, Election: j.Election, Delivery: j.Delivery,
		CatchUp: j.CatchUp, Overlap: j.Overlap, Orders: j.Orders, Next: stamp{j.Next}, Late: j.Late, OK: stamp{j.Succeeded}, Overdue: j.Overdue, Age: ms(j.Age), Sources: j.Sources,
	}
	if j.Backfill != nil {
		d.Backfill = newFillDocument(*j.Backfill)
	}
	if j.Running != nil {
		d.Running = newRunDocument(*j.Running)
	}
	if j.Last != nil {
		d.Last = newPastDocument(*j.Last)
	}
	if j.Paused != nil {
		d.Paused = newPauseDocument(*j.Paused)
	}
	if j.Err != nil {
		d.Error = said(j.Err)
	}
	return d
}

// stateOf is a word for a job, of what matters most.
func stateOf(j admin.JobStatus) string {
	switch {
	case j.Running != nil:
		return "running"
	case j.Late:
		return "late"
	case j.Paused != nil:
		return "paused"
	case j.Err != nil:
		return "unknown"
	case j.Overdue, j.Last != nil && j.Last.Outcome != admin.OutcomeOK && j.Last.Outcome != admin.OutcomeCancelled:
		return "failing"
	}
	return "ok"
}

func (d jobsDocument) text(w *page) {
	if len(d.Jobs) == 0 {
		w.linef("No replica tells of a job under this prefix. Replicas with a scheduler tell within ten seconds;")
		w.linef("`tenure doctor` says whether nodes and prefix are those of the replicas.")
		return
	}
	var rows [][]string
	for _, j := range d.Jobs {
		last, outcome := "", ""
		if j.Last != nil {
			last, outcome = w.ago(j.Last.Began), j.Last.how()
		}
		rows = append(rows, []string{j.Name, j.State, j.Schedule, w.ago(j.Next), last, outcome, j.Election})
	}
	w.table([]string{"JOB", "STATE", "SCHEDULE", "NEXT", "LAST", "OUTCOME", "ELECTION"}, rows)
	for _, j := range d.Jobs {
		j.remarks(w)
	}
}

// remarks are lines of what a table has no room for.
func (j *jobDocument) remarks(w *page) {
	if r := j.Running; r != nil {
		w.linef("%s is run by %s%s", quoted(j.Name), r.Replica, since(w, ", tick ", r.Tick))
	}
	if p := j.Paused; p != nil {
		w.linef("%s is paused: %s", quoted(j.Name), p.words(w))
	}
	switch {
	case j.Late && j.Next.IsZero():
		w.linef("%s is late: it was run, and no replica has said when it is run again: see tenure status", quoted(j.Name))
	case j.Late:
		w.linef("%s is late: its tick of %s was not run, as far as is known: see tenure runs %s", quoted(j.Name), w.clock(j.Next), j.Name)
	}
	if j.Overdue {
		w.linef("%s is overdue: no run of it has ended well for longer than it allows%s", quoted(j.Name), since(w, ", since ", j.OK))
	}
	if f := j.Backfill; f != nil {
		w.linef("%s is being backfilled: ticks from %s to %s are left", quoted(j.Name), w.clock(f.From), w.clock(f.To))
	}
	if j.Error != "" {
		w.linef("%s: %s", quoted(j.Name), j.Error)
	}
}

// words are a pause in a sentence.
func (p *pauseDocument) words(w *page) string {
	text := "by " + p.By + " since " + w.clock(p.Since)
	if p.All {
		text = "with all jobs, " + text
	}
	if p.Until.IsZero() {
		text += ", until it is resumed"
	} else {
		text += ", until " + w.clock(p.Until)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// since is a time behind some words; nothing where it is not known.
func since(w *page, words string, at stamp) string {
	if at.IsZero() {
		return ""
	}
	return words + w.clock(at)
}
