package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
)

// Condition is a state of a server that keeps it from voting, or from being trusted. The values are
// those of redlock.Condition, which has names for those that programs ask for.
type Condition string

// The conditions.
const (
	Quarantined  Condition = "quarantined"   // restarted or promoted too short a time ago: it may have forgotten leases that still live
	ClockJumped  Condition = "clock_jumped"  // its wall clock stepped forward, so keys on it may have expired early
	Replica      Condition = "replica"       // not a master
	Replicated   Condition = "replicated"    // has replicas, or was one: a fail-over could lose what it granted
	Duplicate    Condition = "duplicate"     // the same server as another node
	Unsupported  Condition = "unsupported"   // too old, or no Valkey at all
	Loading      Condition = "loading"       // LOADING: reads its data after a start
	ReadOnly     Condition = "readonly"      // READONLY: refuses writes
	OutOfMemory  Condition = "oom"           // OOM: at maxmemory
	Busy         Condition = "busy"          // BUSY: runs a script that does not end
	NoAuth       Condition = "noauth"        // NOAUTH, WRONGPASS: credentials missing or wrong
	NoPermission Condition = "noperm"        // NOPERM: its ACL forbids what is needed
	Moved        Condition = "moved"         // MOVED, ASK, CLUSTERDOWN, cluster mode: part of a Cluster
	NotSaving    Condition = "not_saving"    // MISCONF: cannot write its data to disk and refuses writes
	Evicting     Condition = "evicting"      // a warning: its maxmemory-policy may delete leases
	Masterless   Condition = "master_down"   // MASTERDOWN: a replica without its master
	FewReplicas  Condition = "few_replicas"  // NOREPLICAS: min-replicas-to-write is not met
	TooManyUsers Condition = "max_clients"   // refuses connections: maxclients
	NoDatabase   Condition = "no_database"   // has no database of the number
	Sentinel     Condition = "sentinel"      // a Sentinel, which keeps no data
	Protected    Condition = "protected"     // DENIED: protected mode
	ClockWrong   Condition = "clock_wrong"   // a warning: its wall clock differs from the other servers' by more than the skew
	Damaged      Condition = "damaged"       // what it has of one key is not what was written there; it votes for others
	OtherVersion Condition = "other_version" // another version of this library has written what is to be read; it votes for other keys
	NoCommand    Condition = "no_command"    // a command that is needed is renamed or disabled
	Restarted    Condition = "other_process" // another server process answered than the one that was vouched for
	BadReply     Condition = "bad_reply"     // it sent what no Valkey server answers; the connection was ended
	Unconnected  Condition = "unconnected"   // a warning: no new connection to it can be made; those that there are go on

	AnotherList    Condition = "another_list" // Several servers have one name: processes have found different ones under it, or one process
	SeveralServers Condition = "several_servers"
)

// Fault is an error that tells the condition of a server.
type Fault struct {
	Condition Condition
	Detail    string    // what was seen; may be empty
	Until     time.Time // when the condition ends by itself; zero when it does not
	Err       error     // the server's own error, when there was one
}

func (f *Fault) Error() string {
	if cause := f.Cause(); cause != "" {
		return string(f.Condition) + ": " + cause
	}
	return string(f.Condition)
}

// Unwrap returns the server's own error.
func (f *Fault) Unwrap() error { return f.Err }

// Cause is what was seen, or what the server said.
func (f *Fault) Cause() string {
	if f.Detail == "" && f.Err != nil {
		return Short(f.Err.Error())
	}
	return f.Detail
}

// DamagedCounter is the error of a counter that is none.
func DamagedCounter(counter string) *Fault {
	return &Fault{Condition: Damaged, Detail: fmt.Sprintf("the counter is %.24q", counter)}
}

// maxSaid is how much of a server's error is repeated in messages, in characters: it may be as long
// as the server likes.
const maxSaid = 300

// Short is the beginning of what a server said.
func Short(text string) string {
	if cut := fmt.Sprintf("%.*s", maxSaid, text); len(cut) < len(text) {
		return cut + "..."
	}
	return text
}

