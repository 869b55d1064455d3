package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// run is one execution of a job: the records of its begin and of its end.
type run struct {
	history.Record
	of      *life
	job     *jobs.Job
	until   history.Instant // the last known deadline of its lease
	end     history.Record  // zero if the journal has none
	unheard bool            // no quorum confirmed the end of its lease
}

// stale reports whether the run began after the end of its lease, because its process had been
// frozen.
func (r *run) stale() bool { return r.At >= r.Deadline }

// over returns from when on the run excludes no other run: the first of its end, the deadline of
// its lease and the death of its process.
func (r *run) over() history.Instant {
	over := r.until
	for _, at := range []history.Instant{r.end.At, r.of.Killed} {
		if at != 0 {
			over = min(over, at)
		}
	}
	return over
}

// whole reports whether the task came to its end, even if its lease had ended by then. Nothing of
// the task is left to do.
func (r *run) whole() bool { return r.end.At != 0 && !r.end.Panicked && !r.end.Told }

// harm is a time in which something kept a process from its work.
type harm struct {
	by       cause
	from, to history.Instant
}

func (h harm) meets(from, to history.Instant) bool { return h.from <= to && from <= h.to }

// cause is a set of the causes of a harm.
type cause int

const (
	killed  cause = 1 << iota
	frozen        // by SIGSTOP
	still         // it did not run for a while, as its own journal says
	stopped       // it was told to stop, was killed, or ended
)

// life is one process of a replica.
type life struct {
	history.Life
	start history.Record   // zero if its Schedulers never ran
	leaps []history.Record // of its clock, in the order of time
	harm  []harm
	asked []history.Record             // calls of RunNow that returned no error
	late  map[string][]history.Instant // when it gave up a tick of a job; until then it may have been in the way
}

// at returns when the life's clock first showed ms, or a later time.
func (l *life) at(ms int64) history.Instant {
	at := l.start.At.Add(time.Duration(ms-l.start.Clock) * time.Millisecond)
	for _, leap := range l.leaps {
		if at <= leap.At {
			return at
		}
		at = max(at.Add(-leap.Delay), leap.At)
	}
	return at
}

// tick is an instant at which a job was due, in milliseconds since 1970.
type tick struct {
	job *jobs.Job
	at  int64
}

// skip is a life's record that it did not run a tick.
type skip struct {
	history.Record
	life string
}

// says reports whether the skip is for one of these reasons.
func (s skip) says(reasons ...scheduler.Reason) bool {
	return slices.Contains(reasons, scheduler.Reason(s.Reason))
}

// outage is a time in which a server did not answer, or did not vote.
type outage struct {
	server   int
	from, to history.Instant
}

// index is a history arranged for the checks, and their verdict.
type index struct {
	*Verdict
	jobs    []jobs.Job
	lives   map[string]*life
	names   []string // of the lives, sorted
	runs    map[string][]*run
	skips   map[tick][]skip // in the order of the lives' names
	done    map[tick][]*run
	lost    map[tick]bool // ticks that were found lost
	outages []outage      // of all servers
}

func newIndex(v *Verdict, work []jobs.Job) *index {
	x := &index{
		Verdict: v, jobs: work, lives: make(map[string]*life), runs: make(map[string][]*run),
		skips: make(map[tick][]skip), done: make(map[tick][]*run), lost: make(map[tick]bool),
	}
	for _, l := range v.Lives {
		x.lives[l.Name] = &life{Life: l, late: make(map[string][]history.Instant)}
		x.names = append(x.names, l.Name)
	}
	slices.Sort(x.names)
	for _, s := range v.Strikes {
		if l := x.lives[s.Life]; l != nil && s.Kind == plan.Freeze {
			l.harm = append(l.harm, harm{frozen, s.From, s.To})
		}
		if s.Server >= 0 {
			to := s.To
			if s.Kind != plan.FreezeServer {
				to = to.Add(plan.Recovery)
			}
			x.outages = append(x.outages, outage{s.Server, s.From, to})
		}
	}
	for _, name := range x.names {
		x.read(x.lives[name])
	}
	for _, runs := range x.runs {
		slices.SortFunc(runs, func(a, b *run) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Run, b.Run)) })
		for _, r := range runs {
			if r.Tick != 0 {
				x.done[tick{r.job, r.Tick}] = append(x.done[tick{r.job, r.Tick}], r)
			}
		}
	}
	return x
}

