package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
)

// runDoc is a run that goes on.
type runDoc struct {
	Job       string `json:"job"`
	Replica   string `json:"replica"`
	Tick      moment `json:"tick,omitzero"`
	Began     moment `json:"began,omitzero"`
	Token     uint64 `json:"token"`
	LeaseLeft span   `json:"lease_left_ms,omitzero"`
}

func newRunDoc(r admin.Run) runDoc {
	return runDoc{Job: r.Job, Replica: r.Replica, Tick: at(r.Tick), Began: at(r.Began), Token: r.FencingToken, LeaseLeft: span(r.LeaseLeft)}
}

// Since is when it began, as far as that is known.
func (r runDoc) Since() moment {
	if r.Began.IsZero() {
		return r.Tick
	}
	return r.Began
}

// pastDoc is a run that has ended.
type pastDoc struct {
	Job      string `json:"job"`
	Replica  string `json:"replica"`
	Tick     moment `json:"tick,omitzero"`
	Began    moment `json:"began,omitzero"`
	Took     span   `json:"took_ms"`
	Outcome  string `json:"outcome"`
	Error    string `json:"error,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Why      string `json:"why,omitempty"`
	Report   string `json:"report,omitempty"`
	Token    uint64 `json:"token"`
	TraceID  string `json:"trace_id,omitempty"`
	TraceURL string `json:"trace_url,omitempty"`
	Order    string `json:"order,omitempty"`
	Sources  int    `json:"sources"`
}

func newPastDoc(r *admin.PastRun, traceURL string) pastDoc {
	return pastDoc{
		Job: r.Job, Replica: r.Replica, Tick: at(r.Tick), Began: at(r.Began), Took: span(r.Took), Outcome: string(r.Outcome), Error: r.Error,
		Attempt: r.Attempt, Why: r.Why, Report: r.Report, Token: r.FencingToken, TraceID: r.TraceID, TraceURL: traceLink(traceURL, r.TraceID), Order: r.Order, Sources: r.Sources,
	}
}

// NotOnTime is why it was run at another time than its tick's; empty if it was not.
func (r pastDoc) NotOnTime() string {
	if r.Why == "on_time" {
		return ""
	}
	return r.Why
}

// Ended is when it did.
func (r pastDoc) Ended() moment {
	if r.Began.IsZero() {
		return r.Began
	}
	return at(r.Began.Add(time.Duration(r.Took)))
}

// traceLink is the link to a trace; empty for an id that is none.
func traceLink(template, id string) string {
	if template == "" || len(id) == 0 || len(id) > 64 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return strings.Replace(template, tracePlace, id, 1)
}

// pauseDoc is the pause of a job, or of all.
type pauseDoc struct {
	All    bool   `json:"all,omitempty"`
	Until  moment `json:"until,omitzero"` // absent: until it is resumed
	Since  moment `json:"since,omitzero"`
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Nodes  int    `json:"nodes"`
}

func newPauseDoc(p *admin.Paused) *pauseDoc {
	if p == nil {
		return nil
	}
	return &pauseDoc{All: p.Target == admin.AllJobs, Until: at(p.Until), Since: at(p.Since), By: p.By, Reason: p.Reason, Nodes: p.Nodes}
}

// jobDoc is a job.
type jobDoc struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // ok, running, late, paused, failing or unknown: the first that is right of unknown, running, late, paused, failing
	Schedule string    `json:"schedule"`
	Words    string    `json:"words,omitempty"` // the schedule
	Zone     string    `json:"zone,omitempty"`
	Program  string    `json:"program,omitempty"`
	Election string    `json:"election,omitempty"`
	Delivery string    `json:"delivery,omitempty"`
	CatchUp  string    `json:"catch_up,omitempty"`
	Overlap  string    `json:"overlap,omitempty"`
	Orders   bool      `json:"orders"`
	Next     moment    `json:"next,omitzero"`
	Late     bool      `json:"late"`
	Failing  bool      `json:"failing"` // the last run did not end well, or it is overdue
	Overdue  bool      `json:"overdue"` // no run has ended well for longer than the job allows
	Running  *runDoc   `json:"running,omitempty"`
	Last     *pastDoc  `json:"last,omitempty"`
	Paused   *pauseDoc `json:"paused,omitempty"`
	Error    string    `json:"error,omitempty"` // why it is not known whether it runs or is paused
	Said     moment    `json:"said,omitzero"`   // when a replica said what it is
	Read     moment    `json:"read,omitzero"`   // when the nodes were asked; absent for a job that was not read
	Sources  int       `json:"sources"`
	Runs     []pastDoc `json:"runs"` // the newest first
}

// MarshalJSON leaves out what is not known of a job that was not read.
func (d *jobDoc) MarshalJSON() ([]byte, error) {
	if d.Read.IsZero() {
		return json.Marshal(struct {
			Name  string `json:"name"`
			State string `json:"state"`
			Error string `json:"error,omitempty"`
		}{d.Name, d.State, d.Error})
	}
	type fields jobDoc
	return json.Marshal((*fields)(d))
}

func (h *Handler) newJobDoc(s *snapshot, r *jobRow) *jobDoc {
	d := &jobDoc{
		Name: r.Name, Schedule: r.Schedule, Words: schedulePhrase(r.Schedule), Zone: r.Zone, Program: r.Program, Election: r.Election,
		Delivery: r.Delivery, CatchUp: r.CatchUp, Overlap: r.Overlap, Orders: r.Orders, Next: at(r.Next), Late: r.Late, Failing: failing(r), Overdue: r.Overdue,
		State: stateOf(r), Paused: newPauseDoc(r.Paused), Said: at(r.At.Add(-r.Age)), Read: at(r.At), Sources: r.Sources, Runs: []pastDoc{},
	}
	if r.Err != nil {
		d.Error = errorText(r.Err)
	}
	if r.Running != nil {
		run := newRunDoc(*r.Running)
		if run.Began.IsZero() {
			run.Began = at(s.beganAt(*r.Running))
		}
		d.Running = &run
	}
	if r.Last != nil {
		last := newPastDoc(r.Last, h.traceURL)
		d.Last = &last
	}
	for i := range r.Runs {
		d.Runs = append(d.Runs, newPastDoc(&r.Runs[i], h.traceURL))
	}
	return d
}

// beganAt is when a run began, as the card of its replica says; zero if it does not.
func (s *snapshot) beganAt(run admin.Run) time.Time {
	for _, r := range s.replicas {
		for _, is := range r.Running {
			if is.Job == run.Job && is.FencingToken == run.FencingToken {
				return is.Began
			}
		}
	}
	return time.Time{}
}

// The states of jobs.
const (
	stateOK      = "ok"
	stateRunning = "running"
	stateLate    = "late"
	statePaused  = "paused"
	stateFailing = "failing"
	stateUnknown = "unknown"
)

var jobStates = []string{stateOK, stateRunning, stateLate, statePaused, stateFailing, stateUnknown}

// isIn reports whether a job is in a state; it may be in several.
func (r *jobRow) isIn(state string) bool {
	switch state {
	case stateOK:
		return stateOf(r) == stateOK
	case stateRunning:
		return r.Running != nil
	case stateLate:
		return r.Late
	case statePaused:
		return r.Paused != nil
	case stateFailing:
		return failing(r)
	case stateUnknown:
		return r.Err != nil
	}
	return false
}

// failing reports whether the last run of a job did not end as it should, or is too long ago.
func failing(r *jobRow) bool {
	return r.Overdue || r.Last != nil && r.Last.Outcome != admin.OutcomeOK && r.Last.Outcome != admin.OutcomeCancelled
}

func stateOf(r *jobRow) string {
	for _, state := range []string{stateUnknown, stateRunning, stateLate, statePaused, stateFailing} {
		if r.isIn(state) {
			return state
		}
	}
	return stateOK
}

// jobCounts are numbers of jobs.
type jobCounts struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Late    int `json:"late"`
	Paused  int `json:"paused"`
	Failing int `json:"failing"`
	Unknown int `json:"unknown"`
}

func countJobs(rows []*jobRow) (c jobCounts) {
	c.Total = len(rows)
	for _, r := range rows {
		for _, n := range []struct {
			state string
			count *int
		}{{stateRunning, &c.Running}, {stateLate, &c.Late}, {statePaused, &c.Paused}, {stateFailing, &c.Failing}, {stateUnknown, &c.Unknown}} {
			if r.isIn(n.state) {
				*n.count++
			}
		}
	}
	return c
}

// pageSize is how many jobs a page shows.
const pageSize = 50

// jobsDoc are the jobs of a page.
type jobsDoc struct {
	Total    int       `json:"total"`
	TooMany  bool      `json:"too_many,omitempty"` // there are more
	Matching int       `json:"matching"`
	Page     int       `json:"page"`
	Pages    int       `json:"pages"`
	Jobs     []*jobDoc `json:"jobs"`
	Untold   []string  `json:"untold"` // jobs that replicas have, and have not described yet; some of them

	Counts jobCounts `json:"-"`
	Q      string    `json:"-"`
	State  string    `json:"-"`
}

func (h *Handler) jobsDoc(_ context.Context, s *snapshot, r *http.Request) (any, int) {
	query := r.URL.Query()
	d := &jobsDoc{Total: len(s.jobs), TooMany: s.tooMany, Jobs: []*jobDoc{}, Untold: s.untold(), Counts: countJobs(s.jobs), Q: query.Get("q")}
	if d.State = query.Get("state"); d.State != "" && !slices.Contains(jobStates, d.State) {
		return newErrorDoc(http.StatusBadRequest, "There is no such state of jobs: state is empty, "+strings.Join(jobStates, ", ")+"."), http.StatusBadRequest
	}
	words := strings.ToLower(d.Q)
	var rows []*jobRow
	for _, row := range s.jobs {
		if (d.State == "" || row.isIn(d.State)) && (words == "" || strings.Contains(strings.ToLower(row.Name), words)) {
			rows = append(rows, row)
		}
	}
	d.Matching = len(rows)
	d.Pages = max((len(rows)+pageSize-1)/pageSize, 1)
	d.Page, _ = strconv.Atoi(query.Get("page"))
	d.Page = min(max(d.Page, 1), d.Pages)
	first := (d.Page - 1) * pageSize
	for _, row := range rows[first:min(first+pageSize, len(rows))] {
		d.Jobs = append(d.Jobs, h.newJobDoc(s, row))
	}
	return d, http.StatusOK
}

// untold are some of the jobs that replicas have and have not described yet.
func (s *snapshot) untold() []string {
	const most = 20
	names := make(map[string]bool)
	for _, r := range s.replicas {
		for _, name := range r.Jobs {
			if len(names) < most && !names[name] && s.find(name) == nil {
				names[name] = true
			}
		}
	}
	return append([]string{}, sortedKeys(names)...)
}

// attributes are those of the element that shows it.
func (d *jobDoc) attributes() markup {
	b := m(`data-job="%s" data-state="%s"`, d.Name, d.State)
	if d.Running != nil {
		b += m(` data-token="%d"`, d.Running.Token)
	}
	return b
}

// tag draws how a run ended.
func (r *pastDoc) tag() markup {
	return tag(outcomeClass(r.Outcome), words(r.Outcome)) + why(visible(r.Error))
}

// draw draws a pause.
func (d *pauseDoc) draw() markup {
	until := markup("until it is resumed")
	if !d.Until.IsZero() {
		until = "until " + clock(d.Until)
	}
	return m("paused by %s%s%s, since %s, %s", name(d.By), when(d.Reason != "", ": <q>%s</q>", visible(d.Reason)), when(d.All, ", with all jobs"), clock(d.Since), until)
}

// states draws all that is right of a job.
func (d *jobDoc) states() markup {
	b := tag(d.State, d.State)
	if d.Paused != nil && d.State != statePaused {
		b += " " + tag(statePaused, statePaused)
	}
	if d.Failing && d.State != stateFailing {
		b += " " + tag(stateFailing, stateFailing)
	}
	if r := d.Running; r != nil {
		since := markup("")
		if at := r.Since(); !at.IsZero() {
			since = ", " + ago(at)
		}
		b += m(` <span class="sub">%s%s</span>`, name(r.Replica), since)
	}
	return b
}

// schedule draws it in words and as it is written.
func (d *jobDoc) schedule() markup {
	zone := sub(visible(d.Zone))
	if d.Words == "" {
		return m("<code>%s</code>%s", visible(d.Schedule), zone)
	}
	return m(`%s%s<br><code class="sub">%s</code>`, d.Words, zone, visible(d.Schedule))
}

func (d *jobsDoc) draw(p *page) markup {
	b := m(`<h1>Jobs</h1>
<form id="filter" role="search" action="jobs" data-keep>
<label for="q">Name has</label> <input id="q" name="q" type="search" value="%s" autocomplete="off" spellcheck="false">
<label for="in">State</label> <select id="in" name="state"><option value="">any (%d)</option>
%s</select>
<button type="submit">Show</button>
</form>
`, d.Q, d.Counts.Total, each(jobStates, "", func(state string) markup {
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
	if len(d.Untold) > 0 {
		has := "have"
		if len(d.Untold) == 1 {
			has = "has"
		}
		b += m(`<p class="count" id="untold">%s that replicas name %s not been described yet: %s.</p>`+"\n", counted(len(d.Untold), "more job"), has, each(d.Untold, ", ", name))
	}
	switch {
	case len(d.Jobs) > 0:
		b += table(` id="jobs"`, "", each(d.Jobs, "\n", (*jobDoc).row), "Job", "State", "Schedule", "Next tick", "Last run", "Last runs", "Said, nodes") + d.pager()
	case d.Total > 0:
		b += m(`<p class="empty" id="empty-jobs">No job is like that. <a href="jobs">Show all %d</a>.</p>`, d.Total)
	case p.Status.Unread("jobs"):
		b += unread
	default:
		b += nojobs
	}
	return b
}

func (d *jobDoc) row() markup {
	next, last := none, markup(`<span class="none">none yet</span>`)
	if !d.Next.IsZero() {
		next = m(`%s <span class="sub">%s</span>`, in(d.Next), clock(d.Next))
	}
	if r := d.Last; r != nil {
		last = m(`%s, %s %s <span class="sub">%s</span>`, ago(r.Began), precise(r.Took), r.tag(), name(r.Replica))
	}
	return m("<tr %s>", d.attributes()) + th("Job", jobLink(d.Name)) + td("State", d.states()) + td("Schedule", d.schedule()) + td("Next tick", next) +
		td("Last run", last) + td("Last runs", strip(d.Runs)) + td("Said", ago(d.Said)+" "+sources(d.Sources)) + "</tr>"
}

// pager leads to the pages beside this one.
func (d *jobsDoc) pager() markup {
	if d.Pages < 2 {
		return ""
	}
	to := func(page int, rel, text markup) markup {
		return when(page >= 1 && page <= d.Pages, `<a rel="%s" href="%s">%s</a>`, rel, query("jobs", "q", d.Q, "state", d.State, "page", strconv.Itoa(page)), text)
	}
	return m(`<nav class="pager" aria-label="Pages of jobs">%s <span>Page %d of %d</span> %s</nav>`, to(d.Page-1, "prev", "Before"), d.Page, d.Pages, to(d.Page+1, "next", "After"))
}
