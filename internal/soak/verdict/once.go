package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/chaos/journal"
	"github.com/tenure-dev/tenure/internal/soak/story"
	"github.com/tenure-dev/tenure/internal/soak/work"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	// completing is how long it takes at most from the end of a task until its lease is completed on a quorum, and from a grant to the task.
	completing = time.Second
	// tail is left out at the end of the faults: a replica whose clock is behind has not ticked yet.
	tail = 2 * time.Second
	// dying is how long before a tick, by the machine's clock, its winner may have been killed: one whose clock is ahead runs it early.
	dying = 3 * time.Second
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

// checkTwice wants one run of each tick. At least once, there may be another one if that before it was cut short; or if it is stale: then its lease was
// granted before the other run, which was there because it had run out.
func (x *index) checkTwice(v *Verdict) {
	for _, t := range sorted(x.done) {
		v.Ticks++
		runs := x.done[t]
		for i, r := range runs[:len(runs)-1] {
			next := runs[i+1]
			if r.job.Delivery != redlock.AtLeastOnce || x.orderly(r) && !next.stale() {
				v.violate(Twice, "%s: %s and %s", t, r, next)
			}
		}
	}
}

// orderly reports whether a run was completed: its task returned while it had its lease, and its process had the time to say so to the servers.
func (x *index) orderly(r *run) bool {
	return r.ended != 0 && !r.panicked && r.lost == "" && r.ended < r.deadline && !x.struck(r.life, r.ended, r.ended.Add(completing))
}

// checkExact wants all ticks of jobs with CatchUpAll, from the first that was run, unless the soak was interrupted.
func (x *index) checkExact(v *Verdict) {
	if x.Halted {
		return
	}
	for _, job := range x.Jobs {
		runs := x.runs[job.Name]
		if !job.Ticked() || job.CatchUp != scheduler.CatchUpAll {
			continue
		}
		if len(runs) == 0 {
			v.violate(Lost, "%s was never run", job.Name)
			continue
		}
		for _, at := range job.Ticks(first(runs), x.last(&job)) {
			v.Exact++
			x.checkTick(v, tick{job.Name, at}, &job)
		}
	}
}

func first(runs []*run) int64 {
	return slices.MinFunc(runs, func(a, b *run) int { return cmp.Compare(a.tick, b.tick) }).tick
}

// last is the last tick that had to be run while there were faults.
func (x *index) last(job *work.Job) int64 {
	last := x.OverAt - tail.Milliseconds()
	if job.Kind == work.Duration {
		last -= job.Every.Milliseconds() // it may come at the end of its interval
	}
	return last
}

func (x *index) checkTick(v *Verdict, t tick, job *work.Job) {
	runs := x.done[t]
	if job.Delivery == redlock.AtLeastOnce {
		whole := func(r *run) bool { return r.ended != 0 && !r.panicked && r.lost == "" }
		if !slices.ContainsFunc(runs, whole) {
			v.violate(Lost, "%s: none of its runs %v came to its end%s", t, runs, x.heard(t))
		}
		return
	}
	if len(runs) > 0 {
		return
	}
	if dead := x.diedWith(t); dead != "" {
		v.Excuses = append(v.Excuses, fmt.Sprintf("%s: %s was killed between the grant and the task", t, dead))
		return
	}
	v.violate(Lost, "%s: nobody ran it%s", t, x.heard(t))
}

// diedWith returns the life that others said held the tick or had done it, if it was killed by then or right after that.
func (x *index) diedWith(t tick) string {
	for _, s := range x.skips[t] {
		why, l := scheduler.Reason(s.Reason), x.lives[s.By]
		if why != scheduler.SkipHeld && why != scheduler.SkipDone || l == nil || l.killed == 0 {
			continue
		}
		if l.killed >= x.machine(t.at).Add(-dying) && l.killed <= s.At.Add(completing) {
			return s.By
		}
	}
	return ""
}

// machine is when the machine's clock showed a time.
func (x *index) machine(ms int64) journal.Instant {
	return x.Over.Add(time.Duration(ms-x.OverAt) * time.Millisecond)
}

// heard tells what was said of a tick.
func (x *index) heard(t tick) string {
	text := ""
	for _, name := range x.names {
		for _, rec := range x.Records[name] {
			job, known := work.Find(x.Jobs, rec.Job)
			if known && rec.Kind == story.Skip && rec.Job == t.job && job.Tick(rec.Tick) == t.at {
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
