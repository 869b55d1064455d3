package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Late is the row with the delay of half of the runs in ms: a machine that cannot carry the work
// loses ticks.
const Late = "ms from a tick to its run, p50"

const (
	// settled is how long after its start or a thaw a replica may need until it ticks.
	settled = 3 * time.Second
	// speaking is how long after a tick a replica may say what became of it.
	speaking = 3 * time.Second
	// earlier than a tick, by the machine's clock, a replica whose clock is ahead may run it, and
	// what happened before that may matter: a lease of a process that was killed runs out, and
	// another leader is elected.
	earlier = 5 * time.Second
	// after the time in which a tick is tried again, a replica whose clock is behind may run it.
	after = 2 * time.Second
	// enough is how much of that must be left when the servers answer again.
	enough = time.Second
	// spare is how much shorter than its interval a job is of which no tick overlaps the next.
	spare = time.Second
	// clocks is the shortest interval: no two clocks differ by more, but for leaps.
	clocks = 2 * plan.MaxAhead
	// completing is how long it takes at most from the end of a task until that is written on a
	// quorum, and from a grant to the task.
	completing = time.Second
	// handling is how long it takes at most from the journal to the task, and back.
	handling = 50 * time.Millisecond
	// tail is left out at the end of the faults: a replica whose clock is behind has not ticked
	// yet.
	tail = 2 * time.Second
	// dying is how long before a tick, by the machine's clock, its winner may have been killed: one
	// whose clock is ahead runs it early.
	dying = 3 * time.Second
	// ahead is how long before a tick, by its own clock, a replica may be granted it.
	ahead = 400 * time.Millisecond
)

func (t tick) String() string {
	if t.at == 0 {
		return t.job.Name
	}
	return fmt.Sprintf("%s, tick %s", t.job.Name, time.UnixMilli(t.at).UTC().Format("15:04:05.000"))
}

func (r *run) String() string {
	return fmt.Sprintf("%s (began %s, token %d, attempt %d)", r.Run, r.At, r.Token, r.Attempt)
}

// sorted are ticks by the names of their jobs, and then by their times.
func sorted[V any](of map[tick]V) []tick {
	return slices.SortedFunc(maps.Keys(of), func(a, b tick) int {
		return cmp.Or(cmp.Compare(a.job.Name, b.job.Name), cmp.Compare(a.at, b.at))
	})
}

func first(runs []*run) int64 {
	return slices.MinFunc(runs, func(a, b *run) int { return cmp.Compare(a.Tick, b.Tick) }).Tick
}

func (v *Verdict) checkJobs(work []jobs.Job) {
	x := newIndex(v, work)
	var late []time.Duration
	for _, name := range slices.Sorted(maps.Keys(x.runs)) {
		late = append(late, x.count(x.runs[name])...)
		x.checkOrder(x.runs[name])
	}
	if slices.Sort(late); len(late) > 0 {
		v.Counts[Late] = int(late[len(late)/2].Milliseconds())
		v.Counts["ms from a tick to its run, p99"] = int(late[len(late)*99/100].Milliseconds())
	}
	for _, records := range v.Records {
		for _, r := range records {
			if r.Kind == history.Skip {
				v.Counts["ticks not run here: "+r.Reason]++
			}
		}
	}
	x.checkTwice()
	for i := range x.jobs {
		x.checkSchedules(&x.jobs[i])
	}
	x.checkAsked()
	x.checkTrue()
	x.checkPaused()
}

// count adds the runs of a job, and returns how late those began that are no catch-ups.
func (x *index) count(all []*run) (late []time.Duration) {
	add := func(name string, is bool) {
		if is {
			x.Counts[name]++
		}
	}
	x.Counts["jobs that ran"]++
	for _, r := range all {
		caughtUp := r.Tick != 0 && r.Reason != string(joblog.OnTime)
		if r.Tick != 0 && !caughtUp {
			late = append(late, r.Delay)
		}
		x.Counts["runs"]++
		add("runs by RunNow", r.Tick == 0)
		add("runs that catch up", caughtUp)
		add("runs again, after an attempt that was cut short", r.Attempt > 1)
		add("runs cut short by SIGKILL", r.end.At == 0 && r.of.Killed != 0)
		add("runs that panicked", r.end.Panicked)
		add("runs that began after their lease, in a thawed process", r.stale())
	}
	return late
}

