package tenureotel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/elector"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestCampaignIsTheParentOfItsAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		e := candidate(t, tel, q, elector.WithIdentity("one"))
		var term uint64
		var lead trace.SpanContext
		done := make(chan error)
		go func() {
			done <- e.Run(ctx, func(ctx context.Context, tm *elector.Term) error {
				term, lead = tm.Number(), trace.SpanContextFromContext(ctx)
				<-ctx.Done()
				return nil
			})
		}()
		settle()
		s := tel.span(t, "tenure.election.campaign")
		childOf(t, s, caller.SpanContext())
		require.Equal(t, trace.SpanKindInternal, s.SpanKind())
		require.Equal(t, sdktrace.Status{}, s.Status())
		require.Equal(t, map[string]string{"election.name": "poller", "election.identity": "one", "outcome": "elected",
			"election.term": attributesOf(tel.span(t, "tenure.lease.acquire"))["lease.fencing_token"]}, attributesOf(s))
		require.NotZero(t, term)
		acquired := tel.span(t, "tenure.lease.acquire")
		childOf(t, acquired, s.SpanContext())
		require.Equal(t, "true", attributesOf(acquired)["lease.wait"])
		require.Equal(t, caller.SpanContext(), lead, "lead is no part of the campaign, which is over")

		cancel()
		require.NoError(t, <-done)
		settle()
		released := tel.span(t, "tenure.lease.release")
		childOf(t, released, caller.SpanContext())
		linkedTo(t, released, acquired)
	})
}

// noCampaigns is a sampler that leaves out campaigns.
type noCampaigns struct{ sdktrace.Sampler }

func (s noCampaigns) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Name == "tenure.election.campaign" {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}

// What a sampler leaves out of a campaign it leaves out with all that belongs to it.
func TestAcquisitionOfAnUnsampledCampaignIsNotSampled(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		recorder := tracetest.NewSpanRecorder()
		tel := newTelemetry(t, tenureotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder),
			sdktrace.WithSampler(sdktrace.ParentBased(noCampaigns{sdktrace.AlwaysSample()})))))
		q := open(t, fleet, redlock.WithTracer(tel))
		stop := campaign(t, candidate(t, tel, q))
		require.Empty(t, recorder.Ended())
		acquire(t, q, "orders")
		settle()
		require.Len(t, recorder.Ended(), 6, "others are")
		stop()
		require.EqualValues(t, 1, tel.value(t, "tenure.election.transitions", "to", "leader", "reason", "elected"))
	})
}

func TestCampaignThatIsGivenUpIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		acquire(t, open(t, fleet), "election/poller")
		stop := campaign(t, candidate(t, tel, open(t, fleet, redlock.WithTracer(tel))))
		require.Empty(t, tel.spans("tenure.election.campaign"), "it goes on")
		stop()
		s := tel.span(t, "tenure.election.campaign")
		require.Equal(t, sdktrace.Status{}, s.Status())
		require.Equal(t, "canceled", attributesOf(s)["outcome"])
		childOf(t, tel.span(t, "tenure.lease.acquire"), s.SpanContext())
	})
}

// What is acquired while one leads is no part of the campaign: neither of its span nor of its
// hand-over.
func TestAcquisitionByTheLeaderIsNotTheCampaigns(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		holder := acquire(t, open(t, fleet), "orders")
		time.AfterFunc(10*time.Second, func() { _ = holder.Release(context.Background()) })
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		e := candidate(t, tel, q)
		done := make(chan error)
		go func() {
			done <- e.Run(ctx, func(ctx context.Context, _ *elector.Term) error {
				l, err := q.Acquire(ctx, "orders") // waits, and gets it by a release
				if err != nil {
					return err
				}
				_, own := tel.tracer().Start(l.Context(), "own")
				own.End()
				<-ctx.Done()
				return l.Release(ctx)
			})
		}()
		pass(20 * time.Second)
		acquired := tel.spans("tenure.lease.acquire")
		require.Len(t, acquired, 2)
		require.Equal(t, "orders", attributesOf(acquired[1])["lease.name"])
		childOf(t, acquired[0], tel.span(t, "tenure.election.campaign").SpanContext())
		childOf(t, acquired[1], caller.SpanContext())
		childOf(t, tel.span(t, "own"), caller.SpanContext())
		require.Zero(t, tel.total(t, "tenure.election.handover.duration"))
		cancel()
		require.NoError(t, <-done)
	})
}

