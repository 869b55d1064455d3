//go:build long

package scheduler_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	// dayLate is how late a tick may begin when a replica is there that could begin it all along.
	dayLate = 2500 * time.Millisecond
	// dayBoot is what a replica needs to be ready, and to heed that its clock was set.
	dayBoot = 3 * time.Second
	// dayDead is for how long the lease of a dead replica stands, and until that is noticed.
	dayDead = dayTTL + 2*time.Second
	// dayBack is what replicas need after an outage, with the leases that it has left.
	dayBack = dayTTL + 6*time.Second
	// dayAhead is how long before its time a tick is asked for at most; it waits by a clock that
	// nobody sets.
	dayAhead = 1200 * time.Millisecond
	// dayElect is what an election needs after its leader is gone without a word, or gives up.
	dayElect = 2*dayTTL + 5*time.Second
)

// daySpan is a time, to its end and not with it.
type daySpan struct{ from, to time.Time }

func (s daySpan) has(at time.Time) bool { return !at.Before(s.from) && at.Before(s.to) }

// without returns what is left of spans.
func without(spans []daySpan, cut daySpan) (left []daySpan) {
	for _, s := range spans {
		if !cut.from.Before(s.to) || !s.from.Before(cut.to) {
			left = append(left, s)
			continue
		}
		if s.from.Before(cut.from) {
			left = append(left, daySpan{s.from, cut.from})
		}
		if cut.to.Before(s.to) {
			left = append(left, daySpan{cut.to, s.to})
		}
	}
	return left
}

// united are spans in order, of which no two touch.
func united(spans []daySpan) (all []daySpan) {
	slices.SortFunc(spans, func(a, b daySpan) int { return a.from.Compare(b.from) })
	for _, s := range spans {
		if n := len(all); n > 0 && !s.from.After(all[n-1].to) {
			if s.to.After(all[n-1].to) {
				all[n-1].to = s.to
			}
			continue
		}
		all = append(all, s)
	}
	return all
}

// dayOracle judges what came of a day.
type dayOracle struct {
	*aDay
	end   time.Time
	wrong []string

	ticks, begun, again, left, excused int
	excuses                            map[string]int
}

func newOracle(d *aDay) *dayOracle {
	slices.SortStableFunc(d.runs, func(a, b *dayRun) int { return a.began.Compare(b.began) })
	for _, r := range d.runs {
		r.other = r.wall
		for _, c := range r.on.clocks {
			for _, step := range []time.Time{c.from, c.to} {
				if since := r.began.Sub(step); since > -time.Second/2 && since < 2*time.Second || r.due.Before(step) && since > 0 {
					r.other = r.began // the clock was another one when the tick was asked for, and waited for
				}
			}
		}
	}
	return &dayOracle{aDay: d, end: time.Now(), excuses: make(map[string]int)}
}

func (o *dayOracle) summary() string {
	kills, clocks := 0, 0
	for _, r := range o.replicas {
		clocks += len(r.clocks)
		if r.killed {
			kills++
		}
	}
	return fmt.Sprintf("%d versions, %d replicas, %d killed, %d clocks set, %d nodes emptied, %d outages, %d pauses; %d ticks were run, %d of them again, %d were left out and told, %d excused: %v",
		o.version, len(o.replicas), kills, clocks, o.emptied, len(o.outages), len(o.pauses), o.begun, o.again, o.left, o.excused, o.excuses)
}

func (o *dayOracle) judge() []string {
	for _, j := range o.jobs {
		b := o.of(j)
		b.safety()
		if j.plans[0].most > 0 {
			b.chain()
		} else {
			b.liveness()
		}
	}
	return o.wrong
}

// dayEpoch is a time in which one schedule of a job was in force.
type dayEpoch struct {
	plan  *dayPlan
	made  time.Time // the first replica with it was started
	alone time.Time // the last one with the schedule before was gone
	next  time.Time // the first one with the next schedule was started
	gone  time.Time // the last one with it was gone
	well  []daySpan // in which some replica could begin a tick
	phase time.Time // what its interval counts from; zero until somebody asks
}

