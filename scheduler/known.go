package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	// rollout is for how long replicas of two versions of a service may run beside each other.
	rollout = 4 * time.Minute
	// lookEvery is how often the record of an idle job is read. One command a node reads those of
	// 15 jobs.
	lookEvery = time.Minute
)

// view is this replica's knowledge of how far a job has come.
type view struct {
	rec    joblog.Record // as it was seen last
	ballot uint64        // the ballot of rec
	readAt time.Time     // when rec was read, by the wall clock; zero if it no longer counts
	table  joblog.Table  // nil before the definition is adopted
	since  time.Time     // when that definition was first made anywhere
	floor  time.Time     // the end of the pauses
	pause  PauseTrace    // the pause that goes on
}

// isYoung reports whether the last run may yet be given back: its replica resigns, or is stopped,
// before it calls the task. Within Grace the tick is not too old then.
func (v view) isYoung() bool {
	_, unended := v.rec.Unended()
	return unended && v.age() < Grace
}

// age returns how far the beginning of the last run was when its record was read. By this replica's
// clock it may lie ahead.
func (v view) age() time.Duration { return v.readAt.Sub(v.rec.Run.Began).Abs() }

// lookAt returns when the record is to be read again: that of a young run when the run is twice as
// old, or at its beginning if that lies ahead.
func (v view) lookAt() time.Time {
	if v.isYoung() {
		return v.readAt.Add(max(leastAhead, v.age()))
	}
	return v.readAt.Add(lookEvery)
}

// lookBy has the record read again at a time, as if it had been read lookEvery before that.
func (j *job) lookBy(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.view.readAt.IsZero() { // else it is read anyway, once the job is started
		j.view.readAt = at.Add(-lookEvery)
	}
}

func (j *job) known() view {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.view
}

// isChain reports whether the last run decides the next tick.
func isChain(t joblog.Table) bool {
	_, ok := t.(joblog.Chain)
	return ok
}

// toRead reports whether the record is to be read before anything else.
func (j *job) toRead() bool {
	return !j.unlocked && !j.s.now().Before(j.known().lookAt())
}

// read reads the record and the pauses without a lease.
func (j *job) read(ctx context.Context) error {
	states, err := j.readStates(ctx)
	if err == nil {
		_, _, err = j.saw(ctx, nil, states)
	}
	if err == nil {
		j.failures = 0
	}
	return err
}

// saw takes over the states that were read of the record, under a lease or without one, and of the
// pauses. It returns the record, and when the pauses end.
func (j *job) saw(ctx context.Context, lease *redlock.Lease, states []register.State) (rec joblog.Record, floor time.Time, err error) {
	if rec, err = joblog.Parse(states[0].Value, states[0].Now); err != nil {
		return rec, floor, states[0].Unreadable(err)
	}
	if floor, err = j.sawPauses(states[1:]); err != nil {
		return rec, floor, err
	}
	j.mu.Lock()
	if lease != nil && bytes.Equal(states[0].Value, j.never.granted) { // no replica has written after it
		rec = j.never.before
	}
	ballot := states[0].Ballot
	if lease != nil && ballot < j.view.ballot && !rec.Cursor.After(j.view.rec.Cursor) && j.adopted { // the nodes have forgotten what this replica remembers
		rec, ballot = j.view.rec, j.view.ballot
		rec.Run = joblog.Run{} // how the run ended is not known
	}
	j.know(rec, lease != nil, ballot)
	j.watch(rec, states[0].Now)
	j.mu.Unlock()
	j.tell(ctx)
	return rec, floor, nil
}

