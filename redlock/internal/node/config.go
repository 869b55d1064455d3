package node

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Config is what a Node is made of. All fields are needed.
type Config struct {
	// Connect makes a client that is connected, and that ends with the context, see NewClient.
	// changed may be nil.
	Connect func(ctx context.Context, changed func()) (valkey.Client, error)
	Timeout time.Duration // of an exchange, after which the connection is given up
	Clock   *clock.Clock
	Keys    *wire.Keys // of the roster

	RestartGate    bool                 // a server process votes only once it was vouched for
	AcceptReplicas bool                 // a master may have replicas, or have been one
	Quarantine     func() time.Duration // how long a process must have been up before it votes
	Longer         func() string        // why the quarantine is longer than this process needs, for people; empty if it is not
	Absence        time.Duration        // a server that has not answered for so long is looked at before it votes again
	Drift          float64              // of two clocks, as a fraction
	SampleEvery    time.Duration        // how often at least the server's clock is looked at
	LookEvery      time.Duration        // how often a server that votes is looked at

	// Join decides whether a server process counts that may vote by all that the server itself can
	// say. It returns why the process may not count, and after how long to try again. It may block,
	// and ends with ctx. runID is empty if the server does not tell it, and seen is when it was
	// asked; age is how much of the quarantine has passed.
	Join func(ctx context.Context, runID string, seen clock.Instant, age time.Duration) (retry time.Duration, err error)
	// Counts reports whether the process for which Join was called last still counts. It does not
	// block.
	Counts   func() bool
	Observer Observer
}

// probe returns a question to the server about itself.
func (c *Config) probe(op wire.Op) *wire.Call {
	return &wire.Call{Op: op, Keys: c.Keys}
}

// Observer hears what a node finds out about its server. Its methods are called by the node's
// writer, one after the other, and must not block.
type Observer interface {
	Exchanged(err error)                   // the outcome of an exchange: why the server did not answer, or nil
	Looked(err error)                      // the outcome of a look at the server, likewise
	Refused(err error)                     // why no new connection to a server that votes can be had, or nil; with each look
	Status(was, is *Status)                // the status was set, maybe to the same
	Sampled(server Watch, d time.Duration) // the server's clock was looked at, and has jumped by d since the last look; zero as a rule
	Elsewhere()                            // a new connection leads to another server than the connection in use
	Another()                              // another process than before was found, or one that was promoted
	Due()                                  // a server that votes is looked at, which happens every LookEvery: it is to be sent an Enroll, too, unless it was lately
}
