package wire

import (
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
)

// Op is a kind of operation.
type Op uint8

// The operations. Each script describes its own.
const (
	Acquire Op = iota
	Agree
	Extend
	Release
	Observe
	Join
	Leave
	Enroll          // reads and writes the roster: which processes use the node; and tries whether leases can be acquired
	Guest           // a gated script of another package of this module, see package bridge
	GuestReading    // a gated script that writes nothing
	GuestAnywhere   // a script of another package that any server process may run
	ReadingAnywhere // such a script that writes nothing
	Info            // INFO: what the server says of itself
	Time            // TIME: the server's clock
	ops
)

func (op Op) String() string { return table[op].name }

// Call is one operation, the same for each node that is asked for it. Several nodes may use one
// Call at the same time; it must not be changed until they have answered. Durations and numbers are
// texts, as they are sent. An operation uses the fields that its script names.
type Call struct {
	Op     Op
	Refill bool // extend: a server that was vouched for puts the key back if it is gone
	Keys   *Keys
	Lock   string // as the attempt has it, with the token that is proposed, see the function Lock; leave: the member
	Member string // the attempt's member of the queue; empty where it has none

	TTL       string // acquire, extend: in ms
	QueueLife string // acquire, join: how long the queue lives after the member has joined, in ms
	Keep      string // release: what is left of a minimum hold, in ms; leave: 0
	Turn      string // release, leave: for how long the key is reserved for the next waiter, in ms; empty calls no waiter
	Channel   string // release, leave: the prefix of the names of channels

	Roster []string // enroll: see RosterWords; nil to ask only
	Guest  *bridge.Call

	many *many // extend: many leases
}

// Verdict is an answer reduced to what a round counts.
type Verdict uint8

// The verdicts.
const (
	Pending Verdict = iota // there is no answer yet
	OK                     // the node did what it was asked
	Refused                // the node decided against it
	Failed                 // the node did not answer, or answered with an error
)

// Answer is what a server says to a call. It is not trusted: anything may have sent it. It is
// small, because many answers are copied and kept: a plain grant, extension or release needs no
// More.
type Answer struct {
	Verdict  Verdict
	Extended Extended      // for extensions
	Token    uint64        // that of a holder; for grants and agreements: the proposed one, or if it raised no counter the next that would; 0 for none
	Server   time.Duration // the server's clock since 1970, for acquires, Info and Time

	more *More // nil for the zero More
}

// More is the part of an answer that most answers do not have.
type More struct {
	Owner  string        // for refused acquires and observations: the owner value of the holder, or a reservation
	PTTL   time.Duration // how long the key lasts; NoExpiry for one that does not expire
	Rank   int           // for refused acquires that wait: what lib/join.lua returned
	Each   string        // for extensions of many: a digit for each lease, see Extended
	Info   *ServerInfo   // for Info
	Roster *Roster       // for Enroll; nil if there is Unkept
	Unkept error         // for Enroll: why the server cannot read or keep its roster
	Guest  []string      // for Guest: what its script returned
	Trial  []error       // for Enroll: the error of each command of Trials; nil where it worked
}

// With returns the answer with m as its More.
func (a Answer) With(m More) Answer {
	a.more = &m
	return a
}

// More returns the rest of the answer, the zero More if there is none. The caller must not change
// it.
func (a *Answer) More() *More {
	if a.more == nil {
		return &nothing
	}
	return a.more
}

// DidSomething reports whether the server did what it was asked, for at least one key. An
// observation that found an owner does not count as that: a server that has forgotten leases cannot
// invent one.
func (a *Answer) DidSomething() bool {
	return a.Verdict == OK && a.More().Owner == "" && (a.More().Each == "" || strings.Contains(a.More().Each, "1"))
}

// nothing is the More of an answer without one.
var nothing More

// row describes an operation.
type row struct {
	name    string
	script  *Script                        // nil for a plain command, and for guests
	command func(Builder) valkey.Completed // makes a plain command; nil for scripts

	guest   bool // the script is in the call
	counted bool // what it did counts only from a server process that was vouched for
	gated   bool // it is sent only to a server process that was vouched for
	grants  bool // it grants a lease
	frees   bool // it frees a key, and is repeated until the key has expired
	probe   bool // it asks a server about itself
	outlast bool // it is sent even if the attempt has ended
	reads   bool // it writes nothing, so a user who may only read may call it

	keys   func(*Call, []string) []string
	args   func(*Call, *Target, []string) []string
	answer func(*Call, valkey.ValkeyMessage, reading) Answer // reads what the script returns
}