// sawPauses takes over the pause of the job and that of all jobs, and returns when they end.
func (j *job) sawPauses(states []register.State) (floor time.Time, err error) {
	pauses, err := pause.ParseAll(states)
	if err != nil {
		return floor, err
	}
	var is PauseTrace
	for i, p := range pauses {
		if floor = joblog.Later(floor, p.Floor()); !is.Paused && p.Active(p.Now) {
			is = PauseTrace{Paused: true, All: i > 0, Since: p.Since, Until: p.Until, By: p.By, Reason: p.Why}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.view.floor, j.view.pause = floor, is
	return floor, nil
}

// wrote takes over the record that this replica has written under a lease.
func (j *job) wrote(ctx context.Context, rec joblog.Record, lease *redlock.Lease) {
	j.mu.Lock()
	j.know(rec, true, lease.FencingToken()) // 0 without a lease
	j.mu.Unlock()
	j.tell(ctx)
}

// know takes over a record. A record that was read without the lease and is older than the known
// one is ignored: the read was sent before the known one was written, or the nodes were emptied.
// The next lease has the truth. The caller holds mu.
func (j *job) know(rec joblog.Record, leased bool, ballot uint64) {
	if leased || ballot >= j.view.ballot {
		j.view.rec, j.view.ballot = rec, ballot
	}
	if j.ctx != nil { // the view of a stopped job grows old
		j.view.readAt = j.s.now()
	}
	// Another replica may have made the same definition anew, after a rollout that was taken back.
	rec = j.view.rec
	if rec.Words == j.def.Words && !rec.Since.IsZero() && !(j.adopted && rec.Since.Equal(j.view.since)) {
		j.view.table, j.view.since, j.adopted = j.def.Table(rec.Since), rec.Since, true
	}
}

// watch compares the definition on the nodes with this replica's. In a rollout the new definition
// differs for a while, and then this replica stops. If this replica still runs after that, it
// writes its own definition back. A replica that changes it again is in conflict with this one.
// Each of the two may be the one that stays, so each writes its own back, after a time that
// doubles, for all replicas of a definition: the counts of runs begin anew. One that stands for
// longer than twice that time is the one that stays, and the next rollout has the first time again.
// now is the nodes' time, because this replica's clock may be set meanwhile. The caller holds mu.
func (j *job) watch(rec joblog.Record, now time.Time) {
	switch own := rec.Words == j.def.Words; {
	case !j.adopted || rec.Words == "" || own && j.otherSince.IsZero():
		return
	case own:
		if now.Sub(j.otherSince) >= j.patience/2 { // written back, and not by a replica that began
			j.patience *= 2
		}
		j.ownSince, j.otherSince = now, time.Time{}
		return
	case j.otherSince.IsZero():
		if j.otherSince = now; now.Sub(j.ownSince) > 2*j.patience {
			j.patience = rollout
		}
	}
	again := rec.Words == j.replaced && rec.Since.Before(j.view.since) // this replica replaced it, and it was written back
	other := now.Sub(j.otherSince)
	if again || other >= rollout {
		j.conflict = &Conflict{Job: j.name, Own: j.def.Words, Other: rec.Words, Since: j.otherSince, By: rec.Run.By}
	}
	if other >= j.patience {
		j.adopted, j.otherSince, j.patience = false, now, 2*j.patience
	}
}

// forget marks the view as old, on a replica that runs no ticks.
func (j *job) forget(ctx context.Context) {
	j.mu.Lock()
	j.view.readAt = time.Time{}
	j.adopted = j.adopted && !j.unlocked // no replica owes the ticks that are missed meanwhile
	j.mu.Unlock()
	j.tell(ctx)
}

// adopt makes this replica's definition the job's, once after its start. A replica of an older
// version goes on with its own definition.
func (j *job) adopt(ctx context.Context) error {
	j.mu.Lock()
	is, since, was := j.adopted, j.view.since, j.view.rec
	j.mu.Unlock()
	if is {
		return nil
	}
	var lease *redlock.Lease
	var replaced string
	rec, table := joblog.Adopt(joblog.Record{Cursor: was.Cursor}, j.def, j.s.now())
	rec.Runs = was.Runs
	if !j.unlocked {
		var err error
		if lease, err = j.s.q.Acquire(ctx, j.key, j.leaseOptions(joblog.Brief)...); err != nil {
			return err
		}
		err = j.record.Change(ctx, lease, func(s register.State) (_ []byte, err error) {
			if rec, err = joblog.Parse(s.Value, s.Now); err != nil {
				return nil, s.Unreadable(err)
			}
			own := rec.Words == j.def.Words
			if replaced = rec.Words; own {
				replaced = ""
			}
			if rec, table = joblog.Adopt(rec, j.def, s.Now); !own && !since.IsZero() { // it is written back, see watch
				rec, table = joblog.Restore(rec, j.def, since)
			}
			return rec.Encode()
		})
		if err != nil {
			return err
		}
		if replaced != "" && since.IsZero() {
			j.s.cfg.logger.InfoContext(ctx, "scheduler: the schedule of a job has changed: its ticks count from now on", "job", j.name, "schedule", j.def.Words, "before", replaced)
		}
	}
	j.mu.Lock()
	j.view.table, j.view.since, j.adopted, j.replaced = table, rec.Since, true, cmp.Or(replaced, j.replaced)
	j.mu.Unlock()
	j.wrote(ctx, rec, lease)
	return nil
}

// knows returns what people are told of the job. A replica that does not run the job has an old
// view, so it tells only the name, the election and the conflict.
func (j *job) knows() JobTrace {
	j.mu.Lock()
	known, t := j.view, JobTrace{Job: j.name, Election: j.s.cfg.election, Conflict: j.conflict}
	j.mu.Unlock()
	if known.readAt.IsZero() {
		return t
	}
	if t.Pause = known.pause; known.table == nil {
		return t
	}
	if next := j.next(known, 1); len(next) > 0 {
		t.Next = next[0]
	}
	if t.Succeeded = known.rec.OK.Ended; j.cfg.within > 0 {
		t.OverdueAt = joblog.Later(t.Succeeded, known.since).Add(j.cfg.within)
	}
	return t
}

// tell tells the logger and the tracer what this replica knows of the job, if that has changed.
// Changes are told in order, and not under a lock. A call during another one returns at once,
// because the other one tells its change, too.
func (j *job) tell(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.untold++; j.untold > 1 {
		return
	}
	for n := 0; n != j.untold; {
		n = j.untold
		j.mu.Unlock()
		if is := j.knows(); is != j.told {
			j.say(ctx, j.told, is)
			if j.told = is; j.s.cfg.tracer.Job != nil {
				j.s.cfg.tracer.Job(ctx, is)
			}
		}
		j.mu.Lock()
	}
	j.untold = 0
}

// say logs changes of the pause and of the conflict.
func (j *job) say(ctx context.Context, was, is JobTrace) {
	log := j.s.cfg.logger
	switch p := is.Pause; {
	case p == was.Pause:
	case p.Paused:
		args := []any{"job", j.name, "by", p.By, "why", p.Reason, "since", p.Since, "all_jobs", p.All}
		if !p.Until.IsZero() {
			args = append(args, "until", p.Until)
		}
		log.WarnContext(ctx, "scheduler: a job is paused: its ticks are skipped, and not run later", args...)
	default:
		log.DebugContext(ctx, "scheduler: a job is not paused any more, or this replica runs none of its ticks", "job", j.name)
	}
	if c := is.Conflict; c != nil && was.Conflict == nil {
		log.WarnContext(ctx, "scheduler: a job of this name is defined in another way too, and the two take each other's ticks: give each service a "+
			"redlock.WithPrefix of its own, and all replicas of one the same schedule and scheduler.WithLocation",
			"job", c.Job, "own", c.Own, "other", c.Other, "by", c.By, "since", c.Since)
	}
}
