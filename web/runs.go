package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// runsDoc is a list of past runs: those of a job, or the failed runs of all jobs.
type runsDoc struct {
	Name     string      `json:"name"` // null for all jobs
	Matching int         `json:"matching"`
	Page     int         `json:"page"`
	Pages    int         `json:"pages"`
	Runs     []view.Past `json:"runs"`
	Error    string      `json:"error"` // why the list is not up to date

	counts  tally  // by outcome, within since
	outcome string // the wanted outcome; empty for all
	since   string // the age of the oldest run; empty for all that nodes keep
}

// sinces are the choices of since.
var sinces = []struct{ since, words string }{{"", "all that nodes keep"}, {"1h", "an hour"}, {"24h", "a day"}, {"168h", "a week"}}

// outcomes are the choices of outcome.
var outcomes = []admin.Outcome{
	admin.OutcomeOK, admin.OutcomeFailed, admin.OutcomePanicked, admin.OutcomeLost, admin.OutcomeCancelled, admin.OutcomeStopped, admin.OutcomeNotBegun, admin.OutcomeCutShort,
}

// mostFailures bounds the list of past runs.
const mostFailures = 1000

func (h *Handler) runsDoc(ctx context.Context, _ *snapshot, r *http.Request) any {
	query := r.URL.Query()
	d := &runsDoc{Name: query.Get("name"), outcome: query.Get("outcome"), since: query.Get("since"), counts: make(tally)}
	var begin time.Time
	if d.since != "" {
		within, err := time.ParseDuration(d.since)
		if err != nil || within <= 0 {
			return refused(http.StatusBadRequest, "since is no duration such as 24h.")
		}
		begin = time.Now().Add(-within)
	}
	is := h.feed.detail(ctx, detailOf{d.Name, true})
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
	if d.outcome != "" && d.counts[d.outcome] == 0 && !slices.Contains(outcomes, admin.Outcome(d.outcome)) {
		return refused(http.StatusBadRequest, "There is no such outcome: outcome is empty, or one of "+strings.Trim(fmt.Sprint(outcomes), "[]")+".")
	}
	d.Matching = len(runs)
	d.Runs, d.Page, d.Pages = paged(runs, r)
	return d
}

func (d *runsDoc) ofJob() (job, title string) { return d.Name, "Runs of " }

// to returns the address of this list with another filter or page.
func (d *runsDoc) to(outcome, since, page string) string {
	return query("runs", "name", d.Name, "outcome", outcome, "since", since, "page", page)
}

func (d *runsDoc) draw(p *page) markup {
	b := markup(`<div class="title"><h1>Failed runs of all jobs</h1></div>`)
	if d.Name != "" {
		b = m(`<p class="crumb"><a href="jobs">Jobs</a> / %s</p>
<div class="title"><h1>Runs of %s</h1></div>`, jobLink(d.Name), name(d.Name))
	}
	b += notAsNow(d.Error) + m(`<div class="title">%s<nav class="chips" aria-label="Time">%s</nav></div>
`, outcomeChips(d.Name, d.counts, d.outcome, d.since), each(sinces, "", func(s struct{ since, words string }) markup {
		return chip(d.since == s.since, d.to(d.outcome, s.since, ""), escaped(s.words), -1)
	}))
	if len(d.Runs) == 0 {
		return b + choice(d.Error != "", unread, `<p class="card empty" id="empty-runs">No such run has ended, as far as nodes have been told.</p>`)
	}
	pages := pager("runs", d.Page, d.Pages, func(page string) string { return d.to(d.outcome, d.since, page) })
	return b + "<section>" + runsTable(d.Runs, d.Name == "") + pages + "</section>"
}

// outcomeChips links to the runs of each outcome that occurs.
func outcomeChips(job string, counts tally, is, since string) markup {
	d := runsDoc{Name: job}
	return m(`<nav class="chips" aria-label="Outcomes">%s%s</nav>`, chip(is == "", d.to("", since, ""), "all", counts.total()), each(slices.Sorted(maps.Keys(counts)), "", func(outcome string) markup {
		return chip(is == outcome, d.to(outcome, since, ""), st(outcomeLook(outcome), escaped(words(outcome))), counts[outcome])
	}))
}