// A user's span in the context of a lease is the caller's child: the acquisition is over.
func TestSpansInALeasesContextAreTheCallers(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		l, err := q.TryAcquire(ctx, "orders")
		require.NoError(t, err)
		ctx, own := tel.tracer().Start(l.Context(), "own")
		_, err = q.TryAcquire(ctx, "other")
		require.NoError(t, err)
		own.End()
		childOf(t, tel.span(t, "own"), caller.SpanContext())
		require.Equal(t, "other", attributesOf(tel.spans("tenure.lease.acquire")[1])["lease.name"])
		childOf(t, tel.spans("tenure.lease.acquire")[1], own.SpanContext())
	})
}

func TestHandoversAreMeasuredByHowTheKeyBecameFree(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q, other := open(t, fleet, redlock.WithTracer(tel)), open(t, fleet, redlock.WithTracer(tel))
		elections(t, tel, fleet, q, other)
		for _, reason := range []string{"expiry", "release"} {
			p := tel.find(t, "tenure.election.handover.duration", "election.name", "poller", "reason", reason)
			assert.EqualValues(t, 1, p.count, reason)
			assert.InDelta(t, 0, p.value, 0.1, reason)
		}
		assert.EqualValues(t, 2, tel.value(t, "tenure.election.transitions", "to", "leader", "reason", "elected"))
		assert.EqualValues(t, 2, tel.value(t, "tenure.election.transitions", "to", "follower", "reason", "shutdown"))
	})
}

// The gauges say who leads, and until when.
func TestLeaderAndExpiryFollowTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		stop := campaign(t, candidate(t, tel, q, elector.WithLeaseOptions(redlock.WithoutAutoExtend())))
		until := float64(time.Now().Add(validity).UnixMilli()) / 1000
		require.EqualValues(t, 1, tel.value(t, "tenure.election.leader", "election.name", "poller"))
		require.InDelta(t, until, tel.value(t, "tenure.election.lease.expiry", "election.name", "poller"), 0.001)
		stop()
		require.Zero(t, tel.value(t, "tenure.election.leader", "election.name", "poller"))
		require.Zero(t, tel.value(t, "tenure.election.lease.expiry", "election.name", "poller"))
		require.NoError(t, tel.Close())
		require.Empty(t, tel.points(t, "tenure.election.leader"))
	})
}

// Every reason of a term's end counts as such.
func TestTransitionsByReason(t *testing.T) {
	untilDone := func(ctx context.Context, _ *elector.Term) error { <-ctx.Done(); return nil }
	failed := errors.New("failed")
	for _, test := range []struct {
		reason string
		opts   []elector.Option
		lead   func(context.Context, *elector.Term) error
		end    func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum)
	}{
		{"resigned", nil, func(ctx context.Context, tm *elector.Term) error { return tm.Resign(ctx) }, nil},
		{"returned", nil, func(context.Context, *elector.Term) error { return nil }, nil},
		{"failed", nil, func(context.Context, *elector.Term) error { return failed }, nil},
		{"deadline", []elector.Option{elector.WithLeaseOptions(redlock.WithoutAutoExtend())}, untilDone, nil},
		{"refused", nil, untilDone, func(_ *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum) {
			for _, n := range fleet.Nodes() {
				n.FlushAll()
			}
		}},
		{"closed", nil, untilDone, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) { require.NoError(t, q.Close()) }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				tel := newTelemetry(t)
				q := open(t, fleet, redlock.WithTracer(tel))
				stop := lead(t, candidate(t, tel, q, test.opts...), test.lead)
				if test.end != nil {
					test.end(t, fleet, q)
				}
				pass(ttl)
				require.GreaterOrEqual(t, tel.value(t, "tenure.election.transitions", "to", "follower", "reason", test.reason), 1.0)
				stop()
			})
		})
	}
	t.Run("drain_timeout", func(t *testing.T) {
		bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
			tel := newTelemetry(t)
			over := make(chan struct{})
			stop := lead(t, candidate(t, tel, open(t, fleet, redlock.WithTracer(tel)), elector.WithDrainTimeout(time.Second)),
				func(context.Context, *elector.Term) error { <-over; return nil })
			stop()
			require.EqualValues(t, 1, tel.value(t, "tenure.election.transitions", "to", "follower", "reason", "drain_timeout"))
			close(over)
		})
	})
}
