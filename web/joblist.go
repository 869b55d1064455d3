package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-dev/tenure/internal/view"
)

// traceLink returns the URL of a trace; empty for an invalid ID.
func traceLink(template, id string) string {
	if template == "" || len(id) == 0 || len(id) > 64 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return strings.Replace(template, tracePlace, id, 1)
}

// counts returns the number of jobs in each state.
func (s *snapshot) counts() (c view.Counts) {
	for _, row := range s.jobs {
		c.Add(row)
	}
	return c
}

// pageSize is how many jobs or runs a page shows.
const pageSize = 50

// jobsDoc is a page of jobs.
type jobsDoc struct {
	Total    int         `json:"total"`
	TooMany  bool        `json:"too_many"` // there are more jobs than are read
	Matching int         `json:"matching"`
	Page     int         `json:"page"`
	Pages    int         `json:"pages"`
	Jobs     []*view.Job `json:"jobs"`

	s        *snapshot
	q, state string
}

func (h *Handler) jobsDoc(_ context.Context, s *snapshot, r *http.Request) any {
	query := r.URL.Query()
	d := &jobsDoc{Total: len(s.jobs), TooMany: s.tooMany, q: query.Get("q"), state: query.Get("state"), s: s}
	if d.state != "" && !slices.Contains(view.States, d.state) {
		return refused(http.StatusBadRequest, "There is no such state of jobs: state is empty, "+strings.Join(view.States, ", ")+".")
	}
	words := strings.ToLower(d.q)
	var rows []*view.Job
	for _, row := range s.jobs {
		if (d.state == "" || row.Is(d.state)) && (words == "" || strings.Contains(strings.ToLower(row.Name), words)) {
			rows = append(rows, row)
		}
	}
	if !isAPI(r) {
		worstFirst(rows)
	}
	d.Matching = len(rows)
	d.Jobs, d.Page, d.Pages = paged(rows, r)
	return d
}

// paged returns the items of the page that a request asks for.
func paged[T any](all []T, r *http.Request) (some []T, page, pages int) {
	pages = max((len(all)+pageSize-1)/pageSize, 1)
	page, _ = strconv.Atoi(r.URL.Query().Get("page"))
	page = min(max(page, 1), pages)
	first := (page - 1) * pageSize
	return append([]T{}, all[first:min(first+pageSize, len(all))]...), page, pages
}

// jobAttributes returns the attributes of the element that shows a job.
func jobAttributes(d *view.Job) markup {
	b := m(`data-job="%s" data-state="%s"`, d.Name, d.State)
	if d.Running != nil {
		b += m(` data-token="%d"`, d.Running.Token)
	}
	return b
}

// drawPause draws a pause.
func drawPause(d *view.Pause) markup {
	until := "until " + choice(d.Until.IsZero(), "it is resumed", clock(d.Until))
	return m("paused by %s%s%s, since %s, %s", name(d.By), when(d.Reason != "", ": <q>%s</q>", visible(d.Reason)), when(d.All, ", with all jobs"), clock(d.Since), until)
}

// jobLooks are the looks of the states of jobs.
var jobLooks = map[string]markup{view.Failing: "failing", view.Late: "late", view.Running: "running", view.Paused: "paused", view.Unknown: "none", view.OK: "ok"}

// chip links to the same page with another filter.
func chip(is bool, to string, words markup, n int) markup {
	return m(`<a href="%s"%s>%s%s</a>`, to, when(is, ` aria-current="true"`), words, when(n >= 0, ` <small class="soft">%d</small>`, n))
}

func (d *jobsDoc) draw(p *page) markup {
	c := d.s.counts()
	chips := chip(d.state == "", query("jobs", "q", d.q), "all", c.Total)
	for i, n := range []int{c.Failing, c.Late, c.Running, c.Paused, c.Unknown, c.OK} {
		if state := view.States[i]; n > 0 || d.state == state {
			chips += chip(d.state == state, query("jobs", "q", d.q, "state", state), st(jobLooks[state], escaped(state)), n)
		}
	}
	b := m(`<div class="title"><h1>Jobs</h1>
<form id="filter" role="search" action="jobs" data-keep>
<label for="q" class="unseen">Name has</label><input id="q" name="q" type="search" value="%s" placeholder="Name has…" autocomplete="off" spellcheck="false">%s
<button type="submit">Show</button>
</form>
<nav class="chips" aria-label="States">%s</nav>
<span class="count">%s%s%s</span></div>
`, d.q, when(d.state != "", `<input type="hidden" name="state" value="%s">`, d.state), chips,
		view.Counted(d.Matching, "job"), when(d.q != "" || d.state != "", " of %d", d.Total), when(d.TooMany, ", and more than are shown"))
	heads := []string{"State", "Job", "Why, or schedule", "Last runs", ">Took", ">Late by", ">Last run", ">Next tick"}
	if p.Acts {
		heads = append(heads, "Do")
	}
	waiting := d.s.waiting()
	rows := each(d.Jobs, "\n", func(r *view.Job) markup { return d.row(p, waiting(r)) })
	pages := pager("jobs", d.Page, d.Pages, func(page string) string { return query("jobs", "q", d.q, "state", d.state, "page", page) })
	if rows == "" && d.Total > 0 {
		return b + m(`<p class="card empty" id="empty-jobs">No job is like that. <a href="jobs">Show all %d</a>.</p>`, d.Total)
	}
	return b + p.or(when(rows != "", "<section>%s%s</section>", table(` id="jobs"`, "", rows, heads...), pages), partJobs, nojobs)
}

func (d *jobsDoc) row(p *page, r *view.Job) markup {
	look, word, rank := stateOf(r)
	_, why, _ := because(r, d.s)
	if rank == rankOK {
		why = m(`<span class="soft">%s</span>`, either(escaped(schedulePhrase(r.Schedule)), m("<code>%s</code>", visible(r.Schedule))))
	}
	last, length, late := none, none, none
	if l := r.Last; l != nil {
		last, length, late = m(`<a href="%s">%s</a>`, runAddress(l), ago(l.Ended())), took(l.Took), took(latenessOf(l))
	}
	acts := markup("")
	if p.Acts {
		acts = td("Do", do("run_now", m(`Run<span class="unseen"> %s now</span>`, visible(r.Name)), "job", r.Name)+pauseOrResume(r))
	}
	return m("<tr %s>", jobAttributes(r)) + td("State", st(look, word)) + th("Job", jobLink(r.Name)) + cut("Why", why) + td("Last runs", strip(r.Runs)) +
		num("Took", length) + num("Late by", late) + num("Last run", last) + num("Next tick", in(r.Next)) + acts + "</tr>"
}

// pager links to the pages before and after this one.
func pager(of markup, page, pages int, address func(page string) string) markup {
	if pages < 2 {
		return ""
	}
	to := func(page int, rel, text markup) markup {
		return when(page >= 1 && page <= pages, `<a rel="%s" href="%s">%s</a>`, rel, address(strconv.Itoa(page)), text)
	}
	return m(`<nav class="pager" aria-label="Pages of %s">%s <span>Page %d of %d</span> %s</nav>`, of, to(page-1, "prev", "Before"), page, pages, to(page+1, "next", "After"))
}
