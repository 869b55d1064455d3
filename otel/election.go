package tenureotel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

// election has the attribute sets and the terms of one election's name.
type election struct {
	name string
	*series
	begun    counter[elector.Reason] // transitions to leader
	ended    counter[elector.Reason] // transitions to follower
	handover *names[series]          // by how the lease had become free

	mu    sync.Mutex
	terms map[*elector.Term]struct{} // guarded by mu; of this process: one for each of its leaders
}

// maxElections, maxJobs, maxNodes and maxWords bound the names that are kept, because a program may
// make up names as it runs.
const (
	maxElections = 1000
	maxJobs      = 10000
	maxNodes     = 1000
	maxWords     = 1000
)

// The values of tenure.to and tenure.reason of tenure.election.transitions.
const (
	toLeader   = "leader"
	toFollower = "follower"
	elected    = elector.Reason("elected")
)

// endReasons are the reasons with which a term can end.
var endReasons = []elector.Reason{elector.ReasonShutdown, elector.ReasonResigned, elector.ReasonReturned, elector.ReasonFailed,
	elector.ReasonDeadline, elector.ReasonRefused, elector.ReasonClosed, elector.ReasonDrainTimeout}

func (i *Instrumentation) newElection(name string) *election {
	attributes := i.with(keyElection.String(name))
	return &election{
		name:     name,
		series:   newSeries(attributes...),
		begun:    newCounter(i.transitions, i.with(keyElection.String(name), keyTo.String(toLeader)), keyReason, elected),
		ended:    newCounter(i.transitions, i.with(keyElection.String(name), keyTo.String(toFollower)), keyReason, endReasons...),
		handover: byWord(attributes, reasonAttribute),
		terms:    make(map[*elector.Term]struct{}),
	}
}

// state returns the values of the gauges: whether this process leads now, and until when, as a Unix
// time in seconds.
func (e *election) state() (leads int64, expiry float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for t := range e.terms {
		if deadline := t.Deadline(); t.Context().Err() == nil && time.Now().Before(deadline) {
			leads, expiry = 1, max(expiry, float64(deadline.UnixMilli())/1000)
		}
	}
	return leads, expiry
}

// campaign is the campaign that a context belongs to. It may be over. Only the campaigning
// goroutine uses span, begun and told.
type campaign struct {
	election *election
	identity string
	span     trace.Span // nil if it is not recorded; then no attempt has a span either
	begun    bool       // the span has begun, with the first attempt
	told     bool       // the span has ended
	over     atomic.Bool
}

type campaignKey struct{}

// campaignFrom returns the campaign of an acquisition in this context, or nil. The context of a
// term has the campaign that won it, which is over: then campaignFrom returns nil.
func campaignFrom(ctx context.Context) *campaign {
	c, _ := ctx.Value(campaignKey{}).(*campaign)
	if c == nil || c.over.Load() {
		return nil
	}
	return c
}

// TraceCampaignStart implements elector.CampaignTracer. The span begins with the first attempt: a
// candidate that waits behind another one of its process makes none.
func (i *Instrumentation) TraceCampaignStart(ctx context.Context, data elector.TraceCampaignStartData) context.Context {
	c := &campaign{election: i.elections.get(data.Election), identity: text(data.Identity)}
	return context.WithValue(ctx, campaignKey{}, c)
}

// TraceCampaignEnd implements elector.CampaignTracer.
func (i *Instrumentation) TraceCampaignEnd(ctx context.Context, data elector.TraceCampaignEndData) {
	c, _ := ctx.Value(campaignKey{}).(*campaign)
	if c == nil {
		return
	}
	c.over.Store(true)
	if c.span == nil || c.told {
		return
	}
	kind := text(elector.ErrorType(data.Err))
	if outcome, failed := acquireOutcome(kind); data.Term != nil {
		c.span.SetAttributes(keyOutcome.String(outcomeElected), attribute.Int64("tenure.election.term", int64(data.Term.Number())))
	} else if c.span.SetAttributes(keyOutcome.String(outcome), keyErrorType.String(kind)); failed {
		fail(c.span, data.Err)
	}
	c.span.End()
}

// campaignAttempt begins the span of an attempt: a root, with a link to the span of the campaign,
// which begins with the first attempt.
func (i *Instrumentation) campaignAttempt(ctx context.Context, c *campaign, data redlock.TraceAttemptStartData) context.Context {
	if !c.begun {
		c.begun = true
		if _, span := i.tracer.Start(ctx, "tenure.election.campaign", trace.WithAttributes(c.election.attributes...)); span.IsRecording() {
			span.SetAttributes(keyIdentity.String(c.identity))
			c.span = span
		}
	}
	if c.span == nil {
		return ctx
	}
	spanned, span := i.tracer.Start(ctx, "tenure.lease.acquire", trace.WithNewRoot(), trace.WithLinks(linkToSpan(c.span)...),
		trace.WithAttributes(i.lease(data.Key).attributes...))
	if !span.IsRecording() {
		return ctx
	}
	span.SetAttributes(keyLeaseKey.String(text(data.Key)), keyLeaseTTL.Float64(data.TTL.Seconds()), keyLeaseNodes.Int(data.Nodes),
		keyLeaseQuorum.Int(data.Quorum), keyLeaseWait.Bool(data.Wait), keyElection.String(c.election.name),
		keyIdentity.String(c.identity), keyLeaseAttempt.Int(data.Attempt))
	return withOperation(ctx, &operation{recording: &recording{span: span, ctx: spanned}, attempt: data.Attempt, own: true})
}

// attempted takes the error of an attempt, also of one that a sampler left out. The first attempt
// after which the candidate waits ends the span of the campaign, so that no trace is open during
// the wait.
func (c *campaign) attempted(kind string) {
	if c == nil || c.span == nil || c.told {
		return
	}
	switch kind {
	case "held", "no_quorum", "timeout": // the candidate waits; else it asks again at once, or gives up
		c.told = true
		c.span.SetAttributes(keyOutcome.String(outcomeWaiting))
		if kind != "held" {
			c.span.SetAttributes(keyErrorType.String(kind))
		}
		c.span.End()
	}
}

// TraceChange implements elector.ChangeTracer.
func (i *Instrumentation) TraceChange(ctx context.Context, data elector.TraceChangeData) {
	e := i.elections.get(data.Election)
	e.mu.Lock()
	if data.Change.Kind == elector.Elected {
		e.terms[data.Term] = struct{}{}
	} else {
		delete(e.terms, data.Term)
	}
	e.mu.Unlock()
	if data.Change.Kind == elector.Elected {
		e.begun.add(ctx, elected, 1)
	} else {
		e.ended.add(ctx, data.Change.Reason, 1)
	}
}