// checkOrder wants no run to begin before the earlier ones of the job are over, and each to have a
// greater token than those before. Runs that began after the end of their lease have no place in
// the order, but no token is given twice.
func (x *index) checkOrder(runs []*run) {
	var latest, last *run
	seen := make(map[uint64]*run)
	for _, r := range runs {
		other := seen[r.Token]
		if seen[r.Token] = r; other != nil {
			x.add(Disorder, r.At, "%s: %s has the token of %s", r.Job, r, other)
		}
		if r.stale() {
			continue
		}
		if latest != nil && r.At < latest.over() {
			x.add(Overlap, r.At, "%s: %s began %s before %s was over", r.Job, r, latest.over().Sub(r.At), latest)
		}
		if last != nil && other == nil && r.Token < last.Token {
			x.add(Disorder, r.At, "%s: %s came after %s", r.Job, r, last)
		}
		if last = r; latest == nil || r.over() > latest.over() {
			latest = r
		}
	}
}

// era is a time in which a job has one schedule.
type era struct {
	jobs.Job
	from, to history.Instant
}

// eras are those of a job: one, or, where each deploy changes its schedule, those between two of
// these. What the other schedule says has not been missed, and a rollout that was taken back has
// changed nothing.
func (x *index) eras(job *jobs.Job) (all []era) {
	if job.Ticked() {
		return []era{{*job, 1, x.Over.Add(-tail)}}
	}
	changes := slices.DeleteFunc(slices.Clone(x.Strikes), func(s history.Strike) bool { return s.Kind != plan.Deploy && s.Kind != plan.TakenBack })
	slices.SortFunc(changes, func(a, b history.Strike) int { return int(a.From - b.From) })
	version, from := 0, history.Instant(1)
	for _, next := range append(changes, history.Strike{From: x.Over}) {
		all = append(all, era{job.In(version), from, next.From.Add(-dying)})
		from = next.To.Add(settled)
		if next.Kind == plan.Deploy {
			version++
		}
	}
	return all
}

// checkSchedules wants a job to be run at times at which it was due, and each tick to be run that
// has to be, and what became of all others to be told: from the first that was run until shortly
// before the faults were over.
func (x *index) checkSchedules(job *jobs.Job) {
	if !job.Ticked() && job.Then == 0 {
		return
	}
	if len(x.runs[job.Name]) == 0 {
		if x.must(job) && job.Every <= x.length() {
			x.add(Lost, x.Over, "%s was never run", job.Name)
		}
		return
	}
	for _, e := range x.eras(job) {
		var ran []*run
		for _, r := range x.runs[job.Name] {
			if due := x.machine(r.Tick); r.Tick != 0 && (job.Ticked() || due >= e.from && due <= e.to) {
				ran = append(ran, r)
			}
		}
		if len(ran) == 0 {
			continue
		}
		if job.Kind == jobs.Duration {
			e.Phase = first(ran) % e.Every.Milliseconds()
		}
		for _, r := range ran {
			if !job.Ticked() {
				x.Counts["runs of schedules that change"]++
			}
			if len(e.Ticks(r.Tick, r.Tick)) == 0 {
				x.add(Untimely, r.At, "%s: %s was run for %s, with an interval of %s", job.Name, r, tick{job, r.Tick}, e.Every)
			}
		}
		for _, at := range e.Ticks(first(ran), x.clock(e.to)) {
			x.checkTick(tick{job, at}, &e.Job)
		}
	}
}

// must reports whether each tick of the job has to be run.
func (x *index) must(job *jobs.Job) bool {
	return !x.Halted && !job.Paused && job.Ticked() && job.CatchUp == scheduler.CatchUpAll
}

