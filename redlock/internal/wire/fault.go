package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
)

// Condition is a state of a server that keeps it from voting, or deserves a warning. The values are
// those of redlock.Condition, which has names for the ones that programs ask for.
type Condition string

// The conditions.
const (
	Quarantined  Condition = "quarantined"   // restarted or promoted too short a time ago: it may have forgotten leases that still live
	ClockJumped  Condition = "clock_jumped"  // its wall clock stepped forward, so keys on it may have expired early
	Replica      Condition = "replica"       // not a master
	Replicated   Condition = "replicated"    // has replicas, or was one: a fail-over could lose leases that it granted
	Duplicate    Condition = "duplicate"     // the same server as another node
	Unsupported  Condition = "unsupported"   // too old, or no Valkey at all
	Loading      Condition = "loading"       // LOADING: reads its data after a start
	ReadOnly     Condition = "readonly"      // READONLY: refuses writes
	OutOfMemory  Condition = "oom"           // OOM: at maxmemory
	Busy         Condition = "busy"          // BUSY: runs a script that does not end
	NoAuth       Condition = "noauth"        // NOAUTH, WRONGPASS: credentials missing or wrong
	NoPermission Condition = "noperm"        // NOPERM: its ACL forbids a command, key or channel that is needed
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
	Damaged      Condition = "damaged"       // it holds something for a key that this library did not write; it votes for other keys
	OtherVersion Condition = "other_version" // another version of this library wrote a value that must be read; it votes for other keys
	NoCommand    Condition = "no_command"    // a command that is needed is renamed or disabled
	Restarted    Condition = "other_process" // another server process answered than the one that was vouched for
	BadReply     Condition = "bad_reply"     // it sent a reply that no Valkey server sends; the connection was ended
	Unconnected  Condition = "unconnected"   // a warning: no new connection to it can be made; open ones go on

	AnotherList    Condition = "another_list"    // processes of the prefix use other nodes, or another restart gate
	SeveralServers Condition = "several_servers" // processes have found different servers under its name, or this process has by turns
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

// Cause returns the detail, or else the beginning of the error.
func (f *Fault) Cause() string {
	if f.Detail == "" && f.Err != nil {
		return Short(f.Err.Error())
	}
	return f.Detail
}

// IsAny reports whether the Fault tells one of the conditions; a nil one tells none.
func (f *Fault) IsAny(conditions ...Condition) bool {
	return f != nil && slices.Contains(conditions, f.Condition)
}

// DamagedCounter returns the Fault of a damaged counter, with the beginning of its text.
func DamagedCounter(counter string) *Fault {
	return &Fault{Condition: Damaged, Detail: fmt.Sprintf("the counter is %.24q", counter)}
}

// maxSaid bounds how much of a server's text is repeated in messages, in characters. The server
// decides how long the text is.
const maxSaid = 300

// Short returns the beginning of a server's text.
func Short(text string) string {
	if cut := fmt.Sprintf("%.*s", maxSaid, text); len(cut) < len(text) {
		return cut + "..."
	}
	return text
}

// prefixes are the first words of server errors, as src/server.c, src/acl.c and src/cluster.c of
// Valkey 8 give them, and of the errors of Tenure's own scripts.
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

// ConditionOf returns the condition that the text of a server's error stands for; false if it
// stands for none.
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

// Diagnose returns the Fault behind an error of a server. It returns other errors as they are.
func Diagnose(err error) error {
	if _, known := errors.AsType[*Fault](err); known {
		return err
	}
	if refused, ok := errors.AsType[*resp.Error](err); ok {
		if condition, known := ConditionOf(refused.Said); known {
			return &Fault{Condition: condition, Detail: refused.Said, Err: err}
		}
		return &Fault{Condition: BadReply, Detail: "it sent " + refused.Error(), Err: err}
	}
	if answered, ok := errors.AsType[*valkey.ValkeyError](err); ok && answered != valkey.Nil {
		if condition, ok := ConditionOf(answered.Error()); ok {
			return &Fault{Condition: condition, Err: err}
		}
	}
	return err
}

// FaultOf returns the Fault behind an error; nil if there is none.
func FaultOf(err error) *Fault {
	if err == nil { // the usual case
		return nil
	}
	known, _ := errors.AsType[*Fault](Diagnose(err))
	return known
}

// WithoutAddress returns an error of a connection without its addresses, because a local port is
// new each time.
func WithoutAddress(err error) error {
	var at *net.OpError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return err
}

// IsServerError reports whether the server answered, even if with an error, so that the connection
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

// IsBroken reports whether the connection broke. A timeout does not count as that.
func IsBroken(err error) bool { return !IsServerError(err) && !IsTimeout(err) }

// IsTimeout reports whether the time ran out. A connection that the kernel has found dead is
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
