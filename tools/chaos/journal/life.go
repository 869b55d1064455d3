package journal

// Life is one process of a client.
type Life struct {
	Name   string  `json:"name"` // c3.2
	Began  Instant `json:"began"`
	Killed Instant `json:"killed,omitempty"` // right before SIGKILL was sent
	Ended  Instant `json:"ended"`            // when its end was seen
	Err    string  `json:"err,omitempty"`    // how it ended, unless in order
	Stderr string  `json:"stderr,omitempty"` // what it said last
}
