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

// Late is the row of the report with the median delay of the runs, in ms. A machine that cannot
// carry the work loses ticks.
const Late = "ms from a tick to its run, p50"

const (
	// settled is how long after its start or a thaw a replica may need until it ticks.
	settled = 3 * time.Second
	// speaking is how long after a tick a replica may say what became of it.
	speaking = 3 * time.Second
	// earlier is how long before a tick, by the machine's clock, an event may matter for the tick.
	// A replica whose clock is ahead may run the tick that early. Before that, the lease of a
	// process that was killed runs out, and another leader is elected.
	earlier = 5 * time.Second
	// after is how long after the last try of a tick, by the machine's clock, a replica whose clock
	// is behind may run the tick.
	after = 2 * time.Second
	// enough is how much of the time in which a tick is tried again must be left when the servers
	// answer again.
	enough = time.Second
	// spare is how much shorter than its interval a run must be, so that no tick overlaps the next.
	spare = time.Second
	// clocks is the shortest interval of a job whose ticks must be run while all is well. No two
	// clocks differ by more, except for leaps.
	clocks = 2 * plan.MaxAhead
	// completing is the longest time from the end of a task until a quorum has stored it, and from
	// a grant to the task.
	completing = time.Second
	// handling is the longest time between a record in the journal and the begin or end of the
	// task.
	handling = 50 * time.Millisecond
	// tail is the time at the end of the faults whose ticks are not checked: a replica whose clock
	// is behind has not reached them yet.
	tail = 2 * time.Second
	// dying is how long before a tick, by the machine's clock, its winner may have been killed: a
	// winner whose clock is ahead runs the tick early.
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

// sorted returns the ticks by the names of their jobs, and then by their times.
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

// count counts the runs of a job. It returns the delay of each run that ran on time, so without
// catch-ups and runs by RunNow.
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

// checkOrder checks that no run begins before the earlier runs of its job are over, and that each
// has a larger token than all before. A run that began after the end of its lease has no place in
// this order, but its token must not be given twice either.
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

// eras returns the eras of a job: a single one if its schedule stays, else those between rollouts.
// A deploy changes the schedule. A rollout that was taken back ends an era but leaves the schedule
// as it was. A tick that only the other schedule has is not missed.
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

// checkSchedules checks the ticks of a job, from the first that was run until shortly before the
// end of the faults. The job must be run only at times at which it was due. Each tick that has to
// be run must be run. The journals must tell what became of all other ticks.
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
	return !job.Paused && job.Ticked() && job.CatchUp == scheduler.CatchUpAll
}

