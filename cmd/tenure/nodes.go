package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
)

func newNodes(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "The nodes: which vote, why others do not, and how each replica sees them",
		Long: `The nodes as this process and the replicas see them. That a replica sees one differently is what
matters. It ends with code 69 if too few nodes vote, and still shows all of them. Whether a node
votes is not known to a user whom it refuses, such as one who may only read: then the replicas say.`,
		Example: `  tenure nodes
  tenure nodes -o json`,
		Args: exactly(),
	}
	p.looks(cmd, func(ctx context.Context, c *cluster, _ []string) (document, error) {
		d := newNodesDocument(c, c.nodes(ctx, settleWithin))
		if d.vote().hidden > 0 {
			if _, err := c.Replicas(ctx); err != nil {
				return d, err
			}
		}
		return d, d.quorum()
	})
	return cmd
}

// nodesDocument is what `tenure nodes` shows.
type nodesDocument struct {
	Now   stamp          `json:"now"`
	Nodes []nodeDocument `json:"nodes"`
}

type nodeDocument struct {
	Node             string            `json:"node"`
	ThisProcess      bool              `json:"this_process"` // it is one of this process's; else only replicas name it
	Votes            *bool             `json:"votes"`        // null if this user may not know
	Reachable        bool              `json:"reachable"`
	Role             string            `json:"role"`
	Version          string            `json:"version"`
	Uptime           ms                `json:"uptime_ms"`
	Latency          ms                `json:"latency_ms"`
	QuarantinedUntil stamp             `json:"quarantined_until"`
	Error            string            `json:"error"`
	ErrorType        string            `json:"error_type"`
	Warnings         []warningDocument `json:"warnings"`
	SeenBy           []seenDocument    `json:"seen_by"`
}

type warningDocument struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type seenDocument struct {
	Replica string `json:"replica"`
	Votes   bool   `json:"votes"`
	Why     string `json:"why"`
	Age     ms     `json:"age_ms"` // since it was said
}

func newNodesDocument(c *cluster, nodes []admin.Node) nodesDocument {
	d := nodesDocument{Now: now(), Nodes: []nodeDocument{}}
	for _, n := range nodes {
		node := nodeDocument{
			Node: n.Node, ThisProcess: c.ours(n), Reachable: n.Reachable, Role: n.Role, Version: n.Version,
			Uptime: ms(n.Uptime), Latency: ms(n.Latency), QuarantinedUntil: stamp{n.QuarantinedUntil}, Warnings: []warningDocument{}, SeenBy: []seenDocument{},
		}
		if c.ours(n) && !refuses(n.NodeStatus) {
			node.Votes = &n.Votes
		}
		if n.Err != nil {
			node.Error, node.ErrorType = said(n.Err), redlock.ErrorType(n.Err)
		}
		for _, warning := range n.Warnings {
			node.Warnings = append(node.Warnings, warningDocument{redlock.ErrorType(warning), warning.Error()})
		}
		for _, s := range n.SeenBy {
			node.SeenBy = append(node.SeenBy, seenDocument{s.Replica, s.Votes, s.Why, ms(s.Age)})
		}
		d.Nodes = append(d.Nodes, node)
	}
	return d
}

// votes is how many nodes vote.
type votes struct {
	total, need int
	votes       int // for this process
	hidden      int // that refuse this user, who may not know whether they vote
	told        int // of those: that vote for a replica
	denied      int // of those: that vote for none of the replicas that tell
}

// vote counts the nodes of this process.
func (d *nodesDocument) vote() (v votes) {
	for _, n := range d.Nodes {
		if !n.ThisProcess {
			continue
		}
		v.total++
		switch {
		case n.Votes == nil:
			v.hidden++
			if slices.ContainsFunc(n.SeenBy, func(s seenDocument) bool { return s.Votes }) {
				v.told++
			} else if len(n.SeenBy) > 0 {
				v.denied++
			}
		case *n.Votes:
			v.votes++
		}
	}
	v.need = v.total/2 + 1
	return v
}

// unknown reports whether this user may not know if there is a quorum.
func (v votes) unknown() bool { return v.votes < v.need && v.votes+v.hidden >= v.need }

// quorum is an error if too few nodes vote.
func (d *nodesDocument) quorum() error {
	v := d.vote()
	switch {
	case v.votes+v.hidden < v.need:
		return exit(exitNoQuorum, fmt.Errorf("%d of %d nodes vote, and %d are needed", v.votes, v.total, v.need))
	case v.votes+v.hidden-v.denied < v.need:
		return exit(exitNoQuorum, fmt.Errorf("by what the replicas say %d of %d nodes vote, and %d are needed", v.votes+v.told, v.total, v.need))
	}
	return nil
}

func yesOrNo(is *bool) string {
	switch {
	case is == nil:
		return "?"
	case *is:
		return "yes"
	}
	return "no"
}

// problems are why nodes do not vote. That they refuse this user is one of his, and stands once.
func (d *nodesDocument) problems() (all []string) {
	refusing := make(map[string][]string)
	for _, n := range d.Nodes {
		switch {
		case n.Error == "":
		case n.Votes != nil:
			all = append(all, n.Error)
		default:
			refusing[n.ErrorType] = append(refusing[n.ErrorType], n.Node)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(refusing)) {
		all = append(all, fmt.Sprintf("%s: refuses this user, who may not know whether it votes: %s", strings.Join(refusing[why], ", "), why))
	}
	return all
}

func (d nodesDocument) text(w *page) {
	var rows [][]string
	for _, n := range d.Nodes {
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
		rows = append(rows, []string{n.Node, yesOrNo(n.Votes), why, n.Role, n.Version, spanOf(n.Uptime), spanOf(n.Latency), n.seen()})
	}
	w.table([]string{"NODE", "VOTES", "WHY", "ROLE", "SERVER", "UP", "LATENCY", "SEEN BY"}, rows)
	for _, problem := range d.problems() {
		w.linef("%s", problem)
	}
	for _, n := range d.Nodes {
		for _, warning := range n.Warnings {
			w.linef("%s: warning: %s", n.Node, warning.Text)
		}
	}
}

// seen is how replicas see the node.
func (n *nodeDocument) seen() string {
	if len(n.SeenBy) == 0 {
		return ""
	}
	yes := 0
	var differ []string
	for _, s := range n.SeenBy {
		if s.Votes {
			yes++
		}
		if n.Votes != nil && s.Votes != *n.Votes {
			differ = append(differ, s.Replica+" ("+span(time.Duration(s.Age))+" ago)")
		}
	}
	if n.Votes == nil {
		return fmt.Sprintf("it votes for %d of %s", yes, plural(len(n.SeenBy), "replica"))
	}
	text := fmt.Sprintf("%d of %d replicas agree", len(n.SeenBy)-len(differ), len(n.SeenBy))
	if len(differ) > 0 {
		text += "; not " + strings.Join(differ, ", ")
	}
	return text
}

func spanOf(d ms) string {
	if d == 0 {
		return ""
	}
	return span(time.Duration(d))
}
