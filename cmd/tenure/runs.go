package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

func newRuns(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs JOB",
		Short: "The last runs of a job, and why ticks of it were not run",
		Long: `The last runs of a job that have ended, and the ticks that were not run, with the reason: the newest
first. A run whose replica was killed is among the latter, once another replica has seen that.`,
		Example: `  tenure runs nightly-report
  tenure runs nightly-report -o json`,
		Args:              exactly("JOB"),
		ValidArgsFunction: p.completeJobs,
	}
	p.asks(cmd, func(ctx context.Context, c *cluster, args []string) (document, error) {
		job := args[0]
		d := runsDocument{Now: now(), Name: job}
		status, err := c.Job(ctx, job)
		if err == nil {
			d.Job = view.NewJob(status, time.Now())
		} else if !errors.Is(err, admin.ErrNoJob) {
			return nil, err
		}
		runs, failed := c.Runs(ctx, job, mostRuns)
		skips, failedToo := c.Skips(ctx, job, mostRuns)
		if err := errors.Join(failed, failedToo); err != nil {
			return nil, err
		}
		d.Runs, d.Skips = view.Pasts(runs), view.Skips(skips)
		if d.Job == nil && len(runs)+len(skips) == 0 {
			return nil, fmt.Errorf("%w: see tenure jobs", err)
		}
		return d, nil
	})
	return cmd
}

// mostRuns is more than nodes keep.
const mostRuns = 100

// runsDocument is what `tenure runs` shows.
type runsDocument struct {
	Now   view.Time   `json:"now"`
	Name  string      `json:"name"`
	Job   *view.Job   `json:"job"` // null if no replica has the job now
	Runs  []view.Past `json:"runs"`
	Skips []view.Skip `json:"skips"`
}

// how is how the run ended.
func how(r *view.Past) string {
	if r.Error != "" {
		return r.Outcome + ": " + r.Error
	}
	return r.Outcome
}

// runReasons are why runs are begun that are not on time, in words.
var runReasons = map[string]string{
	"late":     "run late",
	"queued":   "run after the one that overlapped it",
	"again":    "run again, because an earlier run of it was cut short",
	"backfill": "run by a backfill",
}

// cutShort is the reason of a run that began and never ended.
const cutShort = "cut_short"

// skipReasons are those of scheduler.Reason that a tick may end with, in words.
var skipReasons = map[string]string{
	"held":        "another replica ran it",
	"done":        "another replica had run it",
	"overlap":     "an earlier run of the job went on",
	"not_leader":  "no replica led the election of the job",
	"quarantined": "too many nodes had been restarted and did not vote yet: see tenure nodes",
	"no_quorum":   "too few nodes could be reached: see tenure doctor",
	"timeout":     "too few nodes answered in time: see tenure doctor",
	"paused":      "the job was paused",
	"refused":     "a listener of the job refused it",
	"ahead":       "the replica's clock was ahead of the nodes': see its log",
	"split":       "several replicas asked at once, and none got it",
	"superseded":  "a later tick took its place",
	"missed":      "nobody ran it in time",
	cutShort:      "its replica was killed, or lost the lease",
	"limit":       "the replica had no place for it",
	"stopped":     "the job, its scheduler or its quorum was stopped",
	"other":       "for another reason: the replica's log has it",
}

func whySkipped(reason, by string) string {
	why, known := skipReasons[reason]
	if !known {
		why = reason
	}
	if by != "" {
		why += " (" + by + ")"
	}
	return why
}

func (d runsDocument) text(w *page) {
	if j := d.Job; j != nil {
		w.linef("%s: %s; next tick %s", quoted(d.Name), orNone(j.Schedule), orNone(w.ago(j.Next)))
		remarks(w, j)
	} else {
		w.linef("No replica has %s now.", quoted(d.Name))
	}
	if len(d.Runs)+len(d.Skips) == 0 {
		w.linef("No run of it has ended, and no tick was skipped, as far as the nodes have been told.")
		return
	}
	type row struct {
		at    time.Time
		cells []string
	}
	var rows []row
	for _, r := range d.Runs {
		at, tick := r.Tick.Time, w.clock(r.Tick)
		if at.IsZero() {
			at, tick = r.Began.Time, "ordered "+w.clock(r.Began)
		}
		why := join(r.Report, r.Error)
		if late := runReasons[r.Why]; late != "" {
			why = join(why, late+", at "+w.clock(r.Began))
		}
		if r.Attempt > 1 {
			why = join(why, "attempt "+strconv.Itoa(int(r.Attempt)))
		}
		rows = append(rows, row{at, []string{tick, r.Outcome, r.Replica, span(time.Duration(r.Took)), strconv.FormatUint(r.Token, 10), why}})
	}
	for _, s := range d.Skips {
		why := whySkipped(s.Reason, s.By)
		if s.Count > 1 {
			why += fmt.Sprintf("; %d ticks, this is the last of them", s.Count)
		}
		outcome := "not run"
		if s.Reason == cutShort {
			outcome = "cut short"
		}
		rows = append(rows, row{s.Tick.Time, []string{w.clock(s.Tick), outcome, s.Replica, "", "", why}})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.at.Compare(a.at) })
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, r.cells)
	}
	w.table([]string{"TICK", "OUTCOME", "REPLICA", "TOOK", "TOKEN", "WHY"}, cells)
}

func orNone(text string) string {
	if text == "" {
		return "not known"
	}
	return text
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
