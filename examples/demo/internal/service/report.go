package service

import (
	"strings"

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
