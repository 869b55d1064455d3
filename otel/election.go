package tenureotel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/elector"
)

// election is what is made once for an election's name.
type election struct {
	attributes  []attribute.KeyValue
	observe     []metric.ObserveOption
	transitions map[elector.Reason][]metric.AddOption // to a follower, by reason; to leader under elected
	handover    measurements

	mu    sync.Mutex
	terms map[*elector.Term]struct{} // guarded by mu; of this process, one unless it has several candidates
}

// maxElections, maxJobs and maxNodes bound what is kept, should names be made up as the program
// runs.
const (
	maxElections = 1000
	maxJobs      = 10000
	maxNodes     = 1000
)

// The values of to and reason of tenure.election.transitions.
const (
	toLeader   = "leader"
	toFollower = "follower"
	elected    = elector.Reason("elected")
)

// endReasons are the reasons for which a term ends.
var endReasons = []elector.Reason{elector.ReasonShutdown, elector.ReasonResigned, elector.ReasonReturned, elector.ReasonFailed,
	elector.ReasonDeadline, elector.ReasonRefused, elector.ReasonClosed, elector.ReasonDrainTimeout}

func (i *Instrumentation) election(name string) *election {
	return i.elections.get(name)
}

func (i *Instrumentation) newElection(name string) *election {
	attributes := i.with(keyElection.String(name))
	e := &election{
		attributes:  attributes,
		observe:     []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		transitions: make(map[elector.Reason][]metric.AddOption),
		handover:    measurements{base: attributes},
		terms:       make(map[*elector.Term]struct{}),
	}
	add := func(to string, reason elector.Reason) {
		e.transitions[reason] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(
			i.with(keyElection.String(name), keyTo.String(to), keyReason.String(string(reason)))...))}
		i.transitions.Add(context.Background(), 0, e.transitions[reason]...)
	}
	add(toLeader, elected)
	for _, reason := range endReasons {
		add(toFollower, reason)
	}
	return e
}

// state is what the gauges show: until when this process leads, and whether it does now.
func (e *election) state() (leads int64, expiry float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for t := range e.terms {
		deadline := t.Deadline()
		expiry = max(expiry, float64(deadline.UnixMilli())/1000)
		if t.Context().Err() == nil && time.Now().Before(deadline) {
			leads = 1
		}
	}
	return leads, expiry
}

// campaign is one that goes on, or went on, in a context.
type campaign struct {
	election *election
	span     trace.Span // nil where no spans are made; also if it is not sampled, and then the acquisition is not either
	over     atomic.Bool
}

type campaignKey struct{}

// campaignFrom returns the campaign that an acquisition in this context is for, or nil. The context
// of a term has that of its campaign, which is over then.
func campaignFrom(ctx context.Context) *campaign {
	c, _ := ctx.Value(campaignKey{}).(*campaign)
	if c == nil || c.over.Load() {
		return nil
	}
	return c
}

// TraceCampaignStart implements elector.CampaignTracer.
func (i *Instrumentation) TraceCampaignStart(ctx context.Context, data elector.TraceCampaignStartData) context.Context {
	c := &campaign{election: i.election(data.Election)}
	if i.spans {
		_, span := i.tracer.Start(ctx, "tenure.election.campaign", trace.WithAttributes(c.election.attributes...))
		span.SetAttributes(keyIdentity.String(data.Identity))
		c.span = span
	}
	return context.WithValue(ctx, campaignKey{}, c)
}

// TraceCampaignEnd implements elector.CampaignTracer.
func (i *Instrumentation) TraceCampaignEnd(ctx context.Context, data elector.TraceCampaignEndData) {
	c, _ := ctx.Value(campaignKey{}).(*campaign)
	if c == nil {
		return
	}
	c.over.Store(true)
	if c.span == nil {
		return
	}
	kind := elector.ErrorType(data.Err)
	switch outcome, failed := acquireOutcome(kind); {
	case data.Term != nil:
		c.span.SetAttributes(keyOutcome.String(outcomeElected), keyTerm.Int64(int64(data.Term.Number())))
	case failed:
		c.span.SetAttributes(keyOutcome.String(outcome), keyErrorType.String(kind))
		c.span.SetStatus(codes.Error, data.Err.Error())
	default:
		c.span.SetAttributes(keyOutcome.String(outcome), keyErrorType.String(kind))
	}
	c.span.End()
}

// TraceChange implements elector.ChangeTracer.
func (i *Instrumentation) TraceChange(ctx context.Context, data elector.TraceChangeData) {
	e := i.election(data.Election)
	e.mu.Lock()
	if data.Change.Kind == elector.Elected {
		e.terms[data.Term] = struct{}{}
	} else {
		delete(e.terms, data.Term)
	}
	e.mu.Unlock()
	if !i.transitions.Enabled(ctx) {
		return
	}
	reason := data.Change.Reason
	if data.Change.Kind == elector.Elected {
		reason = elected
	}
	if add := e.transitions[reason]; add != nil {
		i.transitions.Add(ctx, 1, add...)
	}
}
