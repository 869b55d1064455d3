package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// attention is the state of the cluster, sorted by urgency: problems that need someone, and matters
// that can wait.
type attention struct {
	quorum    view.Quorum
	jobs      []*view.Job    // jobs that need someone, the worst first
	elections []electionRow  // without a leader, or with an unknown one
	nodes     []view.Trouble // all troubles if no further node may fail, else the grave ones
	wait      []view.Trouble // the other troubles
	paused    []*view.Job    // jobs with a pause of their own
	due       []*view.Job    // late jobs: nobody runs a tick, for want of a quorum
	all       *view.Pause    // the pause of all jobs
	known     int            // how many jobs and elections are known
}

// cluster returns the nodes, to ask what is wrong with them.
func (s *snapshot) cluster() view.Nodes { return view.Nodes{All: s.nodes, Turned: s.turned} }

// The ranks of jobs.
const (
	rankUnknown = 3 // a job of this rank or below needs someone
	rankOK      = 6
)

// ranks order the states of jobs, the worst first. A job whose last run was cut short has rank 2.
var ranks = map[string]int{view.Failing: 0, view.Late: 1, view.Unknown: rankUnknown, view.Running: 4, view.Paused: 5, view.OK: rankOK}

// stateOf returns the look of a job, the word for its state, and its rank.
func stateOf(j *view.Job) (look, word markup, rank int) {
	if j.State == view.Failing && !j.Overdue && !j.Late && j.Last.Outcome == string(admin.OutcomeCutShort) {
		return "cutshort", "cut short", 2
	}
	return jobLooks[j.State], markup(j.State), ranks[j.State]
}

// worstFirst sorts jobs that need someone before the others. The others keep their order, so that
// no row moves when a run begins or ends.
func worstFirst(jobs []*view.Job) {
	rank := func(r *view.Job) int {
		_, _, rank := stateOf(r)
		return min(rank, rankUnknown+1)
	}
	slices.SortStableFunc(jobs, func(x, y *view.Job) int { return rank(x) - rank(y) })
}

func attentionOf(s *snapshot) *attention {
	q := s.cluster().Quorum()
	a := &attention{quorum: q, known: len(s.jobs) + len(s.elections)}
	few, none := q.Left() <= 0 && q.Votes < q.Total, q.Left() < 0 // without a quorum no job's state is known
	waiting := s.waiting()
	for _, r := range s.jobs {
		_, _, rank := stateOf(r)
		if late := waiting(r); late != r {
			a.due = append(a.due, late)
		}
		switch {
		case r.Paused != nil && r.Paused.All:
			a.all = r.Paused
		case r.Paused != nil:
			a.paused = append(a.paused, r)
		case rank < rankUnknown || rank == rankUnknown && !none:
			a.jobs = append(a.jobs, r)
		}
	}
	worstFirst(a.jobs)
	for _, e := range s.elections {
		if e.Leader == nil && (e.Error == "" || !none) {
			a.elections = append(a.elections, e)
		}
	}
	for _, t := range s.cluster().Troubles() {
		if few || t.Grave {
			a.nodes = append(a.nodes, t)
		} else {
			a.wait = append(a.wait, t)
		}
	}
	return a
}

// waiting returns a function that returns a job of which nodes say too little, for want of a
// quorum, as late if a tick has passed since the quorum was lost. It is not known what became of
// earlier ticks.
func (s *snapshot) waiting() func(*view.Job) *view.Job {
	stalled, lost := s.cluster().Stalled(), s.cluster().Quorum().Since.Add(-view.LookedAt)
	return func(r *view.Job) *view.Job {
		if !stalled || r.Error == "" || r.Paused != nil {
			return r
		}
		ran := view.Time{}
		if r.Last != nil {
			ran = r.Last.Tick
		}
		due := r.Next // a replica without a quorum names the tick after those that were due
		if !r.Named.Before(lost) && r.Named.After(ran.Time) {
			due = r.Named
		}
		if every := periodOf(r.Schedule); every > 0 && !ran.IsZero() && !strings.HasSuffix(r.Schedule, "completion") {
			due = view.At(ran.Add(max(lost.Sub(ran.Time), 0).Truncate(every) + every))
		}
		if due.Before(lost) || !due.After(ran.Time) || due.After(time.Now()) {
			return r
		}
		late := *r
		if late.Late, late.Due = true, due; r.State == view.Unknown {
			late.State = view.Late
		}
		return &late
	}
}

// needs returns how many problems need someone.
func (a *attention) needs() int { return len(a.jobs) + len(a.elections) + len(a.nodes) }

