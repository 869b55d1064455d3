package tenureotel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// telemetry is an Instrumentation whose spans and metrics a test reads.
type telemetry struct {
	*tenureotel.Instrumentation
	recorder *tracetest.SpanRecorder
	tracers  *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
}

// newTelemetry samples as its parent says, and always without one.
func newTelemetry(tb testing.TB, opts ...tenureotel.Option) *telemetry {
	tb.Helper()
	tel := &telemetry{recorder: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	tel.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tel.recorder))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(tel.reader))
	var err error
	tel.Instrumentation, err = tenureotel.New(append([]tenureotel.Option{
		tenureotel.WithTracerProvider(tel.tracers), tenureotel.WithMeterProvider(meters),
	}, opts...)...)
	require.NoError(tb, err)
	return tel
}

// tracer is the user's own.
func (tel *telemetry) tracer() trace.Tracer { return tel.tracers.Tracer("user") }

// spans returns the spans that have ended, of the names if there are any, in the order of their
// ends.
func (tel *telemetry) spans(names ...string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range tel.recorder.Ended() {
		if len(names) == 0 {
			found = append(found, s)
		}
		for _, name := range names {
			if s.Name() == name {
				found = append(found, s)
			}
		}
	}
	return found
}

// span returns the one span of that name.
func (tel *telemetry) span(tb testing.TB, name string) sdktrace.ReadOnlySpan {
	tb.Helper()
	found := tel.spans(name)
	require.Len(tb, found, 1, "spans %s", name)
	return found[0]
}

// forget drops the spans so far.
func (tel *telemetry) forget() { tel.recorder.Reset() }

// scope collects the metrics.
func (tel *telemetry) scope(tb testing.TB) metricdata.ScopeMetrics {
	tb.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(tb, tel.reader.Collect(tb.Context(), &data))
	require.LessOrEqual(tb, len(data.ScopeMetrics), 1)
	if len(data.ScopeMetrics) == 0 {
		return metricdata.ScopeMetrics{}
	}
	return data.ScopeMetrics[0]
}

// point is a data point of whatever kind.
type point struct {
	attributes attribute.Set
	value      float64 // the sum of a histogram
	count      uint64  // of histograms
	exemplars  []trace.SpanContext
}

// points returns the points of a metric.
func (tel *telemetry) points(tb testing.TB, name string) []point {
	tb.Helper()
	for _, m := range tel.scope(tb).Metrics {
		if m.Name == name {
			return pointsOf(tb, m)
		}
	}
	return nil
}

func pointsOf(tb testing.TB, m metricdata.Metrics) []point {
	tb.Helper()
	var points []point
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			found := point{attributes: p.Attributes, value: p.Sum, count: p.Count}
			for _, e := range p.Exemplars {
				found.exemplars = append(found.exemplars, trace.NewSpanContext(trace.SpanContextConfig{
					TraceID: trace.TraceID(e.TraceID), SpanID: trace.SpanID(e.SpanID)}))
			}
			points = append(points, found)
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: float64(p.Value)})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: float64(p.Value)})
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: p.Value})
		}
	default:
		tb.Fatalf("%s is a %T, which no metric of this package is", m.Name, m.Data)
	}
	return points
}

// find returns the one point that has these attributes, given as keys and values in turn, and
// whatever others.
func (tel *telemetry) find(tb testing.TB, name string, with ...string) point {
	tb.Helper()
	found := tel.matching(tb, name, with...)
	require.Len(tb, found, 1, "points of %s with %v", name, with)
	return found[0]
}

// value returns the value of that point.
func (tel *telemetry) value(tb testing.TB, name string, with ...string) float64 {
	tb.Helper()
	return tel.find(tb, name, with...).value
}

// total adds up the counts of the points of a histogram that have these attributes.
func (tel *telemetry) total(tb testing.TB, name string, with ...string) int {
	tb.Helper()
	n := 0
	for _, p := range tel.matching(tb, name, with...) {
		n += int(p.count)
	}
	return n
}

func (tel *telemetry) matching(tb testing.TB, name string, with ...string) []point {
	tb.Helper()
	var found []point
next:
	for _, p := range tel.points(tb, name) {
		for i := 0; i < len(with); i += 2 {
			if v, ok := p.attributes.Value(attribute.Key(with[i])); !ok || v.String() != with[i+1] {
				continue next
			}
		}
		found = append(found, p)
	}
	return found
}