// dayBook is what is known of a job.
type dayBook struct {
	*dayOracle
	job    *dayJob
	epochs []*dayEpoch
	runs   []*dayRun
	skips  []daySkip
	pauses []*dayPause
}

func (o *dayOracle) of(j *dayJob) *dayBook {
	b := &dayBook{dayOracle: o, job: j}
	for _, r := range o.aDay.runs {
		if r.job == j {
			b.runs = append(b.runs, r)
		}
	}
	for _, s := range o.skips {
		if s.Job == j.name {
			b.skips = append(b.skips, s)
		}
	}
	for _, p := range o.pauses {
		if p.job == j.name || p.job == "" {
			b.pauses = append(b.pauses, p)
		}
	}
	b.findEpochs()
	return b
}

// history is what is known of a job around a tick.
func (b *dayBook) history(tick time.Time) (text string) {
	for _, r := range b.runs {
		if r.ended.After(tick.Add(-3*time.Minute)) && r.began.Before(tick.Add(3*time.Minute)) {
			text += fmt.Sprintf("\n\t%v", r)
		}
	}
	for _, s := range b.skips {
		if s.Tick.After(tick.Add(-3*time.Minute)) && (s.Count > 1 || s.Tick.Before(tick.Add(3*time.Minute))) {
			text += fmt.Sprintf("\n\ttold at %s (%s) by slot %d: %v", clock(s.at), clock(s.wall), s.on.slot, s.SkipError)
		}
	}
	for _, p := range b.pauses {
		text += fmt.Sprintf("\n\tpaused from %s (%s) to %s (%s)", clock(p.asked), clock(p.stands), clock(p.resumes), clock(p.ended))
	}
	for _, r := range b.replicas {
		if r.stopping.After(tick.Add(-time.Minute)) && r.started.Before(tick.Add(time.Minute)) {
			text += fmt.Sprintf("\n\tslot %d of version %d from %s to %s (%s)", r.slot, r.version, clock(r.started), clock(r.stopping), clock(r.gone))
			for _, c := range r.clocks {
				text += fmt.Sprintf(", clock wrong from %s to %s", clock(c.from), clock(c.to))
			}
		}
	}
	for _, out := range b.outages {
		text += fmt.Sprintf("\n\toutage from %s to %s", clock(out.from), clock(out.to))
	}
	return text
}

func (b *dayBook) say(format string, args ...any) {
	b.dayOracle.wrong = append(b.dayOracle.wrong, fmt.Sprintf("%v: ", b.job)+fmt.Sprintf(format, args...))
}

// findEpochs finds when which schedule was in force, and when somebody could run it.
func (b *dayBook) findEpochs() {
	var last *dayEpoch
	was := -1
	for _, r := range b.replicas { // in the order of their starts
		if plan := b.job.plan(r.version); plan != was {
			e := &dayEpoch{plan: &b.job.plans[plan], made: r.started, alone: r.started, next: b.end}
			if last != nil {
				last.next = r.started
				e.alone = joblog.Later(last.gone, r.started)
			}
			b.epochs = append(b.epochs, e)
			last, was = e, plan
		}
		last.gone = joblog.Later(last.gone, r.gone)
		last.well = append(last.well, b.wellOf(r)...)
	}
	for _, e := range b.epochs {
		e.well = united(e.well)
		for _, bad := range b.trouble() {
			e.well = without(e.well, bad)
		}
	}
}

// wellOf are times in which a replica can begin what is due.
func (b *dayBook) wellOf(r *dayReplica) []daySpan {
	spans := []daySpan{{r.started.Add(dayBoot), r.stopping}}
	if !spans[0].from.Before(spans[0].to) {
		return nil
	}
	for _, c := range r.clocks {
		spans = without(spans, daySpan{c.from, c.to.Add(dayBoot)})
	}
	return spans
}