// checkTick looks at a tick of a job as it was then. Ticks of jobs with CatchUpAll have to be run,
// and ticks of any job that came while all was well.
func (x *index) checkTick(t tick, job *jobs.Job) {
	switch {
	case x.Halted || job.Paused:
	case x.must(job):
		x.Counts["ticks that had to be run exactly once"]++
		x.checkOwed(t)
	case job.Takes+spare <= job.Every && job.Every >= clocks && x.wasWell(t, job) && !x.overlapped(t):
		x.Counts["ticks of any job that came while all was well"]++
		if len(x.done[t]) == 0 {
			x.lose(t, "nobody ran it, although all was well")
		}
	}
	if job.Ticked() {
		x.explain(t)
	}
}

// checkOwed wants a tick to be run, and at least once to its end, if there was time.
func (x *index) checkOwed(t tick) {
	runs := x.done[t]
	again := t.job.Delivery == scheduler.AtLeastOnce
	switch {
	case again && slices.ContainsFunc(runs, (*run).whole), !again && len(runs) > 0:
	case len(runs) > 0:
		if !x.tooLate(t) && !x.tooOld(t) {
			x.lose(t, "none of its runs %v came to its end", runs)
		}
	case x.overlapped(t) || x.tooLate(t) || x.tooOld(t):
		x.Counts["ticks that had to be run, but runs of earlier ones left no time"]++
	default:
		if dead := x.diedWith(t); dead != "" && !again {
			x.excuse("%s: %s was killed, or stood still, between the grant and the task", t, dead)
			return
		}
		x.lose(t, "nobody ran it")
	}
}

func (x *index) lose(t tick, text string, args ...any) {
	x.lost[t] = true
	x.add(Lost, x.machine(t.at), "%s: %s%s", t, fmt.Sprintf(text, args...), x.heard(t))
}

// heard tells what was said of a tick.
func (x *index) heard(t tick) (text string) {
	for _, s := range x.skips[t] {
		text += fmt.Sprintf("; %s at %s: %s", s.life, s.At, s.Reason)
		if s.By != "" {
			text += " by " + s.By
		}
		if s.Pending {
			text += ", pending"
		}
	}
	return text
}

// explain wants a tick to have been run, or somebody to have said for good why not: the replica
// whose lease settled it. It may have been killed before it could.
func (x *index) explain(t tick) {
	if len(x.done[t]) == 0 && !x.lost[t] && !x.tooLate(t) && !slices.ContainsFunc(x.skips[t], skip.final) {
		due, until := x.machine(t.at), x.Over
		if i := slices.IndexFunc(x.runs[t.job.Name], func(r *run) bool { return r.Tick > t.at }); i >= 0 {
			until = x.runs[t.job.Name][i].At
		}
		from, to := due.Add(-earlier), max(until, due).Add(speaking)
		if slices.ContainsFunc(x.names, func(name string) bool { return x.stalled(name, from, to) }) {
			x.Counts["ticks whose fate nobody need tell, because something happened to a process"]++
			return
		}
		x.add(Unexplained, due, "nobody ran %s, and nobody said what became of it%s", t, x.heard(t))
	}
	x.Counts["ticks that had to be run, or else to be told of"]++
}

// final reports whether a skip says that a tick is not run by anybody.
func (s skip) final() bool {
	return s.says(scheduler.SkipMissed, scheduler.SkipSuperseded, scheduler.SkipCutShort, scheduler.SkipPaused) ||
		s.says(scheduler.SkipOverlap) && !s.Pending
}

// wasWell reports whether all was well when a tick came: no process was killed or frozen, and a
// quorum of servers answered, if not when the tick came then in time to try again. A replica that
// was stopped in order is no excuse, another one is there; nor is a clock that leaps or is wrong.
func (x *index) wasWell(t tick, job *jobs.Job) bool {
	due := x.machine(t.at)
	again := due.Add(min(job.Every, scheduler.Grace))
	from, to := due.Add(-earlier), again.Add(after)
	return x.quorum(from, due.Add(-earlier/2)) && x.quorum(again.Add(-enough), to) &&
		!slices.ContainsFunc(x.names, func(name string) bool { return x.harmed(name, killed|frozen|still, from, to) }) &&
		!slices.ContainsFunc(x.Strikes, func(s history.Strike) bool {
			return s.Kind.On() == plan.Clients && s.From <= to && from <= s.To.Add(settled)
		})
}

