package main

import (
	"context"
	"fmt"
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
matters. It ends with code 69 if too few nodes vote, and still shows all of them. A user who may
only read has no vote: then none of them votes for this process.`,
		Example: `  tenure nodes
  tenure nodes -o json`,
		Args: exactly(),
	}
	p.asks(cmd, func(ctx context.Context, c *cluster, _ []string) (document, error) {
		d := newNodesDocument(c, c.nodes(ctx, settleWithin))
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
	Server           string            `json:"server"`
	ThisProcess      bool              `json:"this_process"` // it is one of this process's; else only replicas name it
	Votes            bool              `json:"votes"`
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
}

func newNodesDocument(c *cluster, nodes []admin.Node) nodesDocument {
	d := nodesDocument{Now: now(), Nodes: []nodeDocument{}}
	for _, n := range nodes {
		node := nodeDocument{
			Node: n.Node, Server: n.Server, ThisProcess: c.ours(n), Votes: n.Votes, Reachable: n.Reachable, Role: n.Role, Version: n.Version,
			Uptime: ms(n.Uptime), Latency: ms(n.Latency), QuarantinedUntil: stamp{n.QuarantinedUntil}, Warnings: []warningDocument{}, SeenBy: []seenDocument{},
		}
		if n.Err != nil {
			node.Error, node.ErrorType = said(n.Err), redlock.ErrorType(n.Err)
		}
		for _, warning := range n.Warnings {
			node.Warnings = append(node.Warnings, warningDocument{redlock.ErrorType(warning), warning.Error()})
		}
		for _, s := range n.SeenBy {
			node.SeenBy = append(node.SeenBy, seenDocument{s.Replica, s.Votes, s.Why})
		}
		d.Nodes = append(d.Nodes, node)
	}
	return d
}

// count is how many nodes this process has, and how many of them vote.
func (d *nodesDocument) count() (total, votes int) {
	for _, n := range d.Nodes {
		if n.ThisProcess {
			total++
		}
		if n.Votes {
			votes++
		}
	}
	return total, votes
}

// quorum is an error if too few nodes vote.
func (d *nodesDocument) quorum() error {
	if total, votes := d.count(); votes < total/2+1 {
		return exit(exitNoQuorum, fmt.Errorf("%d of %d nodes vote, and %d are needed", votes, total, total/2+1))
	}
	return nil
}

func (d nodesDocument) text(w *page) {
	var rows [][]string
	for _, n := range d.Nodes {
		votes, why := "yes", ""
		switch {
		case !n.ThisProcess:
			votes, why = "?", "only replicas name it"
		case !n.Votes:
			votes, why = "no", n.ErrorType
		case len(n.Warnings) > 0:
			why = "warning: " + n.Warnings[0].Type
		}
		if !n.QuarantinedUntil.IsZero() {
			why += " until " + w.clock(n.QuarantinedUntil)
		}
		agree := 0
		var differ []string
		for _, s := range n.SeenBy {
			if s.Votes == n.Votes {
				agree++
			} else {
				differ = append(differ, s.Replica)
			}
		}
		seen := ""
		if len(n.SeenBy) > 0 {
			seen = fmt.Sprintf("%d of %d replicas agree", agree, len(n.SeenBy))
		}
		if len(differ) > 0 {
			seen += "; not " + strings.Join(differ, ", ")
		}
		rows = append(rows, []string{n.Node, votes, why, n.Role, n.Version, spanOf(n.Uptime), spanOf(n.Latency), seen})
	}
	w.table([]string{"NODE", "VOTES", "WHY", "ROLE", "SERVER", "UP", "LATENCY", "SEEN BY"}, rows)
	for _, n := range d.Nodes {
		if n.Error != "" {
			w.linef("%s", n.Error)
		}
		for _, warning := range n.Warnings {
			w.linef("%s: warning: %s", n.Node, warning.Text)
		}
	}
}

func spanOf(d ms) string {
	if d == 0 {
		return ""
	}
	return span(time.Duration(d))
}
