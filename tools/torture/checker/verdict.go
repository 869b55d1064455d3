// Package checker judges a history: it looks for what must not have happened. It knows nothing of
// how the history was come by, so it is tested with histories that were made up.
package checker

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
)

// Kind says which promise was broken.
type Kind string

// The kinds of violations.
const (
	Overlap     Kind = "overlap"     // two live leases of a key, or two runs of a job
	Disorder    Kind = "token order" // a token that is not larger than that of an earlier lease or run
	Outlived    Kind = "outlived"    // Err was nil after the deadline, or after the lease had ended
	Unlinear    Kind = "history"     // porcupine finds no order of events that a mutex allows
	Undecided   Kind = "undecided"   // porcupine did not come to an end
	Unavailable Kind = "unavailable" // a key could not be acquired in time after the faults, or a job not be resumed

	Twice       Kind = "run twice"   // a tick
	Lost        Kind = "tick lost"   // of a job with CatchUpAll, or while all was well
	Unpaused    Kind = "paused tick" // a tick was run in spite of a pause
	Unexplained Kind = "unexplained" // nobody ran a tick, and nobody said why
	Untimely    Kind = "not a tick"  // a run of a time at which its job was not due
	Untrue      Kind = "untrue"      // a replica said that somebody ran a tick, and nobody did
	Silent      Kind = "nothing run" // RunNow returned no error, and no run began

	Leftover Kind = "leftover key" // a lease's key was on a server after all clients were gone
	Leaked   Kind = "goroutines"   // a client that closed everything had goroutines left
	Failed   Kind = "failure"      // a client ended by itself or said that something was wrong, or a step of the program failed
)

// Workloads are the kinds of work of the clients, and what is looked for in it.
var Workloads = map[string][]Kind{
	"leases": {Overlap, Disorder, Outlived, Unlinear, Undecided, Unavailable, Leftover, Leaked, Failed},
	"jobs":   {Twice, Lost, Unpaused, Overlap, Disorder, Unexplained, Untrue, Untimely, Silent, Unavailable, Leftover, Leaked, Failed},
}

// Violation is something that must not happen.
type Violation struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Verdict is what was found. It is the report, too.
type Verdict struct {
	history.Account
	Pass       bool                      `json:"pass"`
	Counts     map[string]int            `json:"counts"`
	Tables     map[string]map[string]int `json:"tables"`
	Excused    []string                  `json:"excused"`
	Violations []Violation               `json:"violations"`

	rows []string // of Counts and Tables
}

// Check judges a history. The jobs are those of its workload, if any.
func Check(h *history.History, work []jobs.Job) *Verdict {
	v := &Verdict{Account: h.Account, Counts: make(map[string]int), Tables: make(map[string]map[string]int)}
	v.list("client processes, restarts included", "of which stopped in order")
	if h.Workload == "jobs" {
		v.checkJobs(h, work)
	} else {
		v.checkLeases(h)
	}
	v.checkLives(h)
	for _, s := range h.Strikes {
		kind := string(s.Kind)
		if s.Kind.OnOne() && s.Life == "" {
			kind += " (nobody there)"
		}
		v.tally("faults", kind)
	}
	for _, key := range h.Leftover {
		v.add(Leftover, "%s is left after all clients were gone", key)
	}
	for _, text := range h.Failures {
		v.add(Failed, "%s", text)
	}
	v.Pass = len(v.Violations) == 0
	return v
}

// checkLives looks at how the processes ended and what they complained of.
func (v *Verdict) checkLives(h *history.History) {
	v.Counts[v.rows[0]] = len(h.Lives)
	for _, life := range h.Lives {
		if life.Killed == 0 && life.Err != "" {
			v.add(Failed, "client %s ended by itself: %s: %s", life.Name, life.Err, life.Stderr)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Records)) {
		for _, r := range h.Records[name] {
			switch {
			case r.Kind == history.Fault:
				v.add(Failed, "%s: %s%s", name, r.Job, r.Text)
			case r.Kind == history.Stop && r.Text != "":
				v.add(Leaked, "%s: %s", name, r.Text)
			case r.Kind == history.Stop:
				v.Counts[v.rows[1]]++
			}
		}
	}
}

