// Package record is what is written down of a soak, in journals of package history: what replicas
// do, and what the nemesis does.
package record

import (
	"time"

	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// Kind says what a record tells.
type Kind string

// The kinds, with the fields that they use besides Kind and At.
const (
	Start    Kind = "start"      // the Schedulers run: Clock
	Leap     Kind = "leap"       // the replica's clock leaps at At, which is to come: Delay by how much, back if it is negative
	Created  Kind = "created"    // a one-time job was created: Job, Tick
	Begin    Kind = "begin"      // the task is about to be called: Run, Job, Tick, Attempt, Reason why it is run, Token, Deadline, Delay
	Valid    Kind = "valid"      // the task is at work: Run, Deadline
	End      Kind = "end"        // the task is done: Run, Deadline, Panicked, Told, Text how its lease ended if it has
	Unheard  Kind = "unheard"    // the end of a run's lease was not confirmed by a quorum: Token, Text
	Skip     Kind = "skip"       // ticks are not run: Job, Tick the last, Count, Reason, By, Pending, Text
	Asked    Kind = "asked"      // RunNow was called: Job, Text its error
	Fault    Kind = "fault"      // something was not as it has to be: Text
	Pause    Kind = "pause"      // the process did not run for a while until this: Delay
	Stopping Kind = "stopping"   // the Schedulers are about to be shut down
	Stop     Kind = history.Stop // everything was closed in order: Text the goroutines left behind
)

// Record is one line of a journal. What a kind does not use is zero.
type Record struct {
	Kind     Kind            `json:"k"`
	At       history.Instant `json:"t"`
	Run      string          `json:"r,omitempty"` // replica, life and number of the run: r3.2/17
	Job      string          `json:"job,omitempty"`
	Tick     int64           `json:"tick,omitempty"` // in milliseconds since 1970; 0 for a run that RunNow asked for
	Attempt  int             `json:"n,omitempty"`
	Count    int             `json:"count,omitempty"`
	Token    uint64          `json:"token,omitempty"`
	Deadline history.Instant `json:"dl,omitempty"`
	Delay    time.Duration   `json:"delay,omitempty"` // from the tick to this, by the replica's clock
	Panicked bool            `json:"panicked,omitempty"`
	Told     bool            `json:"told,omitempty"` // it was told to end, and returned an error
	Reason   string          `json:"why,omitempty"`
	By       string          `json:"by,omitempty"`
	Pending  bool            `json:"pending,omitempty"`
	Clock    int64           `json:"clock,omitempty"` // the replica's own, in milliseconds since 1970
	Text     string          `json:"text,omitempty"`
}

// Strike is a fault that happened to a replica or to a server.
type Strike struct {
	Kind    fault.Kind      `json:"k"`
	Replica int             `json:"replica"`        // -1 for none
	Server  int             `json:"server"`         // -1 for none
	Life    string          `json:"life,omitempty"` // that was struck; empty if nobody was there
	From    history.Instant `json:"from"`
	To      history.Instant `json:"to"` // when it had been put right
}
