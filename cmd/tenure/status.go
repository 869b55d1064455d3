package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newStatus(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "All at a glance: nodes, replicas, elections, and jobs that run, are late or paused",
		Long: `What matters, from the nodes: how many vote, who leads, which jobs run, are late, failing or paused.
The code is 69 if too few nodes vote or answer, and 77 if they refuse this user; what is known is
shown all the same. A user who may only read has no vote: whether nodes vote is what replicas say.`,
		Example: `  tenure status
  tenure status -o json`,
		Args: exactly(),
	}
	p.looks(cmd, func(ctx context.Context, c *cluster, _ []string) (document, error) {
		d := &statusDocument{Now: now(), Elections: []electionDocument{}, Running: []runDocument{}, Late: []string{}, Failing: []string{}, Paused: []string{}, Problems: []string{}}
		nodes := newNodesDocument(c, c.nodes(ctx, settleWithin))
		v := nodes.vote()
		d.vote = v
		d.Nodes.Total, d.Nodes.Votes, d.Nodes.Hidden, d.Nodes.Quorum = v.total, v.votes, v.hidden, v.need
		if !v.unknown() {
			spare := v.votes - v.need
			d.Nodes.Spare = &spare
		}
		d.Problems = append(d.Problems, nodes.problems()...)
		for _, n := range nodes.Nodes {
			for _, warning := range n.Warnings {
				d.Problems = append(d.Problems, n.Node+": "+warning.Text)
			}
		}
		replicas, err := c.Replicas(ctx)
		if err != nil {
			return d, errors.Join(err, nodes.quorum())
		}
		count, jobs := len(replicas), 0
		d.Replicas = &count
		elections, err := c.Elections(ctx)
		if err != nil {
			return d, err
		}
		for _, e := range elections {
			election := newElectionDocument(e)
			election.Terms = election.Terms[:min(len(election.Terms), 1)]
			d.Elections = append(d.Elections, election)
		}
		for j, err := range c.Jobs(ctx) {
			if err != nil {
				return d, err
			}
			jobs++
			d.add(newJobDocument(j))
		}
		d.Jobs = &jobs
		return d, nodes.quorum()
	})
	return cmd
}

// statusDocument is what `tenure status` shows.
type statusDocument struct {
	Now   stamp `json:"now"`
	Nodes struct {
		Total  int  `json:"total"`
		Votes  int  `json:"votes"`  // for this process
		Hidden int  `json:"hidden"` // that refuse this user, who may not know whether they vote
		Quorum int  `json:"quorum"`
		Spare  *int `json:"spare"` // how many more may fail; negative without a quorum; null if this user may not know
	} `json:"nodes"`
	Replicas  *int               `json:"replicas"`  // null if it could not be read, as the next ones
	Elections []electionDocument `json:"elections"` // each with its newest term
	Jobs      *int               `json:"jobs"`
	Running   []runDocument      `json:"running"`
	Late      []string           `json:"late"`    // names of jobs
	Failing   []string           `json:"failing"` // whose last run failed
	Paused    []string           `json:"paused"`
	Problems  []string           `json:"problems"`

	vote votes
}

func (d *statusDocument) add(j jobDocument) {
	if j.Running != nil {
		d.Running = append(d.Running, *j.Running)
	}
	if j.Late {
		d.Late = append(d.Late, j.Name)
	}
	if j.State == "failing" {
		d.Failing = append(d.Failing, j.Name)
	}
	if j.Paused != nil {
		d.Paused = append(d.Paused, j.Name)
	}
	if j.Error != "" {
		d.Problems = append(d.Problems, quoted(j.Name)+": "+j.Error)
	}
}

func (d *statusDocument) text(w *page) {
	v := d.vote
	switch spare := d.Nodes.Spare; {
	case spare == nil && v.told+v.denied == 0:
		w.linef("How many of the %d nodes vote is not known: they refuse this user.", v.total)
	case spare == nil:
		w.linef("%d of %d nodes vote, as replicas say: this user may not ask the nodes.", v.votes+v.told, v.total)
	case *spare < 0:
		w.linef("%d of %d nodes vote; %d are needed: no lease is granted.", v.votes, v.total, v.need)
	case *spare == 0:
		w.linef("%d of %d nodes vote; none more may fail.", v.votes, v.total)
	default:
		w.linef("%d of %d nodes vote; %d more may fail.", v.votes, v.total, *spare)
	}
	switch {
	case d.Replicas == nil:
		w.linef("Replicas, elections and jobs are not known: they could not be read.")
	case d.Jobs == nil:
		w.linef("%s; the rest could not be read.", plural(*d.Replicas, "replica"))
	default:
		w.linef("%s, %s.", plural(*d.Replicas, "replica"), plural(*d.Jobs, "job"))
	}
	for _, e := range d.Elections {
		leader := "nobody leads"
		if e.Error != "" {
			leader = "not known who leads"
		}
		if e.Leader != nil {
			leader = "led by " + e.Leader.Identity + since(w, " since ", e.Leader.Since)
		}
		w.linef("%s: %s; %s.", quoted(e.Name), leader, plural(len(e.Candidates), "candidate"))
	}
	for _, r := range d.Running {
		w.linef("running: %s by %s%s", quoted(r.Job), r.Replica, since(w, ", tick ", r.Tick))
	}
	for _, of := range []struct {
		what  string
		names []string
	}{{"late", d.Late}, {"failing", d.Failing}, {"paused", d.Paused}} {
		if len(of.names) > 0 {
			var names []string
			for _, name := range of.names {
				names = append(names, quoted(name))
			}
			w.linef("%s: %s", of.what, strings.Join(names, ", "))
		}
	}
	for _, problem := range d.Problems {
		w.linef("%s", problem)
	}
}

func plural(n int, noun string) string {
	return fmt.Sprintf("%s %s%s", cmp.Or(map[int]string{0: "no"}[n], fmt.Sprint(n)), noun, map[bool]string{true: "", false: "s"}[n == 1])
}