// notAsNow draws why a page is not up to date.
func notAsNow(text string) markup {
	return when(text != "", `<p class="card note bad" role="note">Not as it is now: %s</p>`+"\n", visible(text))
}

// runsTable draws past runs, with the names of their jobs if jobs is true.
func runsTable(runs []view.Past, jobs bool) markup {
	heads := []string{"Outcome", "Tick", ">Began", "Replica", ">Late by", ">Took", "Result or error", "Trace"}
	if jobs {
		heads = slices.Insert(heads, 1, "Job")
	}
	return table(` id="runs"`, "", each(runs, "\n", func(r view.Past) markup {
		said := sub(attempts(&r)) + when(r.Error != "", " %s", visible(r.Error)) + sub(visible(r.Report))
		return m(`<tr data-token="%d" data-outcome="%s">`, r.Token, r.Outcome) + td("Outcome", st(outcomeLook(r.Outcome), escaped(words(r.Outcome)))) + when(jobs, "%s", td("Job", jobLink(r.Job))) +
			th("Tick", m(`<a href="%s">%s</a>%s`, runAddress(&r), clock(tickTime(&r)), tickOf(&r))) + num("Began", ago(r.Began)) + td("Replica", name(r.Replica)) +
			num("Late by", took(latenessOf(&r))) + num("Took", took(r.Took)) + cut("Result", said) + td("Trace", traceOf(&r)) + "</tr>"
	}), heads...)
}

// tickTime returns the tick of a run, or else when it began.
func tickTime(r *view.Past) view.Time { return choice(r.Tick.IsZero(), r.Began, r.Tick) }

// runAddress returns the address of the page of a run.
func runAddress(r *view.Past) string { return query("run", "name", r.Job, "token", decimal(r.Token)) }

func attempts(r *view.Past) string { return choice(r.Attempt < 2, "", "attempt "+decimal(r.Attempt)) }

