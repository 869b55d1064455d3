package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Sentinels to compare with errors.Is. The errors that carry them say more: see HeldError,
// QuorumError, NodeError and LostError.
var (
	// ErrHeld means that another owner holds the key.
	ErrHeld = errors.New("redlock: held by another owner")
	// ErrSplit means that several callers asked for the key at once and none of them got it.
	ErrSplit = errors.New("redlock: split vote")
	// ErrNoQuorum means that too few nodes answered to decide anything.
	ErrNoQuorum = errors.New("redlock: no quorum of nodes")
	// ErrTimeout means that a node, or the round as a whole, took longer than it may.
	ErrTimeout = errors.New("redlock: timed out")
	// ErrLost means that the lease ended without having been released. The LostError around it has
	// the reason.
	ErrLost = errors.New("redlock: lease lost")
	// ErrReleased means that the lease was released by its holder.
	ErrReleased = errors.New("redlock: lease released")
	// ErrClosed means that the Quorum was closed.
	ErrClosed = errors.New("redlock: quorum closed")
	// ErrNotHeld means that no owner holds the key on a quorum of nodes.
	ErrNotHeld = errors.New("redlock: not held by anyone")
)

// HeldError reports the holder that keeps a key from being acquired. It matches ErrHeld.
type HeldError struct {
	Key    string
	Holder Holder // as far as the nodes that were asked agree; see Holder.Nodes
	// Self reports that the holder has the caller's own identity (WithIdentity): it is a lease of
	// this process, an attempt that failed and is being taken back, or of another process so named.
	Self bool
}

func (e *HeldError) Error() string {
	left := "without expiry: this is no lease but a key that something else wrote, and it stays until it is deleted"
	if e.Holder.TTL != NoExpiry {
		left = fmt.Sprintf("for %v more unless extended", e.Holder.TTL)
	}
	if e.Self {
		left += " (the caller's own identity: it holds the key already, or an attempt is being taken back)"
	}
	return fmt.Sprintf("redlock: %q is held by another owner: %s on %d node(s), %s", e.Key, shown(e.Holder.Identity), e.Holder.Nodes, left)
}

