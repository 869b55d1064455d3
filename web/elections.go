package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// electionRow is an election as it was last read.
type electionRow struct {
	view.Election
	Full view.Span `json:"-"` // the longest LeaseLeft that was seen of this lease
}

type electionsDoc struct {
	Elections []electionRow `json:"elections"`

	Name string `json:"-"` // the election that was asked for; empty for all
}

func (h *Handler) electionsDoc(_ context.Context, s *snapshot, r *http.Request) any {
	d := &electionsDoc{Elections: []electionRow{}, Name: r.URL.Query().Get("name")}
	for _, e := range s.elections {
		if d.Name == "" || d.Name == e.Name {
			d.Elections = append(d.Elections, e)
		}
	}
	return d
}

// attributes returns the attributes of the element that shows the election.
func (d electionRow) attributes() markup {
	leader, term := "", ""
	if d.Leader != nil {
		leader, term = d.Leader.Identity, decimal(d.Leader.Term)
	}
	return m(`data-election="%s" data-leader="%s" data-term="%s"`, d.Name, leader, term)
}

// lease draws how much of the leader's lease is left, compared with Full.
func (d electionRow) lease() markup {
	l := d.Leader
	if l.LeaseLeft == 0 {
		return `<span class="left bad">it does not expire: something else has written the key</span>`
	}
	left := max(l.LeaseLeft-view.Span(time.Since(d.Read.Time)), 0)
	full := max(d.Full, l.LeaseLeft, 1)
	return m(`<svg class="bar" aria-hidden="true" viewBox="0 0 100 6" preserveAspectRatio="none" data-end="%d" data-full="%d"><rect width="%.1f" height="6"/></svg> <span class="left" data-l>%s left</span>`,
		d.Read.Add(time.Duration(l.LeaseLeft)).UnixMilli(), time.Duration(full).Milliseconds(), 100*float64(left)/float64(full), left)
}

func (d *electionsDoc) draw(p *page) markup {
	b := markup("<h1>Elections</h1>\n")
	if d.Name != "" {
		b += m(`<p class="count">The election %s alone. <a href="elections">Show all</a>.</p>`+"\n", name(d.Name))
	}
	var drawn markup
	for i, e := range d.Elections {
		drawn += e.draw(p, i)
	}
	empty := choice[markup](d.Name != "", `<p class="card empty" id="empty-elections">No replica takes part in this election now.</p>`,
		`<p class="card empty" id="empty-elections">No replica takes part in an election. Elections are shown as soon as a replica runs <code>elector.New</code> `+
			`or <code>scheduler.WithElection</code>. If replicas run: they may have another prefix (<code>redlock.WithPrefix</code>) or other nodes than the process that serves this page.</p>`)
	return b + p.or(drawn, partElections, empty)
}

func (d electionRow) draw(p *page, i int) markup {
	b := m(`<section class="election" %s aria-labelledby="h-e%d">
<div class="head"><h2 id="h-e%d">%s</h2>`, d.attributes(), i, i, name(d.Name))
	switch l := d.Leader; {
	case l != nil:
		b += m(`<span class="st leads">%s<span>%s leads</span></span> <span class="soft">%sterm %d%s · %s</span>`+"\n", icon("leads"), name(l.Identity),
			when(!l.Since.IsZero(), "since %s, %s · ", clock(l.Since), ago(l.Since)), l.Term, when(l.Payload != "", " · payload <code>%s</code>", visible(l.Payload)), d.lease())
	case d.Error != "":
		b += m(`%s <span>It is not known who leads: %s</span>`, iconOf("none"), visible(d.Error))
	default:
		b += m(`<b class="bad">Nobody leads.</b>`)
	}
	if p.Acts && d.Leader != nil {
		b += m(`<span class="acts">%s</span>`+"\n", do("resign", m(`Have the leader resign<span class="unseen"> from %s</span>`, visible(d.Name)), "election", d.Name))
	}
	b += m("</div>\n<p class=\"soft\">Candidates: %s</p>\n", either(each(d.Candidates, ", ", name), "none"))
	if len(d.Terms) == 0 {
		return b + "</section>\n"
	}
	rows := each(d.Terms, "\n", func(t view.Term) markup {
		ended := none
		switch {
		case t.Reason == admin.TermCutShort:
			ended = st("cutshort", "cut short") + why("it never told its end; the lease ran out")
		case t.How == "lost":
			ended = st("failing", "lost") + why(words(t.Reason))
		case t.How != "":
			ended = escaped(words(t.How)) + why(words(t.Reason))
		}
		return m(`<tr data-term="%d">`, t.Number) + th("Began", m(`%s <span class="sub">%s</span>`, clock(t.Began), ago(t.Began))) + td("Leader", name(t.Identity)) +
			num("Nobody led for", took(t.Gap)) + num("Lasted", took(t.Lasted())) + td("Ended as", ended) + num("Term", m("<code>%d</code>", t.Number)) + num("Nodes", t.Sources) + "</tr>"
	})
	return b + d.byReplica() + table("", "Terms, the newest first", rows, "Began", "Leader", ">Nobody led before for", ">Lasted", "Ended as", ">Term", ">Nodes") + "</section>\n"
}

// byReplica draws the terms of an election, with a lane for each replica.
func (d electionRow) byReplica() markup {
	oldest := time.Now()
	for _, t := range d.Terms {
		if !t.Began.IsZero() && t.Began.Before(oldest) {
			oldest = t.Began.Time
		}
	}
	past := max(time.Since(oldest), time.Minute)
	w := windowOf(past, past/50)
	of, led := make(map[string]*lane), make(map[string]time.Duration)
	for _, t := range slices.Backward(d.Terms) {
		now := d.Leader != nil && t.Number == d.Leader.Term
		led[t.Identity] += choice(now && !t.Began.IsZero(), w.now.Sub(t.Began.Time), time.Duration(t.Lasted()))
		share := fmt.Sprintf("led %.1f %%", 100*float64(led[t.Identity])/float64(past))
		if of[t.Identity] == nil {
			of[t.Identity] = &lane{texts: true}
		}
		l := of[t.Identity]
		l.label, l.note, l.marks = share+" of the time", escaped(share), l.marks+w.term(t, now, t.Identity)
	}
	const most = 12
	return w.byReplica(of, most, "")
}
