package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// electionRow is an election as it was read.
type electionRow struct {
	view.Election
	Full view.Span `json:"-"` // the most that was seen of its lease
}

// leaseLeft says for how long a leader leads unless its lease is extended.
func leaseLeft(e electionRow) string {
	l := e.Leader
	if l.LeaseLeft == 0 {
		return "it does not expire: something else has written the key"
	}
	return max(l.LeaseLeft-view.Span(time.Since(e.Read.Time)), 0).String() + " left"
}

type electionsDoc struct {
	Elections []electionRow `json:"elections"`

	Name string `json:"-"` // of the one that is asked for; empty for all
}

func (h *Handler) electionsDoc(_ context.Context, s *snapshot, r *http.Request) (any, int) {
	d := &electionsDoc{Elections: []electionRow{}, Name: r.URL.Query().Get("name")}
	for _, e := range s.elections {
		if d.Name != "" && d.Name != e.Name {
			continue
		}
		d.Elections = append(d.Elections, e)
	}
	return d, http.StatusOK
}

// attributes are those of the element that shows it.
func (d electionRow) attributes() markup {
	leader, term := "", ""
	if d.Leader != nil {
		leader, term = d.Leader.Identity, decimal(d.Leader.Term)
	}
	return m(`data-election="%s" data-leader="%s" data-term="%s"`, d.Name, leader, term)
}

// lease draws what is left of it.
func (d electionRow) lease() markup {
	if d.Leader.LeaseLeft == 0 {
		return m(`<span class="left bad">%s</span>`, leaseLeft(d))
	}
	return m(`%s <span class="left" data-l>%s</span>`, bar(d), leaseLeft(d))
}

func (d *electionsDoc) draw(p *page) markup {
	b := markup("<h1>Elections</h1>\n")
	if d.Name != "" {
		b += m(`<p class="count">The election %s alone. <a href="elections">Show all</a>.</p>`+"\n", name(d.Name))
	}
	for i, e := range d.Elections {
		b += m(`<section class="election" %s aria-labelledby="h-e%d">
<h2 id="h-e%d">%s</h2>
%s</section>
`, e.attributes(), i, i, name(e.Name), e.draw(p))
	}
	switch {
	case len(d.Elections) > 0:
	case p.Status.Unread("elections"):
		b += unread
	case d.Name != "":
		b += `<p class="empty" id="empty-elections">No replica takes part in this election now.</p>`
	default:
		b += `<p class="empty" id="empty-elections">No replica takes part in an election. Elections are shown as soon as a replica runs <code>elector.New</code> ` +
			`or <code>scheduler.WithElection</code>. If replicas run: they may have another prefix (<code>redlock.WithPrefix</code>) or other nodes than the process that serves this page.</p>`
	}
	return b
}

func (d electionRow) draw(p *page) markup {
	var b markup
	switch l := d.Leader; {
	case l != nil:
		b = m(`<p class="leader"><b>%s</b> leads`, name(l.Identity))
		if !l.Since.IsZero() {
			b += m(" since %s (%s)", clock(l.Since), ago(l.Since))
		}
		b += m(", term %d.%s</p>\n", l.Term, when(l.Payload != "", " Payload: <code>%s</code>.", visible(l.Payload)))
		b += m(`<p class="lease">%s <span class="sub">· read %s</span></p>`+"\n", d.lease(), ago(d.Read))
	case d.Error != "":
		b = m(`<p class="leader bad">It is not known who leads: %s</p>`, visible(d.Error))
	default:
		b = `<p class="leader bad">Nobody leads.</p>`
	}
	b += m("<p>Candidates: %s</p>\n", either(each(d.Candidates, ", ", name), `<span class="none">none</span>`))
	if p.Acts && d.Leader != nil {
		b += m(`<p class="acts">%s</p>`+"\n", do("resign", m(`Have the leader resign<span class="unseen"> from %s</span>`, visible(d.Name)), "election", d.Name))
	}
	if len(d.Terms) == 0 {
		return b
	}
	rows := each(d.Terms, "\n", func(t view.Term) markup {
		ended := none
		if t.How != "" {
			class := "bad"
			if t.How == "resigned" {
				class = "mid"
			}
			ended = tag(class, words(t.How)) + why(words(t.Reason))
		}
		return m(`<tr data-term="%d"><th scope="row" data-l="Term" class="num"><code>%d</code></th>`, t.Number, t.Number) + td("Leader", name(t.Identity)) +
			td("Began", m(`%s <span class="sub">%s</span>`, ago(t.Began), clock(t.Began))) + num("Lasted", took(t.Lasted())) +
			td("Ended as", ended) + num("Gap before", took(t.Gap)) + num("Nodes", t.Sources) + "</tr>"
	})
	return b + table(` class="terms"`, "Terms, the newest first", rows, "Term", "Leader", "Began", "Lasted", "Ended as", "Gap before", "Nodes")
}