// tickOf draws why a run was begun, unless it was begun by its tick on time.
func tickOf(r *view.Past) markup {
	if r.Tick.IsZero() && r.Order != "" {
		return m(` <a href="orders#order-%s">ordered</a>`, r.Order)
	}
	if r.Why == "on_time" {
		return ""
	}
	return sub(words(r.Why))
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

// oneRunDoc is a past run.
type oneRunDoc struct {
	Name  string     `json:"name"`
	Run   *view.Past `json:"run"`
	Error string     `json:"error"` // why it is not up to date

	history []view.Past // all past runs that were read
	at      int         // index of the run in history
}

const noRun = "Nodes do not know this run: it goes on, or they do not have it any more. They keep the last 200 of a job, and the last 50 that failed."

func (h *Handler) runDoc(ctx context.Context, _ *snapshot, r *http.Request) any {
	d := &oneRunDoc{Name: r.URL.Query().Get("name")}
	token, _ := strconv.ParseUint(r.URL.Query().Get("token"), 10, 64)
	if d.Name == "" || token == 0 {
		return refused(http.StatusNotFound, noRun)
	}
	is := h.feed.detail(ctx, detailOf{d.Name, true})
	d.history, d.Error = is.History, view.Error(is.Err)
	d.at = slices.IndexFunc(is.History, func(run view.Past) bool { return run.Token == view.Number(token) })
	if d.at >= 0 {
		d.Run = &is.History[d.at]
	} else if is.Err == nil {
		return refused(http.StatusNotFound, noRun)
	}
	return d
}

func (d *oneRunDoc) ofJob() (job, title string) { return d.Name, "Run of " }

func (d *oneRunDoc) draw(p *page) markup {
	b := m(`<p class="crumb"><a href="jobs">Jobs</a> / %s / <a href="%s">runs</a></p>
%s`, jobLink(d.Name), query("runs", "name", d.Name), notAsNow(d.Error))
	r := d.Run
	if r == nil {
		return b + m("<h1>Run of %s</h1>\n", name(d.Name))
	}
	look := outcomeLook(r.Outcome)
	why := when(r.Took > 0, "It took %s on %s%s.", took(r.Took), name(r.Replica), when(r.Attempt > 1, ", in %d attempts", r.Attempt))
	if look == "cutshort" {
		why = "Its replica was killed, or lost the lease. What it had done is not known."
	}
	same, history := 0, d.history[max(d.at-15, 0):min(d.at+16, len(d.history))]
	for i := range history {
		if before := &history[i]; before.Token < r.Token && before.Error == r.Error && r.Error != "" {
			same++
		}
	}
	why += when(same > 0, " The same error as in %s before.", view.Counted(same, "run"))
	beside := func(at int, text markup) markup {
		if at < 0 || at >= len(d.history) {
			return ""
		}
		return m(`<a class="do" href="%s">%s</a>`, runAddress(&d.history[at]), text)
	}
	acts := beside(d.at+1, "The run before") + beside(d.at-1, "The run after") + choice(p.Acts, do("run_now", "Run now", "job", d.Name), "")
	state := st(look, escaped(words(r.Outcome)))
	b += verdict(look, m("Run of %s, %s", name(d.Name), clock(tickTime(r))), m(`%s<span class="acts">%s</span>`, state, acts), why) +
		`<div class="side"><div class="stack">` + drawAttempts(r) +
		choice(r.Error != "", headed("error", "Error", "", m(`<pre class="err">%s</pre>`, visible(r.Error))), "") +
		choice(r.Report != "", headed("report", "Report", "", m(`<pre>%s</pre>`, visible(r.Report))), "")
	if len(history) > 1 {
		newest, oldest := history[0].Ended().Time, history[len(history)-1].Ended().Time
		if newest.Before(oldest) { // history is in the order of the reports
			newest, oldest = oldest, newest
		}
		whole := max(newest.Sub(oldest), time.Second)
		w := window{oldest.Add(-whole / 20), newest.Add(whole / 20), newest.Add(whole / 20), true}
		l := lane{head: jobLink(d.Name), label: "the runs around it", noteLook: "soft", note: escaped(view.Counted(len(history), "run"))}
		x := w.x(r.Ended().Time)
		l.marks = path("here", box(x-6, x+6, 0, 18))
		w.runs(&l, history)
		b += section("around", "Before and after", w.draw("", m("<ul>%s</ul>", l.draw())))
	}
	late := ""
	if by := latenessOf(r); by > 0 {
		late = by.String() + " after its tick"
	}
	return b + "</div>" + factsOf("Facts", m(`data-token="%d" data-outcome="%s"`, r.Token, r.Outcome),
		fact("Tick", clock(r.Tick)+tickOf(r))+fact("Began", clock(r.Began)+sub(late))+fact("Ended", clock(r.Ended()))+
			fact("Took", took(r.Took))+fact("Replica", name(r.Replica))+fact("Attempt", escaped(decimal(r.Attempt)))+
			fact("Token", m("<code>%d</code>", r.Token))+fact("Trace", traceOf(r))+fact("Told by", escaped(view.Counted(r.Sources, "node")))) + "</div>\n"
}

// drawAttempts draws the attempts of a run on one time axis, and their errors if they differ from
// the run's.
func drawAttempts(r *view.Past) markup {
	if len(r.Attempts) == 0 {
		return ""
	}
	began, ended := r.Attempts[0].Began.Time, r.Ended().Time
	whole := max(ended.Sub(began)/20*21, time.Second)
	w := window{began, began.Add(whole), began.Add(whole), true}
	var lanes, errors markup
	for i, a := range r.Attempts {
		look, n := choice(i == len(r.Attempts)-1, outcomeLook(r.Outcome), "failing"), max(int(r.Attempt), len(r.Attempts))-len(r.Attempts)+1+i
		said := took(a.Took) + when(look == "failing", ", failed")
		from := w.x(a.Began.Time)
		marks := path(look, box(from, max(w.x(a.Began.Add(time.Duration(a.Took))), from+2), 3, 12))
		lanes += lane{head: m("attempt %d", n), of: fmt.Sprint("attempt ", n), label: string(said), marks: marks, note: said, noteLook: look}.draw()
		errors += when(a.Error != "" && a.Error != r.Error, "<p>Attempt %d: <q>%s</q></p>\n", n, visible(a.Error))
	}
	return section("attempts", "Attempts", w.draw("", m("<ul>%s</ul>", lanes))+errors)
}
