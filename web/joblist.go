package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-dev/tenure/internal/view"
)

// traceLink is the link to a trace; empty for an id that is none.
func traceLink(template, id string) string {
	if template == "" || len(id) == 0 || len(id) > 64 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return strings.Replace(template, tracePlace, id, 1)
}

// counts counts the jobs.
func (s *snapshot) counts() (c view.Counts) {
	for _, row := range s.jobs {
		c.Add(row.Job)
	}
	return c
}

// pageSize is how many jobs, or runs, a page shows.
const pageSize = 50

// jobsDoc are the jobs of a page.
type jobsDoc struct {
	Total    int         `json:"total"`
	TooMany  bool        `json:"too_many"` // there are more
	Matching int         `json:"matching"`
	Page     int         `json:"page"`
	Pages    int         `json:"pages"`
	Jobs     []*view.Job `json:"jobs"`

	Counts view.Counts `json:"-"`
	Q      string      `json:"-"`
	State  string      `json:"-"`
}

func (h *Handler) jobsDoc(_ context.Context, s *snapshot, r *http.Request) (any, int) {
	query := r.URL.Query()
	d := &jobsDoc{Total: len(s.jobs), TooMany: s.tooMany, Jobs: []*view.Job{}, Counts: s.counts(), Q: query.Get("q")}
	if d.State = query.Get("state"); d.State != "" && !slices.Contains(view.States, d.State) {
		return newErrorDoc(http.StatusBadRequest, "There is no such state of jobs: state is empty, "+strings.Join(view.States, ", ")+"."), http.StatusBadRequest
	}
	words := strings.ToLower(d.Q)
	var rows []*jobRow
	for _, row := range s.jobs {
		if (d.State == "" || row.Is(d.State)) && (words == "" || strings.Contains(strings.ToLower(row.Name), words)) {
			rows = append(rows, row)
		}
	}
	d.Matching = len(rows)
	rows, d.Page, d.Pages = paged(rows, r)
	for _, row := range rows {
		d.Jobs = append(d.Jobs, row.Job)
	}
	return d, http.StatusOK
}

// paged are those of the page that a request asks for.
func paged[T any](all []T, r *http.Request) (some []T, page, pages int) {
	pages = max((len(all)+pageSize-1)/pageSize, 1)
	page, _ = strconv.Atoi(r.URL.Query().Get("page"))
	page = min(max(page, 1), pages)
	first := (page - 1) * pageSize
	return append([]T{}, all[first:min(first+pageSize, len(all))]...), page, pages
}

// jobAttributes are those of the element that shows a job.
func jobAttributes(d *view.Job) markup {
	b := m(`data-job="%s" data-state="%s"`, d.Name, d.State)
	if d.Running != nil {
		b += m(` data-token="%d"`, d.Running.Token)
	}
	return b
}

// ended draws how a run did.
func ended(r *view.Past) markup {
	return tag(outcomeClass(r.Outcome), words(r.Outcome)) + why(visible(r.Error)) + sub(visible(r.Report))
}

// drawPause draws a pause.
func drawPause(d *view.Pause) markup {
	until := markup("until it is resumed")
	if !d.Until.IsZero() {
		until = "until " + clock(d.Until)
	}
	return m("paused by %s%s%s, since %s, %s", name(d.By), when(d.Reason != "", ": <q>%s</q>", visible(d.Reason)), when(d.All, ", with all jobs"), clock(d.Since), until)
}

// states draws all that is right of a job, the worst first.
func states(d *view.Job) markup {
	in := slices.DeleteFunc(slices.Clone(view.States), func(state string) bool { return !d.Is(state) })
	b := each(in, " ", func(state string) markup { return tag(state, state) })
	if r := d.Running; r != nil {
		since := markup("")
		if at := r.Since(); !at.IsZero() {
			since = ", " + ago(at)
		}
		b += m(` <span class="sub">%s%s</span>`, name(r.Replica), since)
	}
	return b
}

// schedule draws that of a job in words and as it is written.
func schedule(d *view.Job) markup {
	zone, phrase := sub(visible(d.Zone)), schedulePhrase(d.Schedule)
	if phrase == "" {
		return m("<code>%s</code>%s", visible(d.Schedule), zone)
	}
	return m(`%s%s<br><code class="sub">%s</code>`, phrase, zone, visible(d.Schedule))
}

func (d *jobsDoc) draw(p *page) markup {
	b := m(`<h1>Jobs</h1>
<form id="filter" role="search" action="jobs" data-keep>
<label for="q">Name has</label> <input id="q" name="q" type="search" value="%s" autocomplete="off" spellcheck="false">
<label for="in">State</label> <select id="in" name="state"><option value="">any (%d)</option>
%s</select>
<button type="submit">Show</button>
</form>
`, d.Q, d.Counts.Total, each(view.States, "", func(state string) markup {
		return m("<option%s>%s</option>", when(state == d.State, " selected"), state)
	}))
	b += `<p class="count">`
	if d.Q != "" || d.State != "" {
		b += m("%s of %d", counted(d.Matching, "job"), d.Total)
	} else {
		b += escaped(counted(d.Total, "job"))
	}
	c := d.Counts
	b += when(d.TooMany, ", and more than are shown") + when(d.Total > 0, ": %d running, %d late, %d failing, %d paused", c.Running, c.Late, c.Failing, c.Paused) +
		when(d.Total > 0 && c.Unknown > 0, ", %d not known", c.Unknown) + ".</p>\n"
	switch {
	case len(d.Jobs) > 0:
		b += table(` id="jobs"`, "", each(d.Jobs, "\n", jobRowOf), "Job", "State", "Schedule", "Next tick", "Last run", "Last runs", "Said, nodes") + pager("jobs", d.Page, d.Pages, func(page string) string { return query("jobs", "q", d.Q, "state", d.State, "page", page) })
	case d.Total > 0:
		b += m(`<p class="empty" id="empty-jobs">No job is like that. <a href="jobs">Show all %d</a>.</p>`, d.Total)
	case p.Status.Unread("jobs"):
		b += unread
	default:
		b += nojobs
	}
	return b
}

func jobRowOf(d *view.Job) markup {
	next, last := none, markup(`<span class="none">none yet</span>`)
	if !d.Next.IsZero() {
		next = m(`%s <span class="sub">%s</span>`, in(d.Next), clock(d.Next))
	}
	if r := d.Last; r != nil {
		last = m(`%s, %s %s <span class="sub">%s</span>`, ago(r.Began), r.Took, ended(r), name(r.Replica))
	}
	return m("<tr %s>", jobAttributes(d)) + th("Job", jobLink(d.Name)) + td("State", states(d)) + td("Schedule", schedule(d)) + td("Next tick", next) +
		td("Last run", last) + td("Last runs", strip(d.Runs)) + td("Said", ago(d.Said)+" "+sources(d.Sources)) + "</tr>"
}

// pager leads to the pages beside this one.
func pager(of markup, page, pages int, address func(page string) string) markup {
	if pages < 2 {
		return ""
	}
	to := func(page int, rel, text markup) markup {
		return when(page >= 1 && page <= pages, `<a rel="%s" href="%s">%s</a>`, rel, address(strconv.Itoa(page)), text)
	}
	return m(`<nav class="pager" aria-label="Pages of %s">%s <span>Page %d of %d</span> %s</nav>`, of, to(page-1, "prev", "Before"), page, pages, to(page+1, "next", "After"))
}
