package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

func newNodes(p *program) *cobra.Command {
	return p.asks(&cobra.Command{
		Use:   "nodes",
		Short: "The nodes: which vote, why others do not, and how each replica sees them",
		Long: `The nodes as this process and the replicas see them. That a replica sees one differently is what
matters. It ends with code 69 if too few nodes vote, and still shows all of them. Whether a node
votes is not known to a user whom it refuses, such as one who may only read: then the replicas say.`,
		Example: `  tenure nodes
  tenure nodes -o json`,
	}, func(ctx context.Context, c *cluster, _ []string) (document, error) {
		d := newNodesDocument(c.nodes(ctx))
		if d.Quorum.Hidden > 0 {
			if _, err := c.Replicas(ctx); err != nil {
				return d, err
			}
		}
		return d, d.quorum()
	}, p.limits)
}

// nodesDocument is the output of `tenure nodes`.
type nodesDocument struct {
	Now    view.Time   `json:"now"`
	Quorum view.Quorum `json:"quorum"`
	Nodes  []view.Node `json:"nodes"`
}

func newNodesDocument(nodes []admin.Node) nodesDocument {
	d := nodesDocument{Now: now()}
	d.Nodes = view.All(nodes, func(n admin.Node) view.Node { return view.NewNode(n.NodeStatus, n.SeenBy, d.Now.Time) })
	d.Quorum = view.Nodes{All: d.Nodes}.Quorum()
	return d
}

// quorum returns an error if too few nodes vote.
func (d *nodesDocument) quorum() error {
	if q := d.Quorum; q.Left() < 0 {
		return exit(exitNoQuorum, fmt.Errorf("%s, and %d are needed", q.Voting(), q.Need))
	}
	return nil
}

func yesOrNo(is *bool) string {
	if is == nil {
		return "?"
	}
	return map[bool]string{true: "yes", false: "no"}[*is]
}

// problems returns one line for each problem of the nodes.
func (d *nodesDocument) problems() []string {
	return view.All(view.Nodes{All: d.Nodes}.Troubles(), view.Trouble.Line)
}

func (d nodesDocument) text(w *page) {
	w.table([]string{"NODE", "VOTES", "WHY", "ROLE", "SERVER", "UP", "LATENCY", "SEEN BY"}, view.All(d.Nodes, func(n view.Node) []string {
		why := n.ErrorType
		switch {
		case !n.ThisProcess:
			why = "only replicas name it"
		case why == "" && len(n.Warnings) > 0:
			why = "warning: " + n.Warnings[0].Type
		}
		if !n.QuarantinedUntil.IsZero() {
			why += " until " + w.clock(n.QuarantinedUntil)
		}
		return []string{n.Node, yesOrNo(n.Votes), why, n.Role, n.Version, spanOf(n.Uptime), spanOf(n.Latency), seen(w, n)}
	}))
	for _, problem := range d.problems() {
		w.linef("%s", problem)
	}
}

// seen describes how the replicas see a node.
func seen(w *page, n view.Node) string {
	if len(n.SeenBy) == 0 {
		return ""
	}
	yes := 0
	var differ []string
	for _, s := range n.SeenBy {
		if s.Votes {
			yes++
		}
		if n.Votes != nil && (s.Votes != *n.Votes || n.Warns(s)) {
			said := join(", ", s.Why, since(w, "since ", s.Since), "said "+view.Rough(w.now.Sub(s.Said.Time))+" ago")
			differ = append(differ, s.Replica+" ("+said+")")
		}
	}
	if n.Votes == nil {
		return fmt.Sprintf("it votes for %d of %s", yes, view.Counted(len(n.SeenBy), "replica"))
	}
	return join("; not ", fmt.Sprintf("%d of %d replicas agree", len(n.SeenBy)-len(differ), len(n.SeenBy)), strings.Join(differ, ", "))
}

func spanOf(d view.Span) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