// trouble are times in which nobody need begin anything.
func (b *dayBook) trouble() (spans []daySpan) {
	for _, out := range b.outages {
		back := dayBack
		if b.job.elected {
			back += dayElect
		}
		spans = append(spans, daySpan{out.from.Add(-time.Second), out.to.Add(back)})
	}
	if !b.job.elected {
		return spans
	}
	for _, r := range b.replicas {
		wait := 4 * time.Second
		if r.killed {
			wait = dayElect
		}
		spans = append(spans, daySpan{r.stopping.Add(-time.Second), r.stopping.Add(wait)})
		for _, c := range r.clocks {
			spans = append(spans, daySpan{c.from.Add(-time.Second), c.to.Add(dayElect)}) // who leads may be late by its clock
		}
	}
	return spans
}

// safety judges what must never be.
func (b *dayBook) safety() {
	j := b.job
	first, counted, before := make(map[time.Time]*dayRun), 0, (*dayRun)(nil)
	for _, r := range b.runs {
		b.begun++
		if before != nil {
			if r.token <= before.token {
				b.say("the token of %v did not rise: %d after %d", r, r.token, before.token)
			}
			if r.began.Before(before.ended) {
				b.say("%v began before %v had ended", r, before)
			}
			if r.due.Before(before.due) {
				b.say("%v came after %v", r, before)
			}
		}
		earlier := first[r.due]
		switch {
		case earlier == nil:
			counted++
			if r.attempt == 1 && r.why == "again" {
				b.say("%v is no repetition", r)
			}
		case !j.again:
			b.say("%v was run before: %v", r, earlier)
		case !b.incomplete(earlier):
			b.say("%v was complete: %v", r, earlier)
		case r.attempt <= earlier.attempt:
			b.say("%v has the attempt of %v", r, earlier)
		default:
			b.again++
		}
		first[r.due], before = r, r
		if !j.again && r.attempt != 1 {
			b.say("%v has an attempt above one", r)
		}
		b.time(r)
		for _, p := range b.pauses {
			if r.began.After(p.stands) && r.due.Before(p.resumes) {
				b.say("%v began in the pause of %s to %s", r, clock(p.stands), clock(p.resumes))
			}
		}
	}
	if j.limit > 0 && counted > j.limit {
		b.say("%d runs are more than %d", counted, j.limit)
	}
	for _, s := range b.skips {
		b.reason(s)
	}
}

// incomplete reports whether a run may have to be repeated: it did not complete, or nobody could
// write that it did.
func (b *dayBook) incomplete(r *dayRun) bool {
	if r.how != "done" || r.lost || r.on.killed && r.on.gone.Sub(r.ended) < 50*time.Millisecond {
		return true
	}
	return b.silentAt(r.ended)
}

// silentAt reports whether nodes went silent around a time, or had not recovered from that.
func (o *dayOracle) silentAt(at time.Time) bool {
	return slices.ContainsFunc(o.outages, func(out *daySpan) bool {
		return at.After(out.from.Add(-time.Second)) && at.Before(out.to.Add(dayBack))
	})
}

