package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

func newElections(p *program) *cobra.Command {
	return p.asks(&cobra.Command{
		Use:   "elections [NAME...]",
		Short: "Who leads, since when, who stands by, and who led before",
		Example: `  tenure elections
  tenure elections poller`,
	}, func(ctx context.Context, c *cluster, names []string) (document, error) {
		d := electionsDocument{Now: now(), Elections: []view.Election{}, terms: len(names) > 0}
		replicas, err := c.Replicas(ctx)
		if err != nil {
			return nil, err
		}
		candidates := admin.Candidates(replicas)
		if !d.terms {
			names = slices.Sorted(maps.Keys(candidates))
		}
		for _, name := range names {
			e, err := c.Election(ctx, name)
			if err != nil {
				return nil, err
			}
			if e.Candidates = candidates[name]; e.Leader == nil && e.Err == nil && len(e.Terms)+len(e.Candidates) == 0 {
				return nil, exit(exitNotFound, errors.New("no replica takes part in the election "+quoted(name)+", and none has led it: see tenure elections"))
			}
			d.Elections = append(d.Elections, view.NewElection(e, time.Now()))
		}
		return d, nil
	})
}

// electionsDocument is the output of `tenure elections`.
type electionsDocument struct {
	Now       view.Time       `json:"now"`
	Elections []view.Election `json:"elections"`

	terms bool // the text shows the terms
}

func (d electionsDocument) text(w *page) {
	const none = "No replica takes part in an election under this prefix."
	w.list(none, []string{"ELECTION", "LEADER", "SINCE", "TERM", "LEASE LEFT", "CANDIDATES"}, view.All(d.Elections, func(e view.Election) []string {
		row := []string{e.Name, "nobody", "", "", "", strconv.Itoa(len(e.Candidates))}
		if e.Error != "" {
			row[1] = "not known"
		}
		if l := e.Leader; l != nil {
			row[1], row[2], row[3], row[4] = l.Identity, w.ago(l.Since), fmt.Sprint(l.Term), spanOf(l.LeaseLeft)
		}
		return row
	}))
	for _, e := range d.Elections {
		if e.Error != "" {
			w.linef("%s: %s", quoted(e.Name), e.Error)
		}
		if !d.terms {
			continue
		}
		if l := e.Leader; l != nil && l.Payload != "" {
			w.linef("payload of the leader: %s", quoted(l.Payload))
		}
		if len(e.Candidates) > 0 {
			w.linef("candidates: %s", strings.Join(e.Candidates, ", "))
		}
		if len(e.Terms) > 0 {
			w.table([]string{"TERM", "LEADER", "BEGAN", "ENDED", "HOW", "REASON", "GAP"}, view.All(e.Terms, func(t view.Term) []string {
				return []string{fmt.Sprint(t.Number), t.Identity, w.ago(t.Began), w.ago(t.Ended), t.How, t.Reason, spanOf(t.Gap)}
			}))
		}
	}
}
