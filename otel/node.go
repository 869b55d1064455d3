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

// node is what is made once for a node.
type node struct {
	start   []trace.SpanStartOption
	observe []metric.ObserveOption
	base    []attribute.KeyValue
	took    map[redlock.Op]*nodeOperation

	mu    sync.Mutex
	votes map[*redlock.Quorum]vote // guarded by mu; what each that is not closed told last
}

// nodeOperation is what is made once for one of the operations on a node.
type nodeOperation struct {
	measurements
	span  string // the name of its spans
	start []trace.SpanStartOption
	ok    [2][]trace.SpanStartOption // start, and the attributes of one that succeeded: without an attempt, and in the first
}

// vote is what a Quorum told of a node.
type vote struct {
	voting  int64
	why     string                 // what is wrong; empty for nothing
	observe []metric.ObserveOption // with that
}

// worse orders votes: those that do not count come first, then those with a reason.
func worse(a, b vote) int {
	if a.why == "" || b.why == "" { // the longer one is the reason
		return cmp.Or(cmp.Compare(a.voting, b.voting), cmp.Compare(b.why, a.why))
	}
	return cmp.Or(cmp.Compare(a.voting, b.voting), cmp.Compare(a.why, b.why))
}

// operations are those that are measured, with those of registers, which jobs, pauses and orders
// use. Each of them is an EVALSHA; of others it depends on the user's rights which command they
// are.
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

// nodeSpan is how the names of spans of operations on nodes begin.
const nodeSpan = "tenure.node."

// abandoned is the type of the error of a request that was never sent, because the round had been
// decided without it. That is no failure.
const abandoned = "abandoned"

// TraceNodeStart implements redlock.NodeTracer.
func (i *Instrumentation) TraceNodeStart(ctx context.Context, _ redlock.TraceNodeStartData) context.Context {
	return ctx
}

// TraceNodeEnd implements redlock.NodeTracer. Spans of extensions are made by TraceExtend.
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

// spanOfNode makes the span of an operation on a node that is over. A node that refuses because
// another owner has the key is well.
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

// TraceVote implements redlock.VoteTracer. Several Quorums may name one node.
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

// worst returns the worst that a Quorum told of the node, and false where none is left.
func (n *node) worst() (vote, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.votes) == 0 {
		return vote{}, false
	}
	return slices.MinFunc(slices.Collect(maps.Values(n.votes)), worse), true
}