// time judges whether a run had a due time of the schedule that was in force, and was neither too
// early nor too late.
func (b *dayBook) time(r *dayRun) {
	if r.due.Sub(joblog.Later(r.wall, r.other)) > 50*time.Millisecond && !r.on.setBetween(r.began.Add(-dayAhead), r.began) {
		b.say("%v began early by its own clock, at %s", r, clock(r.wall))
	}
	if early := r.due.Sub(r.began); early > 3*time.Second {
		b.say("%v began %v early", r, early)
	}
	late := min(r.wall.Sub(r.due), r.other.Sub(r.due))
	waited := slices.ContainsFunc(b.runs, func(o *dayRun) bool { return o.due.Equal(r.due) && o.why == "queued" }) // it does not age, also if it is repeated
	if late > b.job.age()+dayLate && !waited {
		b.say("%v began late by %v", r, late)
	}
	if r.why == "on_time" && late > scheduler.Grace+time.Second || r.why == "late" && joblog.Later(r.wall, r.other).Sub(r.due) < scheduler.Grace {
		b.say("%v: it was late by %v", r, late)
	}
	if r.why == "queued" && !b.job.queue {
		b.say("%v: the policy is not to queue", r)
	}
	if b.job.plans[0].most > 0 {
		return
	}
	for _, e := range b.epochs {
		outlives := r.why == "queued" || r.why == "again" // it stays in the record
		if !r.due.After(e.gone) && !r.began.Before(e.made) && (outlives || !r.began.After(e.gone.Add(time.Second))) && slices.ContainsFunc(b.times(e, r.due.Add(-time.Millisecond), r.due), r.due.Equal) {
			return
		}
	}
	b.say("%v is no due time of a schedule that was in force", r)
}

// times are the due times of an epoch.
func (b *dayBook) times(e *dayEpoch, after, until time.Time) []time.Time {
	since := e.made
	if e.plan.every > 0 {
		if e.phase.IsZero() {
			e.phase = b.phase(e)
		}
		since = e.phase
	}
	if len(e.plan.named) == 0 {
		after = joblog.Later(after, e.made)
	}
	return e.plan.times(since, after, until)
}

// firstWell is the first moment from another one on in which some replica could begin a tick.
func (e *dayEpoch) firstWell(from time.Time) time.Time {
	for _, s := range e.well {
		if s.to.After(from) {
			return joblog.Later(from, s.from)
		}
	}
	return from
}

// phase is the moment that an interval counts from: its first run tells, and has to fit. It is when
// a replica could write it that had the lease, and led if the job is elected: while there are some
// with the schedule before, that may be late.
func (b *dayBook) phase(e *dayEpoch) time.Time {
	most := e.firstWell(e.made)
	if b.job.elected {
		most = e.firstWell(e.alone)
	}
	for _, r := range b.runs {
		if !r.began.After(most) {
			most = joblog.Later(most, b.free(r))
		}
	}
	most = most.Add(dayBoot)
	for _, r := range b.runs {
		if &b.job.plans[b.job.plan(r.on.version)] != e.plan || r.due.Before(e.made) || r.began.After(e.gone) {
			continue
		}
		since := r.due.Add(-e.plan.every * ((r.due.Sub(e.made) + time.Millisecond) / e.plan.every))
		if !since.After(most) {
			return since
		}
	}
	return e.made.Truncate(time.Millisecond)
}

// reason judges a reason that was told.
func (b *dayBook) reason(s daySkip) {
	wrong, age := "", s.wall.Sub(s.Tick)
	switch s.Reason {
	case scheduler.SkipMissed:
		if age < b.job.age() {
			wrong = fmt.Sprintf("is %v old", age)
		}
	case scheduler.SkipSuperseded:
		if b.job.catchUp == scheduler.CatchUpAll {
			wrong = "is of a job that runs all"
		}
	case scheduler.SkipPaused:
		if !slices.ContainsFunc(b.pauses, func(p *dayPause) bool {
			return !s.at.Before(p.asked) && (!s.Tick.After(p.ended) || s.at.Before(p.ended))
		}) {
			wrong = "came in no pause" // nor was it asked for in one, ahead of its time
		}
	case scheduler.SkipOverlap:
		if !slices.ContainsFunc(b.runs, func(r *dayRun) bool { return r.overlaps(s.Tick) || r.overlapsByItsClock(s.Tick) }) {
			wrong = "overlaps no run"
		}
	case scheduler.SkipCutShort:
		complete := false
		for _, r := range b.runs { // the last before it was told
			if r.due.Equal(s.Tick) && r.began.Before(s.at) {
				complete = !b.incomplete(r)
			}
		}
		if complete {
			wrong = "was complete"
		}
	default:
		return // of this replica alone
	}
	if wrong != "" {
		b.say("the tick of %s was told at %s as %s, and %s%s", clock(s.Tick), clock(s.at), s.Reason, wrong, b.history(s.Tick))
	}
}

