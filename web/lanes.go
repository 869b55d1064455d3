package web

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// Charts are SVG without inline styles, which the page's Content-Security-Policy forbids. They fill
// the available width without script: their coordinates are thousandths of the width, and lines
// keep their thickness. The text beside a chart says the same in words.

// window is a time axis. The part between now and to shows coming ticks.
type window struct {
	from, now, to time.Time
	past          bool // the window ends in the past, and now is not drawn
}

const (
	wide      = 1000
	mostLanes = 40
	mostLinks = 30 // links to runs in a lane; the list of runs has all
)

// windowOf returns a window of past before now and next after it. now is rounded, so that the chart
// does not move for a few seconds.
func windowOf(past, next time.Duration) window {
	every := max((past+next)/900, time.Second)
	now := time.Now().UTC().Truncate(every).Add(every)
	return window{from: now.Add(-past), now: now, to: now.Add(next)}
}

func (w window) x(t time.Time) int {
	return int(wide * float64(min(max(t.Sub(w.from), 0), w.to.Sub(w.from))) / float64(w.to.Sub(w.from)))
}

// percent returns a coordinate in percent of the width, for drawings without a viewBox, such as
// those with texts.
func percent(x int) string { return fmt.Sprintf("%.1f%%", float64(x)/10) }

var axisSteps = []time.Duration{
	time.Second, 10 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour,
	6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// draw draws lanes below their time axis.
func (w window) draw(attributes, lanes markup) markup {
	const most = 8
	step := max(axisSteps[len(axisSteps)-1], w.to.Sub(w.from)/most)
	for _, s := range slices.Backward(axisSteps) {
		if w.to.Sub(w.from)/s <= most {
			step = s
		}
	}
	layout := choice(step >= 24*time.Hour, "2 Jan", choice(step < time.Minute, "15:04:05", "15:04"))
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

// box returns a rectangle as a path.
func box(from, to, top, high int) string {
	return fmt.Sprintf("M%d %dh%dv%dh-%dz", from, top, max(to-from, 0), high, max(to-from, 0))
}

func path(class markup, d string) markup { return m(`<path class="%s" d="%s"/>`, class, d) }

// shapes are path data by look.
type shapes map[markup][]byte

func (s shapes) add(look markup, shape string) { s[look] = append(s[look], shape...) }

func (s shapes) draw() markup {
	return each(slices.Sorted(maps.Keys(s)), "", func(look markup) markup { return path(look, string(s[look])) })
}

// zig draws a torn edge: a run or term was cut short there.
func zig(x int) markup { return path("zig", fmt.Sprintf("M%d 1l3 4-3 4 3 4-3 4", x)) }

// lane is a row of a chart.
type lane struct {
	attributes, head markup
	of, label        string // name of the row, and its text for screen readers
	marks            markup
	links            bool // marks contain links
	texts            bool // marks contain texts, so coordinates are no thousandths
	note, noteLook   markup
}

func (l lane) draw() markup {
	return m(`<li class="lane" %s><span>%s</span><svg role="%s" aria-label="%s%s"%s>%s</svg><small class="%s">%s</small></li>`+"\n",
		l.attributes, l.head, choice(l.links, "group", "img"), when(l.of != "", "%s: ", visible(view.Shortened(l.of, 60))), l.label,
		when(!l.texts, ` viewBox="0 0 1000 18" preserveAspectRatio="none"`), l.marks, l.noteLook, l.note)
}

// byReplica draws the first lanes, sorted by replica, without the common prefix of the replicas'
// names.
func (w window) byReplica(of map[string]*lane, most int, more markup) markup {
	replicas := slices.Sorted(maps.Keys(of))
	prefix := shared(replicas)
	return w.draw("", m("<ul>%s%s</ul>", each(replicas[:min(len(replicas), most)], "", func(replica string) markup {
		l := of[replica]
		l.attributes, l.head, l.of = m(`data-replica="%s"`, replica), short(replica, prefix), replica
		return l.draw()
	}), more))
}

// outcomeLooks are the looks of outcomes. Other outcomes are failures.
var outcomeLooks = map[admin.Outcome]markup{
	admin.OutcomeOK: "ok", admin.OutcomeCancelled: "skipped", admin.OutcomeStopped: "skipped", admin.OutcomeNotBegun: "skipped", admin.OutcomeCutShort: "cutshort",
}

// outcomeLook returns the look of an outcome.
func outcomeLook(outcome string) markup {
	return either(outcomeLooks[admin.Outcome(outcome)], "failing")
}

// beginOf returns when a run began, or else its tick.
func beginOf(r *view.Past) view.Time { return choice(r.Began.IsZero(), r.Tick, r.Began) }

// within ranges over the past runs that overlap the window.
func (w window) within(runs []view.Past) iter.Seq[*view.Past] {
	return func(yield func(*view.Past) bool) {
		for i := range runs {
			r := &runs[i]
			if began := beginOf(r); !began.IsZero() && !r.Ended().Before(w.from) && !began.After(w.now) && !yield(r) {
				return
			}
		}
	}
}

// tally counts runs by outcome.
type tally map[string]int

func (t tally) total() (n int) {
	for _, of := range t {
		n += of
	}
	return n
}

// String lists the counts in words.
func (t tally) String() string {
	var all []string
	for _, outcome := range slices.Sorted(maps.Keys(t)) {
		all = append(all, fmt.Sprint(t[outcome], " ", words(outcome)))
	}
	return strings.Join(all, ", ")
}

// runs draws past runs, given with the newest first, and counts them. Runs that failed or were cut
// short are taller, and the first mostLinks of them are links.
func (w window) runs(l *lane, runs []view.Past) tally {
	all, at, counts := make(shapes), make(map[markup]int), make(tally)
	var links markup
	n := 0
	for r := range w.within(runs) {
		counts[r.Outcome]++
		began := beginOf(r)
		look, from, to := outcomeLook(r.Outcome), w.x(began.Time), min(w.x(r.Ended().Time), w.x(w.now))
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
			continue // another run of this look is drawn there
		}
		at[look] = from
		all.add(look, box(from, to, top, high))
	}
	l.marks, l.links = l.marks+all.draw()+links, links != ""
	return counts
}

// running draws a run that goes on; nothing if r is nil.
func (w window) running(r *view.Run) markup {
	if r == nil || r.Since().IsZero() {
		return ""
	}
	return path("running", box(w.x(r.Since().Time), w.x(w.now), 6, 6))
}

// next draws the coming ticks.
func (w window) next(j *view.Job) markup {
	if j.Paused != nil || j.Next.Before(w.now) || !j.Next.Before(w.to) {
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

// job returns the lane of a job, and whether it has anything to show in the window.
func (w window) job(j *view.Job) (l lane, ok bool) {
	look, word, rank := stateOf(j)
	l = lane{attributes: jobAttributes(j), head: iconOf(look) + jobLink(j.Name), of: j.Name}
	if p := j.Paused; p != nil {
		l.marks += path("hold", box(w.x(p.Since.Time), choice(p.Until.IsZero(), wide, w.x(p.Until.Time)), 4, 10))
	}
	due := dueOf(j)
	if j.Late && !due.IsZero() && due.Before(w.now) {
		x := w.x(due.Time)
		l.marks += path("due", box(x, w.x(w.now), 4, 10)) + path("late", fmt.Sprintf("M%d 9l5-5 5 5-5 5z", x-5))
	}
	if n := len(j.Runs); (n == runsShown || n == runsKept) && j.Runs[n-1].Ended().After(w.from) { // there may be more runs
		l.marks += path("unk", fmt.Sprintf("M0 9h%d", w.x(j.Runs[n-1].Ended().Time)))
	}
	said := w.runs(&l, j.Runs).String()
	l.marks += w.running(j.Running) + w.next(j)
	l.note, l.noteLook = escaped(said), look
	now := time.Now()
	switch look {
	case "failing":
		if n, _, _ := streak(j.Runs); n > 0 {
			l.note = m("last %d failed", n)
		}
	case "late":
		l.note = choice(due.IsZero(), "late", m("%s late", view.Rough(now.Sub(due.Time))))
	case "cutshort":
		l.note = m("cut short %s", j.Last.Ended().Format("15:04"))
	case "running":
		began := j.Running.Since()
		l.note = choice(began.IsZero(), "begins", m("for %s", view.Rough(now.Sub(began.Time))))
	case "paused":
		l.note = choice(j.Paused.Until.IsZero(), "paused", m("till %s", j.Paused.Until.Clock(now)))
	case "none":
		l.note = "unknown"
	default:
		l.noteLook = "soft"
	}
	l.label = strings.TrimSuffix(string(word)+", "+said, ", ")
	return l, l.marks != "" || rank < rankOK
}

// shared returns the common prefix of the names of replicas, up to a hyphen.
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

// short draws a name without a prefix.
func short(text, prefix string) markup {
	rest := strings.TrimPrefix(text, prefix)
	return m(`<bdi class="name" title="%s">%s</bdi>`, visible(text), visible(choice(rest == "", text, rest)))
}

// term draws a term, up to now if its leader leads, with the leader's name without a prefix. A term
// that was cut short has a torn edge.
func (w window) term(t view.Term, leads bool, prefix string) markup {
	from, to := w.x(t.Began.Time), w.x(w.now)
	if !leads {
		to = w.x(t.Ended.Time)
	}
	if t.Began.IsZero() || to <= 0 || !leads && t.Ended.IsZero() {
		return ""
	}
	b := m(`<rect class="%s" x="%s" y="3" width="%s" height="12"><title>%s</title></rect>`, choice(leads, "lead", "was"), percent(from), percent(max(to-from, 2)), visible(view.Shortened(t.Identity, 60)))
	if name := view.Shortened(visible(strings.TrimPrefix(t.Identity, prefix)), 24); name != "" && to-from > 9*len([]rune(name))+12 {
		b += m(`<text class="%s" x="%s" y="13">%s</text>`, choice(leads, "in", "past"), percent(from+6), name)
	}
	if t.Reason == admin.TermCutShort {
		b += m(`<svg x="%s" width="6" height="18" overflow="visible">%s</svg>`, percent(to), zig(0))
	}
	return b
}
