package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// oneJobDoc is a job with all that is known of it.
type oneJobDoc struct {
	Name  string      `json:"name"`
	Job   *view.Job   `json:"job"`   // null if it could not be read
	Runs  []view.Past `json:"runs"`  // the newest first; null likewise
	Skips []view.Skip `json:"skips"` // likewise
	Error string      `json:"error"` // why it is not as it is now
}

func (d *oneJobDoc) ofJob() (job, title string) { return d.Name, "" }

const missing = "No replica is known to have a job of this name. A job is forgotten half an hour after the last replica that had it."

func (h *Handler) jobDoc(ctx context.Context, s *snapshot, r *http.Request) (any, int) {
	name := r.URL.Query().Get("name")
	if name == "" {
		return newErrorDoc(http.StatusNotFound, missing), http.StatusNotFound
	}
	is := h.details.get(ctx, detailOf{name: name})
	if is.Gone {
		return newErrorDoc(http.StatusNotFound, missing), http.StatusNotFound
	}
	d := &oneJobDoc{Name: name, Skips: is.Skips, Error: view.Error(is.Err)}
	if is.jobRow != nil { // else it is not known whether there is one
		d.Job, d.Runs = is.Job, is.Runs
	}
	return d, http.StatusOK
}

// draw draws the page of a job.
func (d *oneJobDoc) draw(p *page) markup {
	j := d.Job
	if j == nil {
		j = &view.Job{Name: d.Name, Error: d.Error}
	}
	b := m(`<p class="up"><a href="jobs">Jobs</a></p>
<h1>%s</h1>
%s<dl id="facts" %s>
%s</dl>
`, name(j.Name), notAsNow(d.Error), jobAttributes(j), facts(j))
	if p.Acts {
		b += m(`<p class="acts">%s</p>`+"\n", acts(j))
	}
	if l := timeline(d); l != nil {
		b += section("timeline", "Timeline", m(`<div id="timeline" role="img" aria-label="Runs on each replica over time; the tables below have them in words.">
%s<div class="lane axis"><span>%s</span><span>%s</span></div></div>`, each(l.Lanes, "", func(l lane) markup {
			return m(`<div class="lane" data-replica="%s">%s<svg viewBox="0 0 1000 20" preserveAspectRatio="none">%s</svg></div>`+"\n", l.Replica, name(l.Replica), l.Marks)
		}), clock(l.From), clock(l.To)))
	}
	runs := unread
	switch {
	case len(d.Runs) > 0:
		runs = runsTable(d.Runs, false) + m(`<p><a href="%s">All runs that nodes keep</a></p>`, query("runs", "name", j.Name))
	case !j.Read.IsZero():
		runs = `<p class="empty" id="empty-runs">No run has ended yet, or its replicas keep no history (<code>scheduler.WithTelling</code>).</p>`
	}
	skips := unread
	switch {
	case len(d.Skips) > 0:
		skips = table(` id="skips"`, "", each(d.Skips, "\n", drawSkip), "Reason", "Last tick", "Ticks", "Skipped by", "Because of", "Nodes")
	case d.Skips != nil:
		skips = `<p class="empty" id="empty-skips">None that an operator should know of.</p>`
	}
	return b + section("runs", "Runs", runs) + section("skips", "Ticks that were not run", skips)
}

// facts draws all that is known of a job, but its runs.
func facts(j *view.Job) markup {
	b := fact("State", states(j)+why(visible(j.Error)))
	if j.Paused != nil {
		b += fact("Pause", drawPause(j.Paused)+" "+sources(j.Paused.Nodes))
	}
	if r := j.Running; r != nil {
		tick := markup("no tick")
		if !r.Tick.IsZero() {
			tick = "tick " + clock(r.Tick)
		}
		b += m(`<div data-token="%d"><dt>Runs now</dt><dd>on %s, began %s, %s, token %d</dd></div>`+"\n", r.Token, name(r.Replica), ago(r.Since()), tick, r.Token)
	}
	if j.Read.IsZero() {
		return b
	}
	next := markup(`<span class="none">not known</span>`)
	if !j.Next.IsZero() {
		next = m("%s, %s%s", in(j.Next), clock(j.Next), local(j))
	}
	by := markup("any replica")
	if j.Election != "" {
		by = "the leader of " + electionLink(j.Election)
	}
	b += fact("Schedule", schedule(j)) + fact("Next tick", next+when(j.Late, ` <span class="bad">late: no replica is known to run it</span>`)) + fact("Run by", by)
	for _, policy := range []struct {
		label markup
		is    string
	}{{"Delivery", j.Delivery}, {"Catch-up", j.CatchUp}, {"Overlap", j.Overlap}, {"Program", j.Program}} {
		if policy.is != "" {
			b += fact(policy.label, escaped(visible(policy.is)))
		}
	}
	return b + fact("Said", ago(j.Said)+" "+sources(j.Sources))
}

// local is the next tick in the zone of the schedule, where that is another one.
func local(j *view.Job) markup {
	zone, err := time.LoadLocation(j.Zone)
	if err != nil || j.Zone == "" || j.Zone == "UTC" {
		return ""
	}
	return m(` <span class="sub">%s %s</span>`, j.Next.In(zone).Format("15:04:05"), visible(j.Zone))
}

// acts leads to the orders for a job.
func acts(d *view.Job) markup {
	b := do("pause", "Pause", "job", d.Name)
	if d.Paused != nil && !d.Paused.All {
		b = do("resume", "Resume", "job", d.Name)
	}
	b += "\n" + do("run_now", "Run now", "job", d.Name)
	if r := d.Running; r != nil {
		b += "\n" + do("cancel", "Cancel the run", "job", r.Job, "token", decimal(r.Token))
	}
	return b + when(!d.Orders && !d.Read.IsZero(), ` <span class="sub">Its replicas take no orders to run or cancel.</span>`)
}

func drawSkip(d view.Skip) markup {
	by := none
	if d.By != "" {
		by = name(d.By)
	}
	return m(`<tr data-reason="%s">`, d.Reason) + th("Reason", escaped(words(d.Reason))) + td("Last tick", m(`%s <span class="sub">%s</span>`, ago(d.Tick), clock(d.Tick))) +
		num("Ticks", d.Count) + td("Skipped by", name(d.Replica)) + td("Because of", by) + num("Nodes", d.Sources) + "</tr>"
}
