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
	start   []trace.SpanStartOption
	observe []metric.ObserveOption
	base    []attribute.KeyValue
	took    map[redlock.Op]*nodeOperation

	mu    sync.Mutex
	votes map[*redlock.Quorum]vote // guarded by mu; the last report of each open Quorum
}

// nodeOperation has the attribute sets of one operation on a node.
type nodeOperation struct {
	measurements
	span  string // name of its spans
	start []trace.SpanStartOption
	ok    [2][]trace.SpanStartOption // start and a success, by attempt; 0 for none
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

// operations are the measured operations, with the reads and writes of registers, which jobs,
// pauses and orders use. Each is an EVALSHA. The command of other operations depends on the user's
// rights.
var operations = []redlock.Op{redlock.OpAcquire, redlock.OpAgree, redlock.OpExtend, redlock.OpRelease, redlock.OpLeave, "read", "write"}

func (i *Instrumentation) node(addr string) *node { return i.nodes.get(addr) }

func (i *Instrumentation) newNode(addr string) *node {
	attributes := i.with(server(addr)...)
	client := trace.WithSpanKind(trace.SpanKindClient)
	n := &node{
		start:   []trace.SpanStartOption{client, trace.WithAttributes(attributes...)},
		observe: []metric.ObserveOption{set(attributes...)},
		base:    attributes[:len(attributes):len(attributes)],
		took:    make(map[redlock.Op]*nodeOperation),
		votes:   make(map[*redlock.Quorum]vote),
	}
	for _, op := range operations {
		command := append(attributes[:len(attributes):len(attributes)], keySystem.String("valkey"), keyDBOperation.String("EVALSHA"))
		succeeded := append(command[:len(command):len(command)], keyOutcome.String(outcomeOK))
		n.took[op] = &nodeOperation{
			measurements: measurements{base: append(attributes[:len(attributes):len(attributes)], keyOperation.String(string(op)))},
			span:         nodeSpan + string(op),
			start:        []trace.SpanStartOption{client, trace.WithAttributes(command...)},
			ok: [2][]trace.SpanStartOption{
				{client, trace.WithAttributes(succeeded...)},
				{client, trace.WithAttributes(append(succeeded, keyLeaseAttempt.Int(1))...)},
			},
		}
	}
	return n
}

// nodeSpan is the prefix of the names of spans of operations on nodes.
const nodeSpan = "tenure.node."

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
	if i.spans && i.cfg.nodeSpans && data.Op != redlock.OpExtend {
		if op := operationFrom(ctx); op != nil {
			measured = measuring(ctx, op.nodeEnded(i, nodeEnd{TraceNodeEndData: data, attempt: op.attempt, at: time.Now()}))
		}
	}
	if kind != abandoned && i.nodeDuration.Enabled(ctx) {
		if m := i.node(data.Node).took[data.Op]; m != nil {
			i.nodeDuration.Record(measured, data.Duration.Seconds(), m.get(kind, errorTypeAttribute)...)
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
	own := i.node(n.Node)
	name, start, told := "", own.start, false
	if known := own.took[n.Op]; known == nil {
		name = nodeSpan + string(n.Op)
	} else {
		if name, start = known.span, known.start; n.OK && n.Err == nil && n.attempt < len(known.ok) {
			start, told = known.ok[n.attempt], true
		}
	}
	_, span := i.tracer.Start(parent, name, append(start[:len(start):len(start)], trace.WithTimestamp(n.at.Add(-n.Duration)))...)
	if !told && span.IsRecording() {
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
	n := i.node(data.Node)
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
		v.observe = []metric.ObserveOption{set(append(n.base, keyErrorType.String(v.why))...)}
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
