package tenureotel_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/elector"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestAttemptOfACampaignIsARootThatIsLinkedToIt(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
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
		require.Equal(t, map[string]string{"tenure.election.name": "poller", "tenure.election.identity": "one", "tenure.outcome": "elected",
			"tenure.election.term": attributesOf(tel.span(t, "tenure.lease.acquire"))["tenure.lease.fencing_token"]}, attributesOf(s))
		require.NotZero(t, term)
		acquired := tel.span(t, "tenure.lease.acquire")
		rootOf(t, acquired, s)
		attributes := attributesOf(acquired)
		delete(attributes, "tenure.lease.votes")
		require.Equal(t, map[string]string{
			"tenure.lease.name": "election/poller", "tenure.lease.key": "election/poller", "tenure.lease.ttl": "4", "tenure.lease.nodes": "5", "tenure.lease.quorum": "3", "tenure.lease.wait": "true",
			"tenure.outcome": "acquired", "tenure.lease.attempt": "1", "tenure.lease.validity": "3.958", "tenure.lease.fencing_token": strconv.FormatUint(term, 10),
			"tenure.election.name": "poller", "tenure.election.identity": "one",
		}, attributes)
		require.Len(t, tel.spans("tenure.node.acquire"), 5)
		for _, n := range tel.spans("tenure.node.acquire") {
			childOf(t, n, acquired.SpanContext())
		}
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
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
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
		require.EqualValues(t, 1, tel.value(t, "tenure.election.transitions", "tenure.to", "leader", "tenure.reason", "elected"))
	})
}

// rootOf requires a span to be a root in a trace of its own, with a link to the campaign.
func rootOf(t *testing.T, s, campaign sdktrace.ReadOnlySpan) {
	t.Helper()
	require.False(t, s.Parent().IsValid(), "%s is a root", s.Name())
	require.NotEqual(t, campaign.SpanContext().TraceID(), s.SpanContext().TraceID())
	linkedTo(t, s, campaign)
}

// A standby may wait for weeks. Of that time there is a span about once a TTL, each in a trace of
// its own and ended at once; nodes have spans in the first and the last of them.
func TestStandbyLeavesNoTraceOpen(t *testing.T) {
	for _, freedBy := range []string{"release", "expiry"} {
		t.Run(freedBy, func(t *testing.T) {
			traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
				holder := acquire(t, open(t, fleet, redlock.WithIdentity("the leader")), "election/poller")
				stop := campaign(t, candidate(t, tel, q, elector.WithIdentity("standby")))
				pass(4 * ttl)
				require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended()), "no span is open while it waits")
				s := tel.span(t, "tenure.election.campaign")
				require.Equal(t, sdktrace.Status{}, s.Status())
				require.Equal(t, map[string]string{"tenure.election.name": "poller", "tenure.election.identity": "standby", "tenure.outcome": "waiting"}, attributesOf(s))
				attempts := tel.spans("tenure.lease.acquire")
				require.GreaterOrEqual(t, len(attempts), 3)
				require.LessOrEqual(t, len(attempts), 8)
				for i, a := range attempts {
					rootOf(t, a, s)
					require.Equal(t, sdktrace.Status{}, a.Status())
					require.Equal(t, strconv.Itoa(i+1), attributesOf(a)["tenure.lease.attempt"])
					require.Equal(t, "held", attributesOf(a)["tenure.outcome"])
					require.Equal(t, "the leader", attributesOf(a)["tenure.lease.holder"])
				}
				nodes := tel.spans("tenure.node.acquire")
				require.Len(t, nodes, 5)
				for _, n := range nodes {
					childOf(t, n, attempts[0].SpanContext())
					require.Equal(t, "1", attributesOf(n)["tenure.lease.attempt"])
				}
				require.Len(t, tel.spans(), 1+len(attempts)+5)

				// Between the expiry that it knows of and its next attempt it takes a release for
				// one.
				for len(tel.spans("tenure.lease.acquire")) == len(attempts) {
					pass(ttl / 100)
				}
				tel.forget()
				if freedBy == "release" {
					require.NoError(t, holder.Release(t.Context()))
				} else {
					holder.StopExtending()
				}
				pass(ttl + time.Second)
				won := tel.spans("tenure.lease.acquire")
				last := won[len(won)-1]
				rootOf(t, last, s)
				attributes := attributesOf(last)
				require.Equal(t, "acquired", attributes["tenure.outcome"])
				require.Equal(t, "the leader", attributes["tenure.lease.waited_for"])
				require.Equal(t, freedBy, attributes["tenure.lease.freed_by"])
				require.Contains(t, attributes, "tenure.lease.vacant")
				nodes = tel.spans("tenure.node.acquire")
				require.Len(t, nodes, 5)
				for _, n := range nodes {
					childOf(t, n, last.SpanContext())
					require.False(t, n.StartTime().Before(last.StartTime()))
					require.Equal(t, attributes["tenure.lease.attempt"], attributesOf(n)["tenure.lease.attempt"])
				}
				require.Len(t, tel.spans(), len(won)+5)
				require.EqualValues(t, 1, tel.find(t, "tenure.lease.acquire.duration", "tenure.lease.name", "election/poller").count, "one acquisition")
				require.NotZero(t, tel.total(t, "tenure.node.operation.duration", "tenure.operation", "acquire"))
				stop()
			})
		})
	}
}

