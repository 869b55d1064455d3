package node

import (
	"context"
	"slices"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// maxBatch bounds what one write to a node carries. valkey-go moves a pipeline of 2,000 commands or
// more to another connection unless it is told not to (ClientOption.BlockingPipeline), which would
// break the order.
const maxBatch = 512

// batch is what one write carries to a server, on its way there and back.
type batch struct {
	limit  timeLimit
	ctx    context.Context
	client valkey.Client
	keys   []string      // that are busy until it has been settled; nil for one that goes alone
	back   chan struct{} // closed when it is back; nil where nobody else waits

	requests       []*Request // that are sent
	scripts        *wire.Set  // of the process that was vouched for when it was encoded
	leases         int        // how many they are about
	loads          int        // how many commands before the others load scripts
	commands       valkey.Commands
	sizes          []int    // how many requests each command carries
	echoes         []string // what its answer has to say besides
	results        []valkey.ValkeyResult
	one            [1]valkey.ValkeyResult // the results of one command
	sent, received clock.Instant
	server         time.Duration // its clock, by the last answer that was looked at
}

// exchange sends what was encoded and waits for the answers.
func (b *batch) exchange(c *clock.Clock) {
	b.sent = c.Now()
	if len(b.commands) == 1 {
		b.one[0] = b.client.Do(b.ctx, b.commands[0])
		b.results = b.one[:]
	} else {
		b.results = b.client.DoMulti(b.ctx, b.commands...)
	}
	b.received = c.Now()
}

// loaded returns why a script could not be loaded, where the batch was to.
func (b *batch) loaded() error {
	for _, result := range b.results[:b.loads] {
		if err := result.Error(); err != nil {
			return explain(err, loadNeeded)
		}
	}
	return nil
}

// encoder makes the commands of batches, one after the other.
type encoder struct {
	buffers wire.Buffers
	echoes  wire.Echoes
	calls   []*wire.Call
	results []wire.Result
}

// encode makes the commands of a batch, with the scripts of the process that was vouched for, after
// those that load scripts.
func (e *encoder) encode(b *batch, requests []*Request, scripts *wire.Set, load []*wire.Script) {
	b.requests, b.scripts, b.leases, b.loads, b.server = requests, scripts, 0, len(load), 0
	for _, r := range requests {
		b.leases += r.Call.Leases()
	}
	b.commands, b.sizes, b.echoes = b.commands[:0], b.sizes[:0], b.echoes[:0]
	for _, s := range load {
		b.commands = append(b.commands, wire.LoadCommand(b.client, s))
	}
	for rest := requests; len(rest) > 0; {
		calls := e.group(rest)
		echo := e.echoes.Next()
		command := e.buffers.Encode(b.client, calls, scripts, echo)
		b.commands, b.sizes, b.echoes = append(b.commands, command), append(b.sizes, len(calls)), append(b.echoes, echo)
		rest = rest[len(calls):]
	}
}

// decode reads the answer to a command of a batch, until it is asked again.
func (e *encoder) decode(b *batch, command int, requests []*Request) []wire.Result {
	e.results = wire.Decode(e.callsOf(requests), b.results[b.loads+command], b.echoes[command], e.results[:0])
	return e.results
}

// group returns the calls of the first requests, that share a command, until it is asked again.
func (e *encoder) group(requests []*Request) []*wire.Call {
	some := requests[:min(len(requests), wire.MaxGroup)]
	if alone := slices.IndexFunc(some, func(r *Request) bool { return r.alone }); alone >= 0 {
		some = some[:max(alone, 1)]
	}
	calls := e.callsOf(some)
	return calls[:e.buffers.Group(calls)]
}

// callsOf returns the calls of requests, until it is asked again.
func (e *encoder) callsOf(requests []*Request) []*wire.Call {
	e.calls = e.calls[:0]
	for _, r := range requests {
		e.calls = append(e.calls, r.Call)
	}
	return e.calls
}
