package scheduler

import (
	"cmp"
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/redlock"
)

// view is what this replica knows of how far a job has come.
type view struct {
	rec    joblog.Record // as it was seen last
	ballot uint64        // of it
	readAt time.Time     // when that was, by the wall clock; zero if it is to be read before anything else
	table  joblog.Table  // nil before the definition is adopted
	since  time.Time     // when that was first made anywhere
	floor  time.Time     // the end of the pauses
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
	known := j.known()
	return !j.unlocked && (known.readAt.IsZero() || !j.s.now().Before(known.readAt.Add(lookEvery)))
}

// read reads the record and the pauses without a lease.
func (j *job) read(ctx context.Context) error {
	states, err := j.s.reader.read(ctx, j)
	if err != nil {
		return err
	}
	rec, err := joblog.Parse(states[0].Value)
	if err != nil {
		return err
	}
	if _, err := j.floor(ctx, states[1:]); err != nil {
		return err
	}
	j.failures = 0
	j.know(ctx, rec, states[0].Ballot, false)
	j.watch(ctx, rec)
	return nil
}

// know takes over a record, unless it was read without the lease and is older than what is known:
// it was asked for before that was written, or the nodes were emptied. The next lease has the
// truth.
func (j *job) know(ctx context.Context, rec joblog.Record, ballot uint64, held bool) {
	j.mu.Lock()
	if held || ballot >= j.view.ballot {
		j.view.rec, j.view.ballot = rec, ballot
	}
	if j.ctx != nil { // else it grows old from now on
		j.view.readAt = j.s.now()
	}
	if !j.adopted && rec.Words == j.def.Words && !rec.Since.IsZero() {
		j.view.table, j.view.since, j.adopted = j.def.Table(rec.Since), rec.Since, true
	}
	j.mu.Unlock()
	j.tellLog(ctx)
}

// learn is know for what this replica has read or written under a lease.
func (j *job) learn(ctx context.Context, rec joblog.Record, lease *redlock.Lease) {
	var ballot uint64
	if lease != nil {
		ballot = lease.FencingToken()
	}
	j.know(ctx, rec, ballot, true)
}

// forget is for a replica that runs no ticks: what it knows grows old.
func (j *job) forget(ctx context.Context) {
	j.mu.Lock()
	j.view.readAt = time.Time{}
	j.adopted = j.adopted && !j.unlocked // what is missed meanwhile is owed by nobody
	j.mu.Unlock()
	j.pauses.become(ctx, PauseTrace{})
	j.tellLog(ctx)
}

// adopt makes this replica's definition the job's, once after its start. A replica of an older
// version goes on with its own.
func (j *job) adopt(ctx context.Context) error {
	j.mu.Lock()
	is, since := j.adopted, j.view.since
	j.mu.Unlock()
	switch {
	case is:
		return nil
	case j.unlocked:
		now := j.s.now()
		rec, table := joblog.Adopt(joblog.Record{}, j.def, now)
		j.become(ctx, rec, table, "", nil)
		return nil
	}
	lease, err := j.s.q.Acquire(ctx, j.key, j.leaseOptions(joblog.Brief)...)
	if err != nil {
		return err
	}
	defer j.release(ctx, lease)
	turn, states, err := j.record.Begin(ctx, lease)
	if err != nil {
		return err
	}
	rec, err := joblog.Parse(states[0].Value)
	if err != nil {
		return err
	}
	replaced := rec.Words
	rec, table := joblog.Adopt(rec, j.def, states[0].Now)
	if replaced == j.def.Words {
		j.become(ctx, rec, table, "", lease)
		return nil
	}
	back := !since.IsZero() // it is written back, see watch
	if back {
		rec.Since, table = since, j.def.Table(since)
	}
	value, err := rec.Encode()
	if err != nil {
		return err
	}
	if err := turn.Write(ctx, value); err != nil {
		return err
	}
	if replaced != "" && !back {
		j.s.cfg.logger.InfoContext(ctx, "scheduler: the schedule of a job has changed: its ticks count from now on", "job", j.name, "schedule", j.def.Words, "before", replaced)
	}
	j.become(ctx, rec, table, replaced, lease)
	return nil
}

// become notes that the definition is adopted, and what it has replaced.
func (j *job) become(ctx context.Context, rec joblog.Record, table joblog.Table, replaced string, lease *redlock.Lease) {
	j.mu.Lock()
	j.view.table, j.view.since, j.adopted, j.replaced = table, rec.Since, true, cmp.Or(replaced, j.replaced)
	j.mu.Unlock()
	j.learn(ctx, rec, lease)
}
