package tenureotel_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// childOf requires a span to be a child of another.
func childOf(t *testing.T, child sdktrace.ReadOnlySpan, parent trace.SpanContext) {
	t.Helper()
	require.Equal(t, parent.SpanID().String(), child.Parent().SpanID().String(), "the parent of %s", child.Name())
	require.Equal(t, parent.TraceID(), child.SpanContext().TraceID(), "the trace of %s", child.Name())
}

// linkedTo requires a span to have links to these and no others.
func linkedTo(t *testing.T, s sdktrace.ReadOnlySpan, to ...sdktrace.ReadOnlySpan) {
	t.Helper()
	require.Len(t, s.Links(), len(to), "links of %s", s.Name())
	for i, link := range s.Links() {
		require.True(t, link.SpanContext.Equal(to[i].SpanContext()), "link %d of %s", i, s.Name())
	}
}

func TestAcquisitionIsASpanWithAChildForEachNode(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		l, err := q.TryAcquire(ctx, "orders")
		require.NoError(t, err)
		settle()
		s := tel.span(t, "tenure.lease.acquire")
		childOf(t, s, caller.SpanContext())
		require.Equal(t, trace.SpanKindInternal, s.SpanKind())
		require.Equal(t, "github.com/tenure-dev/tenure/otel", s.InstrumentationScope().Name)
		require.Equal(t, tenureotel.Version(), s.InstrumentationScope().Version)
		require.Equal(t, tenureotel.SchemaURL, s.InstrumentationScope().SchemaURL)
		require.Equal(t, tenureotel.SchemaURL, tel.scope(t).Scope.SchemaURL)
		require.Equal(t, sdktrace.Status{}, s.Status())
		attributes := attributesOf(s)
		require.Contains(t, []string{"3", "4", "5"}, attributes["tenure.lease.votes"], "as many as had come when there were enough")
		delete(attributes, "tenure.lease.votes")
		require.Equal(t, map[string]string{
			"tenure.lease.name": "orders", "tenure.lease.key": "orders", "tenure.lease.ttl": "4", "tenure.lease.nodes": "5", "tenure.lease.quorum": "3", "tenure.lease.wait": "false",
			"tenure.outcome": "acquired", "tenure.lease.attempts": "1", "tenure.lease.validity": "3.958",
			"tenure.lease.fencing_token": strconv.FormatUint(l.FencingToken(), 10),
		}, attributes)

		nodes := tel.spans("tenure.node.acquire")
		require.Len(t, nodes, 5)
		seen := make(map[string]bool)
		for _, n := range nodes {
			childOf(t, n, s.SpanContext())
			require.Equal(t, trace.SpanKindClient, n.SpanKind())
			require.Equal(t, sdktrace.Status{}, n.Status())
			attributes := attributesOf(n)
			seen[attributes["server.address"]] = true
			delete(attributes, "server.address")
			require.Equal(t, map[string]string{"db.system.name": "valkey", "db.operation.name": "EVALSHA", "server.port": "6379", "tenure.outcome": "ok", "tenure.lease.attempt": "1"}, attributes)
		}
		require.Len(t, seen, 5)
		require.True(t, seen["node-1.pipe"])
	})
}

func TestFailedMinorityDoesNotMarkTheAcquisition(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		freeze(t, fleet, 0)
		require.NoError(t, fleet.Node(1).Kill())
		acquire(t, q, "orders", redlock.WithoutAutoExtend())
		pass(ttl / 2)
		s := tel.span(t, "tenure.lease.acquire")
		require.Equal(t, sdktrace.Status{}, s.Status())
		require.Equal(t, "acquired", attributesOf(s)["tenure.outcome"])
		failed := make(map[string]string)
		for _, n := range tel.spans("tenure.node.acquire") {
			attributes := attributesOf(n)
			if n.Status().Code == codes.Unset {
				require.Empty(t, attributes["error.type"])
				require.Equal(t, "ok", attributes["tenure.outcome"])
				continue
			}
			require.Equal(t, codes.Error, n.Status().Code)
			require.NotEmpty(t, n.Status().Description)
			require.Equal(t, "failed", attributes["tenure.outcome"])
			failed[attributes["server.address"]] = attributes["error.type"]
		}
		require.Equal(t, map[string]string{"node-1.pipe": "timeout", "node-2.pipe": "connection"}, failed)
		thaw(t, fleet, 0)
	})
}

