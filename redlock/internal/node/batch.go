package node

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// maxBatch bounds the requests of one write to a node. valkey-go moves a pipeline of 2,000 commands
// or more to another connection unless it is told not to (ClientOption.BlockingPipeline), which
// would break the order.
const maxBatch = 512

// batch has the requests of one write to a server, until they are settled.
type batch struct {
	limit  timeLimit
	ctx    context.Context
	client valkey.Client
	keys   []string      // keys that are busy until the batch has been settled; nil for a batch that is alone in flight
	back   chan struct{} // closed when the answers have come; nil if the writer waits for them itself

	memory         []*Request  // for requests, while the batch is used again
	requests       []*Request  // the requests that are sent
	target         wire.Target // the process that the commands are for
	before, after  uint64      // the generation of connections before the batch is written, and when it was answered
	vouched        bool        // the process was vouched for in the generation before
	leases         int         // how many leases the requests are about
	commands       valkey.Commands
	sizes          []int // how many requests each command carries
	results        []valkey.ValkeyResult
	one            [1]valkey.ValkeyResult // the results of one command
	sent, received clock.Instant
	server         time.Duration // the server's clock, by the last answer that was looked at
}

// exchange sends the commands and waits for the answers.
func (b *batch) exchange(c *clock.Clock, generation *atomic.Uint64) {
	b.sent = c.Now()
	if len(b.commands) == 1 {
		b.one[0] = b.client.Do(b.ctx, b.commands[0])
		b.results = b.one[:]
	} else {
		b.results = b.client.DoMulti(b.ctx, b.commands...)
	}
	b.received = c.Now()
	b.after = generation.Load()
}

// group returns the calls of the first requests, as many as share a command. They are valid until
// the next group or callsOf.
func (n *Node) group(requests []*Request) []*wire.Call {
	some := requests[:min(len(requests), wire.MaxGroup)]
	if alone := slices.IndexFunc(some, func(r *Request) bool { return r.alone }); alone >= 0 {
		some = some[:max(alone, 1)]
	}
	calls := n.callsOf(some)
	return calls[:n.buffers.Group(calls)]
}

// callsOf returns the calls of requests. They are valid until the next group or callsOf.
func (n *Node) callsOf(requests []*Request) []*wire.Call {
	n.calls = n.calls[:0]
	for _, r := range requests {
		n.calls = append(n.calls, r.Call)
	}
	return n.calls
}
