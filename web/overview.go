package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tenure-dev/tenure/internal/view"
)

// overviewDoc is the start page.
type overviewDoc struct {
	view.Overview

	elections []electionRow
}

// mostListed bounds each list of the start page.
const mostListed = 20

func (h *Handler) overviewDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &overviewDoc{Overview: view.NewOverview(view.QuorumOf(s.nodes)), elections: s.elections[:min(len(s.elections), mostListed)]}
	for _, e := range d.elections {
		d.Elections = append(d.Elections, e.Election)
	}
	if !s.read[partReplicas].At.IsZero() {
		replicas := len(s.replicas)
		d.Replicas = &replicas
	}
	counts := s.counts()
	d.Jobs = &counts
	for _, row := range s.jobs {
		d.Add(row.Job, mostListed)
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
	replicas := markup("–")
	if d.Replicas != nil {
		replicas = m("%d", *d.Replicas)
	}
	allPaused := slices.ContainsFunc(d.Paused, func(j *view.Job) bool { return j.Paused.All })
	b := m(`<h1 class="unseen">Overview</h1>
<dl class="sums">
%s</dl>
<div class="cols">
`, sum("", "Nodes that vote", "nodes", fmt.Sprintf("%s of %d", d.votes(), d.Quorum.Total))+sum("", "Replicas", "nodes#replicas", replicas)+
		sum("", "Jobs", "jobs", d.Jobs.Total)+jobs("", "Running", view.Running, d.Jobs.Running)+jobs("bad", "Late", view.Late, d.Jobs.Late)+
		jobs("warn", "Failing", view.Failing, d.Jobs.Failing)+jobs("warn", "Paused", view.Paused, d.Jobs.Paused))
	b += d.drawElections(p) + d.drawJobs(p) + "</div>\n"
	if p.Acts {
		b += m(`<p class="acts">%s</p>`, allJobs(!allPaused, allPaused))
	}
	return b
}

// votes is how many nodes vote: as replicas say, where they refuse this process; else that is not
// known.
func (d *overviewDoc) votes() string {
	if q := d.Quorum; q.Spare != nil || q.Told+q.Denied > 0 {
		return fmt.Sprint(q.Votes + q.Told)
	}
	return "?"
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
	rows := each(d.elections, "\n", func(e electionRow) markup {
		b := m(`<tr %s>%s`, e.attributes(), th("Election", electionLink(e.Name)))
		switch l := e.Leader; {
		case l != nil:
			since := markup("–")
			if !l.Since.IsZero() {
				since = clock(l.Since)
			}
			b += td("Leader", name(l.Identity)) + td("Since", since) + td("Lease", e.lease())
		case e.Error != "":
			b += m(`<td data-l="Leader" colspan="3" class="bad">not known: %s</td>`, visible(e.Error))
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
	list := func(id, heading markup, jobs []*view.Job, empty markup, heads []string, cells func(j *view.Job) markup) markup {
		rows := each(jobs, "\n", func(j *view.Job) markup {
			return m(`<tr %s>%s%s</tr>`, jobAttributes(j), th("Job", jobLink(j.Name)), cells(j))
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
	b := list("running", "Running now", d.Running, `<p class="empty" id="empty-running">No job runs now.</p>`, []string{"Replica", "Began", "Tick", "Read"}, func(j *view.Job) markup {
		return td("Replica", name(j.Running.Replica)) + td("Began", ago(j.Running.Since())) + td("Tick", clock(j.Running.Tick)) + td("Read", ago(j.Read))
	})
	b += list("late", "Late", d.Late, "", []string{"Was due", "Last run", "Said"}, func(j *view.Job) markup {
		last := none
		if j.Last != nil {
			last = ago(j.Last.Began) + " " + ended(j.Last)
		}
		return m(`<td data-l="Was due" class="bad">%s</td>`, in(j.Next)) + td("Last run", last) + td("Said", ago(j.Said)+" "+sources(j.Sources))
	})
	b += list("failing", "Failed last", d.Failing, "", []string{"Began", "Ended as", "Replica"}, func(j *view.Job) markup {
		if j.Last == nil { // it is overdue
			return td("Began", none) + td("Ended as", none) + td("Replica", none)
		}
		return td("Began", ago(j.Last.Began)) + td("Ended as", ended(j.Last)) + td("Replica", name(j.Last.Replica))
	})
	heads := []string{"Pause"}
	if p.Acts {
		heads = append(heads, "Orders")
	}
	b += list("paused", "Paused", d.Paused, "", heads, func(j *view.Job) markup {
		cells := td("Pause", drawPause(j.Paused))
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
	return b + list("next", "Next ticks", d.Next, empty, []string{"Tick", "Due", "Last runs"}, func(j *view.Job) markup {
		return td("Tick", clock(j.Next)) + td("Due", in(j.Next)) + td("Last runs", strip(j.Runs))
	})
}