// prefixes are the first words of server errors, as src/server.c, src/acl.c and src/cluster.c of
// Valkey 8 give them.
var prefixes = []struct {
	text      string
	condition Condition
}{
	{"LOADING", Loading},
	{"READONLY", ReadOnly},
	{"OOM", OutOfMemory},
	{"BUSY", Busy},
	{"NOAUTH", NoAuth},
	{"WRONGPASS", NoAuth},
	{"NOPERM", NoPermission},
	{"MOVED", Moved},
	{"ASK", Moved},
	{"CLUSTERDOWN", Moved},
	{"MISCONF", NotSaving},
	{"MASTERDOWN", Masterless},
	{"NOREPLICAS", FewReplicas},
	{"DENIED", Protected},
	{"NOSCRIPT", Restarted},
	{"TENUREDAMAGED", Damaged},
	{"TENUREVERSION", OtherVersion},
	{"WRONGTYPE", Damaged},
}

// phrases are found anywhere in an error: scripts wrap the errors of what they call.
var phrases = []struct {
	text      string
	condition Condition
}{
	{"ACL failure in script", NoPermission},         // from a script, since 7.2
	{"The user executing the script", NoPermission}, // Redis 7.0: can't run this command, access a key, publish
	{"max number of clients", TooManyUsers},
	{"unknown command", NoCommand},
	{"unknown subcommand", NoCommand},
	{"command called from script", NoCommand},
	{"DB index is out of range", NoDatabase},
	{"invalid DB index", NoDatabase},
	{"SELECT is not allowed in cluster mode", Moved},
}

// ConditionOf reads what a server says.
func ConditionOf(text string) (Condition, bool) {
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

// Diagnose returns the Fault of the condition behind an error of a server, and other errors as they
// are.
func Diagnose(err error) error {
	if _, known := errors.AsType[*Fault](err); known {
		return err
	}
	if refused, ok := errors.AsType[*resp.Error](err); ok {
		return refusal(refused, err)
	}
	if answered, ok := errors.AsType[*valkey.ValkeyError](err); ok && answered != valkey.Nil {
		if condition, ok := ConditionOf(answered.Error()); ok {
			return &Fault{Condition: condition, Err: err}
		}
	}
	return err
}

// FaultOf is the Fault behind an error; nil where there is none.
func FaultOf(err error) *Fault {
	if err == nil { // as a rule
		return nil
	}
	known, _ := errors.AsType[*Fault](Diagnose(err))
	return known
}

// refusal is the condition of a server whose connection the guard has ended.
func refusal(refused *resp.Error, err error) *Fault {
	condition, known := ConditionOf(refused.Said)
	if !known {
		return &Fault{Condition: BadReply, Detail: "it sent " + refused.Error(), Err: err}
	}
	return &Fault{Condition: condition, Detail: refused.Said, Err: err}
}

// WithoutAddress is an error of a connection without its ports, which are others each time.
func WithoutAddress(err error) error {
	var at *net.OpError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return err
}

// IsDemoted reports whether a server answered that it is not, or not yet, the master that it was.
func IsDemoted(err error) bool {
	known := FaultOf(err)
	return known != nil && (known.Condition == ReadOnly || known.Condition == Masterless || known.Condition == Loading)
}

// IsServerError reports whether the server answered, if only with an error, so that the connection
// is fine.
func IsServerError(err error) bool {
	return !Is[*resp.Error](err) && (IsAnswer(err) || Is[*Fault](err) || errors.Is(err, ErrUnexpected))
}

// IsAnswer reports whether a server answered with that error, or with nothing (valkey.Nil).
func IsAnswer(err error) bool { return Is[*valkey.ValkeyError](err) }

// Is reports whether there is an error of that type within err.
func Is[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// IsNoScript reports whether the server does not know the script.
func IsNoScript(err error) bool {
	answered, ok := errors.AsType[*valkey.ValkeyError](err)
	return ok && answered.IsNoScript()
}

// answersItself reports whether an error that several calls got together came from the server,
// other than because it does not know the script: one of them may be the reason.
func answersItself(err error) bool { return IsServerError(err) && !IsNoScript(err) }

// IsBroken reports whether the connection was the reason, other than by taking too long.
func IsBroken(err error) bool { return !IsServerError(err) && !IsTimeout(err) }

// IsTimeout reports whether something took too long. A connection that a kernel has found dead is
// broken, although its error calls itself a timeout.
func IsTimeout(err error) bool {
	var ne net.Error
	if errors.Is(err, syscall.ETIMEDOUT) {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &ne) && ne.Timeout())
}

// IsCut reports whether the server ended a connection that it had accepted.
func IsCut(err error) bool {
	var alert *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &alert) && alert.Op == "remote error" // a TLS alert, see crypto/tls
}
