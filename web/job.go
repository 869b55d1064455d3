package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// oneJobDoc is a job with its details.
type oneJobDoc struct {
	Name  string      `json:"name"`
	Job   *view.Job   `json:"job"`   // null if not read
	Runs  []view.Past `json:"runs"`  // the newest first; null if not read
	Skips []view.Skip `json:"skips"` // null if not read
	Error string      `json:"error"` // why it is not up to date

	s *snapshot
}

func (d *oneJobDoc) ofJob() (job, title string) { return d.Name, "" }

const missing = "No replica is known to have a job of this name. A job is forgotten half an hour after the last replica that had it."

func (h *Handler) jobDoc(ctx context.Context, s *snapshot, r *http.Request) any {
	name := r.URL.Query().Get("name")
	if name == "" {
		return refused(http.StatusNotFound, missing)
	}
	is := h.feed.detail(ctx, detailOf{name: name})
	if errors.Is(is.Err, admin.ErrNoJob) {
		return refused(http.StatusNotFound, missing)
	}
	d := &oneJobDoc{Name: name, Skips: is.Skips, Error: view.Error(is.Err), Job: is.Job, s: s}
	if d.Job != nil { // else it is not known whether the job exists
		d.Runs = d.Job.Runs[:min(len(d.Job.Runs), runsShown)]
	}
	return d
}

// draw draws the page of a job.
func (d *oneJobDoc) draw(p *page) markup {
	j := d.Job
	if j == nil {
		j = &view.Job{Name: d.Name, State: view.Unknown, Error: d.Error}
	}
	j = d.s.waiting()(j)
	look, word, _ := stateOf(j)
	since, why, hint := because(j, d.s)
	beside := st(look, word) + choice(look != "running" && j.Running != nil, st("running", "running"), "") + choice(look != "late" && j.Late, st("late", "late"), "")
	if p.Acts {
		beside += m(`<span class="acts">%s</span>`, acts(j))
	}
	left := choice(len(j.Runs) > 0 || j.Running != nil, byReplica(j), "")
	if len(j.Runs) > 1 {
		left += m(`<section class="two">%s%s</section>`+"\n", bars("Took", j.Runs, func(r *view.Past) view.Span { return r.Took }), bars("Began late by", j.Runs, latenessOf))
	}
	counts := make(tally)
	for _, run := range j.Runs {
		counts[run.Outcome]++
	}
	const noRuns markup = `<p class="empty" id="empty-runs">No run has ended yet, or its replicas keep no history (<code>scheduler.WithTelling</code>).</p>`
	const noSkips markup = `<p class="empty" id="empty-skips">None that an operator should know of.</p>`
	runs := either(runsTable(d.Runs, false), choice(j.Read.IsZero(), unread, noRuns)) +
		when(len(d.Runs) > 0, `<p><a href="%s">All runs that nodes keep</a></p>`, query("runs", "name", j.Name))
	skips := table(` id="skips"`, "", each(d.Skips, "\n", drawSkip), "Reason", "Last tick", ">Ticks", "Skipped by", "Because of", ">Nodes")
	return `<p class="crumb"><a href="jobs">Jobs</a></p>` + "\n" + notAsNow(d.Error) +
		verdict(look, name(j.Name), beside, m("%s%s %s", why, when(since != "", ` <span class="soft">(%s)</span>`, since), hint)) +
		m(`<div class="side"><div class="stack">%s</div>`+"\n", left) +
		factsOf(either(escaped(schedulePhrase(j.Schedule)), "facts"), jobAttributes(j), facts(j)) + "</div>\n" +
		headed("runs", "History", choice(len(j.Runs) > 0, outcomeChips(d.Name, counts, "", ""), ""), runs) +
		section("skips", "Ticks that were not run", either(skips, choice(d.Skips == nil, unread, noSkips)))
}

