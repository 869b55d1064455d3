package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// tally is what became of the ticks from one time to another, in milliseconds since 1970.
type tally struct {
	way      string
	faults   int
	from, to int64
	runs     map[string]map[int64]int // that were begun, by job and tick
}

func (t *tally) add(records map[string][]record.Record) {
	for _, life := range records {
		for _, r := range life {
			j, known := work.Find(work.Jobs(), r.Job)
			if r.Kind != record.Begin || !known || r.Tick == 0 {
				continue
			}
			if t.runs[r.Job] == nil {
				t.runs[r.Job] = make(map[int64]int)
			}
			t.runs[r.Job][intervalOf(&j, r.Tick)]++
		}
	}
}

// intervalOf is by which a run is counted: that of a duration job by the interval that its tick
// falls into, because the ways count the intervals of a job from times of their own.
func intervalOf(j *work.Job, tick int64) int64 {
	if j.Kind != work.Duration {
		return tick
	}
	return tick - tick%j.Every.Milliseconds()
}

// group is some of the jobs.
type group struct {
	name string
	has  func(j *work.Job) bool
}

// long reports whether a job takes longer than its interval, so that most ways skip some of its
// ticks by design.
func long(j *work.Job) bool { return j.Kind != work.Once && j.Takes >= j.Every }

// groups are the rows of the table.
var groups = []group{
	{"cron, instant", func(j *work.Job) bool { return j.Kind == work.Cron && j.Takes == 0 }},
	{"cron, takes a part of its interval", func(j *work.Job) bool { return j.Kind == work.Cron && j.Takes > 0 && !long(j) }},
	{"daily and weekly", func(j *work.Job) bool { return j.Kind == work.Daily || j.Kind == work.Weekly }},
	{"duration", func(j *work.Job) bool { return j.Kind == work.Duration && !long(j) }},
	{"one-time", func(j *work.Job) bool { return j.Kind == work.Once }},
}

var (
	everyJob   = group{"all", func(j *work.Job) bool { return !long(j) }}
	caughtUp   = group{"of all these, those that Tenure catches up in full", func(j *work.Job) bool { return j.CatchUp == scheduler.CatchUpAll && !long(j) }}
	longerJobs = group{"beside these, cron and duration, takes longer than its interval", long}
)

// sum is numbers of ticks, and of the runs that were too many.
type sum struct{ due, once, twice, extra, lost int }

func (s *sum) count(runs int) {
	s.due++
	switch {
	case runs == 0:
		s.lost++
	case runs == 1:
		s.once++
	default:
		s.twice++
		s.extra += runs - 1
	}
}

func (t *tally) sum(g group) sum {
	var s sum
	for _, j := range work.Jobs() {
		if j.Ticked() && g.has(&j) {
			for _, tick := range t.due(&j) {
				s.count(t.runs[j.Name][tick])
			}
		}
	}
	every := work.OnceEvery.Milliseconds()
	for n := (t.from + work.Ahead.Milliseconds()) / every; n*every <= t.to; n++ {
		if j, at := work.OneTime(n); at.UnixMilli() >= t.from+work.Ahead.Milliseconds() && g.has(&j) {
			s.count(t.runs[j.Name][at.UnixMilli()])
		}
	}
	return s
}

// due lists the ticks of a job. Those of a duration job are its intervals, in each of which a
// replica begins runs at a time of its own.
func (t *tally) due(j *work.Job) []int64 {
	if j.Kind == work.Duration {
		every := j.Every.Milliseconds()
		return j.Ticks(t.from+every, t.to-every)
	}
	return j.Ticks(t.from, t.to)
}

// table prints tallies side by side, as Markdown.
func table(out io.Writer, tallies []*tally) {
	line := func(name string, cell func(*tally) string) {
		fmt.Fprintf(out, "| %s |", name)
		for _, t := range tallies {
			fmt.Fprintf(out, " %s |", cell(t))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	line("", func(t *tally) string { return t.way })
	fmt.Fprintf(out, "|%s\n", strings.Repeat(" --- |", len(tallies)+1))
	line("faults", func(t *tally) string { return fmt.Sprint(t.faults) })
	line("ticks that were due", func(t *tally) string { return fmt.Sprint(t.sum(everyJob).due) })
	line("run once", func(t *tally) string { return fmt.Sprint(t.sum(everyJob).once) })
	line("**run twice or more** (runs too many)", func(t *tally) string {
		s := t.sum(everyJob)
		return fmt.Sprintf("**%d** (%d)", s.twice, s.extra)
	})
	line("**lost**", func(t *tally) string { return fmt.Sprintf("**%d**", t.sum(everyJob).lost) })
	for i, g := range append(groups[:len(groups):len(groups)], caughtUp, longerJobs) {
		name := g.name
		if i == 0 {
			name += ": twice, lost, of"
		}
		line(name, func(t *tally) string {
			s := t.sum(g)
			return fmt.Sprintf("%d, %d, %d", s.twice, s.lost, s.due)
		})
	}
}
