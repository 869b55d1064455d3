package history

// Life is one process of a client.
type Life struct {
	Name   string  `json:"name"` // c3.2
	Began  Instant `json:"began"`
	Killed Instant `json:"killed,omitempty"` // right before SIGKILL was sent
	Ended  Instant `json:"ended"`            // when its end was seen
	Err    string  `json:"err,omitempty"`    // how it ended, unless in order
	Stderr string  `json:"stderr,omitempty"` // what it said last
}

// Stop is the kind of the last record in the journal of a client that closed everything in order.
const Stop = "stop"

// Stopped is that record.
type Stopped struct {
	Kind string  `json:"k"` // Stop
	At   Instant `json:"t"`
	Text string  `json:"text,omitempty"` // the goroutines left behind
}
