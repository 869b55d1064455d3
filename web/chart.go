package web

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// strip draws the last runs of a job, the newest on the right. The height of a run shows how long
// it took. A run that did not end well has the full height.
func strip(runs []view.Past) markup {
	if len(runs) == 0 {
		return none
	}
	runs = runs[:min(len(runs), runsShown)]
	const width, height, least = 5, 16, 3
	longest := view.Span(1)
	for _, r := range runs {
		longest = max(longest, r.Took)
	}
	all := make(shapes)
	counts := make(tally)
	for i, r := range runs {
		look, tall := outcomeLook(r.Outcome), height
		if look == "ok" {
			tall = least + int(float64(height-least)*min(max(float64(r.Took)/float64(longest), 0), 1))
		}
		all.add(look, box((runsShown-1-i)*width, (runsShown-i)*width-1, height-tall, tall))
		counts[r.Outcome]++
	}
	label := fmt.Sprintf("last %s: %s", view.Counted(len(runs), "run"), counts)
	return m(`<svg class="strip" role="img" aria-label="%s" viewBox="0 0 %d %d" preserveAspectRatio="none"><title>%s</title>%s</svg>`, label, runsShown*width, height, label, all.draw())
}

// latenessOf returns how long after its tick a run began, at least a microsecond; zero if not
// known.
func latenessOf(r *view.Past) view.Span {
	if r.Tick.IsZero() || r.Began.IsZero() {
		return 0
	}
	return view.Span(max(r.Began.Sub(r.Tick.Time), time.Microsecond))
}

// bars draws a time of each run on a logarithmic scale, the newest run on the right.
func bars(heading markup, runs []view.Past, of func(*view.Past) view.Span) markup {
	const height, least = 100, 4
	slots := max(len(runs), 40)
	var all []view.Span
	for i := range runs {
		if v := of(&runs[i]); v > 0 {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	if len(all) == 0 || all[len(all)-1] < view.Span(time.Millisecond) {
		return ""
	}
	low, middle, most := all[0], all[len(all)/2], all[len(all)-1]
	low = min(low, most/4)
	y := func(v view.Span) int {
		return least + int((height-least-8)*math.Log(float64(max(v, low))/float64(low))/math.Log(float64(most)/float64(low)))
	}
	drawn := make(shapes)
	for i := range runs {
		if v := of(&runs[i]); v > 0 {
			x := (slots - 1 - i) * 5
			drawn.add(outcomeLook(runs[i].Outcome), box(x, x+4, height-y(v), y(v)))
		}
	}
	rule, label := markup(""), markup("")
	for i, v := range []view.Span{most, middle} {
		if i > 0 && y(most)-y(v) < 16 {
			continue
		}
		at := height - y(v)
		rule += m(`<line x1="0" x2="100%%" y1="%d" y2="%d"/>`, at, at)
		label += m(`<text x="100%%" y="%d" text-anchor="end">%s</text>`, at+4, v)
	}
	said := fmt.Sprintf("half within %v, 95 %% within %v", middle, all[len(all)*95/100])
	return m(`<div><div class="head"><h2>%s</h2><span class="soft">%s</span></div>
<div class="chart"><svg class="plot" aria-hidden="true">%s</svg><svg class="plot" role="img" aria-label="%s"><svg viewBox="0 0 %d %d" width="100%%" height="%d" preserveAspectRatio="none">%s</svg>%s</svg></div></div>
`, heading, said, label, said, 5*slots, height, height, drawn.draw(), rule)
}