// attributesOf returns a span's attributes as text.
func attributesOf(s sdktrace.ReadOnlySpan) map[string]string {
	m := make(map[string]string)
	for _, a := range s.Attributes() {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// In a bubble time passes only while everything waits, so durations here are exact. The nodes are
// in-process ones behind the real client.

const (
	ttl      = 4 * time.Second
	validity = ttl - ttl/100 - 2*time.Millisecond
)

// silent is a logger that says nothing.
var silent = slog.New(slog.DiscardHandler)

// bubble runs a test with so many nodes.
func bubble(t *testing.T, nodes int, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.StartPipes(t, nodes)) })
}

// traced is a bubble with nodes, telemetry, and a Quorum that tells it everything.
func traced(t *testing.T, nodes int, test func(*testing.T, *redlocktest.Fleet, *telemetry, *redlock.Quorum)) {
	t.Helper()
	bubble(t, nodes, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		test(t, fleet, tel, open(t, fleet, redlock.WithTracer(tel)))
	})
}

// open makes a Quorum on the fleet that is closed with the test, connected to all its nodes.
func open(tb testing.TB, fleet *redlocktest.Fleet, opts ...redlock.Option) *redlock.Quorum {
	tb.Helper()
	q, err := redlock.Open(fleet.URLs(), append([]redlock.Option{
		redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(silent),
	}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, q.Close()) })
	q.Nodes(tb.Context())
	return q
}

func acquire(tb testing.TB, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) *redlock.Lease {
	tb.Helper()
	l, err := q.TryAcquire(tb.Context(), key, opts...)
	require.NoError(tb, err)
	return l
}

func freeze(tb testing.TB, fleet *redlocktest.Fleet, nodes ...int) {
	tb.Helper()
	for _, i := range nodes {
		require.NoError(tb, fleet.Node(i).Freeze())
	}
}

func thaw(tb testing.TB, fleet *redlocktest.Fleet, nodes ...int) {
	tb.Helper()
	for _, i := range nodes {
		require.NoError(tb, fleet.Node(i).Thaw())
	}
}

// command has a node carry one out, as somebody else's client would.
func command(tb testing.TB, n *redlocktest.Node, words ...string) {
	tb.Helper()
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{"node"}, ForceSingleClient: true, DisableCache: true,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return n.Dial(ctx)
		},
	})
	require.NoError(tb, err)
	defer client.Close()
	require.NoError(tb, client.Do(tb.Context(), client.B().Arbitrary(words...).Build()).Error())
}

// settle waits until nothing goes on any more.
func settle() { synctest.Wait() }

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// story is everything that is traced and measured, once at least.
func story(t *testing.T, tel *telemetry, fleet *redlocktest.Fleet) {
	t.Helper()
	q := open(t, fleet, redlock.WithTracer(tel), redlock.WithIdentity("one"))
	other := open(t, fleet, redlock.WithTracer(tel), redlock.WithIdentity("two"))
	acquisitions(t, fleet, q, other)
	extensions(t, fleet, q)
	losses(t, fleet, tel)
	elections(t, tel, fleet, q, other)
	jobs(t, tel, fleet, q)
	now := time.Now() // it is stopped, and tells nothing any more
	tel.Scheduler().Job(t.Context(), scheduler.JobTrace{Job: "report", Next: now, Succeeded: now, OverdueAt: now})
	bareJobs(t, tel, q)
	orders(t, tel, q)
	quarantine(t, fleet)
}

var once struct {
	sync.Once
	tel     *telemetry
	metrics metricdata.ScopeMetrics
}

// common are the attributes with which it is told.
var common = []attribute.KeyValue{environment, attribute.Int("shard", 7)}

// own are the names of the attributes beside those.
func own(set attribute.Set) (names []string) {
	for _, a := range set.ToSlice() {
		if !slices.Contains(common, a) {
			names = append(names, string(a.Key))
		}
	}
	return names
}

// told is the story with spans of all extensions, told once for all tests that look at it.
func told(t *testing.T) (*telemetry, metricdata.ScopeMetrics) {
	t.Helper()
	once.Do(func() {
		bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
			tel := newTelemetry(t, tenureotel.WithExtendSpans(), tenureotel.WithAttributes(common[0]), tenureotel.WithAttributes(common[1]))
			story(t, tel, fleet)
			once.tel, once.metrics = tel, tel.scope(t)
		})
	})
	require.NotNil(t, once.tel, "another test has failed to tell it")
	return once.tel, once.metrics
}

