// Package report tells people and machines what a soak found.
package report

import (
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/report"
	"github.com/tenure-dev/tenure/tools/soak/checker"
)

// Report is what a soak found. Durations are in seconds in JSON.
type Report struct {
	report.Run
	Topology string `json:"topology"`
	Pass     bool   `json:"pass"`

	Servers   int            `json:"servers"`
	Processes int            `json:"replica_processes"` // restarts included
	Stopped   int            `json:"replicas_stopped_in_order"`
	Jobs      int            `json:"jobs"`
	Runs      int            `json:"runs"`
	Ticks     int            `json:"ticks"`
	CatchUps  int            `json:"catch_ups"`
	Again     int            `json:"runs_again"`
	Manual    int            `json:"manual_runs"`
	Cut       int            `json:"runs_cut_short"`
	Panicked  int            `json:"runs_panicked"`
	Stale     int            `json:"stale_runs"`
	Exact     int            `json:"ticks_that_had_to_be_run"`
	Overlaps  int            `json:"ticks_overlapped"`
	Well      int            `json:"ticks_while_all_was_well"`
	Asked     int            `json:"run_now_calls"`
	Explained int            `json:"ticks_to_be_explained"`
	Unasked   int            `json:"ticks_left_out"`
	Nobody    map[string]int `json:"ticks_nobody_ran"`
	Skips     map[string]int `json:"skips"`
	Faults    map[string]int `json:"faults"`
	Late      Delays         `json:"late_starts"`
	LateAgain Delays         `json:"late_catch_ups"`

	Excuses    []string          `json:"excuses"`
	Violations report.Violations `json:"violations"`
}

// Delays is how late runs began.
type Delays struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// New makes the report of a verdict. What the verdict does not know is left to the caller.
func New(v *checker.Verdict, servers int) *Report {
	return &Report{
		Pass: len(v.Violations) == 0, Servers: servers, Processes: v.Lives, Stopped: v.Stopped, Jobs: v.Jobs,
		Runs: v.Runs, Ticks: v.Ticks, CatchUps: v.CatchUps, Again: v.Again, Manual: v.Manual, Cut: v.Cut, Panicked: v.Failed, Stale: v.Stale,
		Exact: v.Exact, Overlaps: v.Overlapped, Well: v.Well, Asked: v.Asked, Explained: v.Explained, Unasked: v.Unasked, Nobody: v.Nobody, Skips: v.Skips, Faults: v.Faults,
		Late: delays(v.Late), LateAgain: delays(v.LateCatchUps), Excuses: v.Excuses, Violations: v.Violations,
	}
}

// delays are quantiles of ascending durations, by the nearest rank.
func delays(d []time.Duration) Delays {
	if len(d) == 0 {
		return Delays{}
	}
	rank := func(percent int) float64 {
		return d[max(0, (len(d)*percent+99)/100-1)].Round(time.Millisecond).Seconds()
	}
	return Delays{P50: rank(50), P99: rank(99), Max: rank(100)}
}

func (d Delays) String() string { return fmt.Sprintf("%.3f s, %.3f s, %.3f s", d.P50, d.P99, d.Max) }

func (r *Report) rows() []report.Row {
	count := func(n int) string { return fmt.Sprint(n) }
	violations := func(kinds ...report.Kind) string { return count(r.Violations.Count(kinds...)) }
	return []report.Row{
		{"seed", fmt.Sprint(r.Seed)},
		{"topology", r.Topology},
		{"duration of the faults", r.Duration},
		{"servers; replica processes", fmt.Sprintf("%d; %d, restarts included", r.Servers, r.Processes)},
		{"jobs that ran, one-time jobs included", count(r.Jobs)},
		{"runs", count(r.Runs)},
		{"of which catch-ups", count(r.CatchUps)},
		{"of which again, after an attempt that was cut short", count(r.Again)},
		{"of which by RunNow", count(r.Manual)},
		{"runs cut short by SIGKILL; that panicked", fmt.Sprintf("%d; %d", r.Cut, r.Panicked)},
		{"runs that began after their lease, in a thawed process", count(r.Stale)},
		{"ticks that were run", count(r.Ticks)},
		{"**ticks run twice**", violations(checker.Twice)},
		{"ticks that had to be run exactly once", count(r.Exact)},
		{"of which a run of an earlier one overlapped", count(r.Overlaps)},
		{"ticks of any job that came while all was well", count(r.Well)},
		{"**of these and of those lost**", violations(checker.Lost)},
		{"calls of RunNow without an error; **without a run**", count(r.Asked) + "; " + violations(checker.Silent)},
		{"ticks that nobody ran, by reason", report.Counts(r.Nobody)},
		{"**runs that overlap**", violations(checker.Overlap)},
		{"**tokens out of order**", violations(checker.Disorder)},
		{"skips by reason", report.Counts(r.Skips)},
		{"ticks that had to be run, or else to be told of", count(r.Explained)},
		{"**of which unexplained; explained wrongly**", violations(checker.Unexplained) + "; " + violations(checker.Untrue)},
		{"left out because something happened to a process", count(r.Unasked)},
		{"delay of runs (p50, p99, max)", r.Late.String()},
		{"delay of catch-ups (p50, p99, max)", r.LateAgain.String()},
		{"faults", report.Counts(r.Faults)},
		{"**keys left behind**", violations(checker.Leftover)},
		{"replicas stopped in order; **with goroutines left**; **ended by themselves**",
			fmt.Sprintf("%d; %s; %s", r.Stopped, violations(checker.Leaked), violations(checker.Ended))},
		{"**other failures**", violations(checker.Faulty, checker.Failure)},
	}
}

// Sheet lays the report out for people.
func (r *Report) Sheet() *report.Sheet {
	return &report.Sheet{Run: r.Run, Rows: r.rows(), Excluded: r.Excuses, Violations: r.Violations}
}
