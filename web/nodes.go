package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// cell is a cell of the matrix of replicas and nodes.
type cell struct {
	node    string
	votes   *bool // nil if that is not known
	why     string
	known   bool // the process knows the node by this name
	differs bool // from how this process sees it
}

// replicaRow is a process with its row of the matrix.
type replicaRow struct {
	view.Replica
	cells []cell
}

type replicasDoc struct {
	Replicas []view.Replica `json:"replicas"`
}

func (h *Handler) replicasDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	of := func(r admin.Replica) view.Replica { return view.NewReplica(r, s.read[partReplicas].At) }
	return &replicasDoc{view.All(s.replicas, of)}, http.StatusOK
}

type nodesDoc struct {
	Quorum view.Quorum `json:"quorum"`
	Nodes  []view.Node `json:"nodes"`

	replicas []replicaRow
	own      []cell // the matrix's row of this process
	s        *snapshot
	others   bool // replicas name nodes that this process does not
}

// mostColumns bounds the nodes of the matrix: replicas may name any.
const mostColumns = 32

func (h *Handler) nodesDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &nodesDoc{Quorum: view.QuorumOf(s.nodes), Nodes: append([]view.Node{}, s.nodes...), s: s}
	column := make(map[string]int)
	for i, n := range d.Nodes {
		d.own = append(d.own, cell{n.Node, n.Votes, n.ErrorType, n.ThisProcess, false})
		if _, is := column[n.Node]; !is {
			column[n.Node] = i
		}
		d.others = d.others || !n.ThisProcess
	}
	for _, r := range s.replicas {
		row := replicaRow{Replica: view.NewReplica(r, s.read[partReplicas].At)}
		for _, n := range d.Nodes {
			row.cells = append(row.cells, cell{node: n.Node})
		}
		for _, seen := range row.Nodes {
			if i, ok := column[seen.Node]; ok {
				own := d.own[i].votes
				row.cells[i] = cell{seen.Node, &seen.Votes, seen.Why, true, own != nil && *own != seen.Votes}
			}
		}
		d.replicas = append(d.replicas, row)
	}
	return d, http.StatusOK
}

// withReplicas are the nodes of this process as the replicas see them, and those that only
// replicas name.
func withReplicas(nodes []redlock.NodeStatus, read time.Time, s *snapshot) []view.Node {
	of, at := slices.Clone(nodes), s.read[partReplicas].At
	seen := make(map[string][]admin.Seen)
	for _, r := range s.replicas {
		for _, n := range r.Nodes {
			is := slices.ContainsFunc(of, func(x redlock.NodeStatus) bool { return x.Node == n.Node })
			if !is && len(of) >= max(mostColumns, len(nodes)) {
				continue
			} else if !is {
				of = append(of, redlock.NodeStatus{Node: n.Node})
			}
			if read.Sub(at)+n.Age < 2*bulletin.ProcessLifetime { // else nobody says so any more
				seen[n.Node] = append(seen[n.Node], n)
			}
		}
	}
	return view.All(of, func(n redlock.NodeStatus) view.Node { return view.NewNode(n, seen[n.Node], at) })
}

func (d *nodesDoc) draw(p *page) markup {
	headline := d.s.nodesSentence()
	if len(d.Nodes) == 0 {
		headline = "The nodes have not been read yet."
	}
	troubles := d.s.troubles()
	level := markup("ok")
	if a := p.Status.needs; len(a.nodes) > 0 || d.Quorum.Total == 0 {
		level = "bad"
	} else if len(troubles) > 0 || d.Quorum.Spare == nil {
		level = "warn"
	}
	b := m(`<section class="verdict state-%s"><h1>%s</h1>
<p>%s%s</p>%s</section>
`, level, strings.TrimSuffix(headline, "."), when(len(d.replicas) > 0 && len(troubles) == 0, "Every replica sees these nodes as this page does."), when(d.others, " Some name nodes that this process does not: see that all have the same list of nodes."),
		when(len(troubles) > 0, `<ul class="todo">%s</ul>`, each(troubles, "", trouble.draw)))
	if len(d.Nodes) == 0 {
		b += `<p class="card empty" id="empty-nodes">The nodes have not been read yet.</p>`
	} else {
		b += section("nodes", "Nodes, for this page", table(` id="nodes"`, "Nodes as this process sees them", each(d.Nodes, "\n", drawNode), "Node", "Votes", "Why not, and warnings", ">Latency", "Server", ">Up for"))
	}
	var matrix markup
	if len(d.replicas) > 0 {
		cells := func(of string, shown markup, cells []cell) markup {
			return m(`<tr data-replica="%s"><th scope="row">%s</th>%s</tr>`+"\n", of, shown, each(cells, "", cell.draw))
		}
		matrix = m(`<div class="wide" role="region" aria-label="Matrix of replicas and nodes" tabindex="0"><table id="matrix"><thead><tr><th scope="col">Process</th>%s</tr></thead><tbody>
%s%s</tbody></table></div>`,
			each(d.Nodes, "", func(n view.Node) markup { return m(`<th scope="col">%s</th>`, name(n.Node)) }), cells("", "this process", d.own),
			each(d.replicas, "", func(r replicaRow) markup { return cells(r.Identity, name(r.Identity), r.cells) }))
	}
	b += when(matrix != "", "%s", section("matrix", "Who sees what", matrix))
	replicas := unread
	switch {
	case len(d.replicas) > 0:
		replicas = table(` id="replicas"`, "", each(d.replicas, "\n", replicaRow.draw), "Replica", "Leads", "Runs", ">Jobs", "Host, program", "Began", "Said, nodes")
	case !p.Status.Unread("replicas"):
		replicas = `<p class="empty" id="empty-replicas">No replica tells of itself. Start one with a scheduler or an elector. If replicas run: they may have another prefix ` +
			`(<code>redlock.WithPrefix</code>) or other nodes than the process that serves this page, or be told to say nothing (<code>WithoutCard</code>). ` +
			`A replica that was killed is shown for half a minute.</p>`
	}
	return b + section("replicas", "Replicas", replicas)
}