// overlaps reports whether a tick came while a run went on: within its time, counted from its due
// time if it began on time.
func (r *dayRun) overlaps(tick time.Time) bool {
	from := r.due
	if r.began.Sub(r.due) > time.Second {
		from = r.began
	}
	return tick.After(from) && !tick.After(from.Add(r.ended.Sub(r.began)))
}

// overlapsByItsClock is for a run of a replica whose clock is wrong, or was as the run began.
func (r *dayRun) overlapsByItsClock(tick time.Time) bool {
	return r.on.setBetween(r.began, r.ended) && !tick.Before(r.wall) && !tick.After(r.wall.Add(r.ended.Sub(r.began)))
}

// setBetween reports whether a replica's clock was wrong in a time, or set.
func (r *dayReplica) setBetween(from, to time.Time) bool {
	return slices.ContainsFunc(r.clocks, func(wrong *daySpan) bool { return !from.After(wrong.to) && !wrong.from.After(to) })
}

// liveness judges for each tick whether it was run, or had a reason not to be.
func (b *dayBook) liveness() {
	counted := 0
	for _, e := range b.epochs {
		after := e.made
		if len(e.plan.named) > 0 {
			after = day(1, 0, 0, 0).Add(-1)
		}
		ticks := b.times(e, after, e.next)
		for i, tick := range ticks {
			b.ticks++
			var next time.Time
			if i+1 < len(ticks) {
				next = ticks[i+1]
			}
			last := b.lastRun(tick)
			if last != nil {
				counted++
			}
			switch {
			case b.job.limit > 0 && counted >= b.job.limit:
			case last == nil:
				b.unrun(e, tick, next, tick)
			default:
				b.lateness(e, tick)
				if b.job.again && last.how != "done" {
					b.unrun(e, tick, next, b.free(last))
				}
			}
		}
	}
}

func (b *dayBook) lastRun(tick time.Time) *dayRun {
	for _, r := range slices.Backward(b.runs) {
		if r.due.Equal(tick) {
			return r
		}
	}
	return nil
}

// lateness judges when the first run of a tick began.
func (b *dayBook) lateness(e *dayEpoch, tick time.Time) {
	for _, r := range b.runs {
		if !r.due.Equal(tick) {
			continue
		}
		ready := b.ready(e, tick, tick)
		if !ready.IsZero() && r.began.After(ready.Add(dayLate)) && !tick.Before(e.alone) {
			b.say("%v began late by %v; it could begin at %s%s", r, r.began.Sub(tick), clock(ready), b.history(tick))
		}
		return
	}
}

// ready is from when on a tick could have been begun; zero for never.
func (b *dayBook) ready(e *dayEpoch, tick, from time.Time) time.Time {
	at := joblog.Later(from, e.alone)
again:
	for {
		well := time.Time{}
		for _, s := range e.well {
			if from := joblog.Later(s.from, at); !from.Add(dayLate).After(s.to) {
				well = from
				break
			}
		}
		if at = well; at.IsZero() {
			return at
		}
		for _, r := range b.runs {
			free := b.free(r)
			if !r.due.Equal(tick) && r.began.Before(at.Add(dayLate)) && free.After(at) {
				at = free
				continue again
			}
		}
		for _, r := range b.replicas { // it may have asked ahead
			due := b.times(e, r.gone.Add(-300*time.Millisecond), r.gone.Add(500*time.Millisecond))
			if r.killed && r.gone.Before(at.Add(dayLate)) && r.gone.Add(dayDead).After(at) && len(due) > 0 {
				at = r.gone.Add(dayDead)
				continue again
			}
		}
		return at
	}
}

