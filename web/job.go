package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/admin"
)

// skipDoc is why ticks were not run.
type skipDoc struct {
	Job     string `json:"job"`
	Reason  string `json:"reason"`
	Tick    moment `json:"tick,omitzero"` // the last
	Count   int    `json:"count"`
	Replica string `json:"replica"`
	By      string `json:"by,omitempty"`
	At      moment `json:"at,omitzero"`
	Sources int    `json:"sources"`
}

func newSkipDoc(s *admin.Skip) skipDoc {
	return skipDoc{Job: s.Job, Reason: s.Reason, Tick: at(s.Tick), Count: s.Count, Replica: s.Replica, By: s.By, At: at(s.At), Sources: s.Sources}
}

// oneJobDoc is a job with all that is known of it.
type oneJobDoc struct {
	Job   *jobDoc   `json:"job"`
	Skips []skipDoc `json:"skips,omitzero"`  // absent if they were not read
	Error string    `json:"error,omitempty"` // why it is not as it is now

	Local string `json:"-"` // the next tick in the zone of the schedule
}

func (d *oneJobDoc) pageTitle() string { return shortened(visible(d.Job.Name), 60) }

const missing = "No replica is known to have a job of this name. A job is forgotten half an hour after the last replica that had it."

func (h *Handler) jobDoc(ctx context.Context, s *snapshot, r *http.Request) (any, int) {
	name := r.URL.Query().Get("name")
	if name == "" {
		return newErrorDoc(http.StatusNotFound, missing), http.StatusNotFound
	}
	is := h.details.get(ctx, name)
	if is.Gone {
		return newErrorDoc(http.StatusNotFound, missing), http.StatusNotFound
	}
	d := &oneJobDoc{}
	if is.Err != nil {
		d.Error = errorText(is.Err)
	}
	if is.jobRow == nil { // it is not known whether there is one
		is.jobRow = &jobRow{}
		is.Name, is.JobStatus.Err = name, is.Err
	}
	d.Job = h.newJobDoc(s, is.jobRow)
	if is.Skips != nil {
		d.Skips = []skipDoc{}
	}
	for i := range is.Skips {
		d.Skips = append(d.Skips, newSkipDoc(&is.Skips[i]))
	}
	if zone, err := time.LoadLocation(is.Zone); err == nil && len(is.Zone) > 0 && is.Zone != "UTC" && !d.Job.Next.IsZero() {
		d.Local = d.Job.Next.In(zone).Format("15:04:05")
	}
	return d, http.StatusOK
}

// draw draws the page of a job.
func (d *oneJobDoc) draw(p *page) markup {
	j := d.Job
	b := m(`<p class="up"><a href="jobs">Jobs</a></p>
<h1>%s</h1>
%s<dl id="facts" %s>
%s</dl>
`, name(j.Name), when(d.Error != "", `<p class="note bad" role="note">Not as it is now: %s</p>`+"\n", d.Error), j.attributes(), d.facts())
	if p.Acts {
		b += m(`<p class="acts">%s</p>`+"\n", j.acts())
	}
	if l := timeline(d); l != nil {
		b += section("timeline", "Timeline", m(`<div id="timeline" role="img" aria-label="Runs on each replica over time; the tables below have them in words.">
%s<div class="lane axis"><span>%s</span><span>%s</span></div></div>`, each(l.Lanes, "", func(l lane) markup {
			return m(`<div class="lane" data-replica="%s">%s<svg viewBox="0 0 1000 20" preserveAspectRatio="none">%s</svg></div>`+"\n", l.Replica, name(l.Replica), l.Marks)
		}), clock(l.From), clock(l.To)))
	}
	runs := unread
	switch {
	case len(j.Runs) > 0:
		runs = table(` id="runs"`, "", each(j.Runs, "\n", pastDoc.row), "Began", "Tick", "Replica", "Took", "Ended as", "Attempt", "Token", "Trace", "Nodes")
	case !j.Read.IsZero():
		runs = `<p class="empty" id="empty-runs">No run has ended yet, or its replicas keep no history (<code>scheduler.WithoutHistory</code>).</p>`
	}
	skips := unread
	switch {
	case len(d.Skips) > 0:
		skips = table(` id="skips"`, "", each(d.Skips, "\n", skipDoc.row), "Reason", "Last tick", "Ticks", "Skipped by", "Because of", "Nodes")
	case d.Skips != nil:
		skips = `<p class="empty" id="empty-skips">None that an operator should know of.</p>`
	}
	return b + section("runs", "Runs", runs) + section("skips", "Ticks that were not run", skips)
}

// facts draws all that is known of a job, but its runs.
func (d *oneJobDoc) facts() markup {
	j := d.Job
	fact := func(label, is markup) markup { return m("<div><dt>%s</dt><dd>%s</dd></div>\n", label, is) }
	b := fact("State", j.states()+why(j.Error))
	if j.Paused != nil {
		b += fact("Pause", j.Paused.draw()+" "+sources(j.Paused.Nodes))
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
		next = m("%s, %s%s", in(j.Next), clock(j.Next), when(d.Local != "", ` <span class="sub">%s %s</span>`, d.Local, visible(j.Zone)))
	}
	by := markup("any replica")
	if j.Election != "" {
		by = "the leader of " + electionLink(j.Election)
	}
	b += fact("Schedule", j.schedule()) + fact("Next tick", next+when(j.Late, ` <span class="bad">late: no replica is known to run it</span>`)) + fact("Run by", by)
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

// acts leads to the orders for a job.
func (d *jobDoc) acts() markup {
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

func (r pastDoc) row() markup {
	tick := none
	switch {
	case !r.Tick.IsZero():
		tick = clock(r.Tick) + sub(r.NotOnTime())
	case r.Order != "":
		tick = m(`<a href="orders#order-%s">ordered</a>`, r.Order)
	}
	trace := none
	switch {
	case r.TraceURL != "":
		trace = m(`<a href="%s" rel="noopener noreferrer">trace</a>`, r.TraceURL)
	case r.TraceID != "":
		trace = m(`<code class="sub">%s</code>`, visible(r.TraceID))
	}
	return m(`<tr data-token="%d" data-outcome="%s">`, r.Token, r.Outcome) + th("Began", m(`%s <span class="sub">%s</span>`, ago(r.Began), clock(r.Began))) + td("Tick", tick) +
		td("Replica", name(r.Replica)) + num("Took", precise(r.Took)) + td("Ended as", r.tag()) + num("Attempt", r.Attempt) +
		num("Token", m("<code>%d</code>", r.Token)) + td("Trace", trace) + num("Nodes", r.Sources) + "</tr>"
}

func (d skipDoc) row() markup {
	by := none
	if d.By != "" {
		by = name(d.By)
	}
	return m(`<tr data-reason="%s">`, d.Reason) + th("Reason", escaped(words(d.Reason))) + td("Last tick", m(`%s <span class="sub">%s</span>`, ago(d.Tick), clock(d.Tick))) +
		num("Ticks", d.Count) + td("Skipped by", name(d.Replica)) + td("Because of", by) + num("Nodes", d.Sources) + "</tr>"
}
