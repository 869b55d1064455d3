package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
)

// nodeDoc is a node as this process sees it, and as each replica does.
type nodeDoc struct {
	Node             string       `json:"node"`
	Own              bool         `json:"this_process"` // this process uses it; false for one that only replicas name
	Reachable        bool         `json:"reachable"`
	Votes            bool         `json:"votes"`
	Role             string       `json:"role,omitempty"`
	Version          string       `json:"version,omitempty"`
	Uptime           span         `json:"uptime_ms,omitzero"`
	Latency          span         `json:"latency_ms,omitzero"`
	QuarantinedUntil moment       `json:"quarantined_until,omitzero"`
	ErrorType        string       `json:"error_type,omitempty"`
	Error            string       `json:"error,omitempty"`
	Warnings         []warningDoc `json:"warnings"`
	SeenBy           []seenDoc    `json:"seen_by"`
}

type warningDoc struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type seenDoc struct {
	Replica string `json:"replica,omitempty"`
	Node    string `json:"node,omitempty"`
	Votes   bool   `json:"votes"`
	Why     string `json:"why,omitempty"`

	Known   bool `json:"-"` // the process knows the node by this name
	Differs bool `json:"-"` // from how this process sees it
}

func newNodeDoc(n redlock.NodeStatus) nodeDoc {
	d := nodeDoc{
		Node: n.Node, Own: true, Reachable: n.Reachable, Votes: n.Votes, Role: n.Role, Version: n.Version, Uptime: span(n.Uptime),
		Latency: span(n.Latency), QuarantinedUntil: at(n.QuarantinedUntil), Warnings: []warningDoc{}, SeenBy: []seenDoc{},
	}
	if n.Err != nil {
		d.ErrorType, d.Error = redlock.ErrorType(n.Err), errorText(n.Err)
	}
	for _, w := range n.Warnings {
		d.Warnings = append(d.Warnings, warningDoc{redlock.ErrorType(w), errorText(w)})
	}
	return d
}

// replicaDoc is a process.
type replicaDoc struct {
	ID       string    `json:"id"`
	Identity string    `json:"identity"`
	Host     string    `json:"host,omitempty"`
	PID      int       `json:"pid,omitempty"`
	Program  string    `json:"program,omitempty"`
	Version  string    `json:"version,omitempty"`
	Began    moment    `json:"began,omitzero"`
	Leads    []string  `json:"leads"`
	Stands   []string  `json:"stands"`
	Jobs     []string  `json:"jobs"`
	Running  []runDoc  `json:"running"`
	Cut      bool      `json:"cut,omitempty"`
	Said     moment    `json:"said"` // when it wrote its card
	Sources  int       `json:"sources"`
	Nodes    []seenDoc `json:"nodes"`

	Cells []seenDoc `json:"-"` // of the matrix, in the order of its columns
}

// Differs reports whether it sees a node otherwise than this process does.
func (d *replicaDoc) Differs() bool {
	return slices.ContainsFunc(d.Cells, func(c seenDoc) bool { return c.Differs })
}

func newReplicaDoc(s *snapshot, r admin.Replica) replicaDoc {
	d := replicaDoc{
		ID: r.ID, Identity: r.Identity, Host: r.Host, PID: r.PID, Program: r.Program, Version: r.Version, Began: at(r.Began),
		Leads: nonNil(r.Leads), Stands: nonNil(r.Stands), Jobs: nonNil(r.Jobs), Running: []runDoc{}, Cut: r.Cut, Sources: r.Sources, Nodes: []seenDoc{},
		Said: at(s.read[partReplicas].At.Add(-r.Age)),
	}
	for _, run := range r.Running {
		d.Running = append(d.Running, newRunDoc(run))
	}
	for _, n := range r.Nodes {
		d.Nodes = append(d.Nodes, seenDoc{Node: n.Node, Votes: n.Votes, Why: n.Why})
	}
	return d
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

type replicasDoc struct {
	Replicas []replicaDoc `json:"replicas"`
}

func (h *Handler) replicasDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &replicasDoc{Replicas: []replicaDoc{}}
	for _, r := range s.replicas {
		d.Replicas = append(d.Replicas, newReplicaDoc(s, r))
	}
	return d, http.StatusOK
}

