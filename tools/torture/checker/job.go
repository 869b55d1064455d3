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

func (v *Verdict) checkJobs(h *history.History, work []jobs.Job) {
	x := newIndex(h, work)
	var late []time.Duration
	for _, name := range slices.Sorted(maps.Keys(x.runs)) {
		late = append(late, x.count(v, x.runs[name])...)
		x.checkOverlap(v, x.runs[name])
		x.checkTokens(v, x.runs[name])
	}
	if slices.Sort(late); len(late) > 0 {
		v.Counts[Late] = int(late[len(late)/2].Milliseconds())
		v.Counts["ms from a tick to its run, p99"] = int(late[len(late)*99/100].Milliseconds())
	}
	for _, records := range h.Records {
		for _, r := range records {
			if r.Kind == history.Skip {
				v.Counts["ticks not run here: "+r.Reason]++
			}
		}
	}
	x.checkTimely(v)
	x.checkTwice(v)
	x.checkTicks(v)
	x.checkChanged(v)
	x.checkAsked(v)
	x.checkTrue(v)
	x.checkPaused(v)
}

// count adds the runs of a job, and returns how late those began that are no catch-ups.
func (x *index) count(v *Verdict, all []*run) (late []time.Duration) {
	add := func(name string, is bool) {
		if is {
			v.Counts[name]++
		}
	}
	v.Counts["jobs that ran"]++
	for _, r := range all {
		caughtUp := r.tick != 0 && r.why != string(joblog.OnTime)
		if r.tick != 0 && !caughtUp {
			late = append(late, r.delay)
		}
		v.Counts["runs"]++
		add("runs by RunNow", r.tick == 0)
		add("runs that catch up", caughtUp)
		add("runs again, after an attempt that was cut short", r.attempt > 1)
		add("runs cut short by SIGKILL", r.ended == 0 && r.killed != 0)
		add("runs that panicked", r.panicked)
		add("runs that began after their lease, in a thawed process", r.stale())
	}
	return late
}

// checkTicks wants each tick to be run that has to be, and what became of all others to be told:
// from the first that was run until shortly before the faults were over. Ticks of jobs with
// CatchUpAll have to be run, and ticks of any job that came while all was well.
func (x *index) checkTicks(v *Verdict) {
	for _, job := range x.jobs {
		runs := x.runs[job.Name]
		if !job.Ticked() {
			continue
		}
		owed := !x.Halted && !job.Paused
		if len(runs) == 0 {
			if owed && job.CatchUp == scheduler.CatchUpAll && job.Every <= x.length() {
				v.add(Lost, x.Over, "%s was never run", job.Name)
			}
			continue
		}
		for _, at := range job.Ticks(first(runs), x.last()) {
			t := tick{job.Name, at}
			switch {
			case !owed:
			case job.CatchUp == scheduler.CatchUpAll:
				v.Counts["ticks that had to be run exactly once"]++
				x.checkTick(v, t, &job)
			case job.Takes+spare <= job.Every && job.Every >= clocks && x.wasWell(t, &job) && !x.overlapped(t):
				x.ranWell(v, t)
			}
			x.explain(v, t)
		}
	}
}

// ranWell wants a tick to be run that came while all was well.
func (x *index) ranWell(v *Verdict, t tick) {
	v.Counts["ticks of any job that came while all was well"]++
	if len(x.done[t]) == 0 {
		x.lose(v, t, "nobody ran it, although all was well")
	}
}

// checkChanged wants jobs whose schedule changes with each deploy to be run by the schedule that
// replicas have between two of these. What the other one says has not been missed, and a rollout
// that was taken back has changed nothing.
func (x *index) checkChanged(v *Verdict) {
	changes := slices.DeleteFunc(slices.Clone(x.Strikes), func(s history.Strike) bool { return s.Kind != plan.Deploy && s.Kind != plan.TakenBack })
	slices.SortFunc(changes, func(a, b history.Strike) int { return int(a.From - b.From) })
	changes = append(changes, history.Strike{From: x.Over})
	for _, job := range x.jobs {
		if job.Then == 0 || len(x.runs[job.Name]) == 0 {
			continue
		}
		version, from := 0, max(x.machine(first(x.runs[job.Name])), 1)
		for _, next := range changes {
			to := next.From.Add(-dying)
			x.checkEra(v, job.In(version), from, to)
			from = next.To.Add(settled)
			if next.Kind == plan.Deploy {
				version++
			}
		}
	}
}

