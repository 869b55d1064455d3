// Package joblog computes which ticks of a job are owed. A job is a log of ticks, a tick is a due
// time, and the nodes keep one Record a job. Everything here is a pure function of that record, of
// the job's Table and Policy, and of a time: nothing waits, asks a node, or reads a clock.
//
// Each replica repeats four steps: take the lease, read the record, run what the log owes now,
// write how the run ended.
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
// once with the completion. The holder decides at the end of its run which ticks the run
// overlapped; if the holder dies, no tick was overlapped, and those ticks are missed. A tick is
// identified by its due time, for every kind of schedule, so all replicas identify it alike.
//
// # What is owed
//
// The ticks after the cursor that are due are owed. CatchUpNone and CatchUpLatest run the newest of
// them that is not too old; CatchUpAll runs each of those, the oldest first. A tick is too old when
// it is late by more than Grace, or with a catch-up by more than the window.
//
// Two ticks are owed whatever the table says now: the overlapped tick that OverlapQueue kept
// (Record.Queued), which does not age, and a tick whose run did not complete (Record.Again).
//
// Four kinds of ticks are left out: ticks up to the end of a pause, ticks that came within a span
// of Record.Beside, ticks that are too old, and ticks before the newest. Verdict.Left has each with
// its reason. Verdict.CutShort has the run that ended with its replica.
//
// # What the caller does
//
// A verdict without the lease says only whether and when to ask for the lease. A verdict under the
// lease counts; from there to the write of Begin the record must be the one that was read. After a
// write whose outcome is unknown the holder writes the previous record and releases the lease. It
// remembers its token: if it later reads a Record whose Run has that token, it goes on from the
// previous record.
//
// To cancel a run, write End with Cancelled before the operator is answered. Write End again, of
// the record that was granted, when the task has returned: this End returns the ticks that the run
// overlapped. RunNow is Begin with Verdict{Why: Ordered}. A run that a later tick is to end
// (OverlapCancel) ends with Cancelled.
package joblog
