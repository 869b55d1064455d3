package wire

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
)

// Op is a kind of operation.
type Op uint8

// The operations. Each is described at its script.
const (
	Acquire Op = iota
	Agree
	Extend
	Release
	Observe
	Join
	Leave
	Trial
	Enroll // who uses the node
	Guest  // a script of another package of this module, see package bridge
	GuestReading
	GuestAnywhere // such a script, which any server process may carry out
	ReadingAnywhere
	Info // the server tells about itself
	Time // the server's clock
	ops
)

func (op Op) String() string { return table[op].name }

// Call is one operation, the same for each node that is asked for it. It may be used for several
// nodes at a time, and is not changed meanwhile. Durations and numbers are texts, as they are sent;
// an operation uses what its script names.
type Call struct {
	Op     Op
	Stays  bool // release: the member keeps its place in the queue
	Refill bool // extend: a server that was vouched for puts the key back
	Keys   *Keys
	Lock   string // as the attempt has it, see Lock
	Member string // the attempt's member of the queue; empty where it has none
	Token  uint64 // agree: the one to agree on

	TTL       string // acquire, extend; ms
	Hint      string // acquire; us
	Heal      string // extend: a damaged counter becomes the token: the latest time that is known, in us; empty for not
	Skew      string // acquire; how far ahead of the server's clock the hint may be, in us
	QueueLife string // acquire, join: how long a queue lives that the member joins, in ms
	Keep      string // release: what is left of a minimum hold, in ms
	Turn      string // release, leave: for how long the key is reserved for the next one, in ms; empty to call nobody
	Channel   string // release, leave, trial: what the names of channels begin with

	Roster []string // enroll: see RosterWords
	Guest  *bridge.Call

	many *many // extend: many leases
}

// Verdict is an answer reduced to what a round counts.
type Verdict uint8

// The verdicts.
const (
	Pending Verdict = iota // there is no answer yet
	OK                     // the node did what was asked
	Refused                // the node decided against it
	Failed                 // the node did not answer, or with an error
)

// Answer is what a server says to a call. It is not trusted: who sends it may be anybody. It is
// small, because many are copied and kept: a plain grant, extension or release says no more.
type Answer struct {
	Verdict  Verdict
	Extended Extended      // for extensions
	Token    uint64        // for granted acquires and observations
	Server   time.Duration // server's clock, for acquires and Time; since 1970

	more *More // see More; nil for nothing
}

// More is what most answers do not say.
type More struct {
	Owner  string        // who has the key, or whose turn it is, for refused acquires and observations
	PTTL   time.Duration // TTL of that key
	Rank   int           // for refused acquires that wait: what lib/join.lua returned
	Each   string        // for extensions of many: a digit for each lease, see Extended
	Info   *ServerInfo   // for Info
	Roster *Roster       // for Enroll
	Guest  []string      // for Guest: what its script returned
	Trial  []error       // for Trial: what came of each of Trials; nil where that worked
}

// With is the answer that says that, too.
func (a Answer) With(m More) Answer {
	a.more = &m
	return a
}

// More is what the answer says besides. It is not changed.
func (a *Answer) More() *More {
	if a.more == nil {
		return &nothing
	}
	return a.more
}

// DidSomething reports whether the server has done what it was asked, for one key at least. To have
// seen an owner is not that, as only who has forgotten one says what is not so.
func (a *Answer) DidSomething() bool {
	return a.Verdict == OK && a.More().Owner == "" && (a.More().Each == "" || strings.Contains(a.More().Each, "1"))
}

// nothing is what an answer says that does not say more.
var nothing More

// row is what there is to say of an operation.
type row struct {
	name    string
	script  *Script                        // nil for a command that is none
	command func(Builder) valkey.Completed // of such a one

	guest   bool // the call has the script
	counted bool // what it did counts only where its server process was vouched for
	gated   bool // and it is not sent to any other
	grants  bool // a lease
	frees   bool // a key: it is repeated until the key has expired
	probe   bool // asks a server about itself
	outlast bool // it is for an attempt that has ended, too
	reads   bool // it writes nothing: a user who may only read may have it done

	keys   func(*Call, []string) []string
	args   func(*Call, *Target, []string) []string
	answer func(*Call, reply) (Answer, error) // reads what the script returns
}

