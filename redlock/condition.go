package redlock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Condition is a state of a server that keeps it from voting, or from being trusted. Its value is
// stable and is what ErrorType returns.
type Condition string

// The conditions. ConditionQuarantined and ConditionClockJumped pass by themselves; the others want
// somebody to act.
const (
	ConditionQuarantined  Condition = "quarantined"   // restarted or promoted too short a time ago: it may have forgotten leases that still live
	ConditionClockJumped  Condition = "clock_jumped"  // its wall clock stepped forward, so keys on it may have expired early
	ConditionReplica      Condition = "replica"       // not a master
	ConditionReplicated   Condition = "replicated"    // has replicas, or was one: a fail-over could lose what it granted
	ConditionDuplicate    Condition = "duplicate"     // the same server as another node
	ConditionUnsupported  Condition = "unsupported"   // too old, or no Valkey at all
	ConditionLoading      Condition = "loading"       // LOADING: reads its data after a start
	ConditionReadOnly     Condition = "readonly"      // READONLY: refuses writes
	ConditionOutOfMemory  Condition = "oom"           // OOM: at maxmemory
	ConditionBusy         Condition = "busy"          // BUSY: runs a script that does not end
	ConditionNoAuth       Condition = "noauth"        // NOAUTH, WRONGPASS: credentials missing or wrong
	ConditionNoPermission Condition = "noperm"        // NOPERM: its ACL forbids what is needed
	ConditionMoved        Condition = "moved"         // MOVED, ASK, CLUSTERDOWN, cluster mode: part of a Cluster
	ConditionNotSaving    Condition = "not_saving"    // MISCONF: cannot write its data to disk and refuses writes
	ConditionEvicting     Condition = "evicting"      // a warning: its maxmemory-policy may delete leases
	ConditionMasterless   Condition = "master_down"   // MASTERDOWN: a replica without its master
	ConditionFewReplicas  Condition = "few_replicas"  // NOREPLICAS: min-replicas-to-write is not met
	ConditionTooManyUsers Condition = "max_clients"   // refuses connections: maxclients
	ConditionNoDatabase   Condition = "no_database"   // has no database of the number
	ConditionSentinel     Condition = "sentinel"      // a Sentinel, which keeps no data
	ConditionProtected    Condition = "protected"     // DENIED: protected mode
	ConditionClockWrong   Condition = "clock_wrong"   // a warning: its wall clock differs from the other servers' by more than the skew
	ConditionDamaged      Condition = "damaged"       // what it has of one key is not what was written there; it votes for others
	ConditionNoCommand    Condition = "no_command"    // a command that is needed is renamed or disabled
	ConditionRestarted    Condition = "other_process" // another server process answered than the one that was vouched for
	ConditionBadReply     Condition = "bad_reply"     // it sent what no Valkey server answers; the connection was ended
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
		fmt.Fprintf(&b, " until %s", e.Until.Format("15:04:05"))
	}
	if cause := e.cause(); cause != "" {
		b.WriteString(": " + cause)
	}
	fmt.Fprintf(&b, " (%s)", adviceFor(e))
	return b.String()
}

// cause is what was seen, or what the server said.
func (e *ConditionError) cause() string {
	if e.Detail == "" && e.Err != nil {
		return short(e.Err.Error())
	}
	return e.Detail
}

// maxSaid is how much of a server's error is repeated in messages, in characters: it may be as long
// as the server likes.
const maxSaid = 300

// short is the beginning of what a server said.
func short(text string) string {
	if cut := fmt.Sprintf("%.*s", maxSaid, text); len(cut) < len(text) {
		return cut + "..." //mutant:long-server-error-repeated
	}
	return text
}

// Unwrap returns the server's own error.
func (e *ConditionError) Unwrap() error { return e.Err }

// ErrorType returns the condition.
func (e *ConditionError) ErrorType() string { return string(e.Condition) }

// prefixes are the first words of server errors, as src/server.c, src/acl.c and src/cluster.c of
// Valkey 8 give them.
var prefixes = []struct {
	text      string
	condition Condition
}{
	{"LOADING", ConditionLoading},
	{"READONLY", ConditionReadOnly},
	{"OOM", ConditionOutOfMemory},
	{"BUSY", ConditionBusy},
	{"NOAUTH", ConditionNoAuth},
	{"WRONGPASS", ConditionNoAuth},
	{"NOPERM", ConditionNoPermission},
	{"MOVED", ConditionMoved},
	{"ASK", ConditionMoved},
	{"CLUSTERDOWN", ConditionMoved},
	{"MISCONF", ConditionNotSaving},
	{"MASTERDOWN", ConditionMasterless},
	{"NOREPLICAS", ConditionFewReplicas},
	{"DENIED", ConditionProtected},
	{"NOSCRIPT", ConditionRestarted},
	{"TENUREDAMAGED", ConditionDamaged},
	{"WRONGTYPE", ConditionDamaged},
}

// phrases are found anywhere in an error: scripts wrap the errors of what they call.
var phrases = []struct {
	text      string
	condition Condition
}{
	{"ACL failure in script", ConditionNoPermission},         // from a script, since 7.2
	{"The user executing the script", ConditionNoPermission}, // Redis 7.0: can't run this command, access a key, publish //mutant:noperm-in-older-words
	{"max number of clients", ConditionTooManyUsers},
	{"unknown command", ConditionNoCommand},
	{"unknown subcommand", ConditionNoCommand},
	{"command called from script", ConditionNoCommand},
	{"DB index is out of range", ConditionNoDatabase},
	{"invalid DB index", ConditionNoDatabase},
	{"SELECT is not allowed in cluster mode", ConditionMoved},
}

// faults are what answers say of their servers without an error.
var faults = map[wire.FaultKind]Condition{
	wire.IsDamaged: ConditionDamaged, wire.IsSentinel: ConditionSentinel, wire.IsUnsupported: ConditionUnsupported,
}

// diagnose gives an error that a server answered the type of the condition behind it, and leaves
// others as they are.
func diagnose(err error) error {
	var answered *valkey.ValkeyError
	var known *ConditionError
	if errors.As(err, &known) {
		return err
	}
	if why := refusal(err); why != nil {
		return why
	}
	var fault *wire.Fault
	if errors.As(err, &fault) {
		return &ConditionError{Condition: faults[fault.Kind], Detail: fault.Detail}
	}
	if !errors.As(err, &answered) || answered == valkey.Nil {
		return err
	}
	if condition, ok := conditionOf(answered.Error()); ok {
		return &ConditionError{Condition: condition, Err: err}
	}
	return err
}

// conditionOf reads what a server says.
func conditionOf(text string) (Condition, bool) {
	word, _, _ := strings.Cut(text, " ")
	for _, p := range prefixes {
		if word == p.text {
			return p.condition, true
		}
	}
	for _, p := range phrases {
		if strings.Contains(text, p.text) {
			return p.condition, true
		}
	}
	return "", false
}

// isDemoted reports whether a server answered that it is not, or not yet, the master that it was.
func isDemoted(err error) bool {
	var known *ConditionError
	if !errors.As(diagnose(err), &known) {
		return false
	}
	return known.Condition == ConditionReadOnly || known.Condition == ConditionMasterless || known.Condition == ConditionLoading
}
