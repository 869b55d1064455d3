package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

// Reason tells why a replica did not run a tick.
type Reason string

// The reasons.
const (
	SkipHeld        Reason = "held"        // another replica runs it
	SkipDone        Reason = "done"        // another replica ran it
	SkipOverlap     Reason = "overlap"     // an earlier run of the job goes on
	SkipNotLeader   Reason = "not_leader"  // another replica leads, or none
	SkipQuarantined Reason = "quarantined" // too many nodes were restarted and do not vote yet
	SkipNoQuorum    Reason = "no_quorum"   // too few nodes could be reached
	SkipTimeout     Reason = "timeout"     // too few nodes answered in time
	SkipPaused      Reason = "paused"      // the job, or all jobs, are paused: see redlock.Quorum.Pause
	SkipAhead       Reason = "ahead"       // this replica's clock is too far ahead of the nodes': see redlock.Quorum.CheckClock
	SkipRefused     Reason = "refused"     // a listener refused the run: gocron.BeforeJobRunsSkipIfBeforeFuncErrors
	SkipSplit       Reason = "split"       // several replicas asked at once and none got it
	SkipSuperseded  Reason = "superseded"  // a later tick took its place: WithOverlap, CatchUpLatest, a process that stood still
	SkipMissed      Reason = "missed"      // it could not be run before the end of the catch-up window
	SkipStopped     Reason = "stopped"     // the job, the Scheduler or the Quorum was stopped
	SkipOther       Reason = "other"       // Err has it
)

// SkipError tells why a run of a job was skipped on this replica. gocron hands it to the job's
// AfterLockError listeners, also for what is as it should be, such as each tick that another
// replica runs: ask Expected first. RunNow returns it.
type SkipError struct {
	Job    string
	Tick   time.Time // zero for a run that RunNow asked for
	Reason Reason
	By     string // who holds or ran it, see redlock.WithIdentity; empty if not known
	// Pending says that this replica still tries, and runs the tick if nobody else does: see
	// WithCatchUp and WithOverlap.
	Pending bool
	Err     error // what redlock or elector said; may be nil
}

func (e *SkipError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scheduler: job %q", e.Job)
	if !e.Tick.IsZero() {
		fmt.Fprintf(&b, ", tick %s", e.Tick.Format(time.RFC3339Nano))
	}
	fmt.Fprintf(&b, " is skipped: %s", e.Reason)
	if e.By != "" {
		fmt.Fprintf(&b, " by %s", e.By)
	}
	if e.Pending {
		b.WriteString(", and may be run later")
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns what redlock or elector said.
func (e *SkipError) Unwrap() error { return e.Err }

// Expected reports whether nothing is wrong: another replica runs the tick, or ran it, or leads;
// the job's policies leave the tick out (SkipOverlap, SkipSuperseded), or its listener; or the job
// was stopped or paused. It is false where nobody may have run the tick: then too few nodes could
// be reached in time, or voted, or the tick is given up, or this replica's clock is wrong.
func (e *SkipError) Expected() bool {
	switch e.Reason {
	case SkipHeld, SkipDone, SkipOverlap, SkipNotLeader, SkipPaused, SkipRefused, SkipSuperseded, SkipStopped:
		return true
	}
	return false
}

// ErrorType returns the Reason, for the error.type attribute of traces and metrics.
func (e *SkipError) ErrorType() string { return string(e.Reason) }

// newSkipError explains an error of an acquisition of a tick; the tick is zero for a run that
// RunNow asks for.
func newSkipError(job string, tick time.Time, err error) *SkipError {
	e := &SkipError{Job: job, Tick: tick, Reason: SkipOther, Err: err}
	var held *redlock.HeldError
	var done *redlock.DoneError
	switch {
	case errors.As(err, &held):
		e.By = held.Holder.Identity
		if e.Reason = SkipHeld; tick.IsZero() || held.Sequence != tick.UnixMilli() {
			e.Reason = SkipOverlap // another run of the job: RunNow asks for a run that is no tick
		}
	case errors.As(err, &done):
		e.Reason, e.By = SkipDone, done.Identity
	default:
		for _, o := range skipReasons {
			if o.is(err) {
				e.Reason = o.reason
				break
			}
		}
	}
	return e
}

// skipReasons are the reasons of errors that tell of no run, the first that fits.
var skipReasons = []struct {
	reason Reason
	is     func(error) bool
}{
	{SkipAhead, isAhead},
	{SkipNotLeader, matches(elector.ErrNotLeader)},
	{SkipPaused, matches(redlock.ErrPaused)},
	{SkipStopped, matches(redlock.ErrClosed)},
	{SkipStopped, matches(context.Canceled)},
	{SkipSplit, matches(redlock.ErrSplit)},
	{SkipQuarantined, quarantined},
	{SkipTimeout, matches(redlock.ErrTimeout)},
	{SkipTimeout, matches(context.DeadlineExceeded)},
	{SkipNoQuorum, matches(redlock.ErrNoQuorum)},
}

func matches(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// quarantined reports whether a round would have had its quorum but for nodes that do not vote
// yet.
func quarantined(err error) bool {
	var e *redlock.QuorumError
	if !errors.As(err, &e) {
		return false
	}
	waiting := 0
	for _, ne := range e.Errs {
		var ce *redlock.ConditionError
		if errors.As(ne, &ce) && ce.Condition == redlock.ConditionQuarantined {
			waiting++
		}
	}
	return waiting > 0 && e.Succeeded+waiting >= e.Need
}