// overlapped reports whether a tick came while a run of an earlier one went on, however late that
// had begun, by the clock of its replica. Of a queue only the last tick waits. A run whose lease
// had ended counts if a replica says so: others may have taken over before its end was written.
func (x *index) overlapped(t tick) bool {
	told := slices.ContainsFunc(x.skips[t], func(s skip) bool { return s.says(scheduler.SkipOverlap) && !s.Pending })
	return slices.ContainsFunc(x.runs[t.job.Name], func(r *run) bool {
		if r.Tick == 0 || r.Tick >= t.at || !r.whole() || !told && r.end.Text != "" {
			return false
		}
		began, ended := r.At.Add(-handling), r.end.At.Add(handling)
		for _, h := range r.of.harm { // it may have stood still before it looked at its clock
			if h.by&(frozen|still) != 0 && h.meets(began, ended) {
				began, ended = min(began, h.from), max(ended, h.to)
			}
		}
		due := r.of.at(t.at)
		return due >= began && due <= ended
	})
}

// tooLate reports whether there was no time for a tick of a job that takes longer than its
// interval: a replica said that it was too late, or that a later one took its place, or it still
// waited in the end, or was run then, as none after it was.
func (x *index) tooLate(t tick) bool {
	return t.job.Long() && (slices.ContainsFunc(x.skips[t], func(s skip) bool { return s.says(scheduler.SkipMissed, scheduler.SkipSuperseded) }) ||
		!slices.ContainsFunc(x.runs[t.job.Name], func(r *run) bool { return r.Tick > t.at }))
}

// tooOld reports whether a replica said that the window for catching a tick up was over, of a job
// that had no time: its interval is short, or its runs took half of the time since the tick.
func (x *index) tooOld(t tick) bool {
	due := x.machine(t.at)
	return slices.ContainsFunc(x.skips[t], func(s skip) bool {
		if !s.says(scheduler.SkipMissed) || s.At < due.Add(t.job.Within()-dying) {
			return false
		}
		busy := time.Duration(0)
		for _, r := range x.runs[t.job.Name] {
			busy += max(0, min(r.over(), s.At).Sub(max(r.At, due)))
		}
		return t.job.Every < time.Second || busy >= s.At.Sub(due)/2
	})
}

// diedWith returns the life that others said held the tick or had done it, if it was killed by then
// or right after that; or whose run was cut short, as others said, if it was killed or frozen or
// could not keep its lease from the grant, which comes ahead of the tick, until then.
func (x *index) diedWith(t tick) string {
	for _, s := range x.skips[t] {
		l := x.lives[s.By]
		switch {
		case l == nil:
		case s.says(scheduler.SkipCutShort) && x.stalled(s.By, l.at(t.at).Add(-ahead), s.At):
			return s.By
		case s.says(scheduler.SkipHeld, scheduler.SkipDone) && x.harmed(s.By, killed, x.machine(t.at).Add(-dying), s.At.Add(completing)):
			return s.By
		}
	}
	return ""
}

// length is for how long all replicas may have been at work before the end of the faults.
func (x *index) length() time.Duration {
	began := x.Over
	for _, l := range x.lives {
		if l.start.At != 0 {
			began = min(began, l.start.At)
		}
	}
	return x.Over.Sub(began) - tail - settled
}

// checkTwice wants one run of each tick. At least once, there may be another one if that before it
// was cut short; or if it is stale: then its lease was granted before the other run, which was
// there because it had run out.
func (x *index) checkTwice() {
	for _, t := range sorted(x.done) {
		x.Counts["ticks that were run"]++
		runs := x.done[t]
		for i, r := range runs[:len(runs)-1] {
			next := runs[i+1]
			switch {
			case t.job.Delivery != scheduler.AtLeastOnce || x.orderly(r) && !r.unheard && !next.stale():
				x.add(Twice, next.At, "%s: %s and %s", t, r, next)
			case x.orderly(r) && r.unheard:
				x.excuse("%s: the end of %s was not confirmed by a quorum, and it was run again", t, r)
			}
		}
	}
}

// orderly reports whether a run was completed: its task returned while it had its lease, and its
// process had the time to say so to the servers.
func (x *index) orderly(r *run) bool {
	return r.whole() && r.end.Text == "" && r.end.At < r.until && !x.harmed(r.of.Name, killed|frozen, r.end.At, r.end.At.Add(completing))
}

