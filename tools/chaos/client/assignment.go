// Package client is what a client process does: it takes leases, holds them, works with them and gives them back or
// not, and keeps a journal of it.
package client

import (
	"log/slog"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Assignment tells a client process what to do. It is the first line of its standard input; commands follow, a line
// each, and each is answered with a line on standard output once it is done. The input's end ends the process at once.
type Assignment struct {
	Name     string        `json:"name"` // of this life of the client: c3.2
	URLs     []string      `json:"urls"`
	Prefix   string        `json:"prefix"`
	Keys     []Key         `json:"keys"`
	MaxTTL   time.Duration `json:"max_ttl"`
	Skew     time.Duration `json:"skew"`
	Witness  string        `json:"witness"`
	Journals string        `json:"journals"` // directory
	Seed     uint64        `json:"seed"`
	Workers  int           `json:"workers"`
	Control  Control       `json:"control"`
	Env      []string      `json:"-"` // of the process, beside what this one has
}

// Key is a key and the TTL of its leases.
type Key struct {
	Name string        `json:"name"`
	TTL  time.Duration `json:"ttl"`
}

// Control weakens the clients on purpose, to show that the weakness is found.
type Control string

// The controls.
const (
	NoControl Control = ""
	NoGate    Control = "no-gate" // redlock.WithoutRestartGate
)

// The commands.
const (
	Settle  = "settle"  // let go of everything, and wait until a quorum of servers votes
	Probe   = "probe"   // followed by names of keys: acquire and release each
	Stop    = "stop"    // close everything in order and exit
	Ready   = "ready"   // is what the client says when it has begun
	Settled = "settled" // and what it answers
	Probed  = "probed"
)

// open makes the Quorum.
func (a *Assignment) open(log *slog.Logger) (*redlock.Quorum, error) {
	opts := []redlock.Option{
		redlock.WithTTL(a.MaxTTL),
		redlock.WithMaxTTL(a.MaxTTL),
		redlock.WithClockSkew(a.Skew),
		redlock.WithPrefix(a.Prefix),
		redlock.WithIdentity(a.Name),
		redlock.WithLogger(log),
	}
	if a.Control == NoGate {
		opts = append(opts, redlock.WithoutRestartGate())
	}
	return redlock.Open(a.URLs, opts...)
}
