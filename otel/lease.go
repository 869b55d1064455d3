package tenureotel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/redlock"
)

// lease has the attribute sets and the counter of one lease name.
type lease struct {
	*series
	acquired *names[series] // by error.type
	held     *names[series] // by reason
	lost     counter[redlock.LostReason]
	holds    atomic.Int64 // how many are held now
}

// lostReasons are the values of tenure.reason of tenure.lease.lost.
var lostReasons = []redlock.LostReason{redlock.LostDeadline, redlock.LostRefused, redlock.LostClosed}

func (i *Instrumentation) lease(key string) *lease {
	return i.leases.get(i.cfg.leaseName(key))
}

func (i *Instrumentation) newLease(name string) *lease {
	attributes := i.with(attribute.String("tenure.lease.name", name))
	return &lease{
		series:   newSeries(attributes...),
		acquired: byWord(attributes, acquireAttributes),
		held:     byWord(attributes, reasonAttribute),
		lost:     newCounter(i.instruments.lost, attributes, keyReason, lostReasons...),
	}
}

// with returns the attributes of WithAttributes followed by these.
func (i *Instrumentation) with(attributes ...attribute.KeyValue) []attribute.KeyValue {
	common := i.cfg.attributes
	return append(common[:len(common):len(common)], attributes...)
}

// acquireType returns the error.type of an acquisition. If the caller's deadline passed while
// another owner had the key, the type is that of a held key, which is no failure.
func acquireType(err error) string {
	kind := redlock.ErrorType(err)
	if _, held := errors.AsType[*redlock.HeldError](err); held && kind == "deadline_exceeded" {
		return "held"
	}
	return kind
}

// acquireOutcome returns the outcome of an acquisition by its error.type, and whether the span gets
// the status of an error.
func acquireOutcome(errorType string) (outcome string, failed bool) {
	switch errorType {
	case "":
		return outcomeAcquired, false
	case "held":
		return outcomeHeld, false
	case "canceled":
		return outcomeCanceled, false
	default:
		return outcomeFailed, true
	}
}

// acquireAttributes returns the outcome, and error.type unless the key was held.
func acquireAttributes(errorType string) []attribute.KeyValue {
	outcome, failed := acquireOutcome(errorType)
	attributes := []attribute.KeyValue{keyOutcome.String(outcome)}
	if failed || outcome == outcomeCanceled {
		attributes = append(attributes, keyErrorType.String(errorType))
	}
	return attributes
}

func reasonAttribute(reason string) []attribute.KeyValue {
	return []attribute.KeyValue{keyReason.String(reason)}
}

// TraceAcquireStart implements redlock.AcquireTracer. The acquisition of a campaign has no span;
// each of its attempts has one.
func (i *Instrumentation) TraceAcquireStart(ctx context.Context, data redlock.TraceAcquireStartData) context.Context {
	if !i.spans {
		return ctx
	}
	if campaignFrom(ctx) != nil {
		return withOperation(ctx, nil)
	}
	if tickFrom(ctx).acquires(data) {
		return withOperation(ctx, &operation{recording: &recording{later: true}, attempt: 1})
	}
	spanned, span := i.tracer.Start(ctx, "tenure.lease.acquire", trace.WithAttributes(i.lease(data.Key).attributes...))
	if !span.IsRecording() {
		return withOperation(ctx, nil)
	}
	span.SetAttributes(acquireStartAttributes(data)...)
	return withOperation(ctx, &operation{recording: &recording{span: span, ctx: spanned}, attempt: 1})
}

func acquireStartAttributes(data redlock.TraceAcquireStartData) []attribute.KeyValue {
	return []attribute.KeyValue{keyLeaseKey.String(text(data.Key)), keyLeaseTTL.Float64(data.TTL.Seconds()), keyLeaseNodes.Int(data.Nodes),
		keyLeaseQuorum.Int(data.Quorum), keyLeaseWait.Bool(data.Wait)}
}

