package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/soak/story"
	"github.com/tenure-dev/tenure/internal/soak/work"
)

// jobs are what every replica runs: one that takes no time and one that takes some, for each interval.
func jobs() []work.Job {
	var jobs []work.Job
	for _, every := range intervals {
		for _, takes := range []time.Duration{0, 200 * time.Millisecond} {
			jobs = append(jobs, work.Job{Name: fmt.Sprintf("each-%s-takes-%s", every, takes), Kind: work.Cron, Every: every, Takes: takes})
		}
	}
	return jobs
}

var intervals = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second}

// tally is what became of the ticks from one time to another, in milliseconds since 1970.
type tally struct {
	way      string
	faults   int
	from, to int64
	runs     map[string]map[int64]int // that were begun, by job and tick
}

func (t *tally) add(records map[string][]story.Record) {
	for _, life := range records {
		for _, r := range life {
			if r.Kind != story.Begin {
				continue
			}
			if t.runs[r.Job] == nil {
				t.runs[r.Job] = make(map[int64]int)
			}
			t.runs[r.Job][r.Tick]++
		}
	}
}

// sum is numbers of ticks, and of the runs that were too many.
type sum struct{ due, once, twice, extra, lost int }

func (s *sum) plus(o sum) {
	s.due, s.once, s.twice, s.extra, s.lost = s.due+o.due, s.once+o.once, s.twice+o.twice, s.extra+o.extra, s.lost+o.lost
}

func (t *tally) sum(which func(work.Job) bool) sum {
	var total sum
	for _, j := range jobs() {
		if which(j) {
			total.plus(t.job(j))
		}
	}
	return total
}

func (t *tally) job(j work.Job) sum {
	var s sum
	for _, tick := range j.Ticks(t.from, t.to) {
		s.due++
		switch n := t.runs[j.Name][tick]; n {
		case 0:
			s.lost++
		case 1:
			s.once++
		default:
			s.twice++
			s.extra += n - 1
		}
	}
	return s
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
	line("kills and rolls of replicas", func(t *tally) string { return fmt.Sprint(t.faults) })
	all := func(work.Job) bool { return true }
	line("ticks that were due", func(t *tally) string { return fmt.Sprint(t.sum(all).due) })
	line("run once", func(t *tally) string { return fmt.Sprint(t.sum(all).once) })
	line("**run twice or more** (runs too many)", func(t *tally) string {
		s := t.sum(all)
		return fmt.Sprintf("**%d** (%d)", s.twice, s.extra)
	})
	line("**lost**", func(t *tally) string { return fmt.Sprintf("**%d**", t.sum(all).lost) })
	for _, every := range intervals {
		for _, instant := range []bool{true, false} {
			name := fmt.Sprintf("each %s, instant: twice, lost, of", every)
			if !instant {
				name = fmt.Sprintf("each %s, takes 200 ms", every)
			}
			line(name, func(t *tally) string {
				s := t.sum(func(j work.Job) bool { return j.Every == every && (j.Takes == 0) == instant })
				return fmt.Sprintf("%d, %d, %d", s.twice, s.lost, s.due)
			})
		}
	}
}