// level returns the state of the whole cluster: bad, warn or good.
func (a *attention) level(problems int) string {
	switch {
	case a.needs() > 0:
		return "bad"
	case a.known == 0 || len(a.wait) > 0 || a.all != nil || problems > 0 || a.quorum.Spare == nil:
		return "warn"
	}
	return "good"
}

// headline returns the heading of the start page.
func (a *attention) headline(s *snapshot, problems int) string {
	q := a.quorum
	switch {
	case slices.ContainsFunc(a.nodes, func(t view.Trouble) bool { return t.Grave }):
		return "Two leases may be live at once: processes have other nodes"
	case s.cluster().OthersHaveMore():
		return fmt.Sprintf("%d of %d nodes vote for this page; replicas have more", q.Votes, q.Total)
	case q.Total > 0 && q.Left() < 0:
		return fmt.Sprintf("Nothing is granted: %s, %d are needed", q.Voting(), q.Need)
	case a.needs() > 0:
		nodes := 0
		for _, t := range a.nodes {
			nodes += len(t.Nodes)
		}
		var things []string
		for i, n := range []int{len(a.jobs), len(a.elections), nodes} {
			if n > 0 {
				things = append(things, view.Counted(n, []string{"job", "election", "node"}[i]))
			}
		}
		return listed(things) + choice(len(a.jobs)+len(a.elections)+nodes == 1, " needs someone", " need someone")
	case s.read[partJobs].At.IsZero() || q.Total == 0:
		return "Not all has been read yet"
	case a.known == 0:
		return "No replica tells of a job or an election"
	case q.Spare == nil:
		return "All is well, as far as this page may know"
	case a.level(problems) == "warn":
		return "Nothing is urgent"
	}
	return "All is well"
}

// streak returns the number n of the last runs that failed one after another, how many of them were
// on the replica of the last one, and the first of them. runs has the newest first.
func streak(runs []view.Past) (n, on int, first *view.Past) {
	for n < len(runs) && runs[n].Failed() {
		if first = &runs[n]; first.Replica == runs[0].Replica {
			on++
		}
		n++
	}
	return n, on, first
}

// because returns since when a job is in its state, why, and a hint: the remedy or another known
// fact.
func because(j *view.Job, s *snapshot) (since, why, hint markup) {
	lastOK := when(!j.Succeeded.IsZero(), "Last ok %s.", clock(j.Succeeded)) +
		when(strings.HasPrefix(j.Runbook, "https://") || strings.HasPrefix(j.Runbook, "http://"), ` <a href="%s" rel="noopener noreferrer">Runbook</a>`, j.Runbook)
	look, _, _ := stateOf(j)
	switch look {
	case "paused":
		return until(j.Paused, "it is"), drawPause(j.Paused) + ".", when(j.Failing, "Its last run failed.") + " Ticks that are due meanwhile are not caught up."
	case "cutshort":
		return "ended " + ago(j.Last.Ended()), m("%s was killed, or lost the lease.", name(j.Last.Replica)), "What it had done is not known. " + nextOf(j)
	case "failing":
		n, on, first := streak(j.Runs)
		if n == 0 {
			return "", "No run has ended well for longer than the job allows.", lastOK + when(j.Running != nil, " %s", nextOf(j))
		}
		why = "Its last run " + when(j.Last.Outcome == string(admin.OutcomeCutShort), "was ") + escaped(words(j.Last.Outcome)) + when(j.Last.Outcome == string(admin.OutcomeLost), " its lease")
		if n > 1 {
			why = m("The last %d runs failed, %d", n, on)
		}
		why += " on " + name(j.Last.Replica)
		why += when(j.Last.Attempt > 1, ", the last in %d attempts", j.Last.Attempt) + when(j.Last.Error != "", ": <q>%s</q>", errorOf(j.Last))
		return when(n == len(j.Runs) && n >= runsShown, "at least ") + "since " + clock(first.Ended()) + ", " + ago(first.Ended()), why + ".", when(j.Last.Outcome == string(admin.OutcomeFailed) && !strings.Contains(j.Last.Error, " "), "The log of %s says more. ", name(j.Last.Replica)) + lastOK
	case "late":
		due := dueOf(j)
		end := view.At(due.Add(time.Duration(j.Window)))
		until := when(j.Window > 0 && !due.IsZero(), " The tick "+choice[markup](end.After(time.Now()), "is", "was to be")+" caught up until %s.", clock(end))
		return when(!due.IsZero(), "due %s, %s", clock(due), ago(due)), lateWhy(j, s) + until, lastOK
	case "none":
		return "", escaped(view.Shortened(visible(j.Error), 200)), ""
	case "running":
		var most view.Span
		for _, run := range j.Runs {
			most = max(most, run.Took)
		}
		return when(!j.Running.Since().IsZero(), "began %s", ago(j.Running.Since())), nextOf(j), when(most > 0, "The last %d runs took %s at most.", len(j.Runs), took(most))
	}
	if j.Last != nil {
		why = m("Its last run ended %s on %s, after %s.", ago(j.Last.Ended()), name(j.Last.Replica), took(j.Last.Took))
	}
	return "", why, nextOf(j)
}

