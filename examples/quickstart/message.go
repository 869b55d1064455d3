package main

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/elector"
)

// assignment is the first line that a replica reads from its standard input. It comes that way, and not by
// arguments, because the URLs of nodes contain passwords and arguments are seen by everybody. The input's end tells the
// replica to stop, also when the supervisor has been killed.
type assignment struct {
	Replica string        `json:"replica"`
	Mode    mode          `json:"mode"`
	Name    string        `json:"name"` // of the election or the job
	Nodes   []string      `json:"nodes"`
	TTL     time.Duration `json:"ttl"`
}

// kind says what an event is.
type kind string

const (
	kindReady   kind = "ready"   // the scheduler runs
	kindRun     kind = "run"     // a run has begun
	kindElected kind = "elected" // this replica leads
	kindResigns kind = "resigns" // it is about to give that up
	kindEnded   kind = "ended"   // it no longer leads
)

// event is a line that a replica writes to its standard output.
type event struct {
	Kind   kind      `json:"kind"`
	At     time.Time `json:"at"`
	Tick   time.Time `json:"tick,omitzero"`
	Token  uint64    `json:"token,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

// reporter writes a replica's events. It is safe for concurrent use.
type reporter struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// report writes an event in one piece, so that a kill does not leave half of it. Its reader is gone only when this
// process has been told to stop as well, so a failure is of no interest.
func (r *reporter) report(e event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // an event has nothing that cannot be marshalled
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(line, '\n'))
}

// reportChange reports what an Elector has to say.
func (r *reporter) reportChange(c elector.Change) {
	if c.Kind == elector.Elected {
		r.report(event{Kind: kindElected, At: c.At, Token: c.Term})
		return
	}
	r.report(event{Kind: kindEnded, At: c.At, Token: c.Term, Detail: string(c.Kind)})
}
