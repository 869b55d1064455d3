// Package client is what a client process of the chaos program does: it takes leases, holds them,
// works with them and gives them back or not, and keeps a journal of it.
package client

import (
	"log/slog"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Settings tell a client what to do.
type Settings struct {
	URLs     []string      `json:"urls"`
	Prefix   string        `json:"prefix"`
	Keys     []Key         `json:"keys"`
	Ticks    []Key         `json:"ticks"`    // keys whose leases are ticks
	Operator bool          `json:"operator"` // this client pauses and resumes them
	MaxTTL   time.Duration `json:"max_ttl"`
	Skew     time.Duration `json:"skew"`
	Resource string        `json:"resource"` // address
	Seed     uint64        `json:"seed"`     // of this life
	Workers  int           `json:"workers"`
	Control  Control       `json:"control"`
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
	Settle = "settle" // let go of everything, and wait until a quorum of servers votes
	Probe  = "probe"  // with names of keys: acquire and release each
	Resume = "resume" // with names of keys of ticks, or All: end their pauses
	Tick   = "tick"   // with names of keys of ticks: acquire a tick of each
)

// All names all keys in a command.
const All = "*"

// open makes the Quorum.
func (s *Settings) open(name string, log *slog.Logger) (*redlock.Quorum, error) {
	opts := []redlock.Option{
		redlock.WithTTL(s.MaxTTL),
		redlock.WithMaxTTL(s.MaxTTL),
		redlock.WithClockSkew(s.Skew),
		redlock.WithPrefix(s.Prefix),
		redlock.WithIdentity(name),
		redlock.WithLogger(log),
	}
	if s.Control == NoGate {
		opts = append(opts, redlock.WithoutRestartGate())
	}
	return redlock.Open(s.URLs, opts...)
}