// checkEra looks at the ticks of a job from one change of schedules to the next.
func (x *index) checkEra(v *Verdict, job jobs.Job, from, to history.Instant) {
	var ran []*run
	for _, r := range x.runs[job.Name] {
		if due := x.machine(r.tick); due >= from && due <= to {
			ran = append(ran, r)
		}
	}
	if job.Phase = 0; len(ran) == 0 {
		return
	}
	if job.Kind == jobs.Duration {
		job.Phase = first(ran) % job.Every.Milliseconds()
	}
	for _, r := range ran {
		v.Counts["runs of schedules that change"]++
		if len(job.Ticks(r.tick, r.tick)) == 0 {
			v.add(Untimely, r.began, "%s: %s was run for %s, with an interval of %s from %s to %s", job.Name, r, tick{job.Name, r.tick}, job.Every, from, to)
		}
	}
	for _, at := range job.Ticks(first(ran), x.clock(to)) {
		if t := (tick{job.Name, at}); !x.Halted && x.wasWell(t, &job) {
			x.ranWell(v, t)
		}
	}
}

// checkPaused wants no tick of a paused job to be run: from when the pause had returned until it
// was ended nothing begins, and what came due in that time is not run later. After the last pause
// the job is run again.
func (x *index) checkPaused(v *Verdict) {
	const heard = 250 * time.Millisecond // from the last look at the pauses to the journal, in a process that did not stand still
	resumed := make(map[string]history.Instant)
	for _, s := range x.Strikes {
		if s.Kind != plan.Pause {
			continue
		}
		if s.Failed != "" {
			v.add(Unavailable, s.To, "%s could not be resumed from %s to %s: %s", s.Job, s.Heal, s.To, s.Failed)
			continue
		}
		resumed[s.Job] = max(resumed[s.Job], s.To)
		for _, r := range x.runs[s.Job] {
			due := x.machine(r.tick)
			begins, later := r.began < s.Heal, due > s.Done && due < s.Heal
			if s.Done == 0 || r.tick == 0 || r.stale() || r.began <= s.Done.Add(heard) || !begins && !later {
				continue
			}
			// A process that stood still may have looked in time, and begun late.
			before := r.began.Add(-settled)
			if !x.stoodStill(r.life, before, r.began) && !x.struck(r.life, before, r.began) {
				v.add(Unpaused, r.began, "%s: %s was run after a pause from %s (returned %s) to %s", tick{s.Job, r.tick}, r, s.From, s.Done, s.Heal)
			}
		}
	}
	for job, at := range resumed {
		if !x.Halted && !slices.ContainsFunc(x.runs[job], func(r *run) bool { return r.began > at }) {
			v.add(Unavailable, at, "%s was not run again after the end of its last pause, at %s", job, at)
		}
	}
}

// checkOverlap wants no run to begin before the earlier ones of the job are over.
func (x *index) checkOverlap(v *Verdict, runs []*run) {
	var latest *run
	for _, r := range runs {
		if r.stale() {
			continue
		}
		if latest != nil && r.began < latest.over() {
			v.add(Overlap, r.began, "%s: %s began %s before %s was over", r.job.Name, r, latest.over().Sub(r.began), latest)
		}
		if latest == nil || r.over() > latest.over() {
			latest = r
		}
	}
}

