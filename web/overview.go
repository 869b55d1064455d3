package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// overviewDoc is the content of the start page.
type overviewDoc struct {
	view.Overview

	s    *snapshot
	past time.Duration // of the chart: one of spans
}

// spans are the choices of the time that the chart shows.
var spans = []time.Duration{time.Hour, 8 * time.Hour, 24 * time.Hour}

// mostListed bounds each list of the start page.
const mostListed = 20

func (h *Handler) overviewDoc(_ context.Context, s *snapshot, r *http.Request) any {
	d := &overviewDoc{Overview: view.NewOverview(s.cluster().Quorum()), s: s, past: spans[0]}
	if past, _ := time.ParseDuration(r.URL.Query().Get("last")); slices.Contains(spans, past) {
		d.past = past
	}
	d.Elections = view.All(s.elections[:min(len(s.elections), mostListed)], func(e electionRow) view.Election { return e.Election })
	if !s.read[partReplicas].At.IsZero() {
		d.Replicas = new(len(s.replicas))
	}
	d.Jobs = new(s.counts())
	for _, row := range s.jobs {
		d.Add(row, mostListed)
	}
	return d
}

func (d *overviewDoc) draw(p *page) markup {
	a, status := p.Status.needs, p.Status
	return m(`<section class="verdict" aria-labelledby="h-v"><h1 id="h-v" aria-live="polite">%s</h1>
<p id="sentence">%s</p>
%s</section>
`, a.headline(d.s, len(status.Problems)), status.Sentence, a.verdict(p, d.s)) + p.problems() + d.hour(p) + a.later(p, d.s) +
		when(p.Acts, `<p class="acts">%s</p>`, choice(a.all == nil, pauseAll, resumeAll))
}

// pauseAll and resumeAll link to the orders for all jobs.
var pauseAll, resumeAll = do("pause", "Pause all jobs", "all", "1"), do("resume", "Resume all jobs", "all", "1")

// legend explains the looks of a chart.
const legend markup = `<ul class="legend" aria-hidden="true">` +
	`<li><svg><path class="ok" d="M7 4h2v7h-2z"/></svg>ok</li>` +
	`<li><svg><path class="failing" d="M7 1h2v12h-2z"/></svg>failed, taller</li>` +
	`<li><svg><path class="cutshort" d="M3 2h8v10h-8z"/><path class="zig" d="M11 0l3 3.5-3 3.5 3 3.5-3 3.5"/></svg>cut short</li>` +
	`<li><svg><path class="running" d="M1 5h14v5h-14z"/></svg>running</li>` +
	`<li><svg><path class="due" d="M3 2h12v10h-12z"/></svg>due, not run</li>` +
	`<li><svg><path class="hold" d="M1 3h14v8h-14z"/></svg>paused</li>` +
	`<li><svg><path class="next" d="M8 7h0"/></svg>next ticks</li></ul>`

// hour draws the last hour, or a longer time, on one time axis, so that a cause stands above its
// effects.
func (d *overviewDoc) hour(p *page) markup {
	chips := each(spans, "", func(past time.Duration) markup {
		return chip(past == d.past, query("", "last", past.String()), escaped(periodPhrase(past)), -1)
	})
	w := windowOf(d.past, d.past/4)
	group := func(heading, lanes markup) markup {
		return when(lanes != "", "<p>%s</p><ul>%s</ul>\n", heading, lanes)
	}
	leaders := each(d.s.elections[:min(len(d.s.elections), mostListed)], "", func(e electionRow) markup { return w.election(e) })
	if more := len(d.s.elections) - mostListed; more > 0 {
		leaders += m(`<li class="soft">And <a href="elections">%s more</a>.</li>`, view.Counted(more, "election"))
	}
	nodes := each(d.s.nodes, "", func(n view.Node) markup { return w.node(n, d.s) })
	rows := view.All(d.s.jobs, d.s.waiting())
	worstFirst(rows)
	var jobs, quiet markup
	counts := make(tally)
	drawn, without, more := 0, 0, 0
	for _, r := range rows {
		for run := range w.within(r.Runs) {
			counts[run.Outcome]++
		}
		if drawn == mostLanes {
			more++
		} else if l, shown := w.job(r); shown {
			drawn++
			jobs += l.draw()
		} else if without++; without <= mostListed {
			quiet += when(without > 1, ", ") + jobLink(r.Name)
		}
	}
	sum := when(len(counts) > 0, "%s: %s.", view.Counted(counts.total(), "run"), counts)
	lanes := group("Leaders", leaders) + group("Nodes", nodes) + group("Jobs, problems first", jobs)
	b := choice(lanes != "", w.draw(` id="lanes"`, lanes), "") + when(more > 0, `<p class="soft">%s, none worse: see <a href="jobs">all</a>.</p>`+"\n", view.Counted(more, "more job"))
	b += when(quiet != "", `<p class="soft quiet">No run and no tick in this time: %s%s.</p>`, quiet, when(without > mostListed, ` and <a href="jobs">%d more</a>`, without-mostListed))
	if len(d.s.elections) == 0 {
		b += p.or("", partElections, `<p class="empty" id="empty-elections">No replica takes part in an election. `+
			`Elections are shown as soon as a replica runs <code>elector.New</code> or <code>scheduler.WithElection</code>.</p>`)
	}
	if len(rows) == 0 {
		b += p.or("", partJobs, nojobs)
	}
	return headed("hour", m("The last %s", periodPhrase(d.past)), m(`<span class="soft">%s</span><nav class="chips" aria-label="Time">%s</nav>%s`, sum, chips, choice(lanes != "", legend, "")), b)
}

