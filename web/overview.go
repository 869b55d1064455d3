package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tenure-dev/tenure/admin"
)

// overviewDoc is the start page.
type overviewDoc struct {
	Quorum    quorumDoc     `json:"quorum"`
	Replicas  int           `json:"replicas"`
	Jobs      jobCounts     `json:"jobs"`
	Elections []electionDoc `json:"elections"`
	Running   []*jobDoc     `json:"running"`
	Late      []*jobDoc     `json:"late"`
	Failing   []*jobDoc     `json:"failing"`
	Paused    []*jobDoc     `json:"paused"`
	Next      []*jobDoc     `json:"next"` // of the next ticks

	AllPaused bool `json:"-"` // by a pause of all jobs
}

const (
	// mostListed bounds each list of the start page, and nextListed that of ticks.
	mostListed = 20
	nextListed = 10
)

func (h *Handler) overviewDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &overviewDoc{
		Quorum: newQuorumDoc(s), Replicas: len(s.replicas), Jobs: countJobs(s.jobs), Elections: []electionDoc{},
		Running: []*jobDoc{}, Late: []*jobDoc{}, Failing: []*jobDoc{}, Paused: []*jobDoc{}, Next: []*jobDoc{},
	}
	for _, e := range s.elections[:min(len(s.elections), mostListed)] {
		d.Elections = append(d.Elections, newElectionDoc(e))
	}
	var next []*jobRow
	for _, row := range s.jobs {
		for state, list := range map[string]*[]*jobDoc{stateRunning: &d.Running, stateLate: &d.Late, stateFailing: &d.Failing, statePaused: &d.Paused} {
			if row.isIn(state) && len(*list) < mostListed {
				*list = append(*list, h.newJobDoc(s, row))
			}
		}
		d.AllPaused = d.AllPaused || row.Paused != nil && row.Paused.Target == admin.AllJobs
		if !row.Next.IsZero() && !row.Late && row.Paused == nil {
			next = append(next, row)
		}
	}
	slices.SortStableFunc(next, func(x, y *jobRow) int { return x.Next.Compare(y.Next) })
	for _, row := range next[:min(len(next), nextListed)] {
		d.Next = append(d.Next, h.newJobDoc(s, row))
	}
	return d, http.StatusOK
}

func (d *overviewDoc) draw(p *page) markup {
	sum := func(class, label markup, to string, is any) markup {
		return m(`<div%s><dt>%s</dt><dd><a href="%s">%s</a></dd></div>`+"\n", when(class != "", ` class="%s"`, class), label, to, text(is))
	}
	jobs := func(class, label markup, state string, n int) markup {
		if n == 0 {
			class = ""
		}
		return sum(class, label, query("jobs", "state", state), n)
	}
	b := m(`<h1 class="unseen">Overview</h1>
<dl class="sums">
%s</dl>
<div class="cols">
`, sum("", "Nodes that vote", "nodes", fmt.Sprintf("%d of %d", d.Quorum.Votes, d.Quorum.Total))+sum("", "Replicas", "nodes#replicas", d.Replicas)+
		sum("", "Jobs", "jobs", d.Jobs.Total)+jobs("", "Running", stateRunning, d.Jobs.Running)+jobs("bad", "Late", stateLate, d.Jobs.Late)+
		jobs("warn", "Failing", stateFailing, d.Jobs.Failing)+jobs("warn", "Paused", statePaused, d.Jobs.Paused))
	b += d.drawElections(p) + d.drawJobs(p) + "</div>\n"
	if p.Acts {
		b += m(`<p class="acts">%s</p>`, allJobs(!d.AllPaused, d.AllPaused))
	}
	return b
}

// allJobs leads to the orders for all jobs.
func allJobs(pause, resume bool) (b markup) {
	if pause {
		b = do("pause", "Pause all jobs", "all", "1")
	}
	if resume {
		b += do("resume", "Resume all jobs", "all", "1")
	}
	return b
}