// checkTokens wants each run to have a greater token than those before. Runs that began after the
// end of their lease have no place in the order, but no token is given twice.
func (x *index) checkTokens(v *Verdict, runs []*run) {
	var last *run
	seen := make(map[uint64]*run)
	for _, r := range runs {
		if other := seen[r.token]; other != nil {
			v.add(Disorder, r.began, "%s: %s has the token of %s", r.job.Name, r, other)
			continue
		}
		seen[r.token] = r
		if r.stale() {
			continue
		}
		if last != nil && r.token < last.token {
			v.add(Disorder, r.began, "%s: %s came after %s", r.job.Name, r, last)
		}
		last = r
	}
}

const (
	// settled is how long after its start or a thaw a replica may need until it ticks.
	settled = 3 * time.Second
	// speaking is how long after a tick a replica may say what became of it.
	speaking = 3 * time.Second
)

// explain wants a tick to have been run, or somebody to have said for good why not: the replica
// whose lease settled it. It may have been killed before it could.
func (x *index) explain(v *Verdict, t tick) {
	job, _ := jobs.Find(x.jobs, t.job)
	if len(x.done[t]) == 0 && !x.lost[t] && !x.tooLate(t, &job) && !slices.ContainsFunc(x.skips[t], final) {
		due, until := x.machine(t.at), x.Over
		if i := slices.IndexFunc(x.runs[t.job], func(r *run) bool { return r.tick > t.at }); i >= 0 {
			until = x.runs[t.job][i].began
		}
		from, to := due.Add(-earlier), max(until, due).Add(speaking)
		if slices.ContainsFunc(x.names, func(name string) bool { return x.struck(name, from, to) || x.stalled(name, from, to) }) {
			v.Counts["ticks whose fate nobody need tell, because something happened to a process"]++
			return
		}
		v.add(Unexplained, due, "nobody ran %s, and nobody said what became of it%s", t, x.heard(t))
	}
	v.Counts["ticks that had to be run, or else to be told of"]++
}

// final reports whether a skip says that a tick is not run by anybody.
func final(rec history.Record) bool {
	switch scheduler.Reason(rec.Reason) {
	case scheduler.SkipMissed, scheduler.SkipSuperseded, scheduler.SkipCutShort, scheduler.SkipPaused:
		return true
	case scheduler.SkipOverlap:
		return !rec.Pending
	}
	return false
}

// checkTimely wants runs of ticks to be of times at which their job was due.
func (x *index) checkTimely(v *Verdict) {
	for _, job := range x.jobs {
		for _, r := range x.runs[job.Name] {
			if job.Ticked() && r.tick != 0 && len(job.Ticks(r.tick, r.tick)) == 0 {
				v.add(Untimely, r.began, "%s: %s was run for %s", job.Name, r, tick{job.Name, r.tick})
			}
		}
	}
}

// checkTrue wants that somebody has run a tick, or a later one of the job, of which a replica said
// that it was held or done, or has said for good why not; or that its holder has run out of time,
// or was interrupted between the tick and then: what had been granted to it stays granted. Nobody
// tells what a run has overlapped whose end may be in force, and may not.
func (x *index) checkTrue(v *Verdict) {
	for _, name := range x.names {
		for _, rec := range x.Records[name] {
			_, known := jobs.Find(x.jobs, rec.Job)
			reason := scheduler.Reason(rec.Reason)
			if rec.Kind != history.Skip || !known || rec.Tick == 0 || reason != scheduler.SkipHeld && reason != scheduler.SkipDone {
				continue
			}
			at := rec.Tick
			said := slices.ContainsFunc(x.runs[rec.Job], func(r *run) bool {
				overlaps := reason == scheduler.SkipHeld && r.unheard && r.ended.Add(speaking) >= rec.At // its end may be in force
				return (r.tick >= at || overlaps) && r.began <= rec.At.Add(speaking)
			}) || reason == scheduler.SkipHeld && slices.ContainsFunc(x.skips[tick{rec.Job, at}], final)
			if holder := x.lives[rec.By]; reason == scheduler.SkipHeld && holder != nil &&
				slices.ContainsFunc(holder.late[rec.Job], func(gave history.Instant) bool { return gave.Sub(rec.At).Abs() <= speaking }) {
				continue
			}
			if !said && !x.interrupted(rec.By, min(x.machine(at), rec.At).Add(-dying), rec.At.Add(speaking)) {
				v.add(Untrue, rec.At, "%s said at %s that %s was %s by %q, and nobody had run it or a later one",
					name, rec.At, tick{rec.Job, at}, rec.Reason, rec.By)
			}
		}
	}
}

