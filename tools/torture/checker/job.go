package checker

import (
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