// table has a row for each operation. init fills it. The functions in its rows do not read it.
var table [ops]row

func init() {
	release := load("release")
	table = [ops]row{
		Acquire:         {name: "acquire", script: load("acquire"), counted: true, gated: true, grants: true, keys: lockAndFences, args: acquireArgs, answer: acquireAnswer},
		Agree:           {name: "agree", script: load("agree"), counted: true, gated: true, keys: lockAndFences, args: agreeArgs, answer: agreeAnswer},
		Extend:          {name: "extend", script: load("extend"), counted: true, keys: extendKeys, args: extendArgs, answer: extendAnswer},
		Release:         {name: "release", script: release, frees: true, outlast: true, keys: lockKey, args: releaseArgs, answer: flagAnswer},
		Observe:         {name: "observe", script: load("observe"), counted: true, reads: true, keys: lockKey, args: noArgs, answer: observeAnswer},
		Join:            {name: "join", script: load("join"), outlast: true, keys: lockKey, args: joinArgs, answer: flagAnswer},
		Leave:           {name: "leave", script: release, outlast: true, keys: lockKey, args: releaseArgs, answer: leaveAnswer},
		Enroll:          {name: "enroll", script: load("roster"), probe: true, outlast: true, keys: lockAndFences, args: func(c *Call, _ *Target, to []string) []string { return append(to, c.Roster...) }, answer: rosterAnswer},
		Guest:           {name: "guest", guest: true, counted: true, gated: true, keys: guestKeys, args: guestArgs, answer: guestAnswer},
		GuestReading:    {name: "guest", guest: true, counted: true, gated: true, reads: true, keys: guestKeys, args: guestArgs, answer: guestAnswer},
		GuestAnywhere:   {name: "guest", guest: true, outlast: true, keys: guestKeys, args: guestArgs, answer: guestAnswer},
		ReadingAnywhere: {name: "guest", guest: true, outlast: true, reads: true, keys: guestKeys, args: guestArgs, answer: guestAnswer},
		Info:            {name: "observe", command: InfoCommand, probe: true, answer: infoAnswer},
		Time:            {name: "observe", command: TimeCommand, probe: true, answer: timeAnswer},
	}
}

// Gated reports whether the operation is only for a server process that was vouched for.
func (op Op) Gated() bool { return table[op].gated }

// Reads reports whether the operation writes nothing, so that a user who may only read may call it.
func (op Op) Reads() bool { return table[op].reads }

// Writes reports whether a server takes the operation for one that may write.
func (op Op) Writes() bool { return table[op].command == nil && !table[op].reads }

// Counted reports whether the effect of the operation counts only from a server process that was
// vouched for. An answer that nothing was done counts from any process.
func (op Op) Counted() bool { return table[op].counted }

// Repeatable reports whether a call may be sent again after its connection broke, although the
// server may have carried it out.
func (op Op) Repeatable() bool { return !op.Gated() }

// Grants reports whether the operation grants a lease.
func (op Op) Grants() bool { return table[op].grants }

// Frees reports whether the operation frees a key. Such a call is repeated until the key has
// expired.
func (op Op) Frees() bool { return table[op].frees }

// IsProbe reports whether the operation asks a server about itself.
func (op Op) IsProbe() bool { return table[op].probe }

// OfAttempt reports whether the operation is sent only while its attempt, or the lease that came of
// it, has not ended.
func (op Op) OfAttempt() bool { return !table[op].outlast }

func lockKey(c *Call, to []string) []string { return append(to, c.Keys.Lock) }

func lockAndFences(c *Call, to []string) []string { return append(to, c.Keys.Lock, c.Keys.Fences) }

func noArgs(_ *Call, _ *Target, to []string) []string { return to }

func flagAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	if r.number(msg) == 1 {
		return Answer{Verdict: OK}
	}
	return Answer{Verdict: Refused}
}