// list makes rows of the report, in their order.
func (v *Verdict) list(names ...string) {
	for _, name := range names {
		v.rows = append(v.rows, name)
		v.Counts[name] = 0
	}
}

// tally counts in a row that is a table.
func (v *Verdict) tally(name, what string) {
	if v.Tables[name] == nil {
		v.Tables[name] = make(map[string]int)
		if _, listed := v.Counts[name]; !listed {
			v.rows = append(v.rows, name)
		}
		delete(v.Counts, name)
	}
	v.Tables[name][what]++
}

func (v *Verdict) add(kind Kind, format string, args ...any) {
	v.Violations = append(v.Violations, Violation{kind, fmt.Sprintf(format, args...)})
}

// judge adds a violation, unless there is an excuse for it.
func (v *Verdict) judge(kind Kind, excuse, format string, args ...any) {
	if excuse == "" {
		v.add(kind, format, args...)
		return
	}
	v.Excused = append(v.Excused, fmt.Sprintf("%s: %s: %s", kind, fmt.Sprintf(format, args...), excuse))
}

// Count is how many violations there are of a kind.
func (v *Verdict) Count(kind Kind) (n int) {
	for _, x := range v.Violations {
		if x.Kind == kind {
			n++
		}
	}
	return n
}

// listed is how many violations and excuses a report lists of each.
const listed = 25

// result is the last word.
func (v *Verdict) result() string {
	switch {
	case len(v.Violations) > 0:
		return fmt.Sprintf("FAIL: %d violations", len(v.Violations))
	case v.Halted:
		return "interrupted: no violation so far"
	default:
		return "PASS: no violation"
	}
}

// table is the rows with their values.
func (v *Verdict) table() (rows [][2]string) {
	rows = [][2]string{
		{"workload", strings.TrimSpace(v.Workload + " " + v.Topology)}, {"seed", fmt.Sprint(v.Seed)}, {"duration of the faults", v.Duration},
		{"servers", fmt.Sprint(v.Servers)},
	}
	for _, name := range v.rows {
		value := fmt.Sprint(v.Counts[name])
		if table := v.Tables[name]; table != nil {
			value = counts(table)
		}
		rows = append(rows, [2]string{name, value})
	}
	for _, kind := range Workloads[v.Workload] {
		rows = append(rows, [2]string{"violations: " + string(kind), fmt.Sprint(v.Count(kind))})
	}
	return rows
}

// texts are the violations, for people.
func (v *Verdict) texts() (texts []string) {
	for _, x := range v.Violations {
		texts = append(texts, fmt.Sprintf("%s: %s", x.Kind, x.Text))
	}
	return most(texts)
}

// Text writes the verdict for a terminal.
func (v *Verdict) Text(w io.Writer) {
	width := 0
	for _, row := range v.table() {
		width = max(width, len(row[0]))
	}
	for _, row := range v.table() {
		fmt.Fprintf(w, "%-*s  %s\n", width, row[0], row[1])
	}
	for _, text := range most(v.Excused) {
		fmt.Fprintf(w, "excused: %s\n", text)
	}
	for _, text := range v.texts() {
		fmt.Fprintf(w, "VIOLATION %s\n", text)
	}
	fmt.Fprintf(w, "%s\nschedule of this run: %s\n", v.result(), v.Command)
}

func most(texts []string) []string {
	if len(texts) > listed {
		return append(slices.Clone(texts[:listed]), fmt.Sprintf("and %d more", len(texts)-listed))
	}
	return texts
}

// counts lists what there is, most first, after the sum.
func counts(m map[string]int) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, len(names))
	total := 0
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %d", name, m[name])
		total += m[name]
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}
