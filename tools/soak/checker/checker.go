package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/tools/harness/report"
	"github.com/tenure-dev/tenure/tools/soak/record"
)

// The kinds of violations.
const (
	Twice       report.Kind = "run twice"    // a tick
	Lost        report.Kind = "tick lost"    // of a job with CatchUpAll
	Overlap     report.Kind = "runs overlap" // of one job
	Disorder    report.Kind = "tokens out of order"
	Unexplained report.Kind = "unexplained" // nobody ran a tick, and nobody said why
	Untimely    report.Kind = "not a tick"  // a run of a time at which its job was not due
	Untrue      report.Kind = "untrue"      // a replica said that somebody ran a tick, and nobody did
	Silent      report.Kind = "nothing run" // RunNow returned no error, and no run began
	Leftover    report.Kind = "leftover key"
	Ended       report.Kind = "ended by itself" // a replica
	Leaked      report.Kind = "leaked goroutines"
	Faulty      report.Kind = "fault" // a replica said that something was not as it has to be
	Failure     report.Kind = "failure"
)

// Verdict is what became of a history.
type Verdict struct {
	Lives, Stopped int
	Jobs           int // that ran, one-time jobs included
	Runs           int
	Ticks          int             // distinct, that were run
	CatchUps       int             // runs of ticks that were missed, or had to wait, or were cut short
	Again          int             // runs of ticks whose earlier attempt was cut short
	Manual         int             // runs that RunNow asked for
	Cut            int             // runs that the death of their process cut short
	Failed         int             // runs that panicked
	Stale          int             // runs that began after the end of their lease, in a process that had been frozen
	Exact          int             // ticks that had to be run, of jobs with CatchUpAll
	Overlapped     int             // of these, ticks that a run of an earlier one overlapped, so that nobody ran them
	Well           int             // ticks that came while all was well
	Asked          int             // calls of RunNow that returned no error
	Explained      int             // ticks that had to be run, or else to be told of
	Unasked        int             // the same, left out because something happened to a process
	Nobody         map[string]int  // ticks that nobody ran, by the reason
	Skips          map[string]int  // by reason
	Faults         map[string]int  // by kind
	Late           []time.Duration // how late runs began that are no catch-ups, ascending
	LateCatchUps   []time.Duration // the same of catch-ups

	Excuses []string
	report.Violations
}

// Check judges a history.
func Check(h *History) *Verdict {
	x := newIndex(h)
	v := &Verdict{Lives: len(h.Lives), Nobody: make(map[string]int), Skips: make(map[string]int), Faults: make(map[string]int)}
	for _, name := range slices.Sorted(maps.Keys(x.runs)) {
		x.count(v, x.runs[name])
		x.checkOverlap(v, x.runs[name])
		x.checkTokens(v, x.runs[name])
	}
	slices.Sort(v.Late)
	slices.Sort(v.LateCatchUps)
	x.checkTimely(v)
	x.checkTwice(v)
	x.checkExact(v)
	x.checkWell(v)
	x.checkAsked(v)
	x.checkExplained(v)
	x.checkTrue(v)
	x.checkLives(v)
	x.countNobody(v)
	for _, s := range h.Strikes {
		kind := string(s.Kind)
		if s.Replica >= 0 && s.Life == "" {
			kind += " (nobody there)"
		}
		v.Faults[kind]++
	}
	for _, key := range h.Leftover {
		v.Add(Leftover, "%s", key)
	}
	for _, text := range h.Failures {
		v.Add(Failure, "%s", text)
	}
	return v
}

// count adds the runs of a job.
func (x *index) count(v *Verdict, runs []*run) {
	v.Jobs++
	for _, r := range runs {
		v.Runs++
		switch {
		case r.tick == 0:
			v.Manual++
		case r.why != string(joblog.OnTime):
			v.CatchUps++
			v.LateCatchUps = append(v.LateCatchUps, r.delay)
		default:
			v.Late = append(v.Late, r.delay)
		}
		if r.attempt > 1 {
			v.Again++
		}
		if r.ended == 0 && r.killed != 0 {
			v.Cut++
		}
		if r.panicked {
			v.Failed++
		}
		if r.stale() {
			v.Stale++
		}
	}
}

// checkLives looks at how the processes ended and what they complained of.
func (x *index) checkLives(v *Verdict) {
	for _, l := range x.Lives {
		if l.Err != "" && l.Killed == 0 {
			v.Add(Ended, "%s: %s: %s", l.Name, l.Err, l.Stderr)
		}
	}
	for _, name := range x.names {
		for _, rec := range x.Records[name] {
			switch rec.Kind {
			case record.Skip:
				v.Skips[rec.Reason]++
			case record.Fault:
				v.Add(Faulty, "%s: %s%s", name, rec.Job, rec.Text)
			case record.Stop:
				v.Stopped++
				if rec.Text != "" {
					v.Add(Leaked, "%s: %s", name, rec.Text)
				}
			}
		}
	}
}