// free is when the next run may begin after one.
func (b *dayBook) free(r *dayRun) time.Time {
	at := r.ended
	if well := slices.ContainsFunc(b.wellOf(r.on), func(s daySpan) bool { return s.has(at) }); !well || r.how == "killed" || r.lost { // others have to find that it is over
		at = at.Add(dayDead)
	}
	if b.job.again && r.how != "done" && r.how != "told" {
		at = at.Add(min(time.Second<<(r.attempt-1), time.Minute)) // attempts rest
	}
	return at
}

// unrun judges a tick that was not run, or not to its end, from when on it was owed.
func (b *dayBook) unrun(e *dayEpoch, tick, next, from time.Time) {
	j := b.job
	why := func(reason string) {
		b.excused++
		b.excuses[reason]++
	}
	ready := b.ready(e, tick, from)
	at := ready.Add(dayLate)
	overlapped, queued, unwritten := b.overlapped(tick, next)
	switch {
	case ready.IsZero() || at.After(e.next):
		why("nobody was there")
		return
	case tick.Before(e.firstWell(e.alone)) || tick.Sub(e.made) < dayBoot:
		why("the schedule was new")
		return
	}
	told := b.told(tick)
	var may []scheduler.Reason
	if overlapped {
		may = append(may, scheduler.SkipOverlap)
	}
	paused := b.paused(tick, at)
	if paused || told[scheduler.SkipPaused] { // reason judges what is told
		may = append(may, scheduler.SkipPaused)
	}
	if !queued && at.After(tick.Add(j.age())) {
		may = append(may, scheduler.SkipMissed, scheduler.SkipSuperseded)
	}
	if j.catchUp != scheduler.CatchUpAll && !next.IsZero() && !next.After(at) {
		may = append(may, scheduler.SkipSuperseded)
	}
	if !j.again && b.mayBeCutShort(tick) {
		may = append(may, scheduler.SkipCutShort)
	}
	switch {
	case slices.ContainsFunc(may, func(r scheduler.Reason) bool { return told[r] }):
		b.left++
	case paused:
		why("paused, and not told")
	case unwritten: // docs/telemetry.md says so
		why("overlapped by a run as whose end nodes went silent")
	default:
		b.say("the tick of %s was not run to its end, may be left out as %v, and was told as %v; owed from %s on, ready at %s%s", clock(tick), may, told, clock(from), clock(ready), b.history(tick))
	}
}

// overlapped reports whether a tick came while a run went on, whether it is the one that waits, and
// whether nodes went silent as that run ended, so that nobody knows whether its end is written.
func (b *dayBook) overlapped(tick, next time.Time) (left, waits, unwritten bool) {
	for _, r := range b.runs {
		if r.how == "killed" || r.how != "done" && b.job.again || !r.overlaps(tick) && !r.overlapsByItsClock(tick) {
			continue
		}
		silent := b.silentAt(r.ended)
		unwritten = unwritten || silent
		if !b.job.queue || !next.IsZero() && r.overlaps(next) {
			left = true
			continue
		}
		waits = waits || !r.lost && !silent && !r.on.setBetween(r.began, r.ended) // else nothing may have been overlapped
	}
	return left, waits && !left, unwritten
}

func (b *dayBook) paused(tick, at time.Time) bool {
	return slices.ContainsFunc(b.pauses, func(p *dayPause) bool { return p.asked.Before(at) && !tick.After(p.ended) })
}

// mayBeCutShort reports whether a replica may have died, or have lost the nodes, between the grant
// of a tick and its run.
func (b *dayBook) mayBeCutShort(tick time.Time) bool {
	for _, r := range b.replicas {
		if r.killed && r.gone.After(tick.Add(-time.Second)) && r.gone.Before(tick.Add(b.job.age()+time.Second)) {
			return true
		}
	}
	return slices.ContainsFunc(b.outages, func(s *daySpan) bool {
		return s.from.Before(tick.Add(b.job.age()+time.Second)) && s.to.After(tick.Add(-time.Second))
	})
}

