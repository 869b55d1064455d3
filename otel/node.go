package tenureotel

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
)

// node has the attribute sets and the votes of one node.
type node struct {
	*series
	command []attribute.KeyValue          // of the spans of measured operations
	took    map[redlock.Op]*names[series] // by error.type

	mu    sync.Mutex
	votes map[*redlock.Quorum]vote // guarded by mu; the last report of each open Quorum
}

// vote is the vote of a node, as a Quorum reported it.
type vote struct {
	voting  int64
	why     string                 // error.type; empty if nothing is wrong
	observe []metric.ObserveOption // the node's attributes, and why if it is set
}

// worse orders votes: nodes that do not vote come first, and then those with a reason.
func worse(a, b vote) int {
	if a.why == "" || b.why == "" { // the one with a reason comes first
		return cmp.Or(cmp.Compare(a.voting, b.voting), cmp.Compare(b.why, a.why))
	}
	return cmp.Or(cmp.Compare(a.voting, b.voting), cmp.Compare(a.why, b.why))
}

// operations are the measured operations, each an EVALSHA, and whether one is part of the
// acquisition or release in whose context it is made. Reads and writes of registers, which jobs,
// pauses and orders use, are not: a lease's context has its acquisition for as long as the lease is
// held.
var operations = map[redlock.Op]bool{
	redlock.OpAcquire: true, redlock.OpAgree: true, redlock.OpRelease: true, redlock.OpLeave: true, redlock.OpExtend: false, "read": false, "write": false,
}

func (i *Instrumentation) newNode(addr string) *node {
	n := &node{series: newSeries(i.with(server(addr)...)...), took: make(map[redlock.Op]*names[series]), votes: make(map[*redlock.Quorum]vote)}
	n.command = append(n.attributes, attribute.String("db.system.name", "valkey"), attribute.String("db.operation.name", "EVALSHA"))
	for op := range operations {
		n.took[op] = byWord(append(n.attributes, keyOperation.String(string(op))), errorTypeAttribute)
	}
	return n
}

// abandoned is the error.type of a request that was not sent, because the round was decided before.
// It is no failure.
const abandoned = "abandoned"

// TraceNodeStart implements redlock.NodeTracer.
func (i *Instrumentation) TraceNodeStart(ctx context.Context, _ redlock.TraceNodeStartData) context.Context {
	return ctx
}

// TraceNodeEnd implements redlock.NodeTracer. It makes no spans of extensions: TraceExtend does.
func (i *Instrumentation) TraceNodeEnd(ctx context.Context, data redlock.TraceNodeEndData) {
	kind := redlock.ErrorType(data.Err)
	measured := ctx
	if i.spans && i.cfg.nodeSpans && operations[data.Op] {
		if op := operationFrom(ctx); op != nil {
			measured = measuring(ctx, op.nodeEnded(i, nodeEnd{TraceNodeEndData: data, attempt: op.attempt, at: time.Now()}))
		}
	}
	if kind != abandoned && i.nodeDuration.Enabled(ctx) {
		if m := i.nodes.get(data.Node).took[data.Op]; m != nil {
			i.nodeDuration.Record(measured, data.Duration.Seconds(), m.get(kind).record...)
		}
	}
}

func errorTypeAttribute(errorType string) []attribute.KeyValue {
	if errorType == "" {
		return nil
	}
	return []attribute.KeyValue{keyErrorType.String(errorType)}
}

// spanOfNode makes the span of an operation on a node that is over. If the node refused because
// another owner has the key, the outcome is refused and the span is no error.
func (i *Instrumentation) spanOfNode(parent context.Context, n nodeEnd) trace.Span {
	_, span := i.tracer.Start(parent, "tenure.node."+string(n.Op), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(i.nodes.get(n.Node).command...),
		trace.WithTimestamp(n.at.Add(-n.Duration)))
	if span.IsRecording() {
		outcome := outcomeRefused
		switch kind := redlock.ErrorType(n.Err); {
		case kind == abandoned:
			outcome = abandoned
		case n.Err != nil:
			outcome = outcomeFailed
			span.SetAttributes(keyErrorType.String(kind))
			fail(span, n.Err)
		case n.OK:
			outcome = outcomeOK
		}
		span.SetAttributes(keyOutcome.String(outcome))
		if n.attempt > 0 {
			span.SetAttributes(keyLeaseAttempt.Int(n.attempt))
		}
	}
	span.End(trace.WithTimestamp(n.at))
	return span
}

// TraceVote implements redlock.VoteTracer. Several Quorums may use the same node.
func (i *Instrumentation) TraceVote(_ context.Context, data redlock.TraceVoteData) {
	n := i.nodes.get(data.Node)
	if errors.Is(data.Err, redlock.ErrClosed) {
		n.mu.Lock()
		delete(n.votes, data.Quorum)
		n.mu.Unlock()
		return
	}
	v := vote{observe: n.observe}
	if data.Votes {
		v.voting = 1
	}
	if err := cmp.Or(data.Err, data.Warning); err != nil || !data.Votes {
		v.why = (&redlock.NodeError{Node: data.Node, Err: err}).ErrorType()
		v.observe = newSeries(append(n.attributes, keyErrorType.String(v.why))...).observe
	}
	n.mu.Lock()
	n.votes[data.Quorum] = v
	n.mu.Unlock()
}

// worst returns the worst vote of the node, by worse; false if no Quorum is left.
func (n *node) worst() (vote, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.votes) == 0 {
		return vote{}, false
	}
	return slices.MinFunc(slices.Collect(maps.Values(n.votes)), worse), true
}