// yesOrNo is empty for what is not known.
func yesOrNo(is *bool) string {
	if is == nil {
		return ""
	}
	return fmt.Sprint(*is)
}

func drawNode(d view.Node) markup {
	b := m(`<tr data-node="%s" data-votes="%s" data-own="%s">%s`, d.Node, yesOrNo(d.Votes), d.ThisProcess, th("Node", name(d.Node)))
	if !d.ThisProcess {
		return b + `<td colspan="5" data-l="Why" class="sub">only replicas name it: they use another address, or other nodes, than this process</td></tr>`
	}
	votes := st("silent", "silent")
	switch {
	case d.Votes == nil:
		votes = st("none", "not known")
	case *d.Votes:
		votes = st("ok", "votes")
	case !d.QuarantinedUntil.IsZero():
		votes = st("quarantine", "quarantine")
	case d.Reachable:
		votes = st("silent", "does not vote")
	}
	var said markup
	if d.Error != "" {
		said = m("<p><b>%s</b>%s%s</p>", words(d.ErrorType), when(!d.QuarantinedUntil.IsZero(), ", votes again %s", in(d.QuarantinedUntil)), why(visible(d.Cause())))
	}
	said += each(d.Warnings, "", func(w view.Warning) markup { return m("<p><b>%s</b>%s</p>", words(w.Type), why(visible(w.Text))) })
	server := escaped(visible(d.Version)) + when(d.Role != "" && d.Role != "master", ` <span class="bad">%s</span>`, visible(d.Role))
	return b + td("Votes", votes) + td("Why", either(said, none)) + num("Latency", took(d.Latency)) + td("Server", server) + num("Up for", took(d.Uptime)) + "</tr>"
}

// draw draws a cell of the matrix.
func (d cell) draw() markup {
	is := markup(`<span class="none">not named</span>`)
	switch {
	case !d.known:
		d.votes = nil
	case d.votes == nil:
		is = m(`<span class="none">%s</span>`, either(escaped(words(d.why)), "not known"))
	case *d.votes:
		is = st("ok", "votes") + why(words(d.why))
	default:
		is = st("silent", either(escaped(words(d.why)), "no"))
	}
	return m(`<td data-node="%s" data-votes="%s"%s>%s</td>`, d.node, yesOrNo(d.votes), when(d.differs, ` class="odd"`), is)
}

func (d replicaRow) draw() markup {
	jobs := fmt.Sprint(len(d.Jobs))
	if d.Cut {
		jobs += " or more"
	}
	host := name(d.Host) + when(d.PID != 0, "%s", sub(fmt.Sprint("pid ", d.PID))) + sub(visible(d.Program)) + sub(visible(d.Version))
	runs := each(d.Running, ", ", func(r *view.Run) markup { return jobLink(r.Job) })
	return m(`<tr data-replica="%s" data-id="%s">`, d.Identity, d.ID) + th("Replica", name(d.Identity)) + td("Leads", either(each(d.Leads, ", ", electionLink), none)) +
		td("Runs", either(runs, none)) + num("Jobs", jobs) + td("Host", host) + td("Began", ago(d.Began)) + td("Said", ago(d.Said)+" "+sources(d.Sources)) + "</tr>"
}