func acquisitions(t *testing.T, fleet *redlocktest.Fleet, q, other *redlock.Quorum) {
	t.Helper()
	l := acquire(t, q, "orders")
	_, err := other.TryAcquire(t.Context(), "orders")
	require.ErrorIs(t, err, redlock.ErrHeld)
	require.NoError(t, l.Release(t.Context()))
	settle()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = q.TryAcquire(ctx, "orders")
	require.ErrorIs(t, err, context.Canceled)

	freeze(t, fleet, 0, 1, 2)
	_, err = q.TryAcquire(t.Context(), "orders")
	require.ErrorIs(t, err, redlock.ErrTimeout)
	thaw(t, fleet, 0, 1, 2)
	pass(ttl)
	for i := range 3 {
		require.NoError(t, fleet.Node(i).Kill())
	}
	_, err = q.TryAcquire(t.Context(), "orders")
	require.Equal(t, "no_quorum", redlock.ErrorType(err))
	for i := range 3 {
		require.NoError(t, fleet.Node(i).Restart(true))
	}
	pass(time.Minute) // the quarantine

	disagree(t, fleet)
	require.NoError(t, acquire(t, q, "orders").Release(t.Context()))
	settle()
}

// disagree has each node be ahead with another fencing token, so that whichever grant first have to
// agree on one.
func disagree(t *testing.T, fleet *redlocktest.Fleet) {
	t.Helper()
	for i, n := range fleet.Nodes() {
		const slot = "773" // of "orders", see docs/reference.md
		command(t, n, "ZADD", "tenure:fences", strconv.FormatInt(time.Now().Add(time.Duration(i+1)*100*time.Millisecond).UnixMicro(), 10), slot)
	}
}

func extensions(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
	t.Helper()
	l := acquire(t, q, "orders", redlock.WithoutAutoExtend())
	pass(time.Second)
	require.NoError(t, l.Extend(t.Context()))
	pass(2500 * time.Millisecond)
	require.NoError(t, l.Extend(t.Context()), "slow: little is left of the TTL")
	freeze(t, fleet, 0, 1, 2)
	require.ErrorIs(t, l.Extend(t.Context()), redlock.ErrTimeout)
	require.ErrorIs(t, l.Release(t.Context()), redlock.ErrTimeout)
	thaw(t, fleet, 0, 1, 2)
	pass(ttl)
}

// losses ends a lease for every reason there is.
func losses(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry) {
	t.Helper()
	q := open(t, fleet, redlock.WithTracer(tel))
	deadline := acquire(t, q, "deadline", redlock.WithoutAutoExtend())
	<-deadline.Context().Done()
	require.ErrorIs(t, deadline.Release(t.Context()), redlock.ErrLost)

	refused := acquire(t, q, "refused")
	settle()
	for _, n := range fleet.Nodes() {
		n.FlushAll()
	}
	require.Error(t, refused.Extend(t.Context()))

	closed := acquire(t, q, "closed")
	require.NoError(t, q.Close())
	require.ErrorIs(t, closed.Err(), redlock.ErrClosed)
	settle()
}

// elections has two candidates come to office after an expiry and after a release.
func elections(t *testing.T, tel *telemetry, fleet *redlocktest.Fleet, q, other *redlock.Quorum) {
	t.Helper()
	crashed := open(t, fleet)
	acquire(t, crashed, "election/poller", redlock.WithoutAutoExtend())
	first := candidate(t, tel, q)
	stopFirst := campaign(t, first)
	require.Error(t, first.IsLeader(t.Context()))
	pass(ttl + time.Second)
	require.NoError(t, first.IsLeader(t.Context()))
	second := candidate(t, tel, other)
	stopSecond := campaign(t, second)
	stopFirst()
	pass(time.Second)
	require.NoError(t, second.IsLeader(t.Context()))
	stopSecond()
}

func candidate(t *testing.T, tel *telemetry, q *redlock.Quorum, opts ...elector.Option) *elector.Elector {
	t.Helper()
	e, err := elector.New(q, "poller", append([]elector.Option{elector.WithLogger(silent)}, opts...)...)
	require.NoError(t, err)
	return e
}

