// Package record is what is written down of a run of the chaos program, in journals of package
// history: what clients do, and what the nemesis does.
package record

import (
	"math"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// Kind says what a record tells.
type Kind string

// The kinds, with the fields that they use besides Kind and At.
const (
	Want     Kind = "want"       // an acquisition begins: Lease, Key, TTL, Text "wait", "try", "probe" or "tick"
	Grant    Kind = "grant"      // it returned a lease: Lease, Token, Deadline, and of a tick Tick
	Fail     Kind = "fail"       // it returned an error: Lease, Text its type
	Valid    Kind = "valid"      // Err was nil when asked at At or later: Lease, Deadline as read after that
	Lost     Kind = "lost"       // the lease's context ended by itself: Lease, Text the reason
	Release  Kind = "release"    // Release is about to be called: Lease
	Released Kind = "released"   // it returned: Lease, Text its error's type
	Pause    Kind = "pause"      // Pause is about to be called: Lease for the call, Key, Floor as it is asked for
	Resume   Kind = "resume"     // Resume is: Lease for the call, Key
	Marked   Kind = "marked"     // either returned: Lease, Text its error's type; and where it said what stands Floor, Token that it was written with, Nodes
	Votes    Kind = "votes"      // a quorum of servers votes, after the faults
	Stop     Kind = history.Stop // the client closed its Quorum in order: Text the goroutines left behind
)

// Unknown is the Text of a Pause or Resume of which it is not known whether it comes into force.
const Unknown = "unknown"

// Forever is the floor of a pause without an end.
const Forever int64 = math.MaxInt64

// Record is one line of a journal. What a kind does not use is zero.
type Record struct {
	Kind     Kind            `json:"k"`
	At       history.Instant `json:"t"`
	Lease    string          `json:"l,omitempty"`   // client, life and number of the acquisition or the call: c3.2/17
	Key      string          `json:"key,omitempty"` // of Pause and Resume: empty for all keys
	Token    uint64          `json:"token,omitempty"`
	TTL      time.Duration   `json:"ttl,omitempty"`
	Deadline history.Instant `json:"dl,omitempty"`
	Text     string          `json:"text,omitempty"`
	Tick     int64           `json:"tick,omitempty"`  // when it was due, in ms since 1970; the same for Floor
	Floor    int64           `json:"floor,omitempty"` // ticks that were due before it are not granted
	Nodes    int             `json:"nodes,omitempty"` // that have the pause
}

// Strike is a fault as it was done to one server, or to a client (Node is then -1). A fault that is
// put right later is two strikes.
type Strike struct {
	Kind   fault.Kind      `json:"kind"`
	Node   int             `json:"node"`
	From   history.Instant `json:"from"` // it was done between From
	To     history.Instant `json:"to"`   // and To
	Jump   time.Duration   `json:"jump,omitempty"`
	Healed bool            `json:"healed,omitempty"` // this is how it was put right
	Target string          `json:"target,omitempty"` // the client that it struck; empty if there was none
}
