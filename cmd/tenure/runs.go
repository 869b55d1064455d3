package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

func newRuns(p *program) *cobra.Command {
	var d runsDocument
	cmd := &cobra.Command{
		Use:   "runs JOB | --failed",
		Short: "The last runs of a job, and why ticks of it were not run; or failures of all jobs",
		Long: `The last runs of a job that have ended, and the ticks that were not run, with the reason: the newest
first. Nodes keep 200 runs, and 50 that failed. A run whose replica was killed is among them once
another replica has seen that.`,
		Example: `  tenure runs nightly-report
  tenure runs --failed --since 24h
  tenure runs nightly-report -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if d.failed && len(args) == 0 {
				return nil
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&d.failed, "failed", false, "only runs that failed: of all jobs, unless one is named")
	cmd.Flags().DurationVar(&d.since, "since", 0, "only those of so long ago at most (default what nodes keep)")
	return p.asks(cmd, func(ctx context.Context, c *cluster, args []string) (document, error) {
		d.Now, d.Runs, d.Skips = now(), []view.Past{}, []view.Skip{}
		if len(args) == 0 {
			runs, err := c.FailedRuns(ctx, mostRuns)
			if err != nil {
				return nil, err
			}
			d.add(runs, nil)
			return &d, nil
		}
		d.Name = args[0]
		status, err := c.Job(ctx, d.Name)
		if err == nil {
			d.Job = view.NewJob(status, time.Now())
		} else if !errors.Is(err, admin.ErrNoJob) {
			return nil, err
		}
		runs, unread := c.Runs(ctx, d.Name, mostRuns)
		skips, unread2 := c.Skips(ctx, d.Name, mostRuns)
		if unread = errors.Join(unread, unread2); unread != nil {
			return nil, unread
		}
		if d.Job == nil && len(runs)+len(skips) == 0 {
			return nil, fmt.Errorf("%w: see tenure jobs", err)
		}
		d.add(runs, skips)
		return &d, nil
	})
}

// mostRuns is more runs than nodes keep of a job.
const mostRuns = 1000

// runsDocument is the output of `tenure runs`.
type runsDocument struct {
	Now   view.Time   `json:"now"`
	Name  string      `json:"name"` // null for all jobs
	Job   *view.Job   `json:"job"`  // null if no replica has the job now, and for all jobs
	Runs  []view.Past `json:"runs"`
	Skips []view.Skip `json:"skips"`

	failed bool
	since  time.Duration
}

// add adds the runs and skips that the flags ask for.
func (d *runsDocument) add(runs []admin.PastRun, skips []admin.Skip) {
	d.Runs = slices.DeleteFunc(view.All(runs, view.NewPast), func(r view.Past) bool { return d.failed && !r.Failed() || d.old(r.Ended().Time) })
	d.Skips = slices.DeleteFunc(view.All(skips, view.NewSkip), func(s view.Skip) bool { return d.failed || d.old(s.At.Time) })
}

func (d *runsDocument) old(at time.Time) bool { return d.since > 0 && d.Now.Sub(at) > d.since }

// how returns the outcome of a run, with its error if it has one.
func how(r *view.Past) string { return join(": ", r.Outcome, r.Error) }

// runReasons has, in words, the reasons for which a run begins at another time than that of its
// tick.
var runReasons = map[string]string{
	"late":     "run late",
	"queued":   "run after the one that overlapped it",
	"again":    "run again, because an earlier run of it was cut short",
	"backfill": "run by a backfill",
}

// skipReasons has, in words, each scheduler.Reason for which a tick may be skipped.
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
	"limit":       "the replica had no place for it",
	"stopped":     "the job, its scheduler or its quorum was stopped",
	"other":       "for another reason: the replica's log has it",
}

func whySkipped(reason, by string) string {
	why := cmp.Or(skipReasons[reason], reason)
	if by != "" {
		why += " (" + by + ")"
	}
	return why
}

func (d *runsDocument) text(w *page) {
	if j := d.Job; j != nil {
		w.linef("%s: %s; next tick %s", quoted(d.Name), cmp.Or(j.Schedule, "not known"), cmp.Or(w.ago(j.Next), "not known"))
		remarks(w, j)
	} else if d.Name != "" {
		w.linef("No replica has %s now.", quoted(d.Name))
	}
	const none = "No such run has ended, and no such tick was skipped, as far as the nodes have been told."
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
		late, attempt := runReasons[r.Why], ""
		if late != "" {
			late += ", at " + w.clock(r.Began)
		}
		if r.Attempt > 1 {
			attempt = fmt.Sprint("attempt ", r.Attempt)
		}
		rows = append(rows, row{at, []string{r.Job, tick, r.Outcome, r.Replica, spanOf(r.Took), fmt.Sprint(r.Token), join("; ", r.Report, r.Error, late, attempt)}})
	}
	for _, s := range d.Skips {
		why := whySkipped(s.Reason, s.By)
		if s.Count > 1 {
			why += fmt.Sprintf("; %d ticks, this is the last of them", s.Count)
		}
		rows = append(rows, row{s.Tick.Time, []string{s.Job, w.clock(s.Tick), "not run", s.Replica, "", "", why}})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.at.Compare(a.at) })
	head, from := []string{"JOB", "TICK", "OUTCOME", "REPLICA", "TOOK", "TOKEN", "WHY"}, 0
	if d.Name != "" {
		from = 1 // the line above the table has the job's name
	}
	w.list(none, head[from:], view.All(rows, func(r row) []string { return r.cells[from:] }))
}