// campaign runs a candidate until the function that it returns is called.
func campaign(t *testing.T, e *elector.Elector) (stop func()) {
	t.Helper()
	return lead(t, e, func(ctx context.Context, _ *elector.Term) error {
		<-ctx.Done()
		return nil
	})
}

func lead(t *testing.T, e *elector.Elector, what func(context.Context, *elector.Term) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, what) }()
	settle()
	return func() {
		cancel()
		<-done
		settle()
	}
}

// survivesPanics has gocron recover panics, which it does for those who listen only.
var survivesPanics = gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {}))

var everyTen = gocron.CronJob("*/10 * * * * *", true)

// jobs runs a job to every end that a run can have, and is skipped.
func jobs(t *testing.T, tel *telemetry, fleet *redlocktest.Fleet, q *redlock.Quorum) {
	t.Helper()
	s := newScheduler(t, tel, q)
	runs := 0
	task := func(ctx context.Context) error {
		switch runs++; runs {
		case 1:
			return nil
		case 2:
			return errors.New("the task's own")
		case 3:
			panic("the task's own")
		default:
			for _, n := range fleet.Nodes() {
				command(t, n, "DEL", "tenure:{job/report}")
			}
			<-ctx.Done()
			return ctx.Err()
		}
	}
	_, err := s.NewJob(everyTen, gocron.NewTask(task), gocron.WithName("report"), survivesPanics)
	require.NoError(t, err)
	s.Start()
	pass(45 * time.Second)
	require.GreaterOrEqual(t, runs, 4)
	holder := acquire(t, q, "job/report")
	pass(10 * time.Second)
	require.NoError(t, holder.Release(t.Context()))
	require.NoError(t, s.Shutdown())
	settle()
}

func newScheduler(t *testing.T, tel *telemetry, q *redlock.Quorum, opts ...scheduler.Option) *scheduler.Scheduler {
	t.Helper()
	defaults := []scheduler.Option{scheduler.WithLocation(time.UTC), scheduler.WithLogger(silent), scheduler.WithTracer(tel.Scheduler())}
	s, err := scheduler.New(q, append(defaults, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

// report has a Scheduler run the job of that name every ten seconds.
func report(t *testing.T, s *scheduler.Scheduler, task any, opts ...gocron.JobOption) gocron.Job {
	t.Helper()
	j, err := s.NewJob(everyTen, gocron.NewTask(task), append(opts, gocron.WithName("report"))...)
	require.NoError(t, err)
	s.Start()
	return j
}

// bareJobs has a gocron scheduler of its own skip a tick.
func bareJobs(t *testing.T, tel *telemetry, q *redlock.Quorum) {
	t.Helper()
	s := newGocron(t, q, tel.SchedulerOptions()...)
	_, err := s.NewJob(everyTen, gocron.NewTask(func() {}), gocron.WithName("bare"))
	require.NoError(t, err)
	s.Start()
	pass(10 * time.Second)
	holder := acquire(t, q, "job/bare")
	pass(10 * time.Second)
	require.NoError(t, holder.Release(t.Context()))
	require.NoError(t, s.Shutdown())
	settle()
}

func newGocron(t *testing.T, q *redlock.Quorum, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	l, err := scheduler.NewLocker(q, scheduler.WithMinHold(0), scheduler.WithLogger(silent))
	require.NoError(t, err)
	s, err := gocron.NewScheduler(append([]gocron.SchedulerOption{
		gocron.WithDistributedLocker(l), gocron.WithLocation(time.UTC),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

// quarantine restarts a node, which does not vote then.
func quarantine(t *testing.T, fleet *redlocktest.Fleet) {
	t.Helper()
	require.NoError(t, fleet.Node(4).Restart(false))
	pass(ttl) // within which it is looked at
}

func orders(t *testing.T, tel *telemetry, q *redlock.Quorum) {
	t.Helper()
	c, err := admin.New(q, admin.WithActor("ann"), admin.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	for _, kind := range []string{"pause", "resume", "run_now", "resign", "cancel"} {
		tel.TraceOrderEnd(t.Context(), admin.TraceOrderEndData{Kind: admin.OrderKind(kind)})
	}
	require.ErrorIs(t, c.Resume(t.Context(), admin.Job("report"), "done"), admin.ErrNotPaused)
}
