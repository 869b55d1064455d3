package tenureotel

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
)

// node is what is made once for a node.
type node struct {
	start   []trace.SpanStartOption
	observe []metric.ObserveOption
	base    []attribute.KeyValue
	took    map[redlock.Op]*measurements

	state atomic.Pointer[vote] // nil until a Quorum tells
}

// vote is what a Quorum told of a node.
type vote struct {
	voting  int64
	observe []metric.ObserveOption // with what is wrong
}

// operations are those that are traced.
var operations = []redlock.Op{redlock.OpAcquire, redlock.OpAgree, redlock.OpExtend, redlock.OpRelease, redlock.OpLeave}

func (i *Instrumentation) node(addr string) *node { return i.nodes.get(addr) }

func (i *Instrumentation) newNode(addr string) *node {
	attributes := i.with(server(addr)...)
	n := &node{
		start: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(append(attributes[:len(attributes):len(attributes)], keySystem.String("valkey"))...)},
		observe: []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		base:    attributes[:len(attributes):len(attributes)],
		took:    make(map[redlock.Op]*measurements),
	}
	for _, op := range operations {
		n.took[op] = &measurements{base: append(attributes[:len(attributes):len(attributes)], keyOperation.String(string(op)))}
	}
	return n
}

func (n *node) startAt(at time.Time) []trace.SpanStartOption {
	return append(n.start[:len(n.start):len(n.start)], trace.WithTimestamp(at))
}

func nodeSpanName(op redlock.Op) string {
	switch op {
	case redlock.OpAcquire:
		return "tenure.node.acquire"
	case redlock.OpAgree:
		return "tenure.node.agree"
	case redlock.OpExtend:
		return "tenure.node.extend"
	case redlock.OpRelease:
		return "tenure.node.release"
	case redlock.OpLeave:
		return "tenure.node.leave"
	default:
		return "tenure.node." + string(op)
	}
}

// abandoned is the type of the error of a request that was never sent, because the round had been
// decided without it. That is no failure.
const abandoned = "abandoned"

type nodeSpanKey struct{}

// TraceNodeStart implements redlock.NodeTracer. Spans of extensions are made by TraceExtend.
func (i *Instrumentation) TraceNodeStart(ctx context.Context, data redlock.TraceNodeStartData) context.Context {
	if !i.spans || !i.cfg.nodeSpans || data.Op == redlock.OpExtend {
		return ctx
	}
	op := operationFrom(ctx)
	if op == nil {
		return ctx
	}
	ctx, span := i.tracer.Start(trace.ContextWithSpan(ctx, op.span), nodeSpanName(data.Op), i.node(data.Node).start...)
	return context.WithValue(ctx, nodeSpanKey{}, span)
}

// TraceNodeEnd implements redlock.NodeTracer.
func (i *Instrumentation) TraceNodeEnd(ctx context.Context, data redlock.TraceNodeEndData) {
	kind := redlock.ErrorType(data.Err)
	if kind != abandoned && i.nodeDuration.Enabled(ctx) {
		if m := i.node(data.Node).took[data.Op]; m != nil {
			i.nodeDuration.Record(ctx, data.Duration.Seconds(), m.get(kind, errorTypeAttribute)...)
		}
	}
	if !i.spans || data.Op == redlock.OpExtend {
		return
	}
	if span, ok := ctx.Value(nodeSpanKey{}).(trace.Span); ok {
		endNode(span, data.OK, data.Err)
	}
}

func errorTypeAttribute(errorType string) []attribute.KeyValue {
	if errorType == "" {
		return nil
	}
	return []attribute.KeyValue{keyErrorType.String(errorType)}
}

// endNode ends the span of a node's operation. A node that refuses because another owner has the
// key is well.
func endNode(span trace.Span, ok bool, err error, opts ...trace.SpanEndOption) {
	if span.IsRecording() {
		outcome := "refused"
		switch kind := redlock.ErrorType(err); {
		case kind == abandoned:
			outcome = abandoned
		case err != nil:
			outcome = outcomeFailed
			span.SetAttributes(keyErrorType.String(kind))
			span.SetStatus(codes.Error, err.Error())
		case ok:
			outcome = "ok"
		}
		span.SetAttributes(keyOutcome.String(outcome))
	}
	span.End(opts...)
}

// TraceVote implements redlock.VoteTracer.
func (i *Instrumentation) TraceVote(_ context.Context, data redlock.TraceVoteData) {
	n := i.node(data.Node)
	v := &vote{observe: n.observe}
	if data.Votes {
		v.voting = 1
	}
	if err := cmp.Or(data.Err, data.Warning); err != nil || !data.Votes {
		why := (&redlock.NodeError{Node: data.Node, Err: err}).ErrorType()
		v.observe = []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(append(n.base, keyErrorType.String(why))...))}
	}
	n.state.Store(v)
}
