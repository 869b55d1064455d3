// Package checker judges what happened: it builds the leases from the journals of the clients and
// looks for what the library promises never to happen. It needs no server and starts nothing.
package checker

import (
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// History is what happened.
type History struct {
	Settings Settings
	Records  map[string][]record.Record // of each life of each client
	Lives    []history.Life
	Strikes  []record.Strike
	Writes   []resource.Write // in the order in which they were decided
	Leftover []string         // keys of leases on servers after all clients were gone
	Over     history.Instant  // when the last fault had been put right; zero if it did not come to that
	Failures []string         // of the suite's own steps after that, such as a client that did not stop
}

// Settings is what the judgement depends on besides.
type Settings struct {
	Drift     float64       `json:"drift"` // the allowance that the library subtracts from a TTL, as a fraction
	Floor     time.Duration `json:"floor"` // and its fixed part
	Skew      time.Duration `json:"skew"`  // declared with WithClockSkew
	Undecided time.Duration `json:"undecided"`
	Servers   int           `json:"servers"`
	Recovery  time.Duration `json:"recovery"` // for how long a restarted server does not vote, at most
	Ticks     []string      `json:"ticks"`    // keys of ticks, of which each is to be granted one in the end
}

// validity is how long after the start of its round a lease of that TTL may be relied on: redlock
// subtracts an allowance for clocks that run at different rates (WithDrift).
func (s Settings) validity(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*s.Drift) - s.Floor
}

// flushes reports whether a running server lost its data.
func flushes(s record.Strike) bool { return s.Kind == fault.FlushAll && !s.Healed }
