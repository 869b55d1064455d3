package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// The rows of the report with jobs.
const (
	ran        = "jobs that ran, one-time jobs included"
	runs       = "runs"
	catchUps   = "of which catch-ups"
	runAgain   = "of which again, after an attempt that was cut short"
	manual     = "of which by RunNow"
	cutShort   = "runs cut short by SIGKILL"
	panicked   = "runs that panicked"
	stale      = "runs that began after their lease, in a thawed process"
	ticks      = "ticks that were run"
	exact      = "ticks that had to be run exactly once"
	overlapped = "of which a run of an earlier one overlapped"
	well       = "ticks of any job that came while all was well"
	runNow     = "calls of RunNow without an error"
	explained  = "ticks that had to be run, or else to be told of"
	unasked    = "left out because something happened to a process"
	pauses     = "pauses"
	skips      = "skips by reason"
	lateness   = "delay of runs in ms, p50"
	lateness99 = "delay of runs in ms, p99"
)

// Late is the row with the delay of half of the runs in ms: a machine that cannot carry the work
// loses ticks.
const Late = lateness

func (v *Verdict) checkJobs(h *history.History, work []jobs.Job) {
	v.list(ran, runs, catchUps, runAgain, manual, cutShort, panicked, stale, ticks, exact, overlapped, well, runNow,
		explained, unasked, pauses, skips, lateness, lateness99)
	x := newIndex(h, work)
	var late []time.Duration
	for _, name := range slices.Sorted(maps.Keys(x.runs)) {
		late = append(late, x.count(v, x.runs[name])...)
		x.checkOverlap(v, x.runs[name])
		x.checkTokens(v, x.runs[name])
	}
	if slices.Sort(late); len(late) > 0 {
		v.Counts[lateness] = int(late[len(late)/2].Milliseconds())
		v.Counts[lateness99] = int(late[len(late)*99/100].Milliseconds())
	}
	for _, records := range h.Records {
		for _, r := range records {
			if r.Kind == history.Skip {
				v.tally(skips, r.Reason)
			}
		}
	}
	x.checkTimely(v)
	x.checkTwice(v)
	x.checkExact(v)
	x.checkWell(v)
	x.checkAsked(v)
	x.checkExplained(v)
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
	v.Counts[ran]++
	for _, r := range all {
		caughtUp := r.tick != 0 && r.why != string(joblog.OnTime)
		if r.tick != 0 && !caughtUp {
			late = append(late, r.delay)
		}
		v.Counts[runs]++
		add(manual, r.tick == 0)
		add(catchUps, caughtUp)
		add(runAgain, r.attempt > 1)
		add(cutShort, r.ended == 0 && r.killed != 0)
		add(panicked, r.panicked)
		add(stale, r.stale())
	}
	return late
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
		v.Counts[pauses]++
		resumed[s.Job] = max(resumed[s.Job], s.To)
		for _, r := range x.runs[s.Job] {
			due := x.machine(r.tick)
			begins, later := r.began < s.Heal, due > s.Done && due < s.Heal
			if s.Done == 0 || r.tick == 0 || r.stale() || r.began <= s.Done.Add(heard) || !begins && !later {
				continue
			}
			// A process that stood still may have looked in time, and begun late.
			before := r.began.Add(-settled)
			still := slices.ContainsFunc(x.lives[r.life].paused, func(s span) bool { return s.meets(before, r.began) })
			if !still && !x.struck(r.life, before, r.began) {
				v.add(Unpaused, "%s: %s was run after a pause from %s (returned %s) to %s", tick{s.Job, r.tick}, r, s.From, s.Done, s.Heal)
			}
		}
	}
	for job, at := range resumed {
		if !x.Halted && !slices.ContainsFunc(x.runs[job], func(r *run) bool { return r.began > at }) {
			v.add(Unavailable, "%s was not run again after the end of its last pause, at %s", job, at)
		}
	}
}
