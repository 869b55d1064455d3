package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// Charts are SVG without styles of their own, which the policy of the page does not let in. What
// they show stands beside them in words.

// outcomeClass is how an outcome looks: as it should, as somebody wanted, or bad.
func outcomeClass(outcome string) string {
	switch admin.Outcome(outcome) {
	case admin.OutcomeOK:
		return "ok"
	case admin.OutcomeCancelled, admin.OutcomeNotBegun:
		return "mid"
	default:
		return "bad"
	}
}

// strip shows the last runs of a job, the newest on the right. The height is that of the time they
// took, and full for those that did not end well.
func strip(runs []view.Past) markup {
	if len(runs) == 0 {
		return none
	}
	const width, height, least = 5, 16, 3
	longest := view.Span(1)
	for _, r := range runs {
		longest = max(longest, r.Took)
	}
	paths := map[string]*strings.Builder{"ok": {}, "mid": {}, "bad": {}}
	counts := make(map[string]int)
	for i, r := range runs {
		class, tall := outcomeClass(r.Outcome), height
		if class == "ok" {
			tall = least + int(float64(height-least)*min(max(float64(r.Took)/float64(longest), 0), 1))
		}
		fmt.Fprintf(paths[class], "M%d %dh%dv%dh-%dz", (runsShown-1-i)*width, height-tall, width-1, tall, width-1)
		counts[words(r.Outcome)]++
	}
	var said []string
	for _, outcome := range sortedKeys(counts) {
		said = append(said, fmt.Sprintf("%d %s", counts[outcome], outcome))
	}
	label := fmt.Sprintf("last %s: %s", counted(len(runs), "run"), strings.Join(said, ", "))
	return m(`<svg class="strip" role="img" aria-label="%s" viewBox="0 0 %d %d"><title>%s</title>%s</svg>`, label, runsShown*width, height, label,
		each([]string{"ok", "mid", "bad"}, "", func(class string) markup {
			return when(paths[class].Len() > 0, `<path class="%s" d="%s"/>`, class, paths[class].String())
		}))
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// bar is what is left of a lease, of the most that was seen of it.
func bar(e electionRow) markup {
	l := e.Leader
	left := max(l.LeaseLeft-view.Span(time.Since(e.Read.Time)), 0)
	full := max(e.Full, l.LeaseLeft, 1)
	return m(
		`<svg class="bar" aria-hidden="true" viewBox="0 0 100 6" preserveAspectRatio="none" data-end="%d" data-full="%d"><rect width="%.1f" height="6"/></svg>`,
		e.Read.Add(time.Duration(l.LeaseLeft)).UnixMilli(), time.Duration(full).Milliseconds(), 100*float64(left)/float64(full))
}

// lanes are the runs of a job over time, a lane a replica.
type lanes struct {
	From, To view.Time
	Lanes    []lane
}

type lane struct {
	Replica string
	Marks   markup // of an SVG that is laneWidth wide
}

const (
	laneWidth = 1000
	mostLanes = 30
)

// timeline makes the lanes of a job.
func timeline(d *oneJobDoc) *lanes {
	type mark struct {
		replica, class, label string
		from, to              time.Time
	}
	var marks []mark
	for _, r := range d.Runs {
		if !r.Began.IsZero() {
			marks = append(marks, mark{r.Replica, outcomeClass(r.Outcome), words(r.Outcome) + ", " + r.Took.String(), r.Began.Time, r.Ended().Time})
		}
	}
	now := time.Now()
	if d.Job == nil {
		return nil
	}
	if r := d.Job.Running; r != nil && !r.Since().IsZero() && r.Since().Before(now) {
		marks = append(marks, mark{r.Replica, "run", "runs now", r.Since().Time, now})
	}
	if len(marks) == 0 {
		return nil
	}
	from, to := marks[0].from, marks[0].to
	for _, m := range marks {
		if m.from.Before(from) {
			from = m.from
		}
		if m.to.After(to) {
			to = m.to
		}
	}
	var skips []mark
	for _, s := range d.Skips {
		if !s.Tick.IsZero() && !s.Tick.Before(from) && !s.Tick.After(now) {
			skips = append(skips, mark{s.Replica, "skip", "skipped: " + words(s.Reason), s.Tick.Time, s.Tick.Time})
			if s.Tick.After(to) {
				to = s.Tick.Time
			}
		}
	}
	whole := max(to.Sub(from), time.Second)
	x := func(t time.Time) float64 { return laneWidth * float64(t.Sub(from)) / float64(whole) }
	marked := make(map[string]markup)
	for _, of := range append(marks, skips...) {
		if _, is := marked[of.replica]; !is && len(marked) == mostLanes {
			continue
		}
		const least = 5
		left, wide := x(of.from), max(x(of.to)-x(of.from), least)
		left = min(left, laneWidth-wide)
		title := of.from.UTC().Format("2006-01-02 15:04:05 UTC") + ", " + of.label
		switch of.class {
		case "skip":
			marked[of.replica] += m(`<path class="skip" d="M%.1f 3l5 14h-10z"><title>%s</title></path>`, min(max(left, 5), laneWidth-5), title)
		case "bad":
			marked[of.replica] += m(`<rect class="bad" x="%.1f" y="1" width="%.1f" height="18"><title>%s</title></rect>`, left, wide, title)
		default:
			marked[of.replica] += m(`<rect class="%s" x="%.1f" y="5" width="%.1f" height="10"><title>%s</title></rect>`, of.class, left, wide, title)
		}
	}
	l := &lanes{From: view.At(from), To: view.At(from.Add(whole))}
	for _, replica := range sortedKeys(marked) {
		l.Lanes = append(l.Lanes, lane{replica, marked[replica]})
	}
	return l
}
