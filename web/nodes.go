package web

import (
	"context"
	"fmt"
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

func (d *nodesDoc) draw(p *page) markup {
	b := markup("<h1>Nodes</h1>\n")
	if len(d.Nodes) == 0 {
		b += `<p class="empty" id="empty-nodes">The nodes have not been read yet.</p>`
	} else {
		b += table(` id="nodes"`, "Nodes as this process sees them", each(d.Nodes, "\n", nodeDoc.draw), "Node", "Votes", "Why not, and warnings", "Latency", "Server", "Up for")
	}
	var matrix markup
	if len(d.Replicas) > 0 {
		cells := func(of string, shown markup, cells []seenDoc) markup {
			return m(`<tr data-replica="%s"><th scope="row">%s</th>%s</tr>`+"\n", of, shown, each(cells, "", seenDoc.draw))
		}
		matrix = m(`<p>%s%s</p>
<div class="wide" role="region" aria-label="Matrix of replicas and nodes" tabindex="0"><table id="matrix"><thead><tr><th scope="col">Process</th>%s</tr></thead><tbody>
%s%s</tbody></table></div>`, d.Difference(), when(d.Others, " Some name nodes that this process does not: see that all have the same list of nodes."),
			each(d.Nodes, "", func(n nodeDoc) markup { return m(`<th scope="col">%s</th>`, name(n.Node)) }), cells("", "this process", d.Own),
			each(d.Replicas, "", func(r replicaDoc) markup { return cells(r.Identity, name(r.Identity), r.Cells) }))
	}
	b += section("matrix", "Which replica sees which node vote", matrix)
	replicas := unread
	switch {
	case len(d.Replicas) > 0:
		replicas = table(` id="replicas"`, "", each(d.Replicas, "\n", replicaDoc.draw), "Replica", "Leads", "Runs", "Jobs", "Host, program", "Began", "Said, nodes")
	case !p.Status.Unread("replicas"):
		replicas = `<p class="empty" id="empty-replicas">No replica tells of itself. Start one with a scheduler or an elector. If replicas run: they may have another prefix ` +
			`(<code>redlock.WithPrefix</code>) or other nodes than the process that serves this page, or be told to say nothing (<code>WithoutCard</code>). ` +
			`A replica that was killed is shown for half a minute.</p>`
	}
	return b + section("replicas", "Replicas", replicas)
}

func (d nodeDoc) draw() markup {
	b := m(`<tr data-node="%s" data-votes="%s" data-own="%s">%s`, d.Node, d.Votes, d.Own, th("Node", name(d.Node)))
	if !d.Own {
		return b + `<td colspan="5" data-l="Why" class="sub">only replicas name it: they use another address, or other nodes, than this process</td></tr>`
	}
	votes := tag("bad", "silent")
	switch {
	case d.Votes:
		votes = tag("ok", "votes")
	case d.Reachable:
		votes = tag("bad", "does not vote")
	}
	var said markup
	if d.Error != "" {
		said = m("<p><b>%s</b>", words(d.ErrorType))
		if !d.QuarantinedUntil.IsZero() {
			said += ", votes again " + in(d.QuarantinedUntil)
		}
		said += why(d.Error) + "</p>"
	}
	said += each(d.Warnings, "", func(w warningDoc) markup { return m("<p><b>%s</b>%s</p>", words(w.Type), why(w.Text)) })
	server := escaped(visible(d.Version))
	if d.Role != "" && d.Role != "master" {
		server += m(` <span class="bad">%s</span>`, visible(d.Role))
	}
	return b + td("Votes", votes) + td("Why", either(said, none)) + num("Latency", took(d.Latency)) + td("Server", server) + num("Up for", took(d.Uptime)) + "</tr>"
}

// draw draws a cell of the matrix.
func (d seenDoc) draw() markup {
	votes, is := markup(""), markup(`<span class="none">not named</span>`)
	switch {
	case d.Known && d.Votes:
		votes, is = "true", `<span class="ok">votes</span>`+why(words(d.Why))
	case d.Known:
		votes, is = "false", m(`<b class="bad">%s</b>`, either(escaped(words(d.Why)), "no"))
	}
	return m(`<td data-node="%s" data-votes="%s"%s>%s</td>`, d.Node, votes, when(d.Differs, ` class="differs"`), is)
}

func (d replicaDoc) draw() markup {
	jobs := fmt.Sprint(len(d.Jobs))
	if d.Cut {
		jobs += " or more"
	}
	host := name(d.Host)
	if d.PID != 0 {
		host += sub(fmt.Sprint("pid ", d.PID))
	}
	host += sub(visible(d.Program)) + sub(visible(d.Version))
	runs := each(d.Running, ", ", func(r runDoc) markup { return jobLink(r.Job) })
	return m(`<tr data-replica="%s" data-id="%s">`, d.Identity, d.ID) + th("Replica", name(d.Identity)) + td("Leads", either(each(d.Leads, ", ", electionLink), none)) +
		td("Runs", either(runs, none)) + num("Jobs", jobs) + td("Host", host) + td("Began", ago(d.Began)) + td("Said", ago(d.Said)+" "+sources(d.Sources)) + "</tr>"
}