// shown returns an identity as errors show it. It is quoted if this library cannot have written it.
func shown(identity string) string {
	if checkIdentity(identity) != nil || !utf8.ValidString(identity) {
		return strconv.Quote(identity)
	}
	return identity
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// ErrorType returns the stable value "held" for the error.type attribute of traces and metrics.
func (e *HeldError) ErrorType() string { return "held" }

// SplitError reports a vote without a winner: several callers asked for the key at the same moment,
// each of them got it on some nodes, and none on a quorum. As far as the nodes that answered tell,
// no owner holds the key. Try again: this call has asked several times already. It matches
// ErrSplit, and not ErrHeld. Acquire never returns it.
type SplitError struct {
	Key    string
	Rounds int    // how often the nodes were asked
	Rival  Holder // the other owner that was seen on most nodes in the last round; Nodes says on how many
}

func (e *SplitError) Error() string {
	return fmt.Sprintf("redlock: split vote on %q: nobody got it in %d round(s), the last rival was %s on %d node(s): try again",
		e.Key, e.Rounds, shown(e.Rival.Identity), e.Rival.Nodes)
}

// Is reports whether target is ErrSplit.
func (e *SplitError) Is(target error) bool { return target == ErrSplit }

// ErrorType returns the stable value "split" for the error.type attribute of traces and metrics.
func (e *SplitError) ErrorType() string { return "split" }

// QuorumError reports an operation that too few nodes carried out because the others failed. It
// matches ErrNoQuorum, and through Unwrap the error of every node, so errors.Is(err, ErrTimeout)
// tells whether a node timed out.
type QuorumError struct {
	Op        Op           // that too few nodes carried out
	Key       string       // empty from Healthy, which is about no key
	Succeeded int          // nodes that did what was asked
	Need      int          // nodes that would have been enough
	Nodes     int          // nodes asked
	Errs      []*NodeError // one for each node that failed, in the order of the nodes

	unheard int // nodes that had not answered, and could not change the outcome any more
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	if e.Key == "" {
		fmt.Fprintf(&b, "redlock: no quorum: %d of %d nodes answer and vote, %d needed", e.Succeeded, e.Nodes, e.Need)
	} else {
		fmt.Fprintf(&b, "redlock: no quorum to %s %q: %d of %d nodes, %d needed", e.Op, e.Key, e.Succeeded, e.Nodes, e.Need)
		if e.unheard > 0 {
			fmt.Fprintf(&b, ", %d not waited for", e.unheard)
		}
	}
	before := ": "
	for _, err := range e.Errs {
		b.WriteString(before + err.detail())
		before = "; "
	}
	return b.String()
}

// Is reports whether target is ErrNoQuorum.
func (e *QuorumError) Is(target error) bool { return target == ErrNoQuorum }

// Unwrap returns the errors of the nodes.
func (e *QuorumError) Unwrap() []error {
	errs := make([]error, len(e.Errs))
	for i, err := range e.Errs {
		errs[i] = err
	}
	return errs
}

// ErrorType returns "timeout" when every failed node timed out and "no_quorum" otherwise.
func (e *QuorumError) ErrorType() string {
	if len(e.Errs) > 0 && !slices.ContainsFunc(e.Errs, func(err *NodeError) bool { return !errors.Is(err, ErrTimeout) }) {
		return "timeout"
	}
	return "no_quorum"
}

// NodeError is what went wrong on one node. Its text names the node by host and port and never
// contains credentials.
type NodeError struct {
	Node string // host:port
	Op   Op     // that failed there
	Err  error
}

func (e *NodeError) Error() string { return "redlock: " + e.detail() }

func (e *NodeError) detail() string {
	return fmt.Sprintf("node %s: %s: %s", e.Node, e.Op, strings.TrimPrefix(e.said(), "redlock: "))
}

// said is the text of the cause. It is shortened, unless advice stands at its end.
func (e *NodeError) said() string {
	if known := (*ConditionError)(nil); errors.As(e.Err, &known) {
		return e.Err.Error()
	}
	return wire.Short(e.Err.Error())
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// ErrorType returns the Condition where one is known, and otherwise "timeout", "overloaded",
// "server" (the server answered with an error), "unknown_register" (the node does not know yet what
// a job's register has), "abandoned" (the request was not sent, because its outcome had been
// decided without the node), "closed" or "connection".
func (e *NodeError) ErrorType() string {
	var known interface{ ErrorType() string }
	switch {
	case errors.As(e.Err, &known):
		return known.ErrorType()
	case errors.Is(e.Err, ErrTimeout):
		return "timeout"
	case errors.Is(e.Err, ErrClosed):
		return "closed"
	case errors.Is(e.Err, node.ErrOverloaded):
		return "overloaded"
	case errors.Is(e.Err, node.ErrAbandoned):
		return "abandoned"
	case wire.IsServerError(e.Err):
		return "server"
	default:
		return "connection"
	}
}

// LostReason tells why a lease ended without having been released.
type LostReason string

// The reasons.
const (
	LostDeadline LostReason = "deadline" // its validity ran out before an extension succeeded
	LostRefused  LostReason = "refused"  // a quorum of nodes no longer had it: the key was gone or another owner's
	LostClosed   LostReason = "closed"   // the Quorum was closed under it
)

// LostError reports a lease that ended without having been released. It matches ErrLost, and
// ErrClosed when that was the reason.
type LostError struct {
	Key    string
	Reason LostReason
	Err    error // the last failed extension, if one failed; may be nil
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("redlock: lease on %q lost: ", e.Key)
	switch e.Reason {
	case LostDeadline:
		text += "its validity ran out"
	case LostRefused:
		text += "a quorum of nodes no longer holds it for this owner"
	case LostClosed:
		text += "the quorum was closed"
	}
	if e.Err != nil {
		text += ": last extension: " + strings.TrimPrefix(e.Err.Error(), "redlock: ")
	}
	return text
}

// Is reports whether target is ErrLost, or ErrClosed for a lease lost to Close.
func (e *LostError) Is(target error) bool {
	return target == ErrLost || (target == ErrClosed && e.Reason == LostClosed)
}

// Unwrap returns the last failed extension, if any.
func (e *LostError) Unwrap() error { return e.Err }

// ErrorType returns "lost_" followed by the reason.
func (e *LostError) ErrorType() string { return "lost_" + string(e.Reason) }

// OptionError reports an option or an argument that cannot be used, and the bound it broke.
type OptionError struct {
	Option string // as written in code, such as "WithTTL" or "urls", or a variable of FromEnv
	Reason string // what is wrong with it and what would be right
}

func (e *OptionError) Error() string { return "redlock: " + e.Option + ": " + e.Reason }

// ErrorType returns the stable value "invalid".
func (e *OptionError) ErrorType() string { return "invalid" }

// checkContext refuses a nil context, which would panic later.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return &OptionError{"ctx", "is nil: use context.Background() where there is no other"}
	}
	return nil
}

// ErrorType returns a short, stable word for any error of this package, for the error.type
// attribute of traces and metrics. It is the value of the error's own ErrorType method, "canceled"
// or "deadline_exceeded" for the caller's context, and "_OTHER", OpenTelemetry's word, for an
// unknown error. It returns "" for nil.
func ErrorType(err error) string {
	if err == nil {
		return "" // before anything is allocated
	}
	var typed interface{ ErrorType() string }
	switch {
	case errors.As(err, &typed):
		return typed.ErrorType()
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	case errors.Is(err, ErrTimeout):
		return "timeout"
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, ErrReleased):
		return "released"
	case errors.Is(err, ErrNotHeld):
		return "not_held"
	default:
		return "_OTHER"
	}
}

// contextError is the caller's own cancellation. It matches the context's error and its cause, and
// has the outcome of the last attempt.
type contextError struct {
	key   string
	cause error // ctx.Err, and context.Cause where that says more
	last  error // the last attempt's outcome; may be nil
}

func newContextError(ctx context.Context, key string, last error) error {
	cause := ctx.Err()
	if c := context.Cause(ctx); c != nil && !errors.Is(cause, c) {
		cause = fmt.Errorf("%w: %w", cause, c)
	}
	return &contextError{key: key, cause: cause, last: last}
}

func (e *contextError) Error() string {
	text := fmt.Sprintf("redlock: gave up: %v", e.cause)
	if e.key != "" {
		text = fmt.Sprintf("redlock: gave up on %q: %v", e.key, e.cause)
	}
	if e.last != nil {
		text += ": last attempt: " + strings.TrimPrefix(e.last.Error(), "redlock: ")
	}
	return text
}

func (e *contextError) Unwrap() []error {
	if e.last == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.last}
}

func (e *contextError) ErrorType() string {
	if errors.Is(e.cause, context.DeadlineExceeded) {
		return "deadline_exceeded"
	}
	return "canceled"
}
