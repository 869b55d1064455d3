// Package bridge is the part of a *redlock.Quorum that only packages of this module use: scripts of
// their own that nodes are asked to run, and channels that are heard. Package redlock implements
// it. It is not public API, and knows nothing of the purpose of a script.
package bridge

import (
	"context"
	"log/slog"
	"time"

	"github.com/valkey-io/valkey-go"
)

// Script is a Lua script. Its keys and arguments are in KEYS and ARGV, and it returns a list of
// texts, or an error. Comment lines are not sent.
type Script struct {
	Text string
	// Gated scripts are sent only to server processes whose gate is open, and their effects count
	// only there. Their variable process is the server's run_id as known so far, or empty without a
	// restart gate. Other scripts are sent to any server that the process may use, also to one in
	// quarantine.
	Gated bool
}

var scripts []*Script

// NewScript makes a gated script that every Quorum may send. Call it only while packages are
// initialised.
func NewScript(text string) *Script { return add(&Script{Text: text, Gated: true}) }

// NewUngatedScript makes a script that any server may run. Call it as NewScript.
func NewUngatedScript(text string) *Script { return add(&Script{Text: text}) }

func add(s *Script) *Script {
	scripts = append(scripts, s)
	return s
}

// Scripts returns all scripts that were made.
func Scripts() []*Script { return scripts }

// Call is a script with the keys and arguments for one node.
type Call struct {
	Script     *Script
	Keys, Args []string
}

// Question is one operation on several nodes.
type Question struct {
	Op, Key string               // for errors and tracers
	Reads   bool                 // the scripts write nothing: a user who may only read may ask
	Call    func(node int) *Call // what each node is asked; nil for nothing
	// Decided reports whether to stop waiting for further answers; it must not block. If it is nil,
	// Ask waits for at least one node, and for every node whose last request did not fail.
	Decided func([]*Answer) bool
}

// Answer is the answer of one node.
type Answer struct {
	Texts  []string      // what the script returned; nil if there is no answer
	At     time.Duration // when the answer came, by the Quorum's clock
	Votes  bool          // the node votes; a user who may only read may also have an answer of a node that does not
	Err    error         // a *redlock.NodeError: why there is no answer; nil while an answer may still come
	Undone bool          // with Err: the server has not run the script
}

// Quorum is the bridge to one *redlock.Quorum.
type Quorum interface {
	Nodes() int                                   // the number of nodes
	Need() int                                    // the size of a quorum
	TTL() time.Duration                           // of the Quorum's leases
	Quarantine() time.Duration                    // of a server process
	RestartGate() bool                            // false with WithoutRestartGate
	TakesPart() bool                              // the process has wanted a lease; else it only looks
	Now() time.Duration                           // on a clock that never steps and counts a suspend
	Time() time.Time                              // the median of the servers' clocks; this process's clock if that is not known
	Prefix() string                               // of all names on nodes
	Name(key, suffix string) (string, error)      // the name of a key's state on the nodes; or an *OptionError
	Address(node int) string                      // for people
	Vote(node int) (votes bool, why error)        // with why it does not vote, or has not answered since the last look; or a warning
	Gates() (opened []uint64, more chan struct{}) // by node: openings of its gate, 0 while shut; more is closed at the next opening
	Logger() *slog.Logger
	Background(f func()) (begun bool) // runs f until Close, which waits for it; false if the Quorum is closed
	// Extra returns the value that another package keeps for the Quorum under a key of its own. The
	// first call makes it. Of several first calls at once each may call make, and one value is
	// kept.
	Extra(key any, make func() any) any
	// Hear calls heard with each message that nodes publish on a channel: in order for one node,
	// and from several goroutines. heard must not block. Messages may be lost, may come twice, and
	// may come from any user who may publish. Call end, or close the Quorum, to end it.
	Hear(channel string, heard func(node int, message string)) (end func())

	// Ask asks nodes, and returns when the answers decide or the node timeout has passed. answers
	// may return more when it is called later. The error is ErrClosed or ctx's own; nodes may have
	// run their scripts nevertheless.
	Ask(ctx context.Context, q *Question) (answers func() []*Answer, err error)
}

// Of returns the bridge to a *redlock.Quorum; nil if that is nil or zero.
var Of func(quorum any) Quorum

// Vacant returns how long the key of a *redlock.Lease was free before the lease; zero if its caller
// did not wait for a holder.
var Vacant func(lease any) time.Duration

// Extends reports whether a *redlock.Quorum would extend a lease on a key that it acquires with
// options, a []redlock.LeaseOption. The error says why it would refuse them. Extends does no I/O.
var Extends func(quorum any, key string, opts any) (bool, error)

// ReadRoster reads, by a client of the caller, which processes of a prefix use a server, and which
// were refused. It writes nothing, needs the rights HGETALL and TIME, and waits as long as the
// client does, or until ctx ends. Errors are those of the client, or say that the server keeps
// something else under the name. If no process of the prefix uses the server, the list is empty,
// without an error.
var ReadRoster func(ctx context.Context, client valkey.Client, prefix string) ([]RosterList, error)

// RosterList is the list of nodes of processes that use a server, as they last wrote it there.
type RosterList struct {
	Names   []string      // of the nodes
	By      string        // identity of the process that wrote it last
	Age     time.Duration // since then, by the server's clock
	Refused string        // a redlock.Condition: why the grants of that process do not count; empty if it was not refused

	// Only if Refused is empty.
	MaxTTL time.Duration // the longest in use
	Skew   time.Duration // the clock skew that they allow for
}
