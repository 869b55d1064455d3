package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// Charts are SVG without styles of their own, which the policy of the page does not let in. They
// are as wide as there is room, without script: what they show is in thousandths of their width,
// and lines keep theirs. What they show stands beside them in words.

// window is a time axis, with what is next behind now.
type window struct {
	from, now, to time.Time
	past          bool // now is not shown
}

const (
	wide      = 1000
	mostLanes = 40
	mostLinks = 30 // of runs in a lane; the list has all
)

// windowOf is one of which now is at a share of the whole. What changes within a few seconds does
// not move it.
func windowOf(past, next time.Duration) window {
	every := max((past+next)/900, time.Second)
	now := time.Now().UTC().Truncate(every).Add(every)
	return window{from: now.Add(-past), now: now, to: now.Add(next)}
}

func (w window) x(t time.Time) int {
	return int(wide * float64(min(max(t.Sub(w.from), 0), w.to.Sub(w.from))) / float64(w.to.Sub(w.from)))
}

// percent is a place where thousandths are not drawn: beside texts.
func percent(x int) string { return fmt.Sprintf("%.1f%%", float64(x)/10) }

var axisSteps = []time.Duration{
	time.Second, 10 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour,
	6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// draw draws lanes below their axis.
func (w window) draw(attributes, lanes markup) markup {
	const most = 8
	step, layout := axisSteps[len(axisSteps)-1], "15:04"
	for _, s := range slices.Backward(axisSteps) {
		if w.to.Sub(w.from)/s <= most {
			step = s
		}
	}
	if step >= 24*time.Hour {
		layout = "2 Jan"
	} else if step < time.Minute {
		layout = "15:04:05"
	}
	now := w.x(w.now)
	net, texts := markup(""), markup("")
	for at := w.from.Truncate(step).Add(step); at.Before(w.to); at = at.Add(step) {
		x := w.x(at)
		net += m(`<line x1="%s" x2="%s" y1="20" y2="100%%"/>`, percent(x), percent(x))
		if x > 20 && x < 980 && (w.past || x < now-60 || x > now+60) {
			texts += m(`<text x="%s" y="14">%s</text>`, percent(x), at.Format(layout))
		}
	}
	if !w.past {
		at := percent(now)
		net = m(`<rect x="%s" y="20" width="100%%" height="100%%"/>%s<line class="now" x1="%s" x2="%s" y1="18" y2="100%%"/>`, at, net, at, at)
		texts += m(`<text class="at" x="%s" y="14">now</text>`, at)
	}
	return m(`<div class="lanes"%s><svg class="net" aria-hidden="true">%s</svg>
<div class="axis" aria-hidden="true"><span></span><svg>%s</svg><span></span></div>
%s</div>`, attributes, net, texts, lanes)
}

// box is a rectangle of a path.
func box(from, to, top, high int) string {
	return fmt.Sprintf("M%d %dh%dv%dh-%dz", from, top, max(to-from, 0), high, max(to-from, 0))
}

func path(class markup, d string) markup { return m(`<path class="%s" d="%s"/>`, class, d) }

// shapes are what is drawn alike, by its look.
type shapes map[markup][]byte

func (s shapes) add(look markup, shape string) { s[look] = append(s[look], shape...) }

func (s shapes) draw() markup {
	return each(slices.Sorted(maps.Keys(s)), "", func(look markup) markup { return path(look, string(s[look])) })
}

// zig is a torn edge: somebody was killed there.
func zig(x int) markup { return path("zig", fmt.Sprintf("M%d 1l3 4-3 4 3 4-3 4", x)) }

// lane is a row of lanes.
type lane struct {
	attributes, head markup
	label            string // says what it shows
	marks            markup
	links            bool // marks have some
	texts            bool // marks have some, and are no thousandths of the width
	note, noteLook   markup
}

func (l lane) draw() markup {
	role := markup("img")
	if l.links {
		role = "group"
	}
	return m(`<li class="lane" %s><span>%s</span><svg role="%s" aria-label="%s"%s>%s</svg><small class="%s">%s</small></li>`+"\n",
		l.attributes, l.head, role, l.label, when(!l.texts, ` viewBox="0 0 1000 18" preserveAspectRatio="none"`), l.marks, l.noteLook, l.note)
}

// outcomeLook is how an outcome looks.
func outcomeLook(outcome string) markup {
	switch admin.Outcome(outcome) {
	case admin.OutcomeOK:
		return "ok"
	case admin.OutcomeCancelled, admin.OutcomeStopped, admin.OutcomeNotBegun:
		return "skipped"
	case admin.OutcomeCutShort:
		return "cutshort"
	default:
		return "failing"
	}
}

// has reports whether a run that has ended is in the window, and when it began.
func (w window) has(r *view.Past) (began time.Time, is bool) {
	if began = r.Began.Time; began.IsZero() {
		began = r.Tick.Time
	}
	return began, !began.IsZero() && !r.Ended().Before(w.from) && !began.After(w.now)
}

// count counts the runs in the window by their outcomes.
func (w window) count(counts map[string]int, runs []view.Past) {
	for i := range runs {
		if _, is := w.has(&runs[i]); is {
			counts[runs[i].Outcome]++
		}
	}
}

// outcomesOf says how many runs have ended how.
func outcomesOf(counts map[string]int) (total int, said string) {
	var all []string
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		total += counts[outcome]
		all = append(all, fmt.Sprint(counts[outcome], " ", words(outcome)))
	}
	return total, strings.Join(all, ", ")
}

