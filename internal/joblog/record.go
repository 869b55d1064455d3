package joblog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Bounds of a Record. Together they keep it below MaxSize.
const (
	MaxSize  = 4096 // bytes that a register holds
	MaxWords = 1024 // bytes of Definition.Words
	maxBy    = 256  // bytes of Run.By, which are cut
	maxSpans = 8
)

// Brief is the payload of a lease that is held for a write alone, without a run: of a definition,
// of ticks that are left out, or of a backfill.
const Brief = "log"

// Record is the progress of a job. The zero Record is that of a job that was never seen. A Record
// is a value: methods and functions return a changed copy.
type Record struct {
	Words  string    `json:"def,omitempty"`    // of the definition that was made last
	Since  time.Time `json:"since,omitzero"`   // when this definition was first made anywhere, by the nodes' clocks
	Cursor time.Time `json:"cursor,omitzero"`  // every tick up to it is settled: run or left out
	Run    Run       `json:"run,omitzero"`     // the last grant
	Again  Attempt   `json:"again,omitzero"`   // AtLeastOnce: the tick that has begun and is not complete
	Queued time.Time `json:"queued,omitzero"`  // the last overlapped tick, which does not age
	Next   time.Time `json:"next,omitzero"`    // of a Chain
	Runs   int       `json:"runs,omitempty"`   // begun since Since
	Beside []Span    `json:"beside,omitempty"` // of runs whose overlapped ticks the cursor cannot pass, the oldest first
	OK     Success   `json:"ok,omitzero"`      // the last success
	Fill   Fill      `json:"fill,omitzero"`    // a backfill that goes on
}

// Run is a run that was granted. Until Ended is set it goes on, or was killed.
type Run struct {
	Tick    time.Time     `json:"tick,omitzero"` // zero if Why is Ordered
	Attempt int           `json:"attempt"`
	Why     Why           `json:"why"`
	Token   uint64        `json:"token"` // of the lease
	By      string        `json:"by,omitempty"`
	Began   time.Time     `json:"began"`
	Ended   time.Time     `json:"ended,omitzero"`
	Outcome Outcome       `json:"outcome,omitempty"`
	Took    time.Duration `json:"took,omitempty"` // the task's time, in nanoseconds
}

// Attempt is a tick, and the number of times that it has begun.
type Attempt struct {
	Tick time.Time `json:"tick"`
	N    int       `json:"n"`
}

// Span is the time between From and To, both included.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func (s Span) has(at time.Time) bool { return !at.Before(s.From) && !at.After(s.To) }

// Success is a run that succeeded. Its tick is zero if the run was ordered.
type Success struct {
	Tick  time.Time `json:"tick,omitzero"`
	Ended time.Time `json:"ended"`
}

// Fill is the rest of a backfill: the ticks after From, up to To. Begun is the number of times that
// the first of them has begun.
type Fill struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Begun int       `json:"begun,omitempty"`
}

// Unended returns the run that has begun and not ended. If the reader has the lease, or the lease
// is free, the run was killed: Settle and Begin write that, so that it is told once.
func (r Record) Unended() (Run, bool) { return r.Run, !r.Run.Began.IsZero() && r.Run.Ended.IsZero() }

// mostAhead is how far a record may be ahead of the nodes' clocks, as tokens of leases may: the
// clocks were wrong.
const mostAhead = 24 * time.Hour

// version is the first byte of a Record's text. It changes with the fields.
const version = '1'

// Encode returns the text that the nodes keep: the version, and JSON. It fails if the text is
// longer than MaxSize, which Definition.Words beyond MaxWords may cause, or if a time is beyond the
// year 9999.
func (r Record) Encode() ([]byte, error) {
	text := bytes.NewBuffer([]byte{version})
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false) // no browser reads it as HTML, for which < would take six bytes
	if err := encoder.Encode(r); err != nil {
		return nil, fmt.Errorf("joblog: a record cannot be written: %w", err)
	}
	text.Truncate(text.Len() - 1) // the newline
	if text.Len() > MaxSize {
		return nil, fmt.Errorf("joblog: a record of %d bytes is longer than %d", text.Len(), MaxSize)
	}
	return text.Bytes(), nil
}

// Parse reads the text of Encode. An empty text, of a new job, is the zero Record. Now is the
// median of the nodes' clocks.
func Parse(text []byte, now time.Time) (Record, error) {
	var r Record
	if len(text) == 0 {
		return r, nil
	}
	if len(text) > MaxSize || text[0] != version {
		return Record{}, fmt.Errorf("joblog: %d bytes that begin with %q are no record of version %c", len(text), text[0], version)
	}
	decoder := json.NewDecoder(bytes.NewReader(text[1:]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("joblog: a record cannot be read: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Record{}, errors.New("joblog: a record is followed by more")
	}
	if err := r.check(now); err != nil {
		return Record{}, err
	}
	return r, nil
}

// check refuses values that this package does not write, where they could do harm.
func (r Record) check(now time.Time) error {
	if last := Later(r.Since, r.Cursor); last.After(now.Add(mostAhead)) {
		return fmt.Errorf("joblog: a record has ticks settled up to %v, and it is %v: nothing would be run until then", last, now)
	}
	if len(r.Beside) > maxSpans {
		return fmt.Errorf("joblog: a record has %d spans, more than %d", len(r.Beside), maxSpans)
	}
	for _, n := range []int{r.Runs, r.Run.Attempt, r.Again.N, r.Fill.Begun, int(r.Run.Took)} {
		if n < 0 || n == math.MaxInt {
			return fmt.Errorf("joblog: a record has a count or a duration of %d", n)
		}
	}
	return nil
}
