// Package bridge is what packages of this module use of a *redlock.Quorum beside what everybody
// may: scripts of their own that all nodes are asked to carry out, and channels that are heard.
// Package redlock fills it in. It is no API, and knows nothing of what scripts are for.
package bridge

import (
	"context"
	"log/slog"
	"time"

	"github.com/valkey-io/valkey-go"
)

// Script is a Lua text. It finds its keys and arguments in KEYS and ARGV. It returns a list of
// texts, or an error. Lines of comments are not sent.
type Script struct {
	Text string
	// Gated has it sent to server processes only that were vouched for, and what it has done counts
	// only there. It finds in process their run_id, by all that is known; an empty text where
	// processes have no restart gate. Others are for any server that a process may use, also while
	// it is in quarantine.
	Gated bool
}

var scripts []*Script

// NewScript makes a gated script that all Quorums may send. It is to be called while packages are
// initialised.
func NewScript(text string) *Script { return add(&Script{Text: text, Gated: true}) }

// NewUngatedScript makes one that any server may carry out.
func NewUngatedScript(text string) *Script { return add(&Script{Text: text}) }

func add(s *Script) *Script {
	scripts = append(scripts, s)
	return s
}

// Scripts are all that were made.
func Scripts() []*Script { return scripts }

// Call is what one node is asked.
type Call struct {
	Script     *Script
	Keys, Args []string
}

// Question is one operation on several nodes.
type Question struct {
	Op, Key string               // for errors and tracers
	Reads   bool                 // nothing is written: a user who may only read may ask
	Call    func(node int) *Call // what each node is asked; nil for nothing
	// Decided reports whether further answers are not to be waited for; it must not block. Nil
	// waits for all nodes that have not just failed, and for one at least.
	Decided func([]*Answer) bool
}

// Answer is that of one node.
type Answer struct {
	Texts  []string      // what the script returned; nil where there is no answer
	At     time.Duration // when they came, by the Quorum's clock
	Votes  bool          // the node does; one that does not may have been asked by who may only read
	Err    error         // a *redlock.NodeError: why there is no answer; nil while one may come
	Undone bool          // with an error: the server has not carried it out
}

// Quorum is the bridge to one.
type Quorum interface {
	Nodes() int                                   // how many there are
	Need() int                                    // how many are a quorum
	TTL() time.Duration                           // of its leases
	Quarantine() time.Duration                    // of a server process
	RestartGate() bool                            // whether there is one
	TakesPart() bool                              // it has wanted a lease; else it only looks
	Now() time.Duration                           // on a clock that never steps and counts a suspend
	Time() time.Time                              // the median of the servers' clocks, or this process's where that is not known
	Prefix() string                               // of all names on nodes
	Name(key, suffix string) (string, error)      // what a key's state is called on nodes; or an *OptionError
	Address(node int) string                      // for people
	Vote(node int) error                          // why the node does not vote by the last look, or has not answered since; nil where it does
	Gates() (opened []uint64, more chan struct{}) // how often each node's gate has opened, 0 while it is shut; closed when one opens
	Logger() *slog.Logger
	Background(f func()) (begun bool) // has it run until Close, which waits for it; false on a closed Quorum
	// Extra is what another package keeps for the Quorum under a key of its own. The first call
	// makes it; of several at once all may, and one counts.
	Extra(key any, make func() any) any
	// Hear has heard called with what nodes publish on a channel: by several goroutines, and for
	// one node in order. It must not block. Messages may be lost, come twice, and come from anybody
	// who may publish. Call end, or close the Quorum, to end it.
	Hear(channel string, heard func(node int, message string)) (end func())

	// Ask asks nodes, and returns when the answers decide or the node timeout has passed. What
	// answers returns may be more later. The error is that of a closed Quorum, or ctx's own; nodes
	// may then have done what they were asked.
	Ask(ctx context.Context, q *Question) (answers func() []*Answer, err error)
}

// Of is the bridge to a *redlock.Quorum; nil for one that is nil or zero.
var Of func(quorum any) Quorum

// Vacant is for how long nobody had the key of a *redlock.Lease before it; zero where its caller
// did not wait for a holder.
var Vacant func(lease any) time.Duration

// Extends reports whether a *redlock.Quorum would extend a lease on a key that it acquires with
// options, a []redlock.LeaseOption; or why it would not take them. It does no I/O.
var Extends func(quorum any, key string, opts any) (bool, error)

// ReadRoster asks one server, by way of a client of the caller, which processes of a prefix use it,
// and which were refused. It writes nothing, needs the rights HGETALL and TIME, and waits as long
// as the client does, or until ctx ends. Errors are the client's, or say that the server keeps
// something else there; a server that no process of the prefix uses is none.
var ReadRoster func(ctx context.Context, client valkey.Client, prefix string) ([]RosterList, error)

// RosterList is the nodes of processes that use a server, as they said it there a moment ago.
type RosterList struct {
	Names   []string      // of the nodes
	By      string        // identity of the process that said so last
	Age     time.Duration // since then, by the server's clock
	Refused string        // a redlock.Condition: why that process counts nothing; empty for those that go on

	// Of those that go on.
	MaxTTL time.Duration // the longest in use
	Skew   time.Duration // of clocks
}
