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

// Good reports whether it ended as it should.
func (r pastDoc) Good() bool { return r.Outcome == string(admin.OutcomeOK) }

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
	States []string  `json:"-"`
}

func (h *Handler) jobsDoc(_ context.Context, s *snapshot, r *http.Request) (any, int) {
	query := r.URL.Query()
	d := &jobsDoc{Total: len(s.jobs), TooMany: s.tooMany, Jobs: []*jobDoc{}, Untold: s.untold(), Counts: countJobs(s.jobs), Q: query.Get("q"), States: jobStates}
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

// Before and After are the numbers of the pages beside this one; empty for none.
func (d *jobsDoc) Before() string { return d.beside(-1) }

// After is the page after this one.
func (d *jobsDoc) After() string { return d.beside(1) }

func (d *jobsDoc) beside(by int) string {
	if n := d.Page + by; n >= 1 && n <= d.Pages {
		return strconv.Itoa(n)
	}
	return ""
}
