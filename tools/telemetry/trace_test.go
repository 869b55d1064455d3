package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a replica's way to the receiver.
type wire struct {
	provider *sdktrace.TracerProvider
	tel      *tenureotel.Instrumentation
}

func connect(t *testing.T, r *receiver) *wire {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(r.url))
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter, sdktrace.WithBatchTimeout(50*time.Millisecond)))
	t.Cleanup(func() { assert.NoError(t, provider.Shutdown(context.WithoutCancel(t.Context()))) })
	tel, err := tenureotel.New(tenureotel.WithTracerProvider(provider), tenureotel.WithMeterProvider(noop.NewMeterProvider()))
	require.NoError(t, err)
	return &wire{provider, tel}
}

func open(t *testing.T, fleet *valkeytest.Fleet, w *wire, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	opts = append(opts, redlock.WithTracer(w.tel), redlock.WithoutRestartGate(), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	q, err := redlock.Open(fleet.URLs(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	q.Nodes(t.Context())
	return q
}

func named(spans []*tracepb.Span, name string) (list []*tracepb.Span) {
	for _, s := range spans {
		if s.GetName() == name {
			list = append(list, s)
		}
	}
	return list
}

func links(s *tracepb.Span) (ids [][]byte) {
	for _, l := range s.GetLinks() {
		ids = append(ids, l.GetSpanId())
	}
	return ids
}

// An acquisition with one slow node and one dead one, as a collector gets it.
func TestAcquisitionOverOTLP(t *testing.T) {
	fleet := valkeytest.Start(t, 5)
	r := receive(t)
	w := connect(t, r)
	q := open(t, fleet, w, redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))
	before, err := q.TryAcquire(t.Context(), "before") // a first lease waits for slow nodes, too
	require.NoError(t, err)
	require.NoError(t, before.Release(t.Context()))
	r.await(t, map[string]int{"tenure.lease.acquire": 1, "tenure.node.acquire": 5, "tenure.lease.release": 1, "tenure.node.release": 5})
	r.forget()
	slow, dead := fleet.Node(0), fleet.Node(4)
	require.NoError(t, dead.Kill())
	require.Eventually(t, func() bool {
		// Until the client knows: which of its requests meets the broken connection is not what
		// this is about.
		status := q.Nodes(t.Context())
		return !status[4].Reachable && status[0].Reachable
	}, 10*time.Second, 10*time.Millisecond)

	ctx, caller := w.provider.Tracer("test").Start(t.Context(), "caller")
	l, err := acquireBefore(t, ctx, q, fleet.Nodes()[:4], func() {
		// With a quorum, what has not been sent to the dead one would be abandoned.
		r.await(t, map[string]int{"tenure.node.acquire": 1})
		for _, n := range fleet.Nodes()[1:4] {
			require.NoError(t, n.Thaw())
		}
	})
	require.NoError(t, err)
	_, work := w.provider.Tracer("test").Start(l.Context(), "work")
	work.End()
	require.NoError(t, l.Release(ctx))
	caller.End()
	require.NoError(t, slow.Thaw())

	spans := r.await(t, map[string]int{
		"caller": 1, "work": 1, "tenure.lease.acquire": 1, "tenure.node.acquire": 5, "tenure.lease.release": 1, "tenure.node.release": 4,
	})
	drawn := tree(spans)
	t.Logf("one node is slow and one is dead:\n%s", drawn)
	_, scopes := r.got()
	require.Equal(t, map[string]string{"test": "", tenureotel.ScopeName: tenureotel.Version()}, scopes)

	parent := named(spans, "tenure.lease.acquire")[0]
	require.Equal(t, named(spans, "caller")[0].GetSpanId(), parent.GetParentSpanId())
	require.Equal(t, tracepb.Span_SPAN_KIND_INTERNAL, parent.GetKind())
	require.Equal(t, tracepb.Status_STATUS_CODE_UNSET, parent.GetStatus().GetCode(), "a minority that fails is not its failure\n%s", drawn)
	require.Empty(t, parent.GetEvents())
	got := attributes(parent)
	for key, want := range map[string]string{
		"tenure.lease.name": "invoice/42", "tenure.lease.key": "invoice/42", "tenure.lease.ttl": "60", "tenure.lease.nodes": "5", "tenure.lease.quorum": "3", "tenure.lease.wait": "false",
		"tenure.outcome": "acquired", "tenure.lease.attempts": "1", "tenure.lease.votes": "3", "tenure.lease.fencing_token": fmt.Sprint(l.FencingToken()),
	} {
		require.Equal(t, want, got[key], "%s\n%s", key, drawn)
	}

	children := named(spans, "tenure.node.acquire")
	seen := make(map[string]*tracepb.Span)
	for _, child := range children {
		require.Equal(t, parent.GetSpanId(), child.GetParentSpanId(), drawn)
		require.Equal(t, parent.GetTraceId(), child.GetTraceId())
		require.Equal(t, tracepb.Span_SPAN_KIND_CLIENT, child.GetKind())
		a := attributes(child)
		require.Equal(t, "valkey", a["db.system.name"])
		seen[net.JoinHostPort(a["server.address"], a["server.port"])] = child
	}
	require.Len(t, seen, 5, "a child a node\n%s", drawn)
	for i := range 5 {
		child := seen[fleet.Node(i).Addr()]
		require.NotNil(t, child, drawn)
		switch i {
		case 4:
			require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, child.GetStatus().GetCode(), drawn)
			require.NotEmpty(t, attributes(child)["error.type"], drawn)
		default:
			require.Equal(t, tracepb.Status_STATUS_CODE_UNSET, child.GetStatus().GetCode(), drawn)
			require.Equal(t, "ok", attributes(child)["tenure.outcome"], drawn)
		}
	}
	require.Greater(t, seen[slow.Addr()].GetEndTimeUnixNano(), parent.GetEndTimeUnixNano(), "nobody waits for the slow one\n%s", drawn)

	release := named(spans, "tenure.lease.release")[0]
	require.Equal(t, named(spans, "caller")[0].GetSpanId(), release.GetParentSpanId(), drawn)
	require.Equal(t, [][]byte{parent.GetSpanId()}, links(release), drawn)
	require.Equal(t, named(spans, "caller")[0].GetSpanId(), named(spans, "work")[0].GetParentSpanId(), "what is done with a lease is no part of its acquisition\n%s", drawn)
}

// acquireBefore acquires while nodes are frozen, which then thaws.
func acquireBefore(t *testing.T, ctx context.Context, q *redlock.Quorum, frozen []*valkeytest.Node, then func()) (*redlock.Lease, error) {
	t.Helper()
	for _, n := range frozen {
		require.NoError(t, n.Freeze())
	}
	var l *redlock.Lease
	acquired := make(chan error, 1)
	go func() {
		var err error
		l, err = q.TryAcquire(ctx, "invoice/42")
		acquired <- err
	}()
	then()
	return l, <-acquired
}

// A hand-over: one leader resigns and the next is elected.
func TestHandoverOverOTLP(t *testing.T) {
	fleet := valkeytest.Start(t, 5)
	r := receive(t)
	terms := make(chan *elector.Term)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	run := func(identity string) {
		w := connect(t, r)
		e, err := elector.New(open(t, fleet, w), "poller", elector.WithIdentity(identity), elector.WithTracer(w.tel), elector.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		go func() {
			ended <- e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
				terms <- term
				<-ctx.Done()
				return nil
			})
		}()
	}
	run("a")
	first := <-terms
	run("b")
	require.Eventually(t, func() bool { return len(listeners(t, fleet)) >= 3 }, 20*time.Second, 20*time.Millisecond, "the second does not wait")
	require.NoError(t, first.Resign(t.Context()))
	second := <-terms
	require.Greater(t, second.Number(), first.Number())
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)

	spans := r.await(t, map[string]int{"tenure.election.campaign": 2, "tenure.lease.acquire": 3, "tenure.lease.release": 2})
	drawn := tree(spans)
	t.Logf("a resigns, b is elected, and all is stopped:\n%s", drawn)

	acquired := make(map[string]*tracepb.Span) // by token
	for _, s := range named(spans, "tenure.lease.acquire") {
		acquired[attributes(s)["tenure.lease.fencing_token"]] = s
	}
	for identity, term := range map[string]*elector.Term{"a": first, "b": second} {
		number := fmt.Sprint(term.Number())
		var campaign, release *tracepb.Span
		for _, s := range named(spans, "tenure.election.campaign") {
			if attributes(s)["tenure.election.identity"] == identity && campaign == nil {
				campaign = s
			}
		}
		for _, s := range named(spans, "tenure.lease.release") {
			if attributes(s)["tenure.lease.fencing_token"] == number {
				release = s
			}
		}
		require.NotNil(t, campaign, drawn)
		require.NotNil(t, release, drawn)
		require.NotNil(t, acquired[number], drawn)
		require.Equal(t, map[string]string{"a": "elected", "b": "waiting"}[identity], attributes(campaign)["tenure.outcome"], drawn)
		require.Empty(t, acquired[number].GetParentSpanId(), drawn)
		require.NotEqual(t, campaign.GetTraceId(), acquired[number].GetTraceId(), drawn)
		require.Equal(t, [][]byte{campaign.GetSpanId()}, links(acquired[number]), drawn)
		require.Equal(t, [][]byte{acquired[number].GetSpanId()}, links(release), drawn)
		require.Equal(t, "released", attributes(release)["tenure.outcome"], drawn)
	}
	waited := acquired[fmt.Sprint(second.Number())]
	require.Equal(t, "true", attributes(waited)["tenure.lease.wait"])
	require.NotEqual(t, "1", attributes(waited)["tenure.lease.attempt"], "it waited\n%s", drawn)
	require.Equal(t, "a", attributes(waited)["tenure.lease.waited_for"])
	require.Equal(t, "release", attributes(waited)["tenure.lease.freed_by"])
}

// listeners are the nodes on which somebody waits for the release of a lease.
func listeners(t *testing.T, fleet *valkeytest.Fleet) (nodes []string) {
	t.Helper()
	for _, n := range fleet.Nodes() {
		channels, err := n.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
		require.NoError(t, err)
		if len(channels) > 0 {
			nodes = append(nodes, n.Addr())
		}
	}
	return nodes
}
