package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// runsDoc are runs that have ended: of a job, or those that failed of all.
type runsDoc struct {
	Name     string      `json:"name"` // null for all jobs
	Matching int         `json:"matching"`
	Page     int         `json:"page"`
	Pages    int         `json:"pages"`
	Runs     []view.Past `json:"runs"`
	Error    string      `json:"error"` // why they are not as they are now

	outcomes []string       // that there are within the time
	counts   map[string]int // of each
	outcome  string         // that is wanted; empty for all
	since    string         // for how long; empty for all that nodes keep
}

// sinces are how far back runs can be looked for.
var sinces = []struct{ since, words string }{{"", "all that nodes keep"}, {"1h", "an hour"}, {"24h", "a day"}, {"168h", "a week"}}

// mostFailures are shown of all jobs.
const mostFailures = 1000

func (h *Handler) runsDoc(ctx context.Context, _ *snapshot, r *http.Request) (any, int) {
	query := r.URL.Query()
	d := &runsDoc{Name: query.Get("name"), outcome: query.Get("outcome"), since: query.Get("since"), counts: make(map[string]int)}
	var begin time.Time
	if d.since != "" {
		within, err := time.ParseDuration(d.since)
		if err != nil || within <= 0 {
			return newErrorDoc(http.StatusBadRequest, "since is no duration such as 24h."), http.StatusBadRequest
		}
		begin = time.Now().Add(-within)
	}
	is := h.details.get(ctx, detailOf{d.Name, true})
	d.Error = view.Error(is.Err)
	var runs []view.Past
	for _, run := range is.History {
		if run.Ended().Before(begin) {
			continue
		}
		if d.counts[run.Outcome]++; d.outcome == "" || d.outcome == run.Outcome {
			runs = append(runs, run)
		}
	}
	d.outcomes, d.Matching = sortedKeys(d.counts), len(runs)
	d.Runs, d.Page, d.Pages = paged(runs, r)
	return d, http.StatusOK
}

func (d *runsDoc) ofJob() (job, title string) { return d.Name, "Runs of " }

// to is the address of these runs with another filter or page.
func (d *runsDoc) to(outcome, since, page string) string {
	return query("runs", "name", d.Name, "outcome", outcome, "since", since, "page", page)
}

func (d *runsDoc) draw(p *page) markup {
	b := markup("<h1>Failed runs of all jobs</h1>\n")
	if d.Name != "" {
		b = m(`<p class="up"><a href="jobs">Jobs</a> / %s</p>
<h1>Runs of %s</h1>
`, jobLink(d.Name), name(d.Name))
	}
	b += notAsNow(d.Error)
	chip := func(is bool, to, words string, n int) markup {
		return m(`<a href="%s"%s>%s</a>`, to, when(is, ` aria-current="true"`), words) + when(n > 0, ` <span class="sub">%d</span>`, n)
	}
	b += m(`<nav class="chips" aria-label="Outcomes">%s %s</nav>`+"\n", chip(d.outcome == "", d.to("", d.since, ""), "all outcomes", 0), each(d.outcomes, " ", func(outcome string) markup {
		return chip(d.outcome == outcome, d.to(outcome, d.since, ""), words(outcome), d.counts[outcome])
	}))
	b += m(`<nav class="chips" aria-label="Time">%s</nav>`+"\n", each(sinces, " ", func(s struct{ since, words string }) markup {
		return chip(d.since == s.since, d.to(d.outcome, s.since, ""), s.words, 0)
	}))
	switch {
	case len(d.Runs) > 0:
	case d.Error != "":
		return b + unread
	default:
		return b + `<p class="empty" id="empty-runs">No such run has ended, as far as nodes have been told.</p>`
	}
	return b + runsTable(d.Runs, d.Name == "") + pager("runs", d.Page, d.Pages, func(page string) string { return d.to(d.outcome, d.since, page) })
}

// notAsNow says why a page is old.
func notAsNow(text string) markup {
	return when(text != "", `<p class="note bad" role="note">Not as it is now: %s</p>`+"\n", visible(text))
}

// runsTable draws runs that have ended, with the names of their jobs or without.
func runsTable(runs []view.Past, jobs bool) markup {
	heads := []string{"Began", "Tick", "Replica", "Took", "Ended as", "Trace"}
	if jobs {
		heads = append([]string{"Job"}, heads...)
	}
	return table(` id="runs"`, "", each(runs, "\n", func(r view.Past) markup {
		return m(`<tr data-token="%d" data-outcome="%s">`, r.Token, r.Outcome) + when(jobs, "%s", td("Job", jobLink(r.Job))) +
			th("Began", m(`<a href="%s">%s</a> <span class="sub">%s</span>`, runAddress(&r), ago(r.Began), clock(r.Began))) + td("Tick", tickOf(&r)) + td("Replica", name(r.Replica)) +
			num("Took", took(r.Took)) + td("Ended as", ended(&r)+sub(attempts(&r))) + td("Trace", traceOf(&r)) + "</tr>"
	}), heads...)
}