// election returns the lane of an election, with its leaders.
func (w window) election(e electionRow) markup {
	look, note, label := markup("none"), markup("nobody leads"), "nobody leads"
	prefix := shared(e.Candidates)
	var marks markup
	for _, t := range slices.Backward(e.Terms) {
		marks += w.term(t, e.Leader != nil && t.Number == e.Leader.Term, prefix)
	}
	switch l := e.Leader; {
	case e.Error != "":
		note, label = "not known", "it is not known who leads"
	case l != nil:
		look, note, label = "leads", short(l.Identity, prefix), visible(view.Shortened(l.Identity, 60))+" leads"
		if !slices.ContainsFunc(e.Terms, func(t view.Term) bool { return t.Number == l.Term }) {
			marks += w.term(view.Term{Identity: l.Identity, Began: l.Since}, true, prefix)
		}
		note += when(!l.Since.IsZero(), ", %s", view.Rough(time.Since(l.Since.Time)))
	}
	class := choice[markup](e.Leader != nil, "soft", "failing")
	return lane{attributes: e.attributes(), head: iconOf(look) + electionLink(e.Name), of: e.Name, label: label, marks: marks, texts: true, noteLook: class, note: note}.draw()
}

// node draws the lane of a node: when this page and the replicas had its vote, and when some did
// not.
func (w window) node(n view.Node, s *snapshot) markup {
	look, l := markup("ok"), lane{attributes: m(`data-node="%s"`, n.Node), of: n.Node, note: "votes", noteLook: "soft"}
	known, away, views := w.now, make(shapes), n.SeenBy
	if n.ThisProcess && n.Votes != nil {
		views = append(slices.Clip(views), view.Seen{Votes: *n.Votes, Why: n.ErrorType, Since: view.At(s.turned[n.Node])})
	}
	for _, seen := range views {
		to := w.now
		for _, t := range append([]view.Turn{{Votes: seen.Votes, Why: seen.Why, Since: seen.Since}}, seen.Was...) {
			if t.Since.IsZero() || to.Before(w.from) {
				break
			}
			if !t.Votes {
				away.add(choice[markup](t.Why == string(redlock.ConditionQuarantined), "quarantine", "silent"), box(w.x(t.Since.Time), w.x(to), 3, 12))
			}
			if to = t.Since.Time; to.Before(known) {
				known = to
			}
		}
	}
	l.marks = when(known.Before(w.now), "%s", path("votes", box(w.x(known), w.x(w.now), 6, 6))) + away.draw()
	if until := n.QuarantinedUntil; !until.IsZero() {
		l.marks += path("quarantine", box(w.x(w.now), w.x(until.Time), 4, 10))
	}
	of := slices.DeleteFunc(s.cluster().Troubles(), func(t view.Trouble) bool { return !slices.Contains(t.Nodes, n.Node) })
	if len(of) > 0 {
		look, l.note, l.noteLook = markup(of[0].State), escaped(of[0].Word), markup(of[0].State)
	} else if yesOrNo(n.Votes) != "true" {
		look, l.note = "none", "not known"
	}
	l.label, l.head = string(l.note), iconOf(look)+m(`<a href="nodes">%s</a>`, name(n.Node))
	return l.draw()
}
