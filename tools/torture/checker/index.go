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

// run is one execution of a job.
type run struct {
	id, life string
	job      jobs.Job
	tick     int64
	attempt  int
	why      string // it is run
	token    uint64
	began    history.Instant
	granted  history.Instant // the deadline as it was when the run began
	deadline history.Instant // the last that was known
	ended    history.Instant // 0 if it never did
	panicked bool
	told     bool   // to end, and it returned an error
	unheard  bool   // the end of its lease was not confirmed by a quorum
	lost     string // how its lease had ended by then
	delay    time.Duration
	killed   history.Instant // its process; 0 if it was not
}

// stale reports whether the run began when its lease was over: its process had been frozen.
func (r *run) stale() bool { return r.began >= r.granted }

// over is when no other run is excluded by this one any more.
func (r *run) over() history.Instant {
	end := r.deadline
	for _, at := range []history.Instant{r.ended, r.killed} {
		if at != 0 {
			end = min(end, at)
		}
	}
	return end
}

// span is a time.
type span struct{ from, to history.Instant }

func (s span) meets(from, to history.Instant) bool { return s.from <= to && from <= s.to }

// life is one process of a replica.
type life struct {
	name   string
	start  history.Record // zero if it never came so far
	killed history.Instant
	to     history.Instant              // when it was killed, told to stop, or ended
	leaps  []history.Record             // of its clock, in the order of time
	away   []span                       // when it was frozen
	paused []span                       // when it did not run, as it saw itself
	asked  []history.Record             // calls of RunNow that returned no error
	late   map[string][]history.Instant // when it gave up a tick of a job; it may have been in the way until then
}

// tick is one of a job.
type tick struct {
	job string
	at  int64
}

// at is when the life's clock first showed a time, or a later one.
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

// whole reports whether the task came to its end: nothing of it is left to do, also if the lease
// had ended by then.
func (r *run) whole() bool { return r.ended != 0 && !r.panicked && !r.told }

// index is a history in the order that the checks need.
type index struct {
	*history.History
	jobs  []jobs.Job // with their phases
	lives map[string]*life
	names []string // of the lives, sorted
	runs  map[string][]*run
	skips map[tick][]history.Record
	done  map[tick][]*run
	lost  map[tick]bool // those that are
	out   []outage      // filled by outages
}

func newIndex(h *history.History, work []jobs.Job) *index {
	x := &index{
		History: h, jobs: slices.Clone(work), lives: make(map[string]*life), runs: make(map[string][]*run),
		skips: make(map[tick][]history.Record), done: make(map[tick][]*run), lost: make(map[tick]bool),
	}
	x.findPhases()
	for _, l := range h.Lives {
		known := &life{name: l.Name, killed: l.Killed, to: l.Ended, late: make(map[string][]history.Instant)}
		if l.Killed != 0 {
			known.to = l.Killed
		}
		x.lives[l.Name] = known
		x.names = append(x.names, l.Name)
	}
	slices.Sort(x.names)
	for _, s := range h.Strikes {
		if l := x.lives[s.Life]; l != nil && s.Kind == plan.Freeze {
			l.away = append(l.away, span{s.From, s.To})
		}
	}
	for _, name := range x.names {
		x.read(x.lives[name])
	}
	for _, runs := range x.runs {
		slices.SortFunc(runs, func(a, b *run) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.id, b.id)) })
		for _, r := range runs {
			if r.tick != 0 {
				x.done[tick{r.job.Name, r.tick}] = append(x.done[tick{r.job.Name, r.tick}], r)
			}
		}
	}
	return x
}

// findPhases finds the phases of duration jobs: those of the first runs that were.
func (x *index) findPhases() {
	first := make(map[string]history.Record)
	for _, records := range x.Records {
		for _, r := range records {
			if known, ok := first[r.Job]; r.Kind == history.Begin && r.Tick != 0 && (!ok || r.At < known.At) {
				first[r.Job] = r
			}
		}
	}
	for i := range x.jobs {
		if j := &x.jobs[i]; j.Kind == jobs.Duration {
			j.Phase = first[j.Name].Tick % j.Every.Milliseconds()
		}
	}
}

// before returns the ticks that a skip tells of.
func before(job *jobs.Job, rec history.Record) []int64 {
	if !job.Ticked() || rec.Count <= 1 {
		return []int64{rec.Tick}
	}
	return job.Ticks(rec.Tick-int64(rec.Count-1)*job.Every.Milliseconds(), rec.Tick)
}

// read puts the journal of a life in order.
func (x *index) read(l *life) {
	runs := make(map[string]*run)
	for _, rec := range x.Records[l.name] {
		job, known := jobs.Find(x.jobs, rec.Job)
		switch rec.Kind {
		case history.Start:
			l.start = rec
		case history.Leap:
			l.leaps = append(l.leaps, rec)
		case history.Begin:
			if !known {
				continue
			}
			r := &run{
				id: rec.Run, life: l.name, job: job, tick: rec.Tick, attempt: rec.Attempt, why: rec.Reason, token: rec.Token,
				began: rec.At, granted: rec.Deadline, deadline: rec.Deadline, delay: rec.Delay, killed: l.killed,
			}
			runs[rec.Run] = r
			x.runs[rec.Job] = append(x.runs[rec.Job], r)
		case history.Valid, history.End:
			r := runs[rec.Run]
			if r == nil {
				continue
			}
			r.deadline = max(r.deadline, rec.Deadline)
			if rec.Kind == history.End {
				r.ended, r.panicked, r.told, r.lost = rec.At, rec.Panicked, rec.Told, rec.Text
			}
		case history.Unheard:
			for _, r := range runs {
				r.unheard = r.unheard || r.token == rec.Token
			}
		case history.Skip:
			if !known || rec.Tick == 0 {
				continue
			}
			for _, at := range before(&job, rec) {
				x.skips[tick{rec.Job, at}] = append(x.skips[tick{rec.Job, at}], rec)
			}
			switch scheduler.Reason(rec.Reason) {
			case scheduler.SkipTimeout, scheduler.SkipNoQuorum, scheduler.SkipSplit, scheduler.SkipQuarantined:
				l.late[rec.Job] = append(l.late[rec.Job], rec.At)
			}
		case history.Asked:
			if rec.Text == "" {
				l.asked = append(l.asked, rec)
			}
		case history.Pause:
			l.paused = append(l.paused, span{rec.At.Add(-rec.Delay), rec.At})
		case history.Stopping:
			if l.killed == 0 || rec.At < l.killed {
				l.to = rec.At
			}
		}
	}
}

// struck reports whether a life was killed or frozen in a time.
func (x *index) struck(name string, from, to history.Instant) bool {
	l := x.lives[name]
	if l == nil {
		return false
	}
	if l.killed != 0 && l.killed >= from && l.killed <= to {
		return true
	}
	return slices.ContainsFunc(l.away, func(s span) bool { return s.meets(from, to) })
}