// checkTick checks a tick of a job, with the schedule that the job had then. A tick has to be run
// if its job has CatchUpAll, or if it came while all was well.
func (x *index) checkTick(t tick, job *jobs.Job) {
	switch {
	case job.Paused:
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

// checkOwed checks that a tick was run, if there was time. With at-least-once delivery, a run of
// the tick must have come to its end.
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

// heard returns what the journals say of a tick.
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

// explain checks that a tick was run, or that a replica said for good why not: the replica whose
// lease settled the tick. That replica may have been killed before it could say so.
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

// final reports whether a skip says that no replica runs the tick any more.
func (s skip) final() bool {
	return s.says(scheduler.SkipMissed, scheduler.SkipSuperseded, scheduler.SkipCutShort, scheduler.SkipPaused) ||
		s.says(scheduler.SkipOverlap) && !s.Pending
}

// wasWell reports whether all was well when a tick came: no process was killed or frozen, and a
// quorum of servers answered. If the servers did not answer when the tick came, they must have
// answered in time for another try. A replica that was stopped in order is no excuse, because
// another one is there. Nor is a clock that leaps or is wrong.
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

// overlapped reports whether a tick came while a run of an earlier tick went on, by the clock of
// that run's replica, however late the run had begun. Of a queue only the last tick waits. A run
// whose lease had ended counts only if a replica reported the overlap: others may have taken over
// before the end of the run was written.
func (x *index) overlapped(t tick) bool {
	told := slices.ContainsFunc(x.skips[t], func(s skip) bool { return s.says(scheduler.SkipOverlap) && !s.Pending })
	return slices.ContainsFunc(x.runs[t.job.Name], func(r *run) bool {
		if r.Tick == 0 || r.Tick >= t.at || !r.whole() || !told && r.end.Text != "" {
			return false
		}
		began, ended := r.At.Add(-handling), r.end.At.Add(handling)
		for _, h := range r.of.harm { // the replica may have stood still before it looked at its clock
			if h.by&(frozen|still) != 0 && h.meets(began, ended) {
				began, ended = min(began, h.from), max(ended, h.to)
			}
		}
		due := r.of.at(t.at)
		return due >= began && due <= ended
	})
}

// tooLate reports whether there was no time for a tick of a job that takes longer than its
// interval. There was none if a replica said that the tick was too late, or that a later tick took
// its place. There was none either if no later tick was run: this one was run last, or still waited
// in the end.
func (x *index) tooLate(t tick) bool {
	return t.job.Long() && (slices.ContainsFunc(x.skips[t], func(s skip) bool { return s.says(scheduler.SkipMissed, scheduler.SkipSuperseded) }) ||
		!slices.ContainsFunc(x.runs[t.job.Name], func(r *run) bool { return r.Tick > t.at }))
}

// tooOld reports whether a replica said that the window for catching up a tick was over, and the
// job had no time in that window: its interval is short, or its runs took half of the time since
// the tick.
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

// diedWith returns the life that was granted a tick and failed before it could run it; "" if there
// is none. Either others said that this life held the tick or had done it, and it was killed by
// then or right after. Or others said that its run was cut short, and it was killed, was frozen or
// could not keep its lease at some time from the grant, which comes ahead of the tick, until they
// said so.
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

// length returns for how long all replicas may have been at work before the end of the faults.
func (x *index) length() time.Duration {
	began := x.Over
	for _, l := range x.lives {
		if l.start.At != 0 {
			began = min(began, l.start.At)
		}
	}
	return x.Over.Sub(began) - tail - settled
}

// checkTwice checks that each tick was run once. With at-least-once delivery, another run may
// follow a run that was cut short; if no quorum confirmed the end of a run, another run is excused.
// A stale run may follow any run: its lease was granted first, and the other run took place because
// that lease had run out.
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

// orderly reports whether a run was completed: its task returned before its lease ended, and its
// process had the time to tell the servers.
func (x *index) orderly(r *run) bool {
	return r.whole() && r.end.Text == "" && r.end.At < r.until && !x.harmed(r.of.Name, killed|frozen, r.end.At, r.end.At.Add(completing))
}

// checkTrue checks each record that a tick was held or done elsewhere. Such a record is true if a
// replica had run the tick, or a later one of the job. A record of a held tick is also true if a
// replica said for good why the tick was not run, or if the holder gave up the tick at that time.
//
// A record is no violation if the holder was killed, frozen or stopped between the tick and the
// record: a lease that was granted to it stays granted. If no quorum confirmed the end of a run,
// that end may or may not be in force. Then no replica says that the run overlapped a tick, so the
// run counts for a held tick.
func (x *index) checkTrue() {
	for _, t := range sorted(x.skips) {
		for _, s := range x.skips[t] {
			held := s.says(scheduler.SkipHeld)
			if s.Tick != t.at || !held && !s.says(scheduler.SkipDone) || held && slices.ContainsFunc(x.skips[t], skip.final) {
				continue
			}
			ran := slices.ContainsFunc(x.runs[s.Job], func(r *run) bool {
				overlaps := held && r.unheard && r.end.At.Add(speaking) >= s.At // its end may not be in force
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

// checkAsked checks that each call of RunNow that returned no error led to a run, unless something
// happened to the process at that time.
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

// checkPaused checks that no tick of a paused job is run. From the return of the pause until its
// end nothing begins, and a tick that came due in that time is not run later. After the last pause
// the job is run again.
func (x *index) checkPaused() {
	const heard = 250 * time.Millisecond // longest from the last look at the pauses to the journal, in a process that did not stand still
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
		if !slices.ContainsFunc(x.runs[job], func(r *run) bool { return r.At > at }) {
			x.add(Unavailable, at, "%s was not run again after the end of its last pause, at %s", job, at)
		}
	}
}