// interrupted reports whether a life was killed, frozen or stopped in a time.
func (x *index) interrupted(name string, from, to history.Instant) bool {
	l := x.lives[name]
	return l != nil && (x.struck(name, from, to) || l.to >= from && l.to <= to)
}

const (
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
)

// outage is a time in which a server did not answer, or did not vote.
type outage struct {
	span
	server int
}

// outages returns those of all servers, in the order of time.
func (x *index) outages() []outage {
	if x.out != nil {
		return x.out
	}
	x.out = []outage{}
	for _, s := range x.Strikes {
		if s.Server < 0 {
			continue
		}
		to := s.To
		if s.Kind != plan.FreezeServer {
			to = to.Add(plan.Recovery)
		}
		x.out = append(x.out, outage{span{s.From, to}, s.Server})
	}
	slices.SortFunc(x.out, func(a, b outage) int { return cmp.Compare(a.from, b.from) })
	return x.out
}

// quorum reports whether a quorum of servers answered all the time.
func (x *index) quorum(from, to history.Instant) bool {
	away := func(at history.Instant) int {
		gone := make(map[int]bool)
		for _, o := range x.outages() {
			if o.meets(at, at) {
				gone[o.server] = true
			}
		}
		return len(gone)
	}
	most := (x.Servers - 1) / 2
	if away(from) > most {
		return false
	}
	return !slices.ContainsFunc(x.outages(), func(o outage) bool { return o.from >= from && o.from <= to && away(o.from) > most })
}

// wasWell reports whether all was well when a tick came: no process was killed or frozen, and a
// quorum of servers answered, if not when the tick came then in time to try again. A replica that
// was stopped in order is no excuse, another one is there; nor is a clock that leaps or is wrong.
func (x *index) wasWell(t tick, job *jobs.Job) bool {
	due := x.machine(t.at)
	again := due.Add(min(job.Every, scheduler.Grace))
	from, to := due.Add(-earlier), again.Add(after)
	if !x.quorum(from, due.Add(-earlier/2)) || !x.quorum(again.Add(-enough), to) {
		return false
	}
	for _, name := range x.names {
		if x.struck(name, from, to) || x.stoodStill(name, from, to) {
			return false
		}
	}
	for _, s := range x.Strikes {
		if s.Kind.On() == plan.Clients && s.From <= to && from <= s.To.Add(settled) {
			return false
		}
	}
	return true
}

// checkAsked wants a run for each call of RunNow that returned no error, if nothing happened to the
// process right then.
func (x *index) checkAsked(v *Verdict) {
	const soon = 3 * time.Second
	for _, name := range x.names {
		l := x.lives[name]
		taken := make(map[*run]bool)
		for _, asked := range l.asked {
			from, to := asked.At.Add(-soon), asked.At.Add(soon)
			if x.interrupted(name, from, to) || x.stoodStill(name, from, to) {
				continue
			}
			v.Counts["calls of RunNow without an error"]++
			i := slices.IndexFunc(x.runs[asked.Job], func(r *run) bool {
				return r.life == name && r.tick == 0 && !taken[r] && r.began >= from && r.began <= to
			})
			if i < 0 {
				v.add(Silent, asked.At, "%s: RunNow of %s returned no error at %s, and no run of it began", name, asked.Job, asked.At)
				continue
			}
			taken[x.runs[asked.Job][i]] = true
		}
	}
}

const (
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
		return t.job
	}
	return fmt.Sprintf("%s, tick %s", t.job, time.UnixMilli(t.at).UTC().Format("15:04:05.000"))
}

