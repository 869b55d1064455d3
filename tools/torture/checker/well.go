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

const (
	// earlier than a tick, by the machine's clock, a replica whose clock is ahead may run it, and
	// what happened before that may matter: a lease of a process that was killed runs out, and
	// another leader is elected.
	earlier = 5 * time.Second
	// after the time in which a tick is tried again, a replica whose clock is behind may run it.
	after = 2 * time.Second
	// enough is how much of that must be left when the servers answer again.
	enough = time.Second
	// spare is how much shorter than its interval a job is of which no tick overlaps the next.
	spare = time.Second
	// clocks is the shortest interval: no two clocks differ by more, but for leaps.
	clocks = 2 * plan.MaxAhead
)

// outage is a time in which a server did not answer, or did not vote.
type outage struct {
	span
	server int
}

// outages returns those of all servers, in the order of time.
func (x *index) outages() []outage {
	if x.out != nil {
		return x.out
	}
	x.out = []outage{}
	for _, s := range x.Strikes {
		if s.Server < 0 {
			continue
		}
		to := s.To
		if s.Kind != plan.FreezeServer {
			to = to.Add(plan.Recovery)
		}
		x.out = append(x.out, outage{span{s.From, to}, s.Server})
	}
	slices.SortFunc(x.out, func(a, b outage) int { return cmp.Compare(a.from, b.from) })
	return x.out
}

// quorum reports whether a quorum of servers answered all the time.
func (x *index) quorum(from, to history.Instant) bool {
	away := func(at history.Instant) int {
		gone := make(map[int]bool)
		for _, o := range x.outages() {
			if o.meets(at, at) {
				gone[o.server] = true
			}
		}
		return len(gone)
	}
	most := (x.Servers - 1) / 2
	if away(from) > most {
		return false
	}
	return !slices.ContainsFunc(x.outages(), func(o outage) bool { return o.from >= from && o.from <= to && away(o.from) > most })
}

// wasWell reports whether all was well when a tick came: no process was killed or frozen, and a
// quorum of servers answered, if not when the tick came then in time to try again. A replica that
// was stopped in order is no excuse, another one is there; nor is a clock that leaps or is wrong.
func (x *index) wasWell(t tick, job *jobs.Job) bool {
	due := x.machine(t.at)
	again := due.Add(min(job.Every, scheduler.Grace))
	from, to := due.Add(-earlier), again.Add(after)
	if !x.quorum(from, due.Add(-earlier/2)) || !x.quorum(again.Add(-enough), to) {
		return false
	}
	for _, name := range x.names {
		if x.struck(name, from, to) || x.stoodStill(name, from, to) {
			return false
		}
	}
	for _, s := range x.Strikes {
		if s.Kind.On() == plan.Clients && s.From <= to && from <= s.To.Add(settled) {
			return false
		}
	}
	return true
}

// checkAsked wants a run for each call of RunNow that returned no error, if nothing happened to the
// process right then.
func (x *index) checkAsked(v *Verdict) {
	const soon = 3 * time.Second
	for _, name := range x.names {
		l := x.lives[name]
		taken := make(map[*run]bool)
		for _, asked := range l.asked {
			from, to := asked.At.Add(-soon), asked.At.Add(soon)
			if x.interrupted(name, from, to) || x.stoodStill(name, from, to) {
				continue
			}
			v.Counts["calls of RunNow without an error"]++
			i := slices.IndexFunc(x.runs[asked.Job], func(r *run) bool {
				return r.life == name && r.tick == 0 && !taken[r] && r.began >= from && r.began <= to
			})
			if i < 0 {
				v.add(Silent, asked.At, "%s: RunNow of %s returned no error at %s, and no run of it began", name, asked.Job, asked.At)
				continue
			}
			taken[x.runs[asked.Job][i]] = true
		}
	}
}