// noAttempts is a sampler that leaves out the attempts of a campaign.
type noAttempts struct{ sdktrace.Sampler }

func (s noAttempts) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Name == "tenure.lease.acquire" {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}

// Attempts are roots, so a sampler that takes a part of all traces takes a campaign without its
// attempts.
func TestCampaignEndsWithAnAttemptThatIsNotSampled(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		recorder := tracetest.NewSpanRecorder()
		tel := newTelemetry(t, tenureotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder),
			sdktrace.WithSampler(sdktrace.ParentBased(noAttempts{sdktrace.AlwaysSample()})))))
		acquire(t, open(t, fleet), "election/poller")
		stop := campaign(t, candidate(t, tel, open(t, fleet, redlock.WithTracer(tel))))
		require.Len(t, recorder.Ended(), 1, "no span is open while it waits")
		require.Equal(t, "waiting", attributesOf(recorder.Ended()[0])["tenure.outcome"])
		stop()
		require.Len(t, recorder.Started(), 1)
	})
}

// A candidate that waits behind another one of its process asks nothing until that leads.
func TestSecondStandbyOfAProcessLeavesNoTraceOpen(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		holder := acquire(t, open(t, fleet), "election/poller")
		first := campaign(t, candidate(t, tel, q))
		second := campaign(t, candidate(t, tel, q))
		pass(ttl)
		require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended()), "no span is open while they wait")
		require.Len(t, tel.spans("tenure.election.campaign"), 1)
		require.NoError(t, holder.Release(t.Context()))
		settle()
		require.Len(t, tel.spans("tenure.election.campaign"), 2)
		require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended()))
		first()
		second()
	})
}

// Without a quorum a candidate waits too, and says why.
func TestCampaignWithoutAQuorumWaits(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		for i := range 3 {
			require.NoError(t, fleet.Node(i).Kill())
		}
		stop := campaign(t, candidate(t, tel, q))
		pass(time.Second)
		s := tel.span(t, "tenure.election.campaign")
		require.Equal(t, sdktrace.Status{}, s.Status())
		require.Equal(t, "waiting", attributesOf(s)["tenure.outcome"])
		require.Equal(t, "no_quorum", attributesOf(s)["error.type"])
		require.Equal(t, codes.Error, tel.spans("tenure.lease.acquire")[0].Status().Code, "the attempt has failed")
		stop()
	})
}

func TestCampaignThatIsGivenUpIsNoError(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		data := elector.TraceCampaignStartData{Election: "poller", Identity: "one"}
		ctx = tel.TraceCampaignStart(ctx, data)
		_, err := q.Acquire(ctx, "election/poller")
		require.ErrorIs(t, err, context.Canceled)
		tel.TraceCampaignEnd(ctx, elector.TraceCampaignEndData{Election: "poller", Err: err})
		s := tel.span(t, "tenure.election.campaign")
		require.Equal(t, sdktrace.Status{}, s.Status())
		require.Equal(t, "canceled", attributesOf(s)["tenure.outcome"])
		rootOf(t, tel.span(t, "tenure.lease.acquire"), s)
	})
}

