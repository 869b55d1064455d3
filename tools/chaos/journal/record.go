// Package journal keeps what each client process did, in a file that survives the process's SIGKILL: one line and one
// write(2) for each record, on a clock that all processes share. The page cache keeps what was written; a crash of the
// machine is not survived and need not be.
package journal

import "time"

// Kind says what a record tells.
type Kind string

// The kinds, with the fields that they use besides Kind and At.
const (
	Want     Kind = "want"     // an acquisition begins: Lease, Key, TTL, Text "wait", "try" or "probe"
	Grant    Kind = "grant"    // it returned a lease: Lease, Token, Deadline
	Fail     Kind = "fail"     // it returned an error: Lease, Text its type
	Valid    Kind = "valid"    // Err was nil when asked at At or later: Lease, Deadline as read after that
	Lost     Kind = "lost"     // the lease's context ended by itself: Lease, Text the reason
	Release  Kind = "release"  // Release is about to be called: Lease
	Released Kind = "released" // it returned: Lease, Text its error's type
	Votes    Kind = "votes"    // a quorum of servers votes, after the faults
	Stop     Kind = "stop"     // the client closed its Quorum in order: Text the goroutines left behind
)

// Record is one line of a journal. What a kind does not use is zero.
type Record struct {
	Kind     Kind          `json:"k"`
	At       Instant       `json:"t"`
	Lease    string        `json:"l,omitempty"` // client, life and number of the acquisition: c3.2/17
	Key      string        `json:"key,omitempty"`
	Token    uint64        `json:"token,omitempty"`
	TTL      time.Duration `json:"ttl,omitempty"`
	Deadline Instant       `json:"dl,omitempty"`
	Text     string        `json:"text,omitempty"`
}
