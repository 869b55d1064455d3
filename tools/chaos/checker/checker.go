package checker

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

// The kinds of violations.
const (
	Overlapping   report.Kind = "overlap"        // two live leases on a key
	Disordered    report.Kind = "token order"    // a token that is not larger than that of an earlier lease
	StaleWrite    report.Kind = "stale write"    // the resource accepted a token that is smaller than one before
	RefusedHolder report.Kind = "refused holder" // the resource refused the holder of a live lease
	Outlived      report.Kind = "outlived"       // Err was nil after the deadline, or after the lease had ended
	Unpaused      report.Kind = "paused tick"    // a tick was granted that was due before the floor of a pause
	Twice         report.Kind = "tick twice"     // a tick was granted to two leases
	Unlinear      report.Kind = "history"        // porcupine finds no order of events that a mutex allows
	Undecided     report.Kind = "undecided"      // porcupine did not come to an end
	Unavailable   report.Kind = "unavailable"    // a key, or a tick, could not be acquired in time after the faults
	Leftover      report.Kind = "leftover key"   // a lease's key was on a server after all clients were gone
	Leaked        report.Kind = "goroutines"     // a client that closed everything had goroutines left
	Failed        report.Kind = "failed client"  // a client ended by itself, or did not do what it was told
)

// Verdict is the judgement and what there is to count.
type Verdict struct {
	report.Violations

	Lives    int
	Asked    int
	Grants   int
	Releases int
	Probes   int
	Refusals map[string]int // acquisitions that failed, by the type of their error
	Losses   map[string]int // by reason
	Faults   map[string]int // by kind

	Ticks        int            // that were asked for, apart from Asked
	TickGrants   int            // apart from Grants
	TickRefusals map[string]int // apart from Refusals
	Marks        map[string]int // calls of Pause and Resume, by what came of them

	Overlaps  []Overlap
	Disorders []Disorder
	Breaches  []Breach
	Twins     []Twin

	Accepted, Refused, Late int // writes; Late ones came after the lease was over

	Outages  map[string]time.Duration // the longest of each key
	Voting   time.Duration            // from the end of the faults until a quorum voted, for the slowest client
	Reacting time.Duration            // the longest acquisition after that
	Resuming time.Duration            // the longest time until a tick was granted after all pauses

	Porcupine  porcupine.CheckResult
	Operations int

	Stopped int // clients that were stopped in order and had no goroutines left
}

// Check judges a history.
func Check(h *History) *Verdict {
	leases, wants, faults := h.leases()
	v := &Verdict{
		Violations: faults, Lives: len(h.Lives),
		Refusals: make(map[string]int), Losses: make(map[string]int), Faults: make(map[string]int),
		TickRefusals: make(map[string]int), Marks: make(map[string]int),
		Outages: outages(leases, wants),
	}
	marks := h.marks()
	v.count(h, leases, wants, marks)
	v.Overlaps, v.Disorders = h.overlaps(leases), h.disorders(leases)
	for _, o := range v.Overlaps {
		if o.Excuse == "" {
			v.Add(Overlapping, "%s", o)
		}
	}
	for _, d := range v.Disorders {
		if d.Excuse == "" {
			v.Add(Disordered, "%s", d)
		}
	}
	v.Breaches, v.Twins = h.breaches(leases, marks), h.twins(leases)
	for _, b := range v.Breaches {
		if b.Excuse == "" {
			v.Add(Unpaused, "%s", b)
		}
	}
	for _, t := range v.Twins {
		if t.Excuse == "" {
			v.Add(Twice, "%s", t)
		}
	}
	v.Violations = append(v.Violations, h.writes(leases, v.Overlaps)...)
	v.Porcupine, v.Operations = h.linearize(leases)
	switch v.Porcupine {
	case porcupine.Illegal:
		v.Add(Unlinear, "porcupine: no order of the %d operations is that of a leased, fenced mutex", v.Operations)
	case porcupine.Unknown:
		v.Add(Undecided, "porcupine did not decide about %d operations within %s", v.Operations, h.Settings.Undecided)
	}
	v.judgeEnd(h, wants)
	v.resumed(h, wants, marks)
	v.judgeLives(h)
	return v
}

// Excluded is how many overlaps and tokens out of order are excused.
func (v *Verdict) Excluded() (overlaps, disorders int) {
	return len(v.Overlaps) - v.Count(Overlapping), len(v.Disorders) - v.Count(Disordered)
}

// ExcludedTicks is how many ticks that were granted in spite of a pause, or twice, are excused.
func (v *Verdict) ExcludedTicks() (breaches, twins int) {
	return len(v.Breaches) - v.Count(Unpaused), len(v.Twins) - v.Count(Twice)
}

func (v *Verdict) count(h *History, leases []*Lease, wants []*want, marks []*Mark) {
	ends := make(map[string]history.Instant, len(leases))
	for _, l := range leases {
		ends[l.ID] = l.End
		if l.Tick != 0 {
			v.TickGrants++
		} else {
			v.Grants++
		}
		if l.Release != 0 && l.Tick == 0 {
			v.Releases++
		}
		if l.Reason != "" {
			v.Losses[l.Reason]++
		}
	}
	for _, w := range wants {
		refusals := v.Refusals
		if w.tick {
			v.Ticks++
			refusals = v.TickRefusals
		} else {
			v.Asked++
		}
		if w.err != "" {
			refusals[w.err]++
		}
	}
	for _, m := range marks {
		what := "pause"
		if m.Resume {
			what = "resume"
		}
		if m.Outcome != "" {
			what += " (" + m.Outcome + ")"
		}
		v.Marks[what]++
	}
	for _, s := range h.Strikes {
		if s.Healed {
			continue
		}
		if s.Node < 0 && s.Target == "" {
			v.Faults[string(s.Kind)+" (nobody there)"]++
			continue
		}
		v.Faults[string(s.Kind)]++
	}
	for _, w := range h.Writes {
		if w.Accepted {
			v.Accepted++
		} else {
			v.Refused++
		}
		if w.At >= ends[w.Lease] {
			v.Late++
		}
	}
}

// judgeEnd judges what came after the faults.
func (v *Verdict) judgeEnd(h *History, wants []*want) {
	for _, w := range wants {
		if w.way != "probe" {
			continue
		}
		v.Probes++
		v.Reacting = max(v.Reacting, w.to.Sub(w.from))
		if w.lease == nil {
			v.Add(Unavailable, "key %s could not be acquired within %s after the faults: %s",
				w.key, w.to.Sub(w.from).Round(time.Millisecond), w.err)
		}
	}
	for _, records := range h.Records {
		for _, r := range records {
			if r.Kind == record.Votes {
				v.Voting = max(v.Voting, r.At.Sub(h.Over))
			}
		}
	}
	for _, key := range h.Leftover {
		v.Add(Leftover, "%s is left after all clients were gone", key)
	}
	for _, text := range h.Failures {
		v.Add(Failed, "%s", text)
	}
}

func (v *Verdict) judgeLives(h *History) {
	for _, life := range h.Lives {
		if life.Killed != 0 {
			continue
		}
		if life.Err != "" {
			v.Add(Failed, "client %s ended by itself: %s: %s", life.Name, life.Err, life.Stderr)
			continue
		}
		for _, r := range h.Records[life.Name] {
			switch {
			case r.Kind != record.Stop:
			case r.Text == "":
				v.Stopped++
			default:
				v.Add(Leaked, "client %s: %s", life.Name, r.Text)
			}
		}
	}
}