// TraceAcquireEnd implements redlock.AcquireTracer.
func (i *Instrumentation) TraceAcquireEnd(ctx context.Context, data redlock.TraceAcquireEndData) {
	kind := acquireType(data.Err)
	measured := ctx
	if op := i.operation(ctx); op != nil && op.later {
		measured = measuring(ctx, i.acquired(ctx, tickFrom(ctx), op, data, kind))
	} else if op != nil {
		span := op.current()
		measured = measuring(ctx, span)
		span.SetAttributes(keyLeaseAttempts.Int(data.Attempts))
		endAcquire(span, data, kind, false)
	} else if data.Lease != nil {
		if op := i.operation(data.Lease.Context()); op != nil { // the attempt that won
			measured = measuring(ctx, op.current())
		}
	}
	name := i.lease(data.Key)
	if i.acquireDuration.Enabled(ctx) {
		i.acquireDuration.Record(measured, data.Duration.Seconds(), name.acquired.get(kind).record...)
	}
	if data.Lease == nil {
		return
	}
	name.holds.Add(1)
	if c := campaignFrom(ctx); c != nil && data.FreedBy != "" && i.handoverDuration.Enabled(ctx) {
		i.handoverDuration.Record(measured, data.Vacant.Seconds(), c.election.handover.get(string(data.FreedBy)).record...)
	}
}

// endAcquire ends the span of an acquisition or of an attempt. If goesOn is true the acquisition
// goes on after the attempt, and a split vote is no error.
func endAcquire(span trace.Span, data redlock.TraceAcquireEndData, kind string, goesOn bool) {
	attributes := append(acquireAttributes(kind), keyLeaseVotes.Int(data.Votes))
	var held *redlock.HeldError
	switch {
	case data.Lease != nil:
		attributes = append(attributes, attribute.Float64("tenure.lease.validity", data.Validity.Seconds()), keyLeaseToken.Int64(int64(data.FencingToken)))
		if data.WaitedFor != "" {
			attributes = append(attributes, attribute.String("tenure.lease.waited_for", text(data.WaitedFor)))
		}
		if data.FreedBy != "" {
			attributes = append(attributes, attribute.String("tenure.lease.freed_by", string(data.FreedBy)), attribute.Float64("tenure.lease.vacant", data.Vacant.Seconds()))
		}
	case errors.As(data.Err, &held):
		attributes = append(attributes, attribute.String("tenure.lease.holder", text(held.Holder.Identity)))
	}
	span.SetAttributes(attributes...)
	if _, failed := acquireOutcome(kind); failed && !(goesOn && kind == "split") {
		fail(span, data.Err)
	}
	span.End()
}

// TraceAttemptStart implements redlock.AttemptTracer. An attempt of a campaign is a root, because a
// standby makes attempts for as long as it waits.
func (i *Instrumentation) TraceAttemptStart(ctx context.Context, data redlock.TraceAttemptStartData) context.Context {
	if !i.spans {
		return ctx
	}
	if c := campaignFrom(ctx); c != nil {
		return i.campaignAttempt(ctx, c, data)
	}
	op := operationFrom(ctx)
	if op == nil || data.Attempt == 1 {
		return ctx
	}
	return withOperation(ctx, &operation{recording: op.recording, attempt: data.Attempt})
}

// TraceAttemptEnd implements redlock.AttemptTracer.
func (i *Instrumentation) TraceAttemptEnd(ctx context.Context, data redlock.TraceAcquireEndData) {
	if !i.spans {
		return
	}
	kind := redlock.ErrorType(data.Err)
	if op := operationFrom(ctx); op != nil {
		if op.attemptEnded(i, op.attempt, data.Lease != nil); op.own {
			endAcquire(op.current(), data, kind, true)
		}
	}
	campaignFrom(ctx).attempted(kind)
}

// TraceExtend implements redlock.ExtendTracer. An extension that the release of its lease overtook
// has neither succeeded nor failed, and is not recorded. The context is the lease's. Its current
// span is that of the caller of the acquisition, which ended long ago, so an extension is measured
// with its own span or with none.
func (i *Instrumentation) TraceExtend(ctx context.Context, data redlock.TraceExtendData) {
	if errors.Is(data.Err, redlock.ErrReleased) {
		return
	}
	name := i.lease(data.Key)
	kind := redlock.ErrorType(data.Err)
	slow := data.Margin < data.Lease.TTL()/2 || data.Duration > data.Lease.TTL()/10
	measured := context.Background()
	if i.spans && (i.cfg.extendSpans || data.Err != nil || slow) {
		measured = i.extendSpan(ctx, name, data, kind)
	}
	if !data.Shared && i.extendDuration.Enabled(ctx) {
		i.extendDuration.Record(measured, data.Duration.Seconds(), i.extended.get(kind).record...)
	}
	if data.Err == nil && i.extendMargin.Enabled(ctx) {
		i.extendMargin.Record(measured, data.Margin.Seconds(), name.record...)
	}
}