// until says when a pause ends. they is the subject of a pause without an end: it is, or they are.
func until(p *view.Pause, they markup) markup {
	return choice(p.Until.IsZero(), "until "+they+" resumed", m("until %s, %s", clock(p.Until), in(p.Until)))
}

// dueOf returns the first tick that was not run, as far as that is known.
func dueOf(j *view.Job) view.Time {
	if !j.Due.IsZero() {
		return j.Due
	} else if every := periodOf(j.Schedule); every > 0 && j.Last != nil && !j.Last.Tick.IsZero() {
		return view.At(j.Last.Tick.Add(every))
	}
	return j.Next
}

// nextOf describes the run that goes on, or else the next tick.
func nextOf(j *view.Job) markup {
	if r := j.Running; r != nil {
		return m("It runs now on %s%s.", name(r.Replica), when(!r.Since().IsZero(), ", since %s", clock(r.Since())))
	}
	return when(!j.Next.IsZero(), "Next tick %s, %s.", clock(j.Next), in(j.Next))
}

// lateWhy says why a tick was not run, as far as that is known.
func lateWhy(j *view.Job, s *snapshot) markup {
	have, cut := 0, false
	for _, r := range s.replicas {
		cut = cut || r.Cut
		if slices.Contains(r.Jobs, j.Name) {
			have++
		}
	}
	q := s.cluster().Quorum()
	at := slices.IndexFunc(s.elections, func(e electionRow) bool { return e.Name == j.Election })
	switch {
	case q.Left() < 0 && !s.cluster().OthersHaveMore():
		return "No lease is granted."
	case have > 0 && at >= 0 && s.elections[at].Leader == nil:
		return m("Nobody is known to lead %s, which runs it.", electionLink(j.Election))
	case have > 0:
		return m("No replica is known to run it, and %s it.", choice(have == 1, "1 has", fmt.Sprint(have, " have")))
	case s.read[partReplicas].At.IsZero() || cut:
		return "No replica is known to run it."
	}
	return m("No replica that has it is alive; one said so last %s. Start one.", ago(j.Said))
}

// matter draws a row of a list: the state, the thing with its time, the reason with a hint, and
// links to orders.
func matter(attributes, look, word, what, since, why, hint, acts markup) markup {
	return m(`<li %s>%s<span><b>%s</b>%s</span><span>%s <span class="soft">%s</span></span><span class="acts">%s</span></li>`+"\n",
		attributes, st(look, word), what, when(since != "", "<small>%s</small>", since), why, hint, acts)
}

func drawTrouble(t view.Trouble) markup {
	const few = 5
	names := each(t.Nodes[:min(len(t.Nodes), few)], ", ", name) + when(len(t.Nodes) > few, " and %d more", len(t.Nodes)-few)
	since := when(!t.Since.IsZero(), "since %s, %s", clock(t.Since), ago(t.Since)) + when(!t.Until.IsZero(), "votes %s", in(t.Until))
	return matter(m(`data-node="%s"`, t.Nodes[0]), markup(t.State), escaped(t.Word), m(`<a href="nodes">%s</a>`, names), since, escaped(visible(t.Why)), escaped(t.Hint), "")
}

func (p *page) drawMatter(r *view.Job, s *snapshot) markup {
	look, word, _ := stateOf(r)
	since, why, hint := because(r, s)
	acts := markup("")
	if l := r.Last; l != nil && (look == "failing" || look == "cutshort") {
		acts = m(`<a class="do" href="%s">Last run<span class="unseen"> of %s</span></a>`, runAddress(l), visible(r.Name))
	}
	switch {
	case !p.Acts:
	case look == "paused", look == "failing":
		acts += pauseOrResume(r)
	case r.Running == nil && (look == "cutshort" || look == "late"):
		acts += do("run_now", m(`Run now<span class="unseen"> %s</span>`, visible(r.Name)), "job", r.Name)
	}
	return matter(jobAttributes(r), look, word, jobLink(r.Name), since, why, hint, acts)
}

