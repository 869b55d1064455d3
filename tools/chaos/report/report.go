// Package report tells people and machines what a run of the chaos suite found.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/sheet"
	"github.com/tenure-dev/tenure/tools/chaos/verdict"
)

// Report is what a run found. Durations are in seconds in JSON.
type Report struct {
	Command  string `json:"command"` // that repeats the run's schedule
	Seed     uint64 `json:"seed"`
	Duration string `json:"duration"`
	Halted   bool   `json:"halted"` // it was interrupted, and what comes after the faults was left out
	Pass     bool   `json:"pass"`

	Servers       int            `json:"servers"`
	Clients       int            `json:"client_processes"` // that were started, restarts included
	Acquisitions  int            `json:"acquisitions"`
	Grants        int            `json:"grants"`
	Releases      int            `json:"releases"`
	Losses        map[string]int `json:"losses"`
	FailedAsks    map[string]int `json:"failed_acquisitions"`
	Faults        map[string]int `json:"faults"`
	ReplacedLinks int            `json:"replaced_links"`

	Overlaps          int `json:"overlaps"`
	ExcludedOverlaps  int `json:"excluded_overlaps"`
	TokenViolations   int `json:"token_violations"`
	ExcludedTokens    int `json:"excluded_tokens"`
	WitnessAccepted   int `json:"witness_accepted"`
	WitnessRefused    int `json:"witness_refused"`
	WitnessLate       int `json:"witness_late"` // writes after the end of their lease, accepted or refused
	WitnessViolations int `json:"witness_violations"`
	Outlived          int `json:"outlived_deadlines"`

	Unavailable map[string]float64 `json:"longest_unavailability"`
	Voting      float64            `json:"quorum_votes_after"`
	Reacting    float64            `json:"longest_acquire_after_faults"`
	Probes      int                `json:"acquires_after_faults"`

	Porcupine  string `json:"porcupine"`
	Operations int    `json:"porcupine_operations"`

	LeftoverKeys int `json:"leftover_keys"`
	Stopped      int `json:"clients_stopped_in_order"`
	Leaks        int `json:"clients_with_leaked_goroutines"`

	Excuses    []string            `json:"excuses"`
	Violations []verdict.Violation `json:"violations"`
}

// New makes the report of a verdict. What the verdict does not know is left to the caller.
func New(v *verdict.Verdict, servers int) *Report {
	r := &Report{
		Pass: len(v.Violations) == 0, Servers: servers, Clients: v.Lives,
		Acquisitions: v.Asked, Grants: v.Grants, Releases: v.Releases,
		Losses: v.Losses, FailedAsks: v.Refusals, Faults: v.Faults,
		Overlaps: v.Count(verdict.Overlapping), TokenViolations: v.Count(verdict.Disordered),
		WitnessAccepted: v.Accepted, WitnessRefused: v.Refused, WitnessLate: v.Late,
		WitnessViolations: v.Count(verdict.StaleWrite) + v.Count(verdict.RefusedHolder),
		Outlived:          v.Count(verdict.Outlived),
		Unavailable:       make(map[string]float64), Voting: seconds(v.Voting), Reacting: seconds(v.Reacting), Probes: v.Probes,
		Porcupine: string(v.Porcupine), Operations: v.Operations,
		LeftoverKeys: v.Count(verdict.Leftover), Stopped: v.Stopped, Leaks: v.Count(verdict.Leaked),
		Violations: v.Violations,
	}
	r.ExcludedOverlaps, r.ExcludedTokens = v.Excluded()
	for key, d := range v.Outages {
		r.Unavailable[key] = seconds(d)
	}
	for _, o := range v.Overlaps {
		if o.Excuse != "" {
			r.Excuses = append(r.Excuses, fmt.Sprintf("%s: %s", o, o.Excuse))
		}
	}
	for _, d := range v.Disorders {
		if d.Excuse != "" {
			r.Excuses = append(r.Excuses, fmt.Sprintf("%s: %s", d, d.Excuse))
		}
	}
	return r
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// JSON writes the report for machines.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *Report) rows() []sheet.Row {
	count := func(n int) string { return fmt.Sprint(n) }
	return []sheet.Row{
		{"seed", fmt.Sprint(r.Seed)},
		{"duration of the faults", r.Duration},
		{"servers; client processes", fmt.Sprintf("%d; %d, restarts included", r.Servers, r.Clients)},
		{"acquisitions", count(r.Acquisitions)},
		{"grants", count(r.Grants)},
		{"releases", count(r.Releases)},
		{"losses by reason", sheet.Counts(r.Losses)},
		{"failed acquisitions", sheet.Counts(r.FailedAsks)},
		{"faults", sheet.Counts(r.Faults)},
		{"**overlapping leases**", count(r.Overlaps)},
		{"excluded overlaps", count(r.ExcludedOverlaps)},
		{"**tokens out of order**", count(r.TokenViolations)},
		{"excluded tokens", count(r.ExcludedTokens)},
		{"writes accepted; refused as stale; late", fmt.Sprintf("%d; %d; %d", r.WitnessAccepted, r.WitnessRefused, r.WitnessLate)},
		{"**writes accepted or refused wrongly**", count(r.WitnessViolations)},
		{"**leases valid after their deadline**", count(r.Outlived)},
		{"longest time nobody had a wanted key", spans(r.Unavailable)},
		{"after the faults, a quorum voted within", fmt.Sprintf("%.3f s", r.Voting)},
		{"longest acquisition after that", fmt.Sprintf("%.3f s, of %d", r.Reacting, r.Probes)},
		{"porcupine", fmt.Sprintf("%s, %d operations", r.Porcupine, r.Operations)},
		{"**keys left behind**", count(r.LeftoverKeys)},
		{"clients stopped in order; **with goroutines left**", fmt.Sprintf("%d; %d", r.Stopped, r.Leaks)},
		{"links that toxiproxy blocked, made anew", count(r.ReplacedLinks)},
	}
}

func spans(m map[string]float64) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %.3f s", key, m[key]))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) sheet() *sheet.Sheet {
	violations := make([]string, len(r.Violations))
	for i, v := range r.Violations {
		violations[i] = string(v.Kind) + ": " + v.Text
	}
	return &sheet.Sheet{Command: r.Command, Pass: r.Pass, Halted: r.Halted, Rows: r.rows(), Excluded: r.Excuses, Violations: violations}
}

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) { r.sheet().Text(w, 50) }

// Markdown writes the report for a page.
func (r *Report) Markdown(w io.Writer) { r.sheet().Markdown(w) }
