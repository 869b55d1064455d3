package service

import (
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/scheduler"
)

// The kinds of Report.
const (
	Up       = "up"       // the replica works
	Granted  = "granted"  // a lease, on Of
	Extended = "extended" // Until has moved
	Released = "released" // it is about to be
	Lost     = "lost"     // by itself; Why
	Begun    = "begun"    // the run under a lease: Tick and Attempt
	Ended    = "ended"    // the run; Why, if it failed
)

// Of which lease a Report tells.
const (
	OfTerm = "term"
	OfRun  = "run"
)

// Report is what a replica tells of itself. Times are Unix milliseconds.
type Report struct {
	Kind    string `json:"kind"`
	Of      string `json:"of,omitempty"`
	At      int64  `json:"at"`
	Token   uint64 `json:"token,omitempty"`
	Until   int64  `json:"until,omitempty"` // the lease's deadline
	Tick    int64  `json:"tick,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Lines returns a function that writes each Report as a line of JSON, in one piece. A write fails
// only when the reader is gone, and the replica is then about to end, so the error is dropped.
func Lines(w io.Writer) func(Report) {
	var mu sync.Mutex
	return func(r Report) {
		line, err := json.Marshal(r)
		if err != nil {
			panic(err) // a Report has nothing that JSON lacks
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(append(line, '\n'))
	}
}

// lease says of which lease a key is; empty for another one.
func lease(key string) string {
	switch {
	case strings.HasPrefix(key, elector.KeyPrefix):
		return OfTerm
	case strings.HasPrefix(key, scheduler.KeyPrefix):
		return OfRun
	}
	return ""
}