// How an acquisition ends, and what of it is an error of the span.
func TestOutcomesOfAcquisitions(t *testing.T) {
	for _, test := range []struct {
		outcome, errorType string // on the span
		failed             bool
		prepare            func(t *testing.T, fleet *redlocktest.Fleet, other *redlock.Quorum)
	}{
		{"held", "", false, func(t *testing.T, _ *redlocktest.Fleet, other *redlock.Quorum) {
			acquire(t, other, "orders")
			settle() // until all nodes have it
		}},
		{"canceled", "canceled", false, nil},
		{"failed", "timeout", true, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum) {
			freeze(t, fleet, 0, 1, 2)
			t.Cleanup(func() { thaw(t, fleet, 0, 1, 2) })
		}},
		{"failed", "split", true, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum) {
			for i := range 4 { // two have two nodes each, and do not get another one
				command(t, fleet.Node(i), "SET", "tenure:{orders}", []string{"a", "b"}[i%2]+"/0123456789012345678901")
			}
		}},
		{"failed", "no_quorum", true, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum) {
			for i := range 3 {
				require.NoError(t, fleet.Node(i).Kill())
			}
		}},
	} {
		t.Run(test.outcome+test.errorType, func(t *testing.T) {
			traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.prepare != nil {
					test.prepare(t, fleet, open(t, fleet, redlock.WithIdentity("the other")))
				} else {
					cancel()
				}
				_, err := q.TryAcquire(ctx, "orders")
				require.Error(t, err)
				settle()
				s := tel.span(t, "tenure.lease.acquire")
				attributes := attributesOf(s)
				require.Equal(t, test.outcome, attributes["tenure.outcome"])
				require.Equal(t, test.errorType, attributes["error.type"])
				require.Empty(t, attributes["tenure.lease.fencing_token"])
				if test.failed {
					require.Equal(t, sdktrace.Status{Code: codes.Error, Description: err.Error()}, s.Status())
				} else {
					require.Equal(t, sdktrace.Status{}, s.Status())
				}
				if test.outcome == "held" {
					require.Equal(t, "the other", attributes["tenure.lease.holder"])
					refused := 0
					for _, n := range tel.spans("tenure.node.acquire") {
						require.Equal(t, sdktrace.Status{}, n.Status(), "a node that refuses, or is not asked, is well")
						if attributesOf(n)["tenure.outcome"] == "refused" {
							refused++
						} else {
							require.Equal(t, "abandoned", attributesOf(n)["tenure.outcome"])
						}
					}
					require.GreaterOrEqual(t, refused, 3)
				}
				with := []string{"tenure.lease.name", "orders", "tenure.outcome", test.outcome}
				if test.errorType != "" {
					with = append(with, "error.type", test.errorType)
				}
				require.EqualValues(t, 1, tel.find(t, "tenure.lease.acquire.duration", with...).count)
			})
		})
	}
}

// A caller whose deadline passes has waited in vain for the holder, which is no failure.
func TestDeadlineOfAnAcquisition(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		acquire(t, open(t, fleet, redlock.WithIdentity("web-1")), "orders")
		ctx, cancel := context.WithTimeout(t.Context(), 2*ttl+ttl/2)
		defer cancel()
		_, err := q.Acquire(ctx, "orders")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		settle()
		s := tel.span(t, "tenure.lease.acquire")
		attributes := attributesOf(s)
		require.Equal(t, []string{"held", "", "web-1"}, []string{attributes["tenure.outcome"], attributes["error.type"], attributes["tenure.lease.holder"]})
		require.Equal(t, sdktrace.Status{}, s.Status())
		require.Len(t, tel.spans("tenure.node.leave"), 5)
	})
}

// Of what a sampler leaves out there are no children either, and no links to it. Metrics are of
// everything.
func TestUnsampledParentHasNoSpans(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		unsampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
		l, err := q.TryAcquire(trace.ContextWithSpanContext(t.Context(), unsampled), "orders")
		require.NoError(t, err)
		require.Equal(t, unsampled, trace.SpanContextFromContext(l.Context()))
		settle()
		require.Empty(t, tel.spans())
		require.NoError(t, l.Release(t.Context()))
		settle()
		linkedTo(t, tel.span(t, "tenure.lease.release"))
		require.Len(t, tel.spans("tenure.node.release"), 5)
		require.Empty(t, tel.spans("tenure.node.acquire"))
		require.Equal(t, 1, tel.total(t, "tenure.lease.acquire.duration", "tenure.outcome", "acquired"))
		require.Equal(t, 5, tel.total(t, "tenure.node.operation.duration", "tenure.operation", "acquire"))
	})
}

// conventions are the attributes whose names are OpenTelemetry's, or those of the story.
var conventions = []string{"error.type", "server.address", "server.port", "db.system.name", "db.operation.name", string(environment.Key), "shard"}

// Events on spans and codes.Ok are for users. Attributes of our own stand under tenure.
func TestNoSpanHasEventsOrIsOk(t *testing.T) {
	tel, metrics := told(t)
	names := make(map[string]bool)
	for _, s := range tel.spans() {
		names[s.Name()] = true
		require.Empty(t, s.Events(), s.Name())
		for key := range attributesOf(s) {
			require.True(t, strings.HasPrefix(key, "tenure.") || slices.Contains(conventions, key), "%s of %s", key, s.Name())
		}
		isCommand := slices.Contains([]string{"tenure.node.acquire", "tenure.node.agree", "tenure.node.extend", "tenure.node.release", "tenure.node.leave"}, s.Name())
		require.Equal(t, isCommand, attributesOf(s)["db.operation.name"] == "EVALSHA", s.Name())
		require.Equal(t, isCommand, attributesOf(s)["db.system.name"] == "valkey", s.Name())
		require.NotEqual(t, codes.Ok, s.Status().Code, s.Name())
		require.Equal(t, s.Status().Code == codes.Error, s.Status().Description != "", s.Name())
		if s.Status().Code == codes.Error {
			require.NotEmpty(t, attributesOf(s)["error.type"], s.Name())
		}
	}
	require.Equal(t, []string{"tenure.election.campaign", "tenure.job.run", "tenure.job.tick", "tenure.lease.acquire", "tenure.lease.extend", "tenure.lease.release",
		"tenure.node.acquire", "tenure.node.agree", "tenure.node.extend", "tenure.node.release", "tenure.order"}, sorted(names))
	require.Len(t, tel.recorder.Started(), len(tel.recorder.Ended()), "every span has its end")
	for _, m := range metrics.Metrics {
		for _, p := range pointsOf(t, m) {
			for _, a := range p.attributes.ToSlice() {
				require.True(t, strings.HasPrefix(string(a.Key), "tenure.") || slices.Contains(conventions, string(a.Key)), "%s of %s", a.Key, m.Name)
			}
		}
	}
}
