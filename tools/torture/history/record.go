package history

import (
	"time"

	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Kind says what a record tells.
type Kind string

// The kinds, with the fields that they use besides Kind and At.
const (
	Want    Kind = "want"    // an acquisition begins: Lease, Key, TTL, Text "wait", "try", "probe" or OtherList
	Grant   Kind = "grant"   // it returned a lease: Lease, Token, Deadline
	Fail    Kind = "fail"    // it returned an error: Lease, Text its type
	Lost    Kind = "lost"    // the lease's context ended by itself: Lease, Text the reason
	Release Kind = "release" // Release is about to be called: Lease
	Votes   Kind = "votes"   // a quorum of servers votes, after the faults

	Valid Kind = "valid" // Err was nil when asked at At or later: Lease, Deadline as read after that; of a task at work: Run, Deadline

	Start    Kind = "start"    // the Schedulers run: Clock, Count the version of their jobs
	Leap     Kind = "leap"     // the replica's clock leaps at At, which is to come: Delay by how much, back if it is negative
	Begin    Kind = "begin"    // the task is about to be called: Run, Job, Tick, Attempt, Reason why it is run, Token, Deadline, Delay
	End      Kind = "end"      // the task is done: Run, Deadline, Panicked, Told, Text how its lease ended if it has
	Unheard  Kind = "unheard"  // the end of a run's lease was not confirmed by a quorum: Token, Text
	Skip     Kind = "skip"     // ticks are not run: Job, Tick the last, Count, Reason, By, Pending, Text
	Asked    Kind = "asked"    // RunNow was called: Job, Text its error
	Fault    Kind = "fault"    // something was not as it has to be: Text
	Pause    Kind = "pause"    // the process did not run for a while until this: Delay
	Stopping Kind = "stopping" // the Schedulers are about to be shut down

	Stop Kind = "stop" // everything was closed in order: Text the goroutines left behind
)

// OtherList is the way of an acquisition by a process with another list of nodes.
const OtherList = "other-list"

// Record is one line of a journal. What a kind does not use is zero.
type Record struct {
	Kind     Kind          `json:"k"`
	At       Instant       `json:"t"`
	Token    uint64        `json:"token,omitempty"`
	Deadline Instant       `json:"dl,omitempty"`
	Text     string        `json:"text,omitempty"`
	Lease    string        `json:"l,omitempty"` // client, life and number of the acquisition: c3.2/17
	Key      string        `json:"key,omitempty"`
	TTL      time.Duration `json:"ttl,omitempty"`
	Run      string        `json:"r,omitempty"` // client, life and number of the run: r3.2/17
	Job      string        `json:"job,omitempty"`
	Tick     int64         `json:"tick,omitempty"` // in milliseconds since 1970; 0 for a run that RunNow asked for
	Attempt  int           `json:"n,omitempty"`
	Count    int           `json:"count,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"` // from the tick to this, by the replica's clock
	Panicked bool          `json:"panicked,omitempty"`
	Told     bool          `json:"told,omitempty"` // it was told to end, and returned an error
	Reason   string        `json:"why,omitempty"`
	By       string        `json:"by,omitempty"`
	Pending  bool          `json:"pending,omitempty"`
	Clock    int64         `json:"clock,omitempty"` // the replica's own, in milliseconds since 1970
}

// Life is one process of a client.
type Life struct {
	Name   string  `json:"name"` // c3.2
	Began  Instant `json:"began"`
	Killed Instant `json:"killed,omitempty"` // right before SIGKILL was sent
	Ended  Instant `json:"ended"`            // when its end was seen
	Err    string  `json:"err,omitempty"`    // how it ended, unless in order
	Stderr string  `json:"stderr,omitempty"` // what it said last
}

// Strike is a fault as it was done to one server, to one process, to a job, or to all processes.
type Strike struct {
	Kind   plan.Kind     `json:"k"`
	Server int           `json:"server"`           // -1 for none
	Life   string        `json:"life,omitempty"`   // the process that it struck; empty if none was there
	Job    string        `json:"job,omitempty"`    // that was paused
	Failed string        `json:"failed,omitempty"` // why it could not be resumed
	Jump   time.Duration `json:"jump,omitempty"`   // of the server's clock, which is taken back when the fault is put right
	From   Instant       `json:"from"`             // it was done between From
	Done   Instant       `json:"done,omitempty"`   // and Done; zero for a pause that failed
	Heal   Instant       `json:"heal,omitempty"`   // it was put right between Heal
	To     Instant       `json:"to"`               // and To
}

// Account is what is known of a run besides its journals.
type Account struct {
	Workload string  `json:"workload"` // the name of its topology
	Command  string  `json:"command"`  // that repeats the schedule of faults
	Began    Instant `json:"began"`    // the faults
	Halted   bool    `json:"halted"`   // it was interrupted, and what comes after the faults was left out

	Servers   int           `json:"servers"`
	Undecided time.Duration `json:"undecided"` // how long porcupine may take

	Over     Instant  `json:"over"`     // when the faults were over; zero if it did not come to that
	OverAt   int64    `json:"over_at"`  // the same by the machine's clock, in milliseconds since 1970
	Leftover []string `json:"leftover"` // keys that are on servers and must not be
	Failures []string `json:"failures"` // what did not work in the end

	Lives   []Life   `json:"lives"`
	Strikes []Strike `json:"strikes"`
}
