package node

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Config is what a Node is made of. All of it is needed.
type Config struct {
	// Connect makes a client that is connected, and ends with the context, see NewClient. changed
	// may be nil.
	Connect func(ctx context.Context, changed func()) (valkey.Client, error)
	Timeout time.Duration // of an exchange, after which the connection is given up
	Clock   *clock.Clock
	Keys    *wire.Keys // of questions to the server about itself
	Channel string     // of the same, see wire.Call

	RestartGate    bool                 // a server process votes when it was vouched for
	AcceptReplicas bool                 // a master may have replicas, or have been one
	Quarantine     func() time.Duration // how long a process must have been up before it votes
	Longer         func() string        // why that is longer than this process needs, for people; empty if it is not
	Absence        time.Duration        // after how long without an answer a server is looked at before it votes again
	Drift          float64              // of two clocks, as a fraction
	SampleEvery    time.Duration        // how often at least the server's clock is looked at
	LookEvery      time.Duration        // how often a server that votes is looked at

	// Join has the process vote that may, for all that its own server can say, and returns why it
	// may not, and when to try again. It may take a while; it ends with ctx. The run_id is empty
	// where the server does not tell it, and age is what counts for the quarantine.
	Join func(ctx context.Context, runID string, age time.Duration) (retry time.Duration, err error)
	// Counts reports whether it still counts for which Join was called last. It does not block.
	Counts   func() bool
	Observer Observer
}

// probe is a question to the server about itself.
func (c *Config) probe(op wire.Op) *wire.Call {
	return &wire.Call{Op: op, Keys: c.Keys, Channel: c.Channel}
}

// Observer hears of what a node finds out about its server. Its methods are called by the node's
// writer, one after the other, and must not block.
type Observer interface {
	Exchanged(err error)                   // how an exchange went: why the server did not answer, or nil
	Looked(err error)                      // how a look at the server went, likewise
	Refused(err error)                     // why no new connection to a server that votes can be had, or nil; with each look
	Status(was, is *Status)                // it is set, not always to another
	Sampled(server Watch, d time.Duration) // the server's clock was looked at, and has jumped by that since; zero as a rule
	Elsewhere()                            // another server answers at the address than over the connection in use
	Another()                              // another process than before was found, or one that was promoted
	Due()                                  // a server that votes is looked at, as it is from time to time
}