func extendAttributes(errorType string) []attribute.KeyValue {
	if errorType == "" {
		return []attribute.KeyValue{keyOutcome.String(outcomeExtended)}
	}
	return []attribute.KeyValue{keyOutcome.String(outcomeFailed), keyErrorType.String(errorType)}
}

// extendSpan makes the span of an extension that is over. It returns the context to measure the
// extension with.
func (i *Instrumentation) extendSpan(ctx context.Context, name *lease, data redlock.TraceExtendData, kind string) context.Context {
	spanned, span := i.tracer.Start(ctx, "tenure.lease.extend", trace.WithNewRoot(), trace.WithTimestamp(data.Start),
		trace.WithLinks(linkTo(ctx)...), trace.WithAttributes(name.attributes...))
	if !span.IsRecording() {
		return context.Background()
	}
	span.SetAttributes(append(extendAttributes(kind), keyLeaseKey.String(text(data.Key)), keyLeaseTTL.Float64(data.Lease.TTL().Seconds()),
		attribute.Float64("tenure.lease.margin", data.Margin.Seconds()), keyLeaseVotes.Int(data.Extended), attribute.Int("tenure.lease.refilled", data.Refilled))...)
	if data.Err != nil {
		fail(span, data.Err)
	}
	if i.cfg.nodeSpans {
		for _, a := range data.Answers {
			i.spanOfNode(spanned, nodeEnd{at: data.Start.Add(a.Duration), TraceNodeEndData: redlock.TraceNodeEndData{
				Op: redlock.OpExtend, Node: a.Node, OK: a.OK, Err: a.Err, Duration: a.Duration}})
		}
	}
	span.End(trace.WithTimestamp(data.Start.Add(data.Duration)))
	return measuring(ctx, span)
}

// TraceReleaseStart implements redlock.ReleaseTracer.
func (i *Instrumentation) TraceReleaseStart(ctx context.Context, data redlock.TraceReleaseStartData) context.Context {
	if !i.spans {
		return ctx
	}
	name := i.lease(data.Key)
	parent := ctx
	if t := tickOf(data.Lease); t != nil {
		parent = t.within(ctx)
	}
	spanned, span := i.tracer.Start(parent, "tenure.lease.release", trace.WithAttributes(name.attributes...),
		trace.WithLinks(linkTo(data.Lease.Context())...))
	if !span.IsRecording() {
		return withOperation(ctx, nil)
	}
	span.SetAttributes(keyLeaseKey.String(text(data.Key)), keyLeaseToken.Int64(int64(data.Lease.FencingToken())))
	return withOperation(ctx, &operation{recording: &recording{span: span, ctx: spanned}})
}

// TraceReleaseEnd implements redlock.ReleaseTracer.
func (i *Instrumentation) TraceReleaseEnd(ctx context.Context, data redlock.TraceReleaseEndData) {
	measured := ctx
	if op := i.operation(ctx); op != nil {
		span := op.current()
		measured = measuring(ctx, span)
		endRelease(span, data)
	}
	if !data.Lost {
		i.ended(measured, data.Key, data.Held, outcomeReleased)
	}
	if i.spans {
		if t := tickOf(data.Lease); t != nil {
			t.end()
		}
	}
}

func endRelease(span trace.Span, data redlock.TraceReleaseEndData) {
	outcome := outcomeReleased
	switch {
	case errors.Is(data.Err, redlock.ErrLost):
		outcome = outcomeLost
	case data.Err != nil:
		outcome = outcomeFailed
	}
	span.SetAttributes(attribute.Float64("tenure.lease.held", data.Held.Seconds()))
	endWith(span, outcome, redlock.ErrorType(data.Err), data.Err)
	span.End()
}

// TraceLost implements redlock.LostTracer.
func (i *Instrumentation) TraceLost(ctx context.Context, data redlock.TraceLostData) {
	i.lease(data.Key).lost.add(ctx, data.Reason, 1)
	i.ended(ctx, data.Key, data.Held, string(data.Reason))
}

// ended counts a lease that is no longer held.
func (i *Instrumentation) ended(ctx context.Context, key string, held time.Duration, reason string) {
	name := i.lease(key)
	name.holds.Add(-1)
	if i.holdDuration.Enabled(ctx) {
		i.holdDuration.Record(ctx, held.Seconds(), name.held.get(reason).record...)
	}
}
