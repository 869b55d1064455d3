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

type replicasDoc struct {
	Replicas []view.Replica `json:"replicas"`
}

func (h *Handler) replicasDoc(_ context.Context, s *snapshot, _ *http.Request) any {
	return &replicasDoc{s.replicasRead()}
}

func (s *snapshot) replicasRead() []view.Replica {
	return view.All(s.replicas, func(r admin.Replica) view.Replica { return view.NewReplica(r, s.read[partReplicas].At) })
}

type nodesDoc struct {
	Quorum view.Quorum `json:"quorum"`
	Nodes  []view.Node `json:"nodes"`

	s *snapshot
}

// mostColumns bounds the nodes of the matrix, because replicas may name any number.
const mostColumns = 32

func (h *Handler) nodesDoc(_ context.Context, s *snapshot, _ *http.Request) any {
	return &nodesDoc{Quorum: s.cluster().Quorum(), Nodes: append([]view.Node{}, s.nodes...), s: s}
}

// withReplicas returns the nodes of this process with the replicas' views of them, and then nodes
// that only replicas name.
func withReplicas(looked []redlock.NodeStatus, read time.Time, s *snapshot) []view.Node {
	at := s.read[partReplicas].At
	nodes := admin.Seeing(looked, s.replicas)
	return view.All(nodes[:min(len(nodes), max(mostColumns, len(looked)))], func(n admin.Node) view.Node {
		said := slices.DeleteFunc(n.SeenBy, func(seen admin.Seen) bool { return read.Sub(at)+seen.Age >= 2*bulletin.ProcessLifetime }) // the card is out of date
		return view.NewNode(n.NodeStatus, said, at)
	})
}

func (d *nodesDoc) draw(p *page) markup {
	replicas, troubles := d.s.replicasRead(), d.s.cluster().Troubles()
	others := slices.ContainsFunc(d.Nodes, func(n view.Node) bool { return !n.ThisProcess })
	headline := choice(len(d.Nodes) == 0, "The nodes have not been read yet", strings.TrimSuffix(d.s.nodesSentence(), "."))
	level := choice(len(p.Status.needs.nodes) > 0 || d.Quorum.Total == 0, "bad", choice(len(troubles) > 0 || d.Quorum.Spare == nil, "warn", "ok"))
	b := m(`<section class="verdict state-%s"><h1>%s</h1>
<p>%s%s</p>%s</section>
`, level, headline, when(len(replicas) > 0 && len(troubles) == 0, "Every replica sees these nodes as this page does."), when(others, " Some name nodes that this process does not: see that all have the same list of nodes."),
		when(len(troubles) > 0, `<ul class="todo">%s</ul>`, each(troubles, "", drawTrouble)))
	own := table(` id="nodes"`, "Nodes as this process sees them", each(d.Nodes, "\n", drawNode), "Node", "Votes", "Why not, and warnings", ">Latency", "Server", ">Up for")
	b += choice(own == "", `<p class="card empty" id="empty-nodes">The nodes have not been read yet.</p>`, section("nodes", "Nodes, for this page", own))
	if len(replicas) > 0 {
		row := func(of string, shown markup, cell func(view.Node) markup) markup {
			return m(`<tr data-replica="%s"><th scope="row">%s</th>%s</tr>`+"\n", of, shown, each(d.Nodes, "", cell))
		}
		b += section("matrix", "Who sees what", m(`<div class="wide" role="region" aria-label="Matrix of replicas and nodes" tabindex="0"><table id="matrix"><thead><tr><th scope="col">Process</th>%s</tr></thead><tbody>
%s%s</tbody></table></div>`,
			each(d.Nodes, "", func(n view.Node) markup { return m(`<th scope="col">%s</th>`, name(n.Node)) }), row("", "this process", drawOwn),
			each(replicas, "", func(r view.Replica) markup { return row(r.Identity, name(r.Identity), drawSeen(r)) })))
	}
	w := windowOf(24*time.Hour, time.Hour)
	lanes := each(d.Nodes, "", func(n view.Node) markup { return w.node(n, d.s) })
	b += when(lanes != "", "%s", section("day", "A day, as replicas say", w.draw("", m("<ul>%s</ul>", lanes))))
	told := table(` id="replicas"`, "", each(replicas, "\n", drawReplica), "Replica", "Leads", "Runs", ">Jobs", "Host, program", "Began", "Said, nodes")
	return b + section("replicas", "Replicas", p.or(told, partReplicas,
		`<p class="empty" id="empty-replicas">No replica tells of itself. Start one with a scheduler or an elector. If replicas run: they may have another prefix `+
			`(<code>redlock.WithPrefix</code>) or other nodes than the process that serves this page, or be told to say nothing (<code>WithoutCard</code>). `+
			`A replica that was killed is shown for half a minute.</p>`))
}

// yesOrNo returns true, false, or nothing if is is nil.
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

// drawOwn draws this process's view of a node, in the matrix.
func drawOwn(n view.Node) markup {
	return drawCell(n.Node, n.Votes, choice(n.ThisProcess, n.ErrorType, "not named"), view.Time{}, false)
}

// drawSeen draws a replica's views of nodes, in the matrix. A view that differs from this process's
// is marked.
func drawSeen(r view.Replica) func(view.Node) markup {
	return func(n view.Node) markup {
		for _, seen := range r.Nodes {
			if seen.Node == n.Node {
				return drawCell(n.Node, &seen.Votes, seen.Why, seen.Since, n.Votes != nil && *n.Votes != seen.Votes)
			}
		}
		return drawCell(n.Node, nil, "not named", view.Time{}, false)
	}
}

// drawCell draws a cell of the matrix; votes is nil if not known.
func drawCell(node string, votes *bool, said string, since view.Time, differs bool) markup {
	is := m(`<span class="none">%s</span>`, either(escaped(words(said)), "not known"))
	if votes != nil && *votes {
		is = st("ok", "votes") + why(words(said))
	} else if votes != nil {
		is = st("silent", either(escaped(words(said)), "no")+when(!since.IsZero(), " since %s", clock(since)))
	}
	return m(`<td data-node="%s" data-votes="%s"%s>%s</td>`, node, yesOrNo(votes), when(differs, ` class="odd"`), is)
}

func drawReplica(d view.Replica) markup {
	jobs := fmt.Sprint(len(d.Jobs)) + choice(d.Cut, " or more", "")
	host := name(d.Host) + when(d.PID != 0, "%s", sub(fmt.Sprint("pid ", d.PID))) + sub(visible(d.Program)) + sub(visible(d.Version))
	runs := each(d.Running, ", ", func(r *view.Run) markup { return jobLink(r.Job) })
	return m(`<tr data-replica="%s" data-id="%s">`, d.Identity, d.ID) + th("Replica", name(d.Identity)) + td("Leads", either(each(d.Leads, ", ", electionLink), none)) +
		td("Runs", either(runs, none)) + num("Jobs", jobs) + td("Host", host) + td("Began", ago(d.Began)) + td("Said", ago(d.Said)+" "+sources(d.Sources)) + "</tr>"
}
