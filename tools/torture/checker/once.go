package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
)

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