func (r *run) String() string {
	return fmt.Sprintf("%s (began %s, token %d, attempt %d)", r.id, r.began, r.token, r.attempt)
}

func sorted(ticks map[tick][]*run) []tick {
	return slices.SortedFunc(maps.Keys(ticks), func(a, b tick) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.at, b.at))
	})
}

// checkTwice wants one run of each tick. At least once, there may be another one if that before it
// was cut short; or if it is stale: then its lease was granted before the other run, which was
// there because it had run out.
func (x *index) checkTwice(v *Verdict) {
	for _, t := range sorted(x.done) {
		v.Counts["ticks that were run"]++
		runs := x.done[t]
		for i, r := range runs[:len(runs)-1] {
			next := runs[i+1]
			switch {
			case r.job.Delivery != scheduler.AtLeastOnce || x.orderly(r) && !r.unheard && !next.stale():
				v.add(Twice, next.began, "%s: %s and %s", t, r, next)
			case x.orderly(r) && r.unheard:
				v.excuse("%s: the end of %s was not confirmed by a quorum, and it was run again", t, r)
			}
		}
	}
}

// orderly reports whether a run was completed: its task returned while it had its lease, and its
// process had the time to say so to the servers.
func (x *index) orderly(r *run) bool {
	return r.whole() && r.lost == "" && r.ended < r.deadline && !x.struck(r.life, r.ended, r.ended.Add(completing))
}

// length is for how long all replicas may have been at work before the end of the faults.
func (x *index) length() time.Duration {
	began := x.Over
	for _, name := range x.names {
		if l := x.lives[name]; l.start.At != 0 {
			began = min(began, l.start.At)
		}
	}
	return x.Over.Sub(began) - tail - settled
}

func first(runs []*run) int64 {
	return slices.MinFunc(runs, func(a, b *run) int { return cmp.Compare(a.tick, b.tick) }).tick
}

// last is the last tick that had to be run while there were faults.
func (x *index) last() int64 { return x.OverAt - tail.Milliseconds() }

func (x *index) checkTick(v *Verdict, t tick, job *jobs.Job) {
	runs := x.done[t]
	if job.Delivery == scheduler.AtLeastOnce && len(runs) > 0 {
		if !slices.ContainsFunc(runs, (*run).whole) && !x.tooLate(t, job) && !x.tooOld(t, job) {
			x.lose(v, t, "none of its runs %v came to its end", runs)
		}
		return
	}
	if len(runs) > 0 {
		return
	}
	if x.overlapped(t) || x.tooLate(t, job) || x.tooOld(t, job) {
		v.Counts["ticks that had to be run, but runs of earlier ones left no time"]++
		return
	}
	if dead := x.diedWith(t); dead != "" && job.Delivery != scheduler.AtLeastOnce {
		v.excuse("%s: %s was killed, or stood still, between the grant and the task", t, dead)
		return
	}
	x.lose(v, t, "nobody ran it")
}

func (x *index) lose(v *Verdict, t tick, text string, args ...any) {
	x.lost[t] = true
	v.add(Lost, x.machine(t.at), "%s: %s%s", t, fmt.Sprintf(text, args...), x.heard(t))
}

// overlapped reports whether a tick came while a run of an earlier one went on, however late that
// had begun, by the clock of its replica. Of a queue only the last tick waits. A run whose lease
// had ended counts if a replica says so: others may have taken over before its end was written.
func (x *index) overlapped(t tick) bool {
	told := slices.ContainsFunc(x.skips[t], func(s history.Record) bool { return scheduler.Reason(s.Reason) == scheduler.SkipOverlap && !s.Pending })
	return slices.ContainsFunc(x.runs[t.job], func(r *run) bool {
		if r.tick == 0 || r.tick >= t.at || !r.whole() || !told && r.lost != "" {
			return false
		}
		l := x.lives[r.life]
		began, ended := r.began.Add(-handling), r.ended.Add(handling)
		for _, s := range slices.Concat(l.away, l.paused) { // it may have stood still before it looked at its clock
			if s.meets(began, ended) {
				began, ended = min(began, s.from), max(ended, s.to)
			}
		}
		due := l.at(t.at)
		return due >= began && due <= ended
	})
}

