// Package joblog knows how far a job has come. A job is a log of ticks, a tick is a due time, and
// the nodes keep one Record a job. Everything here is a pure function of that record, of the job's
// Table and Policy, and of a time: nothing waits, asks a node, or reads a clock.
//
// Each replica repeats one sentence: take the lease, read the record, run what the log owes now,
// write how it ended.
//
//	lease := q.TryAcquire(ctx, key)                       // asleep until Verdict.At before this
//	rec, _ := joblog.Parse(register.Begin(lease), now)    // nothing on the nodes: the zero Record
//	rec, table := joblog.Adopt(rec, definition, nodesNow) // writes once for a definition
//	policy.Floor = pause                                  // read after the lease is held
//	v := joblog.Owed(rec, table, policy, now)             // asked ahead: now is the due time
//	if !v.Due {                                           // if v.Settles: write what Settle returns
//		tell(v); release; sleep until v.At
//	}
//	rec = joblog.Begin(rec, table, policy, v, grant)      // write it to a quorum, then tell(v)
//	outcome := run(v.Tick, v.Attempt, v.Why)              // again: rec = joblog.Retry(rec), written
//	rec, left := joblog.End(rec, table, policy, ending)   // write it to a quorum
//	tell(left); release; again from the top               // until v.Over
//
// Three rules carry it. Delivery is when the cursor moves: at most once with the grant, at least
// once with the completion. The holder decides what its run overlapped, when the run ends; if the
// holder dies nothing is decided, and those ticks are missed. Numbers are due times, for every kind
// of schedule, so all replicas have the same.
//
// # What is owed
//
// The ticks after the cursor that are due. CatchUpNone and CatchUpLatest run the newest of them
// that is not too old, CatchUpAll each, the oldest first. A tick is too old when it is late by more
// than Grace, or with a catch-up by more than the window. These do not age: the tick that an
// earlier run overlapped and that OverlapQueue kept (Record.Queued). These are owed whatever the
// table says now: that one, and a tick whose run did not complete (Record.Again). Left out are
// ticks up to the end of a pause, ticks that came within a run that was none of them, those that
// are too old, and those before the newest: Verdict.Left tells each with its reason, and
// Verdict.CutShort the run that ended with its replica.
//
// # What the caller does
//
// A verdict without the lease tells only whether and when to ask. One under the lease counts, and
// from there to the write of Begin the record must be the one that was read. After a write whose
// outcome is unknown the holder writes the record of before and releases. It remembers its token:
// if it later reads a Record whose Run has that token, it goes on from the record of before.
//
// A cancel is End with Cancelled before the operator is answered, and End again when the task has
// returned, of the record that was granted: what the run overlapped is told then. RunNow is Begin
// with Verdict{Why: Ordered}. A run that a later tick is to end (OverlapCancel) ends with
// Cancelled.
package joblog