type nodesDoc struct {
	Quorum quorumDoc `json:"quorum"`
	Nodes  []nodeDoc `json:"nodes"`

	Replicas []replicaDoc `json:"-"`
	Own      []seenDoc    `json:"-"` // the matrix's row of this process
	Differ   []string     `json:"-"` // replicas that see a node otherwise
	Others   bool         `json:"-"` // replicas name nodes that this process does not
}

// quorumDoc is how many of the nodes of this process vote.
type quorumDoc struct {
	Total int `json:"total"`
	Votes int `json:"votes"`
	Need  int `json:"need"`
	Spare int `json:"spare"` // that may fail; negative if more must vote
}

func newQuorumDoc(s *snapshot) quorumDoc {
	votes, total, need := quorumOf(s.nodes)
	return quorumDoc{Total: total, Votes: votes, Need: need, Spare: votes - need}
}

// mostColumns bounds the nodes of the matrix: replicas may name any.
const mostColumns = 32

func (h *Handler) nodesDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &nodesDoc{Quorum: newQuorumDoc(s), Nodes: []nodeDoc{}}
	column := make(map[string]int)
	for _, n := range s.nodes {
		if _, is := column[n.Node]; !is {
			column[n.Node] = len(d.Nodes)
		}
		d.Nodes = append(d.Nodes, newNodeDoc(n))
	}
	for _, r := range s.replicas {
		for _, seen := range r.Nodes {
			i, known := column[seen.Node]
			if !known {
				if len(d.Nodes) >= max(mostColumns, len(s.nodes)) {
					continue
				}
				i, d.Others = len(d.Nodes), true
				column[seen.Node] = i
				d.Nodes = append(d.Nodes, nodeDoc{Node: seen.Node, Warnings: []warningDoc{}, SeenBy: []seenDoc{}})
			}
			d.Nodes[i].SeenBy = append(d.Nodes[i].SeenBy, seenDoc{Replica: r.Identity, Votes: seen.Votes, Why: seen.Why})
		}
	}
	for _, n := range d.Nodes {
		d.Own = append(d.Own, seenDoc{Node: n.Node, Votes: n.Votes, Why: n.ErrorType, Known: n.Own})
	}
	for _, r := range s.replicas {
		doc := newReplicaDoc(s, r)
		doc.Cells = make([]seenDoc, len(d.Nodes))
		for i, n := range d.Nodes {
			doc.Cells[i] = seenDoc{Node: n.Node}
		}
		for _, seen := range r.Nodes {
			if i, ok := column[seen.Node]; ok {
				differs := d.Nodes[i].Own && d.Nodes[i].Votes != seen.Votes
				doc.Cells[i] = seenDoc{Node: seen.Node, Votes: seen.Votes, Why: seen.Why, Known: true, Differs: differs}
			}
		}
		if doc.Differs() {
			d.Differ = append(d.Differ, r.Identity)
		}
		d.Replicas = append(d.Replicas, doc)
	}
	return d, http.StatusOK
}

// Difference says whether replicas see the nodes alike.
func (d *nodesDoc) Difference() string {
	const few = 5
	switch n := len(d.Differ); {
	case len(d.Replicas) == 0:
		return ""
	case n == 0:
		return "Every replica sees these nodes as this process does."
	case n > few:
		return counted(n, "replica") + " see a node otherwise than this process does."
	case n == 1:
		return inSentence(d.Differ[0]) + " sees a node otherwise than this process does."
	default:
		var names []string
		for _, name := range d.Differ {
			names = append(names, inSentence(name))
		}
		return strings.TrimSpace(listed(names)) + " see a node otherwise than this process does."
	}
}