// runs draws runs that have ended, the newest first: those that failed are taller, and links.
func (w window) runs(l *lane, runs []view.Past) {
	all, at := make(shapes), make(map[markup]int)
	var links markup
	n := 0
	for i := range runs {
		r := &runs[i]
		began, is := w.has(r)
		if !is {
			continue
		}
		look, from, to := outcomeLook(r.Outcome), w.x(began), min(w.x(r.Ended().Time), w.x(w.now))
		top, high := 5, 8
		if look == "failing" || look == "cutshort" {
			top, high = 2, 14
			if n++; n <= mostLinks {
				torn := markup("")
				if look == "cutshort" {
					to = max(to, from+4)
					torn = zig(to)
				}
				title := fmt.Sprintf("%s on %s: %s", began.UTC().Format("2 Jan 15:04:05"), view.Shortened(visible(r.Replica), 60), words(r.Outcome))
				links += m(`<a href="%s" tabindex="-1"><title>%s</title>%s%s</a>`, runAddress(r), title, path(look, box(from, to, top, high)), torn)
				continue
			}
		}
		if x, is := at[look]; is && x == from {
			continue // it would be drawn over another
		}
		at[look] = from
		all.add(look, box(from, to, top, high))
	}
	l.marks, l.links = l.marks+all.draw()+links, links != ""
}

// next draws the ticks that are next.
func (w window) next(j *view.Job) markup {
	if j.Next.Before(w.now) || !j.Next.Before(w.to) {
		return ""
	}
	every := periodOf(j.Schedule)
	if every > 0 && w.x(w.from.Add(every)) < 10 {
		return path("many", fmt.Sprintf("M%d 9H1000", w.x(j.Next.Time)))
	}
	var b strings.Builder
	for at := j.Next.Time; at.Before(w.to); at = at.Add(every) {
		fmt.Fprintf(&b, "M%d 9h0", w.x(at))
		if every <= 0 {
			break
		}
	}
	return path("next", b.String())
}

