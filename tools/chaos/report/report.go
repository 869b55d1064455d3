// Package report tells people and machines what a run of the chaos suite found.
package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

// Report is what a run found. Durations are in seconds in JSON.
type Report struct {
	report.Run
	Pass bool `json:"pass"`

	Servers       int            `json:"servers"`
	Clients       int            `json:"client_processes"` // that were started, restarts included
	Acquisitions  int            `json:"acquisitions"`
	Grants        int            `json:"grants"`
	Releases      int            `json:"releases"`
	Losses        map[string]int `json:"losses"`
	FailedAsks    map[string]int `json:"failed_acquisitions"`
	Faults        map[string]int `json:"faults"`
	ReplacedLinks int            `json:"replaced_links"`

	Overlaps         int `json:"overlaps"`
	ExcludedOverlaps int `json:"excluded_overlaps"`
	TokenViolations  int `json:"token_violations"`
	ExcludedTokens   int `json:"excluded_tokens"`
	Accepted         int `json:"witness_accepted"`
	Refused          int `json:"witness_refused"`
	Late             int `json:"witness_late"` // writes after the end of their lease, accepted or refused
	WriteViolations  int `json:"witness_violations"`
	Outlived         int `json:"outlived_deadlines"`

	Ticks           int            `json:"ticks_asked_for"`
	TickGrants      int            `json:"ticks_granted"`
	FailedTicks     map[string]int `json:"failed_ticks"`
	Marks           map[string]int `json:"pauses"`
	PausedTicks     int            `json:"paused_ticks_granted"`
	ExcludedPaused  int            `json:"excluded_paused_ticks"`
	TicksTwice      int            `json:"ticks_granted_twice"`
	ExcludedTwice   int            `json:"excluded_ticks_granted_twice"`
	TicksAfterwards float64        `json:"tick_granted_after_pauses"`

	Unavailable map[string]float64 `json:"longest_unavailability"`
	Voting      float64            `json:"quorum_votes_after"`
	Reacting    float64            `json:"longest_acquire_after_faults"`
	Probes      int                `json:"acquires_after_faults"`

	Porcupine  string `json:"porcupine"`
	Operations int    `json:"porcupine_operations"`

	LeftoverKeys int `json:"leftover_keys"`
	Stopped      int `json:"clients_stopped_in_order"`
	Leaks        int `json:"clients_with_leaked_goroutines"`

	Excuses    []string          `json:"excuses"`
	Violations report.Violations `json:"violations"`
}

// New makes the report of a verdict. What the verdict does not know is left to the caller.
func New(v *checker.Verdict, servers int) *Report {
	r := &Report{
		Pass: len(v.Violations) == 0, Servers: servers, Clients: v.Lives,
		Acquisitions: v.Asked, Grants: v.Grants, Releases: v.Releases,
		Losses: v.Losses, FailedAsks: v.Refusals, Faults: v.Faults,
		Overlaps: v.Count(checker.Overlapping), TokenViolations: v.Count(checker.Disordered),
		Accepted: v.Accepted, Refused: v.Refused, Late: v.Late,
		WriteViolations: v.Count(checker.StaleWrite, checker.RefusedHolder),
		Outlived:        v.Count(checker.Outlived),
		Ticks:           v.Ticks, TickGrants: v.TickGrants, FailedTicks: v.TickRefusals, Marks: v.Marks,
		PausedTicks: v.Count(checker.Unpaused), TicksTwice: v.Count(checker.Twice), TicksAfterwards: seconds(v.Resuming),
		Unavailable: make(map[string]float64), Voting: seconds(v.Voting), Reacting: seconds(v.Reacting), Probes: v.Probes,
		Porcupine: string(v.Porcupine), Operations: v.Operations,
		LeftoverKeys: v.Count(checker.Leftover), Stopped: v.Stopped, Leaks: v.Count(checker.Leaked),
		Violations: v.Violations,
	}
	r.ExcludedOverlaps, r.ExcludedTokens = v.Excluded()
	r.ExcludedPaused, r.ExcludedTwice = v.ExcludedTicks()
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
	for _, b := range v.Breaches {
		if b.Excuse != "" {
			r.Excuses = append(r.Excuses, fmt.Sprintf("%s: %s", b, b.Excuse))
		}
	}
	for _, t := range v.Twins {
		if t.Excuse != "" {
			r.Excuses = append(r.Excuses, fmt.Sprintf("%s: %s", t, t.Excuse))
		}
	}
	return r
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func (r *Report) rows() []report.Row {
	count := func(n int) string { return fmt.Sprint(n) }
	return []report.Row{
		{"seed", fmt.Sprint(r.Seed)},
		{"duration of the faults", r.Duration},
		{"servers; client processes", fmt.Sprintf("%d; %d, restarts included", r.Servers, r.Clients)},
		{"acquisitions", count(r.Acquisitions)},
		{"grants", count(r.Grants)},
		{"releases", count(r.Releases)},
		{"losses by reason", report.Counts(r.Losses)},
		{"failed acquisitions", report.Counts(r.FailedAsks)},
		{"faults", report.Counts(r.Faults)},
		{"**overlapping leases**", count(r.Overlaps)},
		{"excluded overlaps", count(r.ExcludedOverlaps)},
		{"**tokens out of order**", count(r.TokenViolations)},
		{"excluded tokens", count(r.ExcludedTokens)},
		{"writes accepted; refused as stale; late", fmt.Sprintf("%d; %d; %d", r.Accepted, r.Refused, r.Late)},
		{"**writes accepted or refused wrongly**", count(r.WriteViolations)},
		{"**leases valid after their deadline**", count(r.Outlived)},
		{"ticks asked for; granted", fmt.Sprintf("%d; %d", r.Ticks, r.TickGrants)},
		{"failed ticks", report.Counts(r.FailedTicks)},
		{"pauses and their ends", report.Counts(r.Marks)},
		{"**ticks granted in spite of a pause**", count(r.PausedTicks)},
		{"excluded ticks in spite of a pause", count(r.ExcludedPaused)},
		{"**ticks granted twice**", count(r.TicksTwice)},
		{"excluded ticks granted twice", count(r.ExcludedTwice)},
		{"longest time nobody had a wanted key", spans(r.Unavailable)},
		{"after the faults, a quorum voted within", fmt.Sprintf("%.3f s", r.Voting)},
		{"longest acquisition after that", fmt.Sprintf("%.3f s, of %d", r.Reacting, r.Probes)},
		{"after the pauses, a tick was granted within", fmt.Sprintf("%.3f s", r.TicksAfterwards)},
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

// Sheet lays the report out for people.
func (r *Report) Sheet() *report.Sheet {
	return &report.Sheet{Run: r.Run, Rows: r.rows(), Excluded: r.Excuses, Violations: r.Violations}
}