// table has all operations. It is filled by init: the functions in it are leaves, and do not read
// it.
var table [ops]row

func init() {
	table = [ops]row{
		Acquire:         {name: "acquire", script: load("acquire"), counted: true, gated: true, grants: true, keys: lockAndFences, args: acquireArgs, answer: acquireAnswer},
		Agree:           {name: "agree", script: load("agree"), counted: true, gated: true, keys: lockAndFences, args: agreeArgs, answer: flagAnswer},
		Extend:          {name: "extend", script: load("extend"), counted: true, keys: extendKeys, args: extendArgs, answer: extendAnswer},
		Release:         {name: "release", script: load("release"), frees: true, outlast: true, keys: lockKey, args: releaseArgs, answer: flagAnswer},
		Observe:         {name: "observe", script: load("observe"), counted: true, reads: true, keys: lockKey, args: noArgs, answer: observeAnswer},
		Join:            {name: "join", script: load("join"), outlast: true, keys: lockAndFences, args: joinArgs, answer: flagAnswer},
		Leave:           {name: "leave", script: load("leave"), outlast: true, keys: lockKey, args: leaveArgs, answer: flagAnswer},
		Trial:           {name: "trial", script: load("trial"), probe: true, keys: trialKeys, args: trialArgs, answer: trialAnswer},
		Enroll:          {name: "enroll", script: load("roster"), outlast: true, keys: lockAndFences, args: func(c *Call, _ *Target, to []string) []string { return append(to, c.Roster...) }, answer: rosterAnswer},
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

// Reads reports whether the operation writes nothing: a user who may only read may have it done.
func (op Op) Reads() bool { return table[op].reads }

// Writes reports whether a server takes the operation for one that may write.
func (op Op) Writes() bool { return table[op].command == nil && !table[op].reads }

// Counted reports whether what the operation did counts only where the server process was vouched
// for. That it did nothing counts anywhere.
func (op Op) Counted() bool { return table[op].counted }

// Repeatable reports whether a call may be sent again when its connection broke, although it may
// have been carried out.
func (op Op) Repeatable() bool { return !op.Gated() }

// Grants reports whether the operation grants a lease.
func (op Op) Grants() bool { return table[op].grants }

// Frees reports whether the operation frees a key, and is repeated until that has expired.
func (op Op) Frees() bool { return table[op].frees }

// IsProbe reports whether the operation asks a server about itself.
func (op Op) IsProbe() bool { return table[op].probe }

// OfAttempt reports whether the operation is for an attempt that may still be granted, or is.
func (op Op) OfAttempt() bool { return !table[op].outlast }

// Joining is the call that only joins the queue, in place of an acquisition.
func (c *Call) Joining() *Call {
	joining := *c
	joining.Op = Join
	return &joining
}

func lockKey(c *Call, to []string) []string { return append(to, c.Keys.Lock) }

func lockAndFences(c *Call, to []string) []string { return append(to, c.Keys.Lock, c.Keys.Fences) }

func noArgs(_ *Call, _ *Target, to []string) []string { return to }

// reply is what a command answers.
type reply struct{ valkey.ValkeyMessage }

// unexpected is the error of one that is not what its command answers.
func (r reply) unexpected() error { return unexpected(r.ValkeyMessage) }

// ErrUnexpected is the error of a reply that is not what the command answers.
var ErrUnexpected = errors.New("unexpected reply")

func unexpected(msg valkey.ValkeyMessage) error {
	return fmt.Errorf("%w %.200s", ErrUnexpected, msg.String())
}

func flagAnswer(_ *Call, msg reply) (Answer, error) {
	done, err := msg.AsInt64()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	if done == 1 {
		return Answer{Verdict: OK}, nil
	}
	return Answer{Verdict: Refused}, nil
}