// stoodStill reports whether a process did not run for a moment in a time, as it saw itself.
func (x *index) stoodStill(name string, from, to history.Instant) bool {
	return slices.ContainsFunc(x.lives[name].paused, func(s span) bool { return s.meets(from, to) })
}

// stalled reports whether a process stood still, or the servers did not answer.
func (x *index) stalled(name string, from, to history.Instant) bool {
	return x.stoodStill(name, from, to) || slices.ContainsFunc(x.outages(), func(o outage) bool { return o.meets(from, to) })
}

// tooLate reports whether there was no time for a tick of a job that takes longer than its
// interval: a replica said that it was too late, or that a later one took its place, or it still
// waited in the end, or was run then, as none after it was.
func (x *index) tooLate(t tick, job *jobs.Job) bool {
	if !job.Ticked() || !job.Long() {
		return false
	}
	return slices.ContainsFunc(x.skips[t], func(s history.Record) bool {
		why := scheduler.Reason(s.Reason)
		return why == scheduler.SkipMissed || why == scheduler.SkipSuperseded
	}) || !slices.ContainsFunc(x.runs[t.job], func(r *run) bool { return r.tick > t.at })
}

// tooOld reports whether a replica said that the window for catching a tick up was over, of a job
// that had no time: its interval is short, or its runs took half of the time since the tick.
func (x *index) tooOld(t tick, job *jobs.Job) bool {
	due := x.machine(t.at)
	return slices.ContainsFunc(x.skips[t], func(s history.Record) bool {
		if scheduler.Reason(s.Reason) != scheduler.SkipMissed || s.At < due.Add(job.Within()-dying) {
			return false
		}
		busy := time.Duration(0)
		for _, r := range x.runs[t.job] {
			busy += max(0, min(r.over(), s.At).Sub(max(r.began, due)))
		}
		return job.Every < time.Second || busy >= s.At.Sub(due)/2
	})
}

// diedWith returns the life that others said held the tick or had done it, if it was killed by then
// or right after that; or whose run was cut short, as others said, if it was killed or frozen or
// could not keep its lease from the grant, which comes ahead of the tick, until then.
func (x *index) diedWith(t tick) string {
	for _, s := range x.skips[t] {
		l := x.lives[s.By]
		if l == nil {
			continue
		}
		switch scheduler.Reason(s.Reason) {
		case scheduler.SkipCutShort:
			if granted := l.at(t.at).Add(-ahead); x.struck(s.By, granted, s.At) || x.stalled(s.By, granted, s.At) {
				return s.By
			}
		case scheduler.SkipHeld, scheduler.SkipDone:
			if l.killed != 0 && l.killed >= x.machine(t.at).Add(-dying) && l.killed <= s.At.Add(completing) {
				return s.By
			}
		}
	}
	return ""
}

// machine is when the machine's clock showed a time.
func (x *index) machine(ms int64) history.Instant {
	return x.Over.Add(time.Duration(ms-x.OverAt) * time.Millisecond)
}

// clock is what the machine's clock showed.
func (x *index) clock(at history.Instant) int64 { return x.OverAt + at.Sub(x.Over).Milliseconds() }

// heard tells what was said of a tick.
func (x *index) heard(t tick) string {
	text := ""
	for _, name := range x.names {
		for _, rec := range x.Records[name] {
			job, known := jobs.Find(x.jobs, rec.Job)
			if known && rec.Kind == history.Skip && rec.Job == t.job && slices.Contains(before(&job, rec), t.at) {
				text += fmt.Sprintf("; %s at %s: %s", name, rec.At, rec.Reason)
				if rec.By != "" {
					text += " by " + rec.By
				}
				if rec.Pending {
					text += ", pending"
				}
			}
		}
	}
	return text
}