func TestHandoversAreMeasuredByHowTheKeyBecameFree(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q, other := open(t, fleet, redlock.WithTracer(tel)), open(t, fleet, redlock.WithTracer(tel))
		elections(t, tel, fleet, q, other)
		for _, reason := range []string{"expiry", "release"} {
			p := tel.find(t, "tenure.election.handover.duration", "tenure.election.name", "poller", "tenure.reason", reason)
			assert.EqualValues(t, 1, p.count, reason)
			assert.InDelta(t, 0, p.value, 0.1, reason)
		}
		assert.EqualValues(t, 2, tel.value(t, "tenure.election.transitions", "tenure.to", "leader", "tenure.reason", "elected"))
		assert.EqualValues(t, 2, tel.value(t, "tenure.election.transitions", "tenure.to", "follower", "tenure.reason", "shutdown"))
	})
}

// The gauges say who leads, and until when.
func TestLeaderAndExpiryFollowTheTerm(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		stop := campaign(t, candidate(t, tel, q))
		until := float64(time.Now().Add(validity).UnixMilli()) / 1000
		require.EqualValues(t, 1, tel.value(t, "tenure.election.leader", "tenure.election.name", "poller"))
		require.InDelta(t, until, tel.value(t, "tenure.election.lease.expiry_timestamp", "tenure.election.name", "poller"), 0.001)
		stop()
		require.Zero(t, tel.value(t, "tenure.election.leader", "tenure.election.name", "poller"))
		require.Zero(t, tel.value(t, "tenure.election.lease.expiry_timestamp", "tenure.election.name", "poller"))
		require.NoError(t, tel.Close())
		require.Empty(t, tel.points(t, "tenure.election.leader"))
	})
}

// A leader whose work goes on after its term has the lease, and does not lead.
func TestLeaderThatDrainsDoesNotLead(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		stop := lead(t, candidate(t, tel, q), func(ctx context.Context, _ *elector.Term) error {
			<-ctx.Done()
			_, err := q.Holder(t.Context(), "election/poller")
			require.NoError(t, err)
			require.Zero(t, tel.value(t, "tenure.election.leader", "tenure.election.name", "poller"))
			require.Zero(t, tel.value(t, "tenure.election.lease.expiry_timestamp", "tenure.election.name", "poller"))
			return nil
		})
		stop()
	})
}

// Every reason of a term's end counts as such.
func TestTransitionsByReason(t *testing.T) {
	untilDone := func(ctx context.Context, _ *elector.Term) error { <-ctx.Done(); return nil }
	failed := errors.New("failed")
	for _, test := range []struct {
		reason string
		lead   func(context.Context, *elector.Term) error
		end    func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum)
	}{
		{"resigned", func(ctx context.Context, tm *elector.Term) error { return tm.Resign(ctx) }, nil},
		{"returned", func(context.Context, *elector.Term) error { return nil }, nil},
		{"failed", func(context.Context, *elector.Term) error { return failed }, nil},
		{"deadline", untilDone, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum) { freeze(t, fleet, 0, 1, 2) }},
		{"refused", untilDone, func(_ *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum) {
			for _, n := range fleet.Nodes() {
				n.FlushAll()
			}
		}},
		{"drain_timeout", func(ctx context.Context, _ *elector.Term) error { <-ctx.Done(); time.Sleep(ttl); return nil }, nil},
		{"closed", untilDone, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) { require.NoError(t, q.Close()) }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
				stop := lead(t, candidate(t, tel, q, elector.WithDrainTimeout(time.Second)), test.lead)
				if test.end != nil {
					test.end(t, fleet, q)
				}
				pass(2 * ttl)
				stop()
				pass(ttl)
				require.GreaterOrEqual(t, tel.value(t, "tenure.election.transitions", "tenure.to", "follower", "tenure.reason", test.reason), 1.0)
			})
		})
	}
}