// read adds the journal of a life to the index.
func (x *index) read(l *life) {
	runs, to := make(map[string]*run), cmp.Or(l.Killed, l.Ended)
	for _, rec := range x.Records[l.Name] {
		job, r := jobs.Find(x.jobs, rec.Job), runs[rec.Run]
		switch {
		case rec.Kind == history.Start:
			l.start = rec
		case rec.Kind == history.Leap:
			l.leaps = append(l.leaps, rec)
		case rec.Kind == history.Begin && job != nil:
			r = &run{Record: rec, of: l, job: job, until: rec.Deadline}
			runs[rec.Run] = r
			x.runs[rec.Job] = append(x.runs[rec.Job], r)
		case r != nil: // the run goes on, or ends
			r.until = max(r.until, rec.Deadline)
			if rec.Kind == history.End {
				r.end = rec
			}
		case rec.Kind == history.Unheard:
			for _, r := range runs {
				r.unheard = r.unheard || r.Token == rec.Token
			}
		case rec.Kind == history.Skip && job != nil && rec.Tick != 0:
			x.skip(l, job, skip{rec, l.Name})
		case rec.Kind == history.Asked && rec.Text == "":
			l.asked = append(l.asked, rec)
		case rec.Kind == history.Pause:
			l.harm = append(l.harm, harm{still, rec.At.Add(-rec.Delay), rec.At})
		case rec.Kind == history.Stopping:
			to = min(to, rec.At)
		}
	}
	l.harm = append(l.harm, harm{stopped, to, to})
	if l.Killed != 0 {
		l.harm = append(l.harm, harm{killed, l.Killed, l.Killed})
	}
}

// skip notes a life's record of a tick that it did not run, for that tick and for the earlier ticks
// that the record counts.
func (x *index) skip(l *life, job *jobs.Job, s skip) {
	ticks := 1
	if job.Ticked() {
		ticks = max(s.Count, 1)
	}
	for n := range ticks {
		t := tick{job, s.Tick - int64(n)*job.Every.Milliseconds()}
		x.skips[t] = append(x.skips[t], s)
	}
	if s.says(scheduler.SkipTimeout, scheduler.SkipNoQuorum, scheduler.SkipSplit, scheduler.SkipQuarantined) {
		l.late[s.Job] = append(l.late[s.Job], s.At)
	}
}

// harmed reports whether one of the causes kept a life from its work at some time between from and
// to.
func (x *index) harmed(name string, by cause, from, to history.Instant) bool {
	l := x.lives[name]
	return l != nil && slices.ContainsFunc(l.harm, func(h harm) bool { return h.by&by != 0 && h.meets(from, to) })
}

// stalled reports whether, between from and to, a process stood still or was killed, or a server
// did not answer.
func (x *index) stalled(name string, from, to history.Instant) bool {
	return x.harmed(name, killed|frozen|still, from, to) ||
		slices.ContainsFunc(x.outages, func(o outage) bool { return o.from <= to && from <= o.to })
}

// quorum reports whether a quorum of servers answered all the time between from and to.
func (x *index) quorum(from, to history.Instant) bool {
	lacks := func(at history.Instant) bool {
		gone := make(map[int]bool)
		for _, o := range x.outages {
			if o.from <= at && at <= o.to {
				gone[o.server] = true
			}
		}
		return len(gone) > (x.Servers-1)/2
	}
	return !lacks(from) && !slices.ContainsFunc(x.outages, func(o outage) bool { return o.from >= from && o.from <= to && lacks(o.from) })
}

// machine returns when the machine's clock showed ms.
func (x *index) machine(ms int64) history.Instant {
	return x.Over.Add(time.Duration(ms-x.OverAt) * time.Millisecond)
}

// clock returns what the machine's clock showed, in milliseconds since 1970.
func (x *index) clock(at history.Instant) int64 { return x.OverAt + at.Sub(x.Over).Milliseconds() }
