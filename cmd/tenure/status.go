package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

func newStatus(p *program) *cobra.Command {
	return p.asks(&cobra.Command{
		Use:   "status",
		Short: "All at a glance: nodes, replicas, elections, and jobs that run, are late or paused",
		Long: `What matters, from the nodes: how many vote, who leads, which jobs run, are late, failing or paused.
The code is 69 if too few nodes vote or answer, and 77 if they refuse this user; what is known is
shown all the same. A user who may only read has no vote: whether nodes vote is what replicas say.`,
		Example: `  tenure status
  tenure status -o json`,
	}, func(ctx context.Context, c *cluster, _ []string) (document, error) {
		nodes := newNodesDocument(c.nodes(ctx))
		d := &statusDocument{Now: nodes.Now, Overview: view.NewOverview(nodes.Quorum), Problems: []view.Problem{}}
		for _, problem := range nodes.problems() {
			d.problem("nodes", problem)
		}
		replicas, err := c.Replicas(ctx)
		if err != nil {
			return d, errors.Join(err, nodes.quorum())
		}
		d.Replicas = new(len(replicas))
		elections, err := c.Elections(ctx)
		if err != nil {
			return d, err
		}
		d.Elections = view.All(elections, func(e admin.Election) view.Election { return view.NewElection(e, time.Now()) })
		jobs := &view.Counts{}
		for status, err := range c.Jobs(ctx) {
			if err != nil {
				return d, err
			}
			j := view.NewJob(status, time.Now())
			jobs.Add(j)
			d.Add(j, math.MaxInt)
			if j.Error != "" && nodes.quorum() == nil {
				d.problem("jobs", quoted(j.Name)+": "+j.Error)
			}
		}
		if d.Jobs = jobs; nodes.quorum() != nil {
			d.problem("jobs", "which jobs run, are late or paused is not known without a quorum")
		}
		return d, nodes.quorum()
	}, p.limits)
}

// statusDocument is the output of `tenure status`.
type statusDocument struct {
	Now view.Time `json:"now"`
	view.Overview
	Problems []view.Problem `json:"problems"`
}

func (d *statusDocument) problem(part, text string) {
	d.Problems = append(d.Problems, view.Problem{Part: part, Text: text})
}

func (d *statusDocument) text(w *page) {
	w.linef("%s", d.Quorum.Sentence())
	switch {
	case d.Replicas == nil:
		w.linef("Replicas, elections and jobs are not known: they could not be read.")
	case d.Jobs == nil:
		w.linef("%s; the rest could not be read.", view.Counted(*d.Replicas, "replica"))
	default:
		w.linef("%s, %s.", view.Counted(*d.Replicas, "replica"), view.Counted(d.Jobs.Total, "job"))
	}
	for _, e := range d.Elections {
		leader := "nobody leads"
		if e.Error != "" {
			leader = "not known who leads"
		}
		if e.Leader != nil {
			leader = "led by " + e.Leader.Identity + since(w, " since ", e.Leader.Since)
		}
		w.linef("%s: %s; %s.", quoted(e.Name), leader, view.Counted(len(e.Candidates), "candidate"))
	}
	for _, j := range d.Running {
		w.linef("running: %s by %s%s", quoted(j.Name), j.Running.Replica, since(w, ", tick ", j.Running.Tick))
	}
	for _, of := range []struct {
		state string
		jobs  []*view.Job
	}{{view.Failing, d.Failing}, {view.Late, d.Late}, {view.Paused, d.Paused}} {
		names := view.All(of.jobs, func(j *view.Job) string {
			if of.state == view.Failing && j.Last != nil && j.Last.Failed() {
				return quoted(j.Name) + " (" + how(j.Last) + " on " + j.Last.Replica + ")"
			}
			return quoted(j.Name)
		})
		if len(names) > 0 {
			w.linef("%s: %s", of.state, few(names))
		}
	}
	for _, problem := range d.Problems {
		w.linef("%s", problem.Text)
	}
}

// mostNamed is how many jobs one line of the status names: thousands of jobs may be paused at once.
const mostNamed = 20

// few joins names for one line, and names mostNamed of them at most.
func few(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed:mostNamed], fmt.Sprintf("and %d more: see tenure jobs", more))
	}
	return strings.Join(names, ", ")
}