// alike splits jobs into those that fail for the same reason as the first, and the others.
func alike(jobs []*view.Job) (same, others []*view.Job) {
	reason := func(j *view.Job) string {
		if look, _, _ := stateOf(j); look != "failing" || j.Last == nil {
			return ""
		} else if j.Last.Outcome == string(admin.OutcomeLost) {
			return j.Last.Outcome
		}
		return choice(strings.Contains(j.Last.Error, " "), j.Last.Error, "") // else it is a type, which says little
	}
	first := reason(jobs[0])
	for i, j := range jobs {
		if i == 0 || first != "" && reason(j) == first {
			same = append(same, j)
		} else {
			others = append(others, j)
		}
	}
	return same, others
}

// drawAlike draws several jobs that fail for the same reason.
func drawAlike(jobs []*view.Job) markup {
	const few = 4
	last, since := jobs[0].Last, jobs[0].Last.Ended()
	for _, j := range jobs {
		if n, _, first := streak(j.Runs); n > 0 && first.Ended().Before(since.Time) {
			since = first.Ended()
		}
	}
	names := each(jobs[:min(len(jobs), few)], ", ", func(j *view.Job) markup { return jobLink(j.Name) }) + when(len(jobs) > few, " and %d more", len(jobs)-few)
	why := choice[markup](last.Outcome == string(admin.OutcomeLost), "Their last runs lost their leases.", m("The last run of each failed: <q>%s</q>.", errorOf(last)))
	return matter(jobAttributes(jobs[0]), "failing", "failing", names, m("since %s, %s", clock(since), ago(since)), why, "", `<a class="do" href="runs">Failures</a>`)
}

// errorOf returns the error of a run, for a row.
func errorOf(r *view.Past) string { return view.Shortened(visible(view.Plain(r.Error)), 200) }

// verdict draws the problems that need someone.
func (a *attention) verdict(p *page, s *snapshot) markup {
	const most = 5
	nodes, due, elections, jobs := a.nodes, len(a.due) > 0, a.elections, a.jobs
	var rows markup
	for range most {
		switch {
		case len(nodes) > 0:
			rows += drawTrouble(nodes[0])
			nodes = nodes[1:]
		case due:
			first := slices.MinFunc(a.due, func(x, y *view.Job) int { return x.Due.Compare(y.Due.Time) }).Due
			rows += matter(`data-key="due"`, "late", "due", m(`<a href="jobs">%s</a>`, view.Counted(len(a.due), "job")), m("the first since %s, %s", clock(first), ago(first)),
				"No tick is run without a quorum.", "When enough nodes vote, each is caught up or skipped, as its job says.", "")
			due = false
		case len(elections) > 0:
			e := elections[0]
			why, word := choice[markup](e.Error == "", "Nobody leads it.", "It is not known who leads it."), choice[markup](e.Error == "", "no leader", "unknown")
			hint := m("Candidates: %s.", either(each(e.Candidates, ", ", name), "none; start one"))
			rows += matter(e.attributes(), "none", word, electionLink(e.Name), "", why, hint, "")
			elections = elections[1:]
		case len(jobs) > 0:
			var same []*view.Job
			if same, jobs = alike(jobs); len(same) > 1 {
				rows += drawAlike(same)
			} else {
				rows += p.drawMatter(same[0], s)
			}
		}
	}
	left := 0
	for _, t := range nodes {
		left += len(t.Nodes)
	}
	for _, r := range a.due {
		if due && !slices.ContainsFunc(a.jobs, func(j *view.Job) bool { return j.Name == r.Name }) {
			jobs = append(slices.Clip(jobs), r)
		}
	}
	var more []string
	for i, n := range []int{left, len(elections), len(jobs)} {
		if what := []string{"node", "election", "job"}[i]; n > 0 {
			more = append(more, string(m(`<a href="%ss">%s</a>`, what, view.Counted(n, what))))
		}
	}
	return when(rows != "", `<ul class="todo" id="todo">%s</ul>`+"\n", rows) + when(len(more) > 0, "<p>And %s more.</p>", markup(listed(more)))
}

// later draws the matters that can wait.
func (a *attention) later(p *page, s *snapshot) markup {
	const most = 5
	rows := each(a.wait, "", drawTrouble)
	if a.all != nil {
		acts := choice(p.Acts, do("resume", "Resume all", "all", "1"), "")
		rows += matter(`data-key="all"`, "paused", "paused", `<a href="jobs">All jobs</a>`, until(a.all, "they are"), drawPause(a.all)+".", "", acts)
	}
	rows += each(a.paused[:min(len(a.paused), most)], "", func(r *view.Job) markup { return p.drawMatter(r, s) })
	if rows == "" {
		return ""
	}
	return section("wait", "Can wait", m(`<ul class="todo" id="wait">%s</ul>`, rows)+
		when(len(a.paused) > most, `<p class="soft">And <a href="%s">%d more that are paused</a>.</p>`, query("jobs", "state", view.Paused), len(a.paused)-most))
}