func (d *overviewDoc) drawElections(p *page) markup {
	rows := each(d.Elections, "\n", func(e electionDoc) markup {
		b := m(`<tr %s>%s`, e.attributes(), th("Election", electionLink(e.Name)))
		switch l := e.Leader; {
		case l != nil:
			since := markup("–")
			if !l.Since.IsZero() {
				since = clock(l.Since)
			}
			b += td("Leader", name(l.Identity)) + td("Since", since) + td("Lease", l.lease())
		case e.Error != "":
			b += m(`<td data-l="Leader" colspan="3" class="bad">not known: %s</td>`, e.Error)
		default:
			b += `<td data-l="Leader" colspan="3" class="bad">nobody</td>`
		}
		return b + "</tr>"
	})
	is := either(when(p.Status.Unread("elections"), unread), `<p class="empty" id="empty-elections">No replica takes part in an election. `+
		`Elections are shown as soon as a replica runs <code>elector.New</code> or <code>scheduler.WithElection</code>.</p>`)
	if rows != "" {
		is = table(` id="elections"`, "", rows, "Election", "Leader", "Since", "Lease")
	}
	return section("elections", "Elections", is)
}

func (d *overviewDoc) drawJobs(p *page) markup {
	list := func(id, heading markup, jobs []*jobDoc, empty markup, heads []string, cells func(j *jobDoc) markup) markup {
		rows := each(jobs, "\n", func(j *jobDoc) markup {
			return m(`<tr %s>%s%s</tr>`, j.attributes(), th("Job", jobLink(j.Name)), cells(j))
		})
		switch {
		case rows != "":
			empty = table(m(` id="%s"`, id), "", rows, append([]string{"Job"}, heads...)...)
		case empty == "":
			return ""
		case p.Status.Unread("jobs"):
			empty = unread
		}
		return section(id, heading, empty)
	}
	b := list("running", "Running now", d.Running, `<p class="empty" id="empty-running">No job runs now.</p>`, []string{"Replica", "Began", "Tick", "Read"}, func(j *jobDoc) markup {
		return td("Replica", name(j.Running.Replica)) + td("Began", ago(j.Running.Since())) + td("Tick", clock(j.Running.Tick)) + td("Read", ago(j.Read))
	})
	b += list("late", "Late", d.Late, "", []string{"Was due", "Last run", "Said"}, func(j *jobDoc) markup {
		last := none
		if j.Last != nil {
			last = ago(j.Last.Began) + " " + j.Last.tag()
		}
		return m(`<td data-l="Was due" class="bad">%s</td>`, in(j.Next)) + td("Last run", last) + td("Said", ago(j.Said)+" "+sources(j.Sources))
	})
	b += list("failing", "Failed last", d.Failing, "", []string{"Began", "Ended as", "Replica"}, func(j *jobDoc) markup {
		if j.Last == nil { // it is overdue
			return td("Began", none) + td("Ended as", none) + td("Replica", none)
		}
		return td("Began", ago(j.Last.Began)) + td("Ended as", j.Last.tag()) + td("Replica", name(j.Last.Replica))
	})
	heads := []string{"Pause"}
	if p.Acts {
		heads = append(heads, "Orders")
	}
	b += list("paused", "Paused", d.Paused, "", heads, func(j *jobDoc) markup {
		cells := td("Pause", j.Paused.draw())
		switch {
		case !p.Acts:
		case j.Paused.All:
			cells += m(`<td class="do">%s</td>`, do("resume", "Resume all", "all", "1"))
		default:
			cells += m(`<td class="do">%s</td>`, do("resume", m(`Resume<span class="unseen"> %s</span>`, visible(j.Name)), "job", j.Name))
		}
		return cells
	})
	empty := nojobs
	if d.Jobs.Total > 0 {
		empty = `<p class="empty" id="empty-next">No replica has said when a job is due next.</p>`
	}
	return b + list("next", "Next ticks", d.Next, empty, []string{"Tick", "Due", "Last runs"}, func(j *jobDoc) markup {
		return td("Tick", clock(j.Next)) + td("Due", in(j.Next)) + td("Last runs", strip(j.Runs))
	})
}