// told are the reasons that were told for a tick.
func (b *dayBook) told(tick time.Time) map[scheduler.Reason]bool {
	told := make(map[scheduler.Reason]bool)
	for _, s := range b.skips {
		if s.Tick.Equal(tick) || s.Count > 1 && tick.Before(s.Tick) && b.ticksBetween(tick, s.Tick) < s.Count {
			told[s.Reason] = true
		}
	}
	return told
}

// ticksBetween counts the ticks from one, without it, to another.
func (b *dayBook) ticksBetween(from, to time.Time) int {
	n := 0
	for _, e := range b.epochs {
		n = max(n, len(b.times(e, from, to)))
	}
	return n
}

// chain judges a job whose last run decides the next tick.
func (b *dayBook) chain() {
	p := &b.job.plans[0]
	type link struct {
		due, from, to time.Time // the next one is due at from + least at least, and to + most at most
		run           *dayRun
	}
	var links []link
	for _, r := range b.runs {
		from, wall := r.wall, r.wall
		if p.end { // by the clock that the replica had when it began
			if from, wall = r.wall.Add(r.ended.Sub(r.began)), r.ended; from.After(wall) {
				from, wall = wall, from
			}
		}
		if b.incomplete(r) {
			wall = wall.Add(b.end.Sub(r.ended)) // whoever finds it decides
		}
		links = append(links, link{r.due, from, wall, r})
	}
	for _, s := range b.skips {
		switch s.Reason {
		case scheduler.SkipMissed, scheduler.SkipSuperseded, scheduler.SkipPaused, scheduler.SkipCutShort, scheduler.SkipOverlap:
			links = append(links, link{due: s.Tick, from: s.Tick, to: joblog.Later(s.Tick, s.wall)}) // its clock may be behind
		}
	}
	slices.SortStableFunc(links, func(a, b link) int { return a.due.Compare(b.due) })
	for i := 1; i < len(links); i++ {
		one, two := links[i-1], links[i]
		if one.due.Equal(two.due) {
			two.to = joblog.Later(one.to, two.to)
			if one.from.Before(two.from) && one.run == nil {
				two.from = one.from
			}
			links[i] = two
			continue
		}
		if two.due.Before(one.from.Add(p.least-time.Second)) || two.due.After(one.to.Add(p.most+time.Second)) {
			b.say("the tick of %s follows that of %s, which has the next one from %s to %s", clock(two.due), clock(one.due), clock(one.from.Add(p.least)), clock(one.to.Add(p.most)))
		}
	}
	e := b.epochs[0]
	for _, l := range links {
		switch last := b.lastRun(l.due); {
		case b.job.limit > 0 && len(b.runs) >= b.job.limit:
		case last == nil:
			b.unrun(e, l.due, time.Time{}, l.due)
		default:
			b.lateness(e, l.due)
		}
	}
	// It goes on as long as somebody is there.
	for i, l := range links {
		until := b.end
		if i+1 < len(links) {
			until = links[i+1].due
		}
		if ready := b.ready(e, l.due, joblog.Later(l.to, l.due).Add(p.most)); !ready.IsZero() && ready.Add(dayLate).Before(until) && !(b.job.limit > 0 && len(b.runs) >= b.job.limit) {
			b.say("nothing is due after %s until %s%s", clock(l.due), clock(until), b.history(l.due))
		}
	}
}

func (r *dayRun) String() string {
	return fmt.Sprintf("the run of %s (attempt %d, %s, begun %s, %s %s, slot %d of version %d)", clock(r.due), r.attempt, r.why, clock(r.began), r.how, clock(r.ended), r.on.slot, r.on.version)
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }
