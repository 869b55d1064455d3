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
	Nodes   []string      `json:"nodes"`
	TTL     time.Duration `json:"ttl"`
	Listen  string        `json:"listen"` // where to serve metrics
}

// kind says what an event is.
type kind string

const (
	kindListens kind = "listens" // metrics are served
	kindElected kind = "elected" // this replica leads the election "poller"
	kindEnded   kind = "ended"   // it no longer leads
)

// event is a line that a replica writes to its standard output.
type event struct {
	Replica string    `json:"replica"`
	Kind    kind      `json:"kind"`
	At      time.Time `json:"at"`
	Term    uint64    `json:"term,omitempty"`
	Detail  string    `json:"detail,omitempty"` // the address, or how the term ended
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
func (r *reporter) reportChange(replica string, c elector.Change) {
	e := event{Replica: replica, Kind: kindElected, At: c.At, Term: c.Term}
	if c.Kind != elector.Elected {
		e.Kind, e.Detail = kindEnded, string(c.Reason)
	}
	r.report(e)
}
