package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
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
	if is.Gone {
		return refused(http.StatusNotFound, missing)
	}
	d := &oneJobDoc{Name: name, Skips: is.Skips, Error: view.Error(is.Err), Job: is.Job, s: s}
	if d.Job != nil { // else it is not known whether there is one
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
	look, word, _ := stateOf(j)
	level := either(map[markup]markup{"ok": "ok", "cutshort": "cut", "running": "hold", "paused": "none"}[look], "bad")
	since, why, hint := because(j, d.s)
	tags := st(look, word)
	if look != "running" && j.Running != nil {
		tags += st("running", "running")
	}
	if look != "late" && j.Late {
		tags += st("late", "late")
	}
	b := m(`<p class="crumb"><a href="jobs">Jobs</a></p>
%s<section class="verdict state-%s"><div class="title"><h1>%s</h1>%s%s</div>
<p>%s%s %s</p></section>
`, notAsNow(d.Error), level, name(j.Name), tags, when(p.Acts, `<span class="acts">%s</span>`, acts(j)), why, when(since != "", ` <span class="soft">(%s)</span>`, since), hint)
	var left markup
	if lanes := byReplica(j); lanes != "" {
		left = m(`<section aria-labelledby="h-timeline"><div class="head"><h2 id="h-timeline">Runs by replica</h2><span class="soft">the last %d</span>%s</div>
<div id="timeline">%s</div></section>
`, len(j.Runs), legend, lanes)
	}
	if len(j.Runs) > 1 {
		left += m(`<section class="two">%s%s</section>`+"\n", bars("Took", j.Runs, func(r *view.Past) view.Span { return r.Took }), bars("Began late by", j.Runs, latenessOf))
	}
	counts := make(map[string]int)
	for _, run := range j.Runs {
		counts[run.Outcome]++
	}
	outcomes := outcomeChips(d.Name, counts, "", "")
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
		skips = table(` id="skips"`, "", each(d.Skips, "\n", drawSkip), "Reason", "Last tick", ">Ticks", "Skipped by", "Because of", ">Nodes")
	case d.Skips != nil:
		skips = `<p class="empty" id="empty-skips">None that an operator should know of.</p>`
	}
	phrase := schedulePhrase(j.Schedule)
	if phrase == "" {
		phrase = "facts"
	}
	return b + m(`<div class="side"><div class="stack">%s</div>
<section aria-labelledby="h-facts"><div class="head"><h2 id="h-facts">%s</h2></div><dl id="facts" class="facts" %s>
%s</dl></section></div>
<section aria-labelledby="h-runs"><div class="head"><h2 id="h-runs">History</h2>%s</div>
%s</section>
`, left, phrase, jobAttributes(j), facts(j), when(len(j.Runs) > 0, "%s", outcomes), runs) + section("skips", "Ticks that were not run", skips)
}

// byReplica draws the runs of a job over time, a lane a replica.
func byReplica(r *view.Job) markup {
	of := make(map[string][]view.Past)
	oldest := time.Now()
	for _, run := range r.Runs {
		if began := tickTime(&run).Time; !began.IsZero() && began.Before(oldest) {
			oldest = began
		}
		of[run.Replica] = append(of[run.Replica], run)
	}
	if on := r.Running; on != nil {
		of[on.Replica] = slices.Clip(of[on.Replica]) // it has a lane, also without a run that has ended
		if since := on.Since(); !since.IsZero() && since.Before(oldest) {
			oldest = since.Time
		}
	}
	if len(of) == 0 {
		return ""
	}
	past := max(time.Since(oldest)*21/20, time.Minute)
	w := windowOf(past, past/9)
	var lanes markup
	const most = 30
	replicas := slices.Sorted(maps.Keys(of))
	prefix := shared(replicas)
	for _, replica := range replicas[:min(len(replicas), most)] {
		l := lane{attributes: m(`data-replica="%s"`, replica), head: short(replica, prefix), noteLook: "soft", label: visible(view.Shortened(replica, 60)) + ": " + view.Counted(len(of[replica]), "run")}
		w.runs(&l, of[replica])
		if on := r.Running; on != nil && on.Replica == replica && !on.Since().IsZero() {
			l.marks += path("running", box(w.x(on.Since().Time), w.x(w.now), 6, 6))
		}
		l.note = escaped(view.Counted(len(of[replica]), "run"))
		lanes += l.draw()
	}
	if marks := w.next(r); marks != "" && r.Paused == nil {
		lanes += lane{head: "next", label: "next ticks", marks: marks, noteLook: "soft", note: in(r.Next)}.draw()
	}
	return w.draw("", m("<ul>%s</ul>", lanes))
}

// facts draws all that is known of a job, but its runs.
func facts(j *view.Job) markup {
	b := markup("")
	if r := j.Running; r != nil {
		tick := markup("no tick")
		if !r.Tick.IsZero() {
			tick = "tick " + clock(r.Tick)
		}
		b += m(`<div data-token="%d"><dt>Runs now</dt><dd>on %s, began %s, %s, token <code>%d</code></dd></div>`+"\n", r.Token, name(r.Replica), ago(r.Since()), tick, r.Token)
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
	by := markup("any replica")
	if j.Election != "" {
		by = "the leader of " + electionLink(j.Election)
	}
	b += fact("Schedule", m("<code>%s</code>%s", visible(j.Schedule), sub(visible(j.Zone)))) + fact("Next tick", next) + fact("Run by", by)
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

// pauseOrResume leads to the order for its own pause that a job may need next.
func pauseOrResume(j *view.Job) markup {
	kind, verb := markup("pause"), markup("Pause")
	if j.Paused != nil && !j.Paused.All {
		kind, verb = "resume", "Resume"
	}
	return do(kind, m(`%s<span class="unseen"> %s</span>`, verb, visible(j.Name)), "job", j.Name)
}

// acts leads to the orders for a job.
func acts(d *view.Job) markup {
	b := pauseOrResume(d) + "\n" + do("run_now", "Run now", "job", d.Name)
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