// runAddress is that of the page of a run.
func runAddress(r *view.Past) string { return query("run", "name", r.Job, "token", decimal(r.Token)) }

func attempts(r *view.Past) string {
	if r.Attempt < 2 {
		return ""
	}
	return "attempt " + decimal(r.Attempt)
}

// tickOf is the tick of a run, or the order that asked for it.
func tickOf(r *view.Past) markup {
	switch {
	case !r.Tick.IsZero():
		return clock(r.Tick) + sub(notOnTime(r.Why))
	case r.Order != "":
		return m(`<a href="orders#order-%s">ordered</a>`, r.Order)
	}
	return none
}

func traceOf(r *view.Past) markup {
	switch {
	case r.TraceURL != "":
		return m(`<a href="%s" rel="noopener noreferrer">trace</a>`, r.TraceURL)
	case r.TraceID != "":
		return m(`<code class="sub">%s</code>`, visible(r.TraceID))
	}
	return none
}

// notOnTime is why a run was begun at another time than its tick's; empty if it was not.
func notOnTime(why string) string {
	if why == "on_time" {
		return ""
	}
	return words(why)
}

// oneRunDoc is a run that has ended.
type oneRunDoc struct {
	Name  string     `json:"name"`
	Run   *view.Past `json:"run"`
	Error string     `json:"error"` // why it is not as it is now

	before, after *view.Past // nil for none
}

const noRun = "Nodes do not know this run: it goes on, or they do not have it any more. They keep the last 200 of a job, and the last 50 that failed."

func (h *Handler) runDoc(ctx context.Context, _ *snapshot, r *http.Request) (any, int) {
	d := &oneRunDoc{Name: r.URL.Query().Get("name")}
	token, _ := strconv.ParseUint(r.URL.Query().Get("token"), 10, 64)
	if d.Name == "" || token == 0 {
		return newErrorDoc(http.StatusNotFound, noRun), http.StatusNotFound
	}
	is := h.details.get(ctx, detailOf{d.Name, true})
	at := slices.IndexFunc(is.History, func(run view.Past) bool { return run.Token == view.Number(token) })
	if d.Error = view.Error(is.Err); at < 0 && is.Err == nil {
		return newErrorDoc(http.StatusNotFound, noRun), http.StatusNotFound
	}
	if at >= 0 {
		d.Run = &is.History[at]
		if at > 0 {
			d.after = &is.History[at-1]
		}
		if at+1 < len(is.History) {
			d.before = &is.History[at+1]
		}
	}
	return d, http.StatusOK
}

func (d *oneRunDoc) ofJob() (job, title string) { return d.Name, "Run of " }

func (d *oneRunDoc) draw(p *page) markup {
	b := m(`<p class="up"><a href="jobs">Jobs</a> / %s / <a href="%s">runs</a></p>
<h1>Run of %s</h1>
`, jobLink(d.Name), query("runs", "name", d.Name), name(d.Name)) + notAsNow(d.Error)
	r := d.Run
	if r == nil {
		return b
	}
	late := markup("")
	if !r.Tick.IsZero() && r.Began.After(r.Tick.Time) {
		late = sub(view.Span(r.Began.Sub(r.Tick.Time)).String() + " after its tick")
	}
	killed := ""
	if r.Outcome == string(admin.OutcomeCutShort) {
		killed = "Its replica was killed, or lost the lease. What it had done is not known."
	}
	b += m(`<dl id="facts" data-token="%d" data-outcome="%s">`+"\n", r.Token, r.Outcome) + fact("Ended as", ended(r)+sub(killed)) + fact("Tick", tickOf(r)) + fact("Began", clock(r.Began)+late) + fact("Took", took(r.Took)) + fact("Replica", name(r.Replica)) + fact("Attempt", text(r.Attempt)) +
		fact("Token", m("<code>%d</code>", r.Token)) + fact("Trace", traceOf(r)) + fact("Told by", escaped(counted(r.Sources, "node"))) + "</dl>\n"
	beside := func(r *view.Past, text markup) markup {
		if r == nil {
			return ""
		}
		return m(`<a href="%s">%s</a> `, runAddress(r), text)
	}
	return b + m(`<p class="acts">%s%s%s</p>`+"\n", beside(d.before, "The run before"), beside(d.after, "The run after"), when(p.Acts, "%s", do("run_now", "Run now", "job", d.Name)))
}
