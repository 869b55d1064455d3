// Package history records what happens in a run. The records are in journals that survive the
// SIGKILL of the process that writes them: each record is one line and one write(2), and the page
// cache keeps it. The journals need not survive a crash of the machine. All processes share one
// clock.
package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// History is all that is known of a run.
type History struct {
	Account
	Records map[string][]Record // by the name of the life
}

// Clients returns the directory of the clients' journals, which is in the directory of the run.
func Clients(dir string) string { return filepath.Join(dir, "clients") }

// Of reads the journals of the run from its directory. The run may still go on.
func (a Account) Of(dir string) (h *History, err error) {
	h = &History{Account: a}
	h.Records, err = ReadAll(Clients(dir))
	return h, err
}

// Suffix ends the name of a journal's file. The rest is the name of the client process.
const Suffix = ".jsonl"

// Writer appends to one journal. It is safe for concurrent use: the kernel appends each write in
// one piece (open(2), O_APPEND).
type Writer struct{ file *os.File }

// Create begins a journal.
func Create(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: cannot begin: %w", err)
	}
	return &Writer{file: file}, nil
}

// Append writes a record as one line of JSON.
func (w *Writer) Append(record any) error {
	line, err := json.Marshal(record)
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("history: cannot append: %w", err)
	}
	return nil
}

// Close ends the journal.
func (w *Writer) Close() error { return w.file.Close() }

// Read returns the records of one journal. If a process was killed while it wrote, its last line
// may be incomplete; Read leaves that record out.
func Read(path string) (records []Record, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("history: cannot read: %w", err)
	}
	defer file.Close()
	for lines := json.NewDecoder(file); ; {
		var r Record
		switch err := lines.Decode(&r); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return records, nil
		case err != nil:
			return nil, fmt.Errorf("history: record %d of %s: %w", len(records)+1, filepath.Base(path), err)
		}
		records = append(records, r)
	}
}

// ReadAll returns the records of all journals in a directory, by the names of their processes.
func ReadAll(dir string) (map[string][]Record, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	all := make(map[string][]Record, len(paths))
	for _, path := range paths {
		records, err := Read(path)
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(filepath.Base(path), Suffix)] = records
	}
	return all, nil
}

// Kind is the kind of event that a record tells of.
type Kind string

// The kinds, with the fields that they use besides Kind and At.
const (
	Want    Kind = "want"    // an acquisition begins: Lease, Key, TTL, Text "wait", "try", "probe" or OtherList
	Grant   Kind = "grant"   // the acquisition returned a lease: Lease, Token, Deadline
	Fail    Kind = "fail"    // the acquisition returned an error: Lease, Text its type
	Lost    Kind = "lost"    // the lease's context ended by itself: Lease, Text the reason
	Release Kind = "release" // Release is about to be called: Lease
	Votes   Kind = "votes"   // a quorum of servers votes, after the faults

	Valid Kind = "valid" // Err was nil at At or later: Lease, Deadline as read after that; of a task at work: Run, Deadline

	Start    Kind = "start"    // the Schedulers run: Clock, Count the version of their jobs
	Leap     Kind = "leap"     // the replica's clock will leap at At: Delay by how much, back if it is negative
	Begin    Kind = "begin"    // the task is about to be called: Run, Job, Tick, Attempt, Reason why it is run, Token, Deadline, Delay
	End      Kind = "end"      // the task is done: Run, Deadline, Panicked, Told, Text how its lease ended if it has
	Unheard  Kind = "unheard"  // the end of a run's lease was not confirmed by a quorum: Token, Text
	Skip     Kind = "skip"     // ticks are not run: Job, Tick the last, Count, Reason, By, Pending, Text
	Asked    Kind = "asked"    // RunNow was called: Job, Text its error
	Fault    Kind = "fault"    // the client found a failure: Text
	Pause    Kind = "pause"    // the process did not run for a while until At: Delay
	Stopping Kind = "stopping" // the Schedulers are about to be shut down

	Stop Kind = "stop" // everything was closed in order: Text the goroutines left behind
)

// OtherList is the way of an acquisition by a process with another list of nodes.
const OtherList = "other-list"

// Record is one line of a journal. Fields that its kind does not use are zero.
type Record struct {
	Kind     Kind          `json:"k"`
	At       Instant       `json:"t"`
	Token    uint64        `json:"token,omitempty"`
	Deadline Instant       `json:"dl,omitempty"`
	Text     string        `json:"text,omitempty"`
	Lease    string        `json:"l,omitempty"` // client, life and number of the acquisition: c3.2/17
	Key      string        `json:"key,omitempty"`
	TTL      time.Duration `json:"ttl,omitempty"`
	Run      string        `json:"r,omitempty"` // client, life and number of the run: c3.2/17
	Job      string        `json:"job,omitempty"`
	Tick     int64         `json:"tick,omitempty"` // in milliseconds since 1970; 0 for a run that RunNow asked for
	Attempt  int           `json:"n,omitempty"`
	Count    int           `json:"count,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"` // of Begin: since the tick, by the replica's clock
	Panicked bool          `json:"panicked,omitempty"`
	Told     bool          `json:"told,omitempty"` // the task was told to end, and returned an error
	Reason   string        `json:"why,omitempty"`
	By       string        `json:"by,omitempty"`
	Pending  bool          `json:"pending,omitempty"`
	Clock    int64         `json:"clock,omitempty"` // the replica's own, in milliseconds since 1970
}

// Life is one process of a client.
type Life struct {
	Name   string // c3.2
	Began  Instant
	Killed Instant // right before SIGKILL was sent
	Ended  Instant // when its end was seen
	Err    string  // how it ended, unless in order
	Said   string  // what was last in its log
}

// Strike is a fault that happened to one server, to one process, to a job, or to all processes.
type Strike struct {
	Kind   plan.Kind
	Server int           // -1 for none
	Life   string        // the process that it struck; empty if none was there
	Job    string        // the job that was paused
	Failed string        // why it could not be resumed
	Jump   time.Duration // of the server's clock, which jumps back when the fault is put right
	From   Instant       // it was done between From
	Done   Instant       // and Done; zero for a pause that failed
	Heal   Instant       // it was put right between Heal
	To     Instant       // and To
}

// Account is the part of a run's history that is not in its journals.
type Account struct {
	Workload string  // the name of its topology
	Command  string  // repeats the schedule of faults
	Began    Instant // when the faults began

	Servers   int
	Undecided time.Duration // how long porcupine may take

	Over     Instant  // when the faults were over; zero if the run did not get there
	OverAt   int64    // the same by the machine's clock, in milliseconds since 1970
	Leftover []string // keys that are on servers and must not be
	Failures []string // errors of the steps after the faults

	Lives   []Life
	Strikes []Strike
}

// Instant is a time on a clock that all processes of this machine share, in nanoseconds since the
// machine was booted. The clock never steps, and it counts while the machine is suspended. Zero
// means never.
type Instant int64

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

func (i Instant) String() string { return time.Duration(i).String() }