// checkTrue wants that somebody has run a tick, or a later one of the job, of which a replica said
// that it was held or done, or has said for good why not; or that its holder has run out of time,
// or was interrupted between the tick and then: what had been granted to it stays granted. Nobody
// tells what a run has overlapped whose end may be in force, and may not.
func (x *index) checkTrue() {
	for _, t := range sorted(x.skips) {
		for _, s := range x.skips[t] {
			held := s.says(scheduler.SkipHeld)
			if s.Tick != t.at || !held && !s.says(scheduler.SkipDone) || held && slices.ContainsFunc(x.skips[t], skip.final) {
				continue
			}
			ran := slices.ContainsFunc(x.runs[s.Job], func(r *run) bool {
				overlaps := held && r.unheard && r.end.At.Add(speaking) >= s.At // its end may be in force
				return (r.Tick >= t.at || overlaps) && r.At <= s.At.Add(speaking)
			})
			holder := x.lives[s.By]
			late := held && holder != nil &&
				slices.ContainsFunc(holder.late[s.Job], func(gave history.Instant) bool { return gave.Sub(s.At).Abs() <= speaking })
			if !ran && !late && !x.harmed(s.By, killed|frozen|stopped, min(x.machine(t.at), s.At).Add(-dying), s.At.Add(speaking)) {
				x.add(Untrue, s.At, "%s said at %s that %s was %s by %q, and nobody had run it or a later one", s.life, s.At, t, s.Reason, s.By)
			}
		}
	}
}

// checkAsked wants a run for each call of RunNow that returned no error, if nothing happened to the
// process right then.
func (x *index) checkAsked() {
	const soon = 3 * time.Second
	for _, name := range x.names {
		taken := make(map[*run]bool)
		for _, asked := range x.lives[name].asked {
			from, to := asked.At.Add(-soon), asked.At.Add(soon)
			if x.harmed(name, killed|frozen|still|stopped, from, to) {
				continue
			}
			x.Counts["calls of RunNow without an error"]++
			i := slices.IndexFunc(x.runs[asked.Job], func(r *run) bool {
				return r.of.Name == name && r.Tick == 0 && !taken[r] && r.At >= from && r.At <= to
			})
			if i < 0 {
				x.add(Silent, asked.At, "%s: RunNow of %s returned no error at %s, and no run of it began", name, asked.Job, asked.At)
				continue
			}
			taken[x.runs[asked.Job][i]] = true
		}
	}
}

// checkPaused wants no tick of a paused job to be run: from when the pause had returned until it
// was ended nothing begins, and what came due in that time is not run later. After the last pause
// the job is run again.
func (x *index) checkPaused() {
	const heard = 250 * time.Millisecond // from the last look at the pauses to the journal, in a process that did not stand still
	resumed := make(map[string]history.Instant)
	for _, s := range x.Strikes {
		if s.Kind != plan.Pause {
			continue
		}
		if s.Failed != "" {
			x.add(Unavailable, s.To, "%s could not be resumed from %s to %s: %s", s.Job, s.Heal, s.To, s.Failed)
			continue
		}
		resumed[s.Job] = max(resumed[s.Job], s.To)
		for _, r := range x.runs[s.Job] {
			due := x.machine(r.Tick)
			begins, later := r.At < s.Heal, due > s.Done && due < s.Heal
			if s.Done == 0 || r.Tick == 0 || r.stale() || r.At <= s.Done.Add(heard) || !begins && !later {
				continue
			}
			// A process that stood still may have looked in time, and begun late.
			if !x.harmed(r.of.Name, killed|frozen|still, r.At.Add(-settled), r.At) {
				x.add(Unpaused, r.At, "%s: %s was run after a pause from %s (returned %s) to %s", tick{r.job, r.Tick}, r, s.From, s.Done, s.Heal)
			}
		}
	}
	for job, at := range resumed {
		if !x.Halted && !slices.ContainsFunc(x.runs[job], func(r *run) bool { return r.At > at }) {
			x.add(Unavailable, at, "%s was not run again after the end of its last pause, at %s", job, at)
		}
	}
}
