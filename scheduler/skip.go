package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// Reason is why a replica did not run a tick.
type Reason string

// The reasons.
const (
	SkipHeld        Reason = "held"        // another replica runs the tick
	SkipDone        Reason = "done"        // another replica ran the tick
	SkipOverlap     Reason = "overlap"     // the tick came while an earlier run of the job went on
	SkipNotLeader   Reason = "not_leader"  // this replica does not lead; for RunNow only
	SkipQuarantined Reason = "quarantined" // too many nodes were restarted and do not vote yet
	SkipNoQuorum    Reason = "no_quorum"   // too few nodes could be reached
	SkipTimeout     Reason = "timeout"     // too few nodes answered in time
	SkipPaused      Reason = "paused"      // the job, or all jobs, are paused
	SkipAhead       Reason = "ahead"       // this replica's clock is too far ahead of the nodes': see redlock.Quorum.CheckClock
	SkipRefused     Reason = "refused"     // a listener refused the run: gocron.BeforeJobRunsSkipIfBeforeFuncErrors
	SkipLimit       Reason = "limit"       // this replica has no place for the run: gocron.WithLimitConcurrentJobs
	SkipSplit       Reason = "split"       // several replicas asked at once and none got the lease
	SkipSuperseded  Reason = "superseded"  // a later tick took the tick's place: CatchUpLatest, CatchUpNone
	SkipMissed      Reason = "missed"      // the tick is too old: see WithCatchUp and Grace
	SkipCutShort    Reason = "cut_short"   // the run began and never ended: its replica was killed
	SkipStopped     Reason = "stopped"     // the job, the Scheduler or the Quorum was stopped
	SkipOther       Reason = "other"       // see Err
)

// SkipError says why a tick, or several in a row, are not run on this replica. gocron passes it to
// the job's AfterLockError listeners, even when nothing is wrong, such as for each tick that
// another replica runs: ask Expected first. RunNow returns it.
type SkipError struct {
	Job    string
	Tick   time.Time // the last of the ticks; zero for a run that RunNow asked for
	Count  int       // how many ticks in a row; 1000 if there are that many or more
	Reason Reason
	By     string // the replica (redlock.WithIdentity) that holds or ran it, or the operator who paused the job; empty if not known
	// Pending says that the tick is still owed: a replica runs it if it is not too late by then.
	Pending bool
	Err     error // the error of redlock or elector; may be nil
}

func (e *SkipError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scheduler: job %q", e.Job)
	if !e.Tick.IsZero() {
		fmt.Fprintf(&b, ", tick %s", e.Tick.Format(time.RFC3339Nano))
	}
	if e.Count > 1 {
		fmt.Fprintf(&b, " and %d before it", e.Count-1)
	}
	fmt.Fprintf(&b, " is skipped: %s", e.Reason)
	if e.By != "" {
		fmt.Fprintf(&b, " by %s", e.By)
	}
	if e.Pending {
		b.WriteString(", and may be run later")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %s", strings.TrimPrefix(e.Err.Error(), "scheduler: "))
	}
	return b.String()
}

// Unwrap returns the error of redlock or elector.
func (e *SkipError) Unwrap() error { return e.Err }

// Expected reports whether nothing is wrong: another replica runs the tick, ran it, or leads; the
// job's policies (SkipOverlap, SkipSuperseded) or its listener leave the tick out; another replica
// has a place for it; or the job was stopped or paused. It is false if perhaps no replica has run
// the tick, or if the run was cut short.
func (e *SkipError) Expected() bool {
	return slices.Contains([]Reason{SkipHeld, SkipDone, SkipOverlap, SkipNotLeader, SkipPaused, SkipRefused, SkipLimit, SkipSuperseded, SkipStopped}, e.Reason)
}

// ErrorType returns the Reason, for the error.type attribute of traces and metrics.
func (e *SkipError) ErrorType() string { return string(e.Reason) }

// newSkipError explains an error of an acquisition, or of the register, for a tick. tick is zero
// for a run that RunNow asks for.
func newSkipError(job string, tick time.Time, err error) *SkipError {
	if skip, is := errors.AsType[*SkipError](err); is {
		return skip
	}
	e := &SkipError{Job: job, Tick: tick, Count: 1, Reason: SkipOther, Err: err}
	if held, is := errors.AsType[*redlock.HeldError](err); is && held.Holder.TTL != redlock.NoExpiry {
		e.Reason, e.By = SkipHeld, held.Holder.Identity
		if tick.IsZero() || held.Holder.Payload != payloadOf(tick) {
			e.Reason = SkipOverlap // another run of the job; a run of RunNow is no tick
		}
		return e
	}
	switch {
	case isAhead(err):
		e.Reason = SkipAhead
	case errors.Is(err, errTooOld):
		e.Reason = SkipMissed
	case errors.Is(err, elector.ErrNotLeader):
		e.Reason = SkipNotLeader
	case errors.Is(err, redlock.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, gocronx.ErrStopped):
		e.Reason = SkipStopped
	case errors.Is(err, redlock.ErrSplit):
		e.Reason = SkipSplit
	case wouldDo(err, redlock.ConditionQuarantined):
		e.Reason = SkipQuarantined
	case wouldDo(err, redlock.ConditionDamaged, redlock.ConditionOtherVersion): // only this job is affected: SkipOther
	case errors.Is(err, redlock.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		e.Reason = SkipTimeout
	case errors.Is(err, redlock.ErrNoQuorum):
		e.Reason = SkipNoQuorum
	}
	return e
}

// wouldDo reports whether a round would have had its quorum if the nodes in these conditions had
// voted.
func wouldDo(err error, conditions ...redlock.Condition) bool {
	e, is := errors.AsType[*redlock.QuorumError](err)
	if !is {
		return false
	}
	waiting := 0
	for _, ne := range e.Errs {
		if ce, is := errors.AsType[*redlock.ConditionError](ne); is && slices.Contains(conditions, ce.Condition) {
			waiting++
		}
	}
	return waiting > 0 && e.Succeeded+waiting >= e.Need
}

// skip tells the board, the logger, the tracer and gocron's listeners that ticks are not run here.
func (j *job) skip(ctx context.Context, e *SkipError) {
	j.s.tellSkip(e)
	level := slog.LevelWarn
	if e.Expected() || e.Pending || e.Reason == SkipAhead { // clockAhead has logged that
		level = slog.LevelDebug
	}
	j.s.cfg.logger.Log(ctx, level, "scheduler: tick is skipped", "job", e.Job, "tick", e.Tick, "count", e.Count,
		"reason", string(e.Reason), "by", e.By, "pending", e.Pending, "error", e.Err)
	if t := j.s.cfg.tracer.Skip; t != nil {
		t(ctx, e)
	}
	_ = j.Skip(ctx, e) // gocron is being stopped, or the job was removed
}
