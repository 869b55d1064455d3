package checker

import (
	"slices"
	"time"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

const (
	// settled is how long after its start or a thaw a replica may need until it ticks.
	settled = 3 * time.Second
	// speaking is how long after a tick it may say what became of it.
	speaking = 3 * time.Second
	// breath is how near to a pause of its process a tick is left out.
	breath = time.Second
)

// checkExplained wants every replica to have run each tick of its life, or to have said why not.
func (x *index) checkExplained(v *Verdict) {
	for _, name := range x.names {
		l := x.lives[name]
		if l.start.At == 0 {
			continue
		}
		end := l.clock(l.to)
		for _, job := range x.Jobs {
			if !job.Ticked() {
				continue
			}
			long := speaking
			if job.Kind == work.Duration {
				long += job.Every // it comes some time in its interval
			}
			for _, at := range job.Ticks(l.start.Clock, end) {
				x.explain(v, l, tick{job.Name, at}, long)
			}
		}
		for job, at := range l.created {
			x.explain(v, l, tick{job, at}, speaking)
		}
	}
}

func (x *index) explain(v *Verdict, l *life, t tick, long time.Duration) {
	due := l.at(t.at)
	if due.Sub(l.start.At) < settled && l.created[t.job] == 0 || l.to < due.Add(long) {
		return
	}
	if slices.ContainsFunc(l.away, func(s span) bool { return s.meets(due.Add(-settled), due.Add(long)) }) ||
		slices.ContainsFunc(l.leaps, func(leap record.Record) bool {
			return leap.At >= due.Add(-settled) && leap.At <= due.Add(long)
		}) {
		return
	}
	if l.said[t] {
		v.Explained++
		return
	}
	if slices.ContainsFunc(l.paused, func(s span) bool { return s.meets(due.Add(-breath), due.Add(long-speaking+breath)) }) {
		v.Paused++
		return
	}
	v.Explained++
	v.Add(Unexplained, "%s did not say what became of %s, due there at %s%s", l.name, t, due, x.heard(t))
}

// checkTrue wants that somebody has run a tick, or a later one of the job, of which a replica said
// that it was held or done; or that its holder has run out of time, or was interrupted between the
// tick and then: what had been granted to it stays granted.
func (x *index) checkTrue(v *Verdict) {
	for _, name := range x.names {
		for _, rec := range x.Records[name] {
			job, known := work.Find(x.Jobs, rec.Job)
			reason := scheduler.Reason(rec.Reason)
			if rec.Kind != record.Skip || !known || rec.Tick == 0 || reason != scheduler.SkipHeld && reason != scheduler.SkipDone {
				continue
			}
			at := job.Tick(rec.Tick)
			said := slices.ContainsFunc(x.runs[rec.Job], func(r *run) bool { return r.tick >= at && r.began <= rec.At.Add(speaking) })
			if holder := x.lives[rec.By]; reason == scheduler.SkipHeld && holder != nil && holder.late[tick{rec.Job, at}].Add(speaking) >= rec.At {
				continue
			}
			if !said && !x.interrupted(rec.By, min(x.machine(at), rec.At).Add(-dying), rec.At.Add(speaking)) {
				v.Add(Untrue, "%s said at %s that %s was %s by %q, and nobody had run it or a later one",
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

// weight orders what was said of a tick that nobody ran: the reason nearest to the truth first.
var weight = []scheduler.Reason{
	scheduler.SkipOverlap, scheduler.SkipSuperseded, scheduler.SkipMissed, scheduler.SkipQuarantined, scheduler.SkipNoQuorum,
	scheduler.SkipTimeout, scheduler.SkipSplit, scheduler.SkipRefused, scheduler.SkipAhead, scheduler.SkipOther, scheduler.SkipNotLeader, scheduler.SkipStopped, scheduler.SkipHeld, scheduler.SkipDone,
}

// countNobody counts the ticks that nobody ran, from the first of each job that was.
func (x *index) countNobody(v *Verdict) {
	for _, job := range x.Jobs {
		runs := x.runs[job.Name]
		if !job.Ticked() || len(runs) == 0 {
			continue
		}
		for _, at := range job.Ticks(first(runs), x.last(&job)) {
			t := tick{job.Name, at}
			if len(x.done[t]) > 0 {
				continue
			}
			why := "no replica up"
			for _, reason := range weight {
				if slices.ContainsFunc(x.skips[t], func(s record.Record) bool { return s.Reason == string(reason) }) {
					why = string(reason)
					break
				}
			}
			v.Nobody[why]++
		}
	}
}
