package redlock

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Condition is a state of a server that keeps it from voting, or from being trusted. Its value is
// stable and is what ErrorType returns.
type Condition string

// Conditions that a program may ask for. docs/operations.md has all of them, with what to do.
// ConditionQuarantined and ConditionClockJumped pass by themselves.
const (
	ConditionQuarantined  Condition = "quarantined"   // restarted or promoted too short a time ago: it may have forgotten leases that still live
	ConditionClockJumped  Condition = "clock_jumped"  // its wall clock stepped forward, so keys on it may have expired early
	ConditionReplicated   Condition = "replicated"    // has replicas, or was one: a fail-over could lose what it granted
	ConditionDuplicate    Condition = "duplicate"     // the same server as another node
	ConditionOutOfMemory  Condition = "oom"           // OOM: at maxmemory
	ConditionNoAuth       Condition = "noauth"        // NOAUTH, WRONGPASS: credentials missing or wrong
	ConditionNoPermission Condition = "noperm"        // NOPERM: its ACL forbids what is needed
	ConditionClockWrong   Condition = "clock_wrong"   // a warning: its wall clock differs from the other servers' by more than the skew
	ConditionDamaged      Condition = "damaged"       // its data of one key is not what this library writes; it votes for other keys
	ConditionOtherVersion Condition = "other_version" // its data of one key is of another version of this library; it votes for other keys
	ConditionRestarted    Condition = "other_process" // the answer came from another server process than the one that was vouched for

	// Other processes of the prefix have another list of names of nodes. Their quorums and this
	// process's may have no node in common, so two leases on a key could be live at once. A process
	// that begins counts no node until the others have ended. A process that has begun goes on, and
	// is warned.
	ConditionAnotherList Condition = "another_list"
	// Several servers have one name: processes have found different servers under it, or one
	// process finds now one server and now another.
	ConditionSeveralServers Condition = "several_servers"
)

// ConditionError reports a server that cannot vote, or should not be relied on, for a known reason.
// It is the Err of a NodeError, and the type of NodeStatus.Warnings.
type ConditionError struct {
	Condition Condition
	Detail    string    // what was seen; may be empty
	Until     time.Time // when the condition ends by itself; zero when it does not
	Err       error     // the server's own error, when there was one

	prefix string // of the keys, for the advice; may be empty
}

func (e *ConditionError) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Condition))
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, " until %s", moment(e.Until, time.Now()))
	}
	if cause := e.cause(); cause != "" {
		b.WriteString(": " + cause)
	}
	fmt.Fprintf(&b, " (%s)", adviceFor(e))
	return b.String()
}

// moment formats a time for people, with its date unless that is today's.
func moment(t, now time.Time) string {
	if t.Format(time.DateOnly) == now.In(t.Location()).Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// cause is the detail that was seen, or the server's own error.
func (e *ConditionError) cause() string {
	if e.Detail == "" && e.Err != nil {
		return wire.Short(e.Err.Error())
	}
	return e.Detail
}

// Unwrap returns the server's own error.
func (e *ConditionError) Unwrap() error { return e.Err }

// ErrorType returns the condition.
func (e *ConditionError) ErrorType() string { return string(e.Condition) }

// conditionError returns a fault of a server as an error of this package; nil for nil.
func (q *Quorum) conditionError(f *wire.Fault) *ConditionError {
	if f == nil {
		return nil
	}
	return &ConditionError{Condition: Condition(f.Condition), Detail: f.Detail, Until: f.Until, Err: f.Err, prefix: q.cfg.prefix}
}

// refusal returns a server's error as an error of this package. asked says what the server was
// asked.
func (q *Quorum) refusal(said error, asked string) *ConditionError {
	why := wire.FaultOf(said)
	if why == nil {
		why = &wire.Fault{Condition: wire.Unsupported, Err: said}
	}
	return q.conditionError(&wire.Fault{Condition: why.Condition, Detail: asked + ": " + why.Cause(), Err: why.Err})
}
