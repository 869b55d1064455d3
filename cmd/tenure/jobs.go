package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/internal/view"
)

func newJobs(p *program) *cobra.Command {
	return p.asks(&cobra.Command{
		Use:   "jobs [NAME...]",
		Short: "The jobs: schedule, next tick, last run, who runs them, which are late or paused",
		Example: `  tenure jobs
  tenure jobs nightly-report -o json`,
	}, func(ctx context.Context, c *cluster, names []string) (document, error) {
		d := jobsDocument{Now: now(), Jobs: []*view.Job{}}
		if len(names) > 0 {
			for _, name := range names {
				j, err := c.Job(ctx, name)
				if err != nil {
					return nil, err
				}
				d.Jobs = append(d.Jobs, view.NewJob(j, time.Now()))
			}
			return d, nil
		}
		for j, err := range c.Jobs(ctx) {
			if err != nil {
				return nil, err
			}
			d.Jobs = append(d.Jobs, view.NewJob(j, time.Now()))
		}
		return d, nil
	})
}

// jobsDocument is the output of `tenure jobs`.
type jobsDocument struct {
	Now  view.Time   `json:"now"`
	Jobs []*view.Job `json:"jobs"`
}

func (d jobsDocument) text(w *page) {
	const none = "No replica tells of a job under this prefix. Replicas with a scheduler tell within ten seconds;\n" +
		"`tenure doctor` says whether nodes and prefix are those of the replicas."
	w.list(none, []string{"JOB", "STATE", "SCHEDULE", "NEXT", "LAST", "OUTCOME", "ELECTION"}, view.All(d.Jobs, func(j *view.Job) []string {
		row := []string{j.Name, j.State, j.Schedule, w.ago(j.Next), "", "", j.Election}
		if j.Last != nil {
			row[4], row[5] = w.ago(j.Last.Began), how(j.Last)
		}
		return row
	}))
	for _, j := range d.Jobs {
		remarks(w, j)
	}
}

// remarks writes lines about a job for which the table has no room.
func remarks(w *page, j *view.Job) {
	if r := j.Running; r != nil {
		w.linef("%s is run by %s%s", quoted(j.Name), r.Replica, since(w, ", tick ", r.Tick))
	}
	if p := j.Paused; p != nil {
		w.linef("%s is paused: %s", quoted(j.Name), pauseWords(w, p))
	}
	switch {
	case j.Late && j.Next.IsZero():
		w.linef("%s is late: it was run, and no replica has said when it is run again: see tenure status", quoted(j.Name))
	case j.Late:
		w.linef("%s is late: its tick of %s was not run, as far as is known: see tenure runs %s", quoted(j.Name), w.clock(j.Next), j.Name)
	}
	if j.Overdue {
		w.linef("%s is overdue: no run of it has ended well for longer than it allows%s", quoted(j.Name), since(w, ", since ", j.Succeeded))
	}
	if f := j.Backfill; f != nil {
		w.linef("%s is being backfilled: ticks from %s to %s are left", quoted(j.Name), w.clock(f.From), w.clock(f.To))
	}
	if j.Error != "" {
		w.linef("%s: %s", quoted(j.Name), j.Error)
	}
}

// pauseWords describes a pause in part of a sentence.
func pauseWords(w *page, p *view.Pause) string {
	text := "by " + p.By + " since " + w.clock(p.Since) + ", until " + cmp.Or(w.clock(p.Until), "it is resumed")
	if p.All {
		text = "with all jobs, " + text
	}
	return join(": ", text, p.Reason)
}

// since returns the words followed by the time, or "" if the time is not known.
func since(w *page, words string, at view.Time) string {
	if at.IsZero() {
		return ""
	}
	return words + w.clock(at)
}
