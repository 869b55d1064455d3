// Package verdict judges what happened: it builds the leases from the journals of the clients and looks for what the
// library promises never to happen. It needs no server and starts nothing.
package verdict

import (
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/chaos/schedule"
	"github.com/tenure-dev/tenure/tools/chaos/witness"
)

// History is what happened.
type History struct {
	Settings Settings
	Records  map[string][]journal.Record // of each life of each client
	Lives    []journal.Life
	Strikes  []Strike
	Writes   []witness.Write // in the order in which they were decided
	Leftover []string        // keys of leases on servers after all clients were gone
	Over     journal.Instant // when the last fault had been put right; zero if it did not come to that
	Failures []string        // of the suite's own steps after that, such as a client that did not stop
}

// Settings is what the judgement depends on besides.
type Settings struct {
	Drift     float64       `json:"drift"` // the allowance that the library subtracts from a TTL, as a fraction
	Floor     time.Duration `json:"floor"` // and its fixed part
	Skew      time.Duration `json:"skew"`  // declared with WithClockSkew
	Undecided time.Duration `json:"undecided"`
}

// validity is how long after the start of its round a lease of that TTL may be relied on: redlock subtracts an
// allowance for clocks that run at different rates (WithDrift).
func (s Settings) validity(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*s.Drift) - s.Floor
}

// Strike is a fault as it was done to one server, or to a client (Node is then -1). A fault that is put right later is
// two strikes.
type Strike struct {
	Kind   schedule.Kind   `json:"kind"`
	Node   int             `json:"node"`
	From   journal.Instant `json:"from"` // it was done between From
	To     journal.Instant `json:"to"`   // and To
	Jump   time.Duration   `json:"jump,omitempty"`
	Healed bool            `json:"healed,omitempty"` // this is how it was put right
	Target string          `json:"target,omitempty"` // the client that it struck; empty if there was none
}

// flushes reports whether a running server lost its data.
func (s Strike) flushes() bool { return s.Kind == schedule.FlushAll && !s.Healed }