// job draws the lane of a job, if it has something in the window.
func (w window) job(j *view.Job) (l lane, ok bool) {
	look, word, rank := stateOf(j)
	l = lane{attributes: jobAttributes(j), head: iconOf(look) + jobLink(j.Name)}
	if p := j.Paused; p != nil {
		until := wide
		if !p.Until.IsZero() {
			until = w.x(p.Until.Time)
		}
		l.marks += path("hold", box(w.x(p.Since.Time), until, 4, 10))
	}
	due := dueOf(j)
	if j.Late && !due.IsZero() && due.Before(w.now) {
		x := w.x(due.Time)
		l.marks += path("due", box(x, w.x(w.now), 4, 10)) + path("late", fmt.Sprintf("M%d 9l5-5 5 5-5 5z", x-5))
	}
	if n := len(j.Runs); n == runsShown || n == runsKept { // there may be more
		if oldest := j.Runs[n-1].Ended(); oldest.After(w.from) {
			l.marks += path("unk", fmt.Sprintf("M0 9h%d", w.x(oldest.Time)))
		}
	}
	w.runs(&l, j.Runs)
	if run := j.Running; run != nil && !run.Since().IsZero() {
		l.marks += path("running", box(w.x(run.Since().Time), w.x(w.now), 6, 6))
	}
	if j.Paused == nil {
		l.marks += w.next(j)
	}
	counts := make(map[string]int)
	w.count(counts, j.Runs)
	_, said := outcomesOf(counts)
	l.note, l.noteLook = escaped(said), look
	now := time.Now()
	switch look {
	case "failing":
		if n, _, _ := streak(j.Runs); n > 0 {
			l.note = m("last %d failed", n)
		}
	case "late":
		if l.note = "late"; !due.IsZero() {
			l.note = m("%s late", view.Rough(now.Sub(due.Time)))
		}
	case "cutshort":
		l.note = m("cut short %s", j.Last.Ended().Format("15:04"))
	case "running":
		began := j.Running.Since()
		l.note = either(when(!began.IsZero(), "for %s", view.Rough(now.Sub(began.Time))), "begins")
	case "paused":
		if l.note = "paused"; !j.Paused.Until.IsZero() {
			l.note = m("till %s", j.Paused.Until.Clock(now))
		}
	case "none":
		l.note = "unknown"
	default:
		l.noteLook = "soft"
	}
	l.label = strings.TrimSuffix(visible(view.Shortened(j.Name, 60))+": "+string(word)+", "+said, ", ")
	return l, l.marks != "" || rank < rankOK
}

// shared is what names of replicas have in common, up to a hyphen.
func shared(names []string) string {
	if len(names) < 2 {
		return ""
	}
	prefix := names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:strings.LastIndex(prefix[:len(prefix)-1], "-")+1]
		}
	}
	return prefix[:strings.LastIndex(prefix, "-")+1]
}

// short is a name without what it shares.
func short(text, prefix string) markup {
	rest := strings.TrimPrefix(text, prefix)
	if rest == "" {
		rest = text
	}
	return m(`<bdi class="name" title="%s">%s</bdi>`, visible(text), visible(rest))
}

// term draws a term, of the one that leads until now, with its name without a prefix. One that
// nobody ended has a torn edge.
func (w window) term(t view.Term, leads bool, prefix string) markup {
	from, to := w.x(t.Began.Time), w.x(w.now)
	if !leads {
		to = w.x(t.Ended.Time)
	}
	if t.Began.IsZero() || to <= 0 || !leads && t.Ended.IsZero() {
		return ""
	}
	class, text := markup("was"), markup("past")
	if leads {
		class, text = "lead", "in"
	}
	b := m(`<rect class="%s" x="%s" y="3" width="%s" height="12"><title>%s</title></rect>`, class, percent(from), percent(max(to-from, 2)), visible(view.Shortened(t.Identity, 60)))
	if name := view.Shortened(visible(strings.TrimPrefix(t.Identity, prefix)), 24); name != "" && to-from > 9*len([]rune(name))+12 {
		b += m(`<text class="%s" x="%s" y="13">%s</text>`, text, percent(from+6), name)
	}
	if t.Reason == admin.TermCutShort {
		b += m(`<svg x="%s" width="6" height="18" overflow="visible">%s</svg>`, percent(to), zig(0))
	}
	return b
}
