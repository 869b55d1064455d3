// Package checker judges a history: it looks for broken promises. It does not depend on how the
// history came about, so its tests use made-up histories.
package checker

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Kind says which promise was broken.
type Kind string

// The kinds of violations.
const (
	Overlap     Kind = "overlap"     // two live leases of a key, or two runs of a job
	Disorder    Kind = "token order" // a token that is not larger than that of an earlier run
	Outlived    Kind = "outlived"    // Err was nil after the deadline, or after the lease had ended
	Unlinear    Kind = "history"     // the leases are in no order that a mutex with increasing tokens allows, says porcupine
	Undecided   Kind = "undecided"   // porcupine did not decide in time
	Unavailable Kind = "unavailable" // a key could not be acquired in time, or a job could not be resumed
	Admitted    Kind = "admitted"    // a process with another list of nodes was granted a lease

	Twice       Kind = "run twice"   // a tick was run more than once
	Lost        Kind = "tick lost"   // a tick of a job with CatchUpAll was not run, or any tick while all was well
	Unpaused    Kind = "paused tick" // a tick was run in spite of a pause
	Unexplained Kind = "unexplained" // no replica ran a tick or said why not
	Untimely    Kind = "not a tick"  // a job was run for a time at which it was not due
	Untrue      Kind = "untrue"      // a replica said that another one held or ran a tick, and none ran it
	Silent      Kind = "nothing run" // RunNow returned no error, and no run began

	Leftover Kind = "leftover key" // a lease's key was on a server after all clients were gone
	Leaked   Kind = "goroutines"   // a client that closed everything had goroutines left
	Failed   Kind = "failure"      // a client ended by itself or said that something was wrong, or a step of the program failed
)

// Violation is one broken promise.
type Violation struct {
	Kind Kind
	At   history.Instant // when it could be seen
	Text string
}

// Verdict is the result of a check, and its report.
type Verdict struct {
	*history.History
	Counts     map[string]int
	Excused    []string
	Violations []Violation
}

// Check judges a history. work is the jobs of its workload; a workload of leases has none.
func Check(h *history.History, work []jobs.Job) *Verdict {
	v := &Verdict{History: h, Counts: make(map[string]int)}
	if h.Workload == "leases" {
		v.checkLeases()
	} else {
		v.checkJobs(work)
	}
	v.checkLives()
	for _, s := range h.Strikes {
		kind := "faults: " + string(s.Kind)
		if on := s.Kind.On(); s.Life == "" && (on == plan.Client || on == plan.Holder) {
			kind += " (nobody there)"
		}
		v.Counts[kind]++
	}
	for _, key := range h.Leftover {
		v.add(Leftover, h.Over, "%s is left after all clients were gone", key)
	}
	for _, text := range h.Failures {
		v.add(Failed, h.Over, "%s", text)
	}
	return v
}

// checkLives checks how the processes ended and which failures they recorded.
func (v *Verdict) checkLives() {
	v.Counts["clients"] = len(v.Lives)
	for _, life := range v.Lives {
		if life.Killed == 0 && life.Err != "" {
			v.add(Failed, life.Ended, "client %s ended by itself: %s: %s", life.Name, life.Err, life.Said)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Records)) {
		for _, r := range v.Records[name] {
			switch {
			case r.Kind == history.Fault:
				v.add(Failed, r.At, "%s: %s%s", name, r.Job, r.Text)
			case r.Kind == history.Stop && r.Text != "":
				v.add(Leaked, r.At, "%s: %s", name, r.Text)
			case r.Kind == history.Stop:
				v.Counts["clients stopped in order"]++
			}
		}
	}
}

func (v *Verdict) add(kind Kind, at history.Instant, format string, args ...any) {
	v.Violations = append(v.Violations, Violation{kind, at, fmt.Sprintf(format, args...)})
}

// excuse notes an event that the guarantee does not cover.
func (v *Verdict) excuse(format string, args ...any) {
	v.Excused = append(v.Excused, fmt.Sprintf(format, args...))
}

// Text writes the verdict for a terminal.
func (v *Verdict) Text(w io.Writer) {
	for _, row := range slices.Sorted(maps.Keys(v.Counts)) {
		fmt.Fprintf(w, "%6d  %s\n", v.Counts[row], row)
	}
	const listed = 25 // most violations, and most excuses
	for _, text := range v.Excused[:min(len(v.Excused), listed)] {
		fmt.Fprintf(w, "excused: %s\n", text)
	}
	slices.SortStableFunc(v.Violations, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	for _, x := range v.Violations[:min(len(v.Violations), listed)] {
		fmt.Fprintf(w, "VIOLATION after %.1fs: %s: %s\n", x.At.Sub(v.Began).Seconds(), x.Kind, x.Text)
	}
	if len(v.Violations) > 0 {
		fmt.Fprintf(w, "FAIL: %d violations, %d excused: %s\n", len(v.Violations), len(v.Excused), v.Command)
	} else {
		fmt.Fprintf(w, "PASS: no violation, %d excused: %s\n", len(v.Excused), v.Command)
	}
}
