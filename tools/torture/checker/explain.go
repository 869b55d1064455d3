package checker

import (
	"slices"
	"time"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
)

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
// or was interrupted between the tick and then: what had been granted to it stays granted.
func (x *index) checkTrue(v *Verdict) {
	for _, name := range x.names {
		for _, rec := range x.Records[name] {
			_, known := jobs.Find(x.jobs, rec.Job)
			reason := scheduler.Reason(rec.Reason)
			if rec.Kind != history.Skip || !known || rec.Tick == 0 || reason != scheduler.SkipHeld && reason != scheduler.SkipDone {
				continue
			}
			at := rec.Tick
			said := slices.ContainsFunc(x.runs[rec.Job], func(r *run) bool { return r.tick >= at && r.began <= rec.At.Add(speaking) }) ||
				reason == scheduler.SkipHeld && slices.ContainsFunc(x.skips[tick{rec.Job, at}], final)
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