// byReplica draws the runs of a job over time, with a lane for each replica.
func byReplica(j *view.Job) markup {
	of, runs := make(map[string]*lane), make(map[string][]view.Past)
	oldest := time.Now()
	see := func(replica string, at view.Time) {
		if of[replica] = (&lane{noteLook: "soft"}); !at.IsZero() && at.Before(oldest) {
			oldest = at.Time
		}
	}
	for _, run := range j.Runs {
		see(run.Replica, tickTime(&run))
		runs[run.Replica] = append(runs[run.Replica], run)
	}
	if on := j.Running; on != nil {
		see(on.Replica, on.Since()) // a lane even without an ended run
	}
	past := max(time.Since(oldest)*21/20, time.Minute)
	w := windowOf(past, past/9)
	for replica, l := range of {
		w.runs(l, runs[replica])
		l.label = view.Counted(len(runs[replica]), "run")
		l.note = escaped(l.label)
		if on := j.Running; on != nil && on.Replica == replica {
			l.marks += w.running(on)
		}
	}
	more := markup("")
	if marks := w.next(j); marks != "" {
		more = lane{head: "next", label: "next ticks", marks: marks, noteLook: "soft", note: in(j.Next)}.draw()
	}
	const most = 30
	return headed("timeline", "Runs by replica", m(`<span class="soft">the last %d</span>%s`, len(j.Runs), legend),
		m(`<div id="timeline">%s</div>`, w.byReplica(of, most, more)))
}

// facts draws the known facts of a job, without its runs.
func facts(j *view.Job) markup {
	b := markup("")
	if r := j.Running; r != nil {
		began := when(!r.Since().IsZero(), "began %s, %s, ", ago(r.Since()), choice(r.Tick.IsZero(), "no tick", "tick "+clock(r.Tick)))
		b += m(`<div data-token="%d"><dt>Runs now</dt><dd>on %s, %stoken <code>%d</code></dd></div>`+"\n", r.Token, name(r.Replica), began, r.Token)
	}
	if j.Read.IsZero() {
		return b + fact("State", "not read")
	}
	next := markup(`<span class="none">not known</span>`)
	if !j.Next.IsZero() {
		next = m("<b>%s</b> %s%s", clock(j.Next), in(j.Next), local(j))
		if every := periodOf(j.Schedule); every > 0 {
			for i := range 3 {
				next += when(i == 0, "<br>then ") + when(i > 0, ", ") + clock(view.At(j.Next.Add(time.Duration(i+1)*every)))
			}
		}
	}
	by := choice(j.Election == "", "any replica", "the leader of "+electionLink(j.Election))
	b += fact("Schedule", m("<code>%s</code>%s", visible(j.Schedule), sub(visible(j.Zone)))) + fact("Next tick", next) + fact("Run by", by)
	for _, policy := range [][2]string{{"Delivery", j.Delivery}, {"Catch-up", j.CatchUp}, {"Overlap", j.Overlap}, {"Program", j.Program}} {
		b += when(policy[1] != "", "%s", fact(markup(policy[0]), escaped(visible(policy[1]))))
	}
	return b + fact("Said", ago(j.Said)+" "+sources(j.Sources))
}

// local draws the next tick in the zone of the schedule, if that is not UTC.
func local(j *view.Job) markup {
	zone, err := time.LoadLocation(j.Zone)
	if err != nil || j.Zone == "" || j.Zone == "UTC" {
		return ""
	}
	return m(` <span class="sub">%s %s</span>`, j.Next.In(zone).Format("15:04:05"), visible(j.Zone))
}

// pauseOrResume links to the order that resumes the job's own pause, or pauses the job.
func pauseOrResume(j *view.Job) markup {
	is := j.Paused != nil && !j.Paused.All
	return do(choice[markup](is, "resume", "pause"), m(`%s<span class="unseen"> %s</span>`, choice(is, "Resume", "Pause"), visible(j.Name)), "job", j.Name)
}

// acts links to the orders for a job.
func acts(d *view.Job) markup {
	b := pauseOrResume(d) + "\n" + do("run_now", "Run now", "job", d.Name)
	if r := d.Running; r != nil {
		b += "\n" + do("cancel", "Cancel the run", "job", r.Job, "token", decimal(r.Token))
	}
	return b + when(!d.Orders && !d.Read.IsZero(), ` <span class="sub">Its replicas take no orders to run or cancel.</span>`)
}

func drawSkip(d view.Skip) markup {
	by := choice(d.By == "", none, name(d.By))
	return m(`<tr data-reason="%s">`, d.Reason) + th("Reason", escaped(words(d.Reason))) + td("Last tick", m(`%s <span class="sub">%s</span>`, ago(d.Tick), clock(d.Tick))) +
		num("Ticks", d.Count) + td("Skipped by", name(d.Replica)) + td("Because of", by) + num("Nodes", d.Sources) + "</tr>"
}
