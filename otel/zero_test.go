package tenureotel_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tenure-dev/tenure/admin"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// zero requires a counter to be there for each value of an attribute, before anything has been
// counted.
func zero(t *testing.T, tel *telemetry, name, key string, values []string, with ...string) {
	t.Helper()
	for _, value := range values {
		assert.Zero(t, tel.value(t, name, append(with, key, value)...), "%s %s", name, value)
	}
	assert.Len(t, tel.matching(t, name, with...), len(values), name)
}

var (
	lossReasons = []string{"closed", "deadline", "refused"}
	ends        = []string{"closed", "deadline", "drain_timeout", "failed", "refused", "resigned", "returned", "shutdown"}
	skips       = []string{"cut_short", "missed", "overlap", "paused", "superseded"}
	runEnds     = []string{"error", "lost", "panic", "stopped", "success"}
)

// A key that is never acquired here is known all the same.
func TestCountersOfALeaseThatIsHeldElsewhereBeginAtZero(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		acquire(t, open(t, fleet), "orders")
		_, err := q.TryAcquire(t.Context(), "orders")
		require.ErrorIs(t, err, redlock.ErrHeld)
		zero(t, tel, "tenure.lease.lost", "tenure.reason", lossReasons, "tenure.lease.name", "orders")
		require.Zero(t, tel.value(t, "tenure.lease.held", "tenure.lease.name", "orders"))
	})
}

func TestCountersOfAnElectionBeginAtZero(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		acquire(t, open(t, fleet), "election/poller")
		defer campaign(t, candidate(t, tel, q))()
		zero(t, tel, "tenure.election.transitions", "tenure.reason", ends, "tenure.election.name", "poller", "tenure.to", "follower")
		zero(t, tel, "tenure.election.transitions", "tenure.reason", []string{"elected"}, "tenure.election.name", "poller", "tenure.to", "leader")
		require.Zero(t, tel.value(t, "tenure.election.leader", "tenure.election.name", "poller"))
		require.Zero(t, tel.value(t, "tenure.election.lease.expiry_timestamp", "tenure.election.name", "poller"))
	})
}

// Of an election without a rival, as of the first order of a kind, the first event comes with the
// counters: no reader has seen them at zero.
func TestFirstEventsThatComeWithTheirCounters(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		e := candidate(t, tel, q)
		require.Empty(t, tel.points(t, "tenure.election.transitions"))
		began := time.Now()
		defer campaign(t, e)()
		require.Zero(t, time.Since(began))
		require.EqualValues(t, 1, tel.value(t, "tenure.election.transitions", "tenure.election.name", "poller", "tenure.reason", "elected"))

		require.Empty(t, tel.points(t, "tenure.orders"))
		tel.TraceOrderEnd(t.Context(), admin.TraceOrderEndData{Kind: "pause"})
		require.EqualValues(t, 1, tel.value(t, "tenure.orders", "tenure.operation", "pause", "tenure.outcome", "done"))
		require.Zero(t, tel.value(t, "tenure.orders", "tenure.operation", "pause", "tenure.outcome", "refused"))
	})
}

// NewJob is enough: the Scheduler need not be started, and a follower never runs a job. That is so
// for the election as well.
func TestCountersOfAJobBeginAtZero(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		s := newScheduler(t, tel, q, scheduler.WithElection("jobs"))
		_, err := s.NewJob(everyTen, gocron.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		zero(t, tel, "tenure.job.skipped", "tenure.reason", skips, "tenure.job.name", "report")
		zero(t, tel, "tenure.job.runs", "tenure.outcome", runEnds, "tenure.job.name", "report")
		zero(t, tel, "tenure.election.transitions", "tenure.reason", ends, "tenure.election.name", "jobs", "tenure.to", "follower")
		require.Zero(t, tel.value(t, "tenure.election.leader", "tenure.election.name", "jobs"))
	})
}

// series counts what Prometheus makes of the metrics: of a histogram one for each bucket, the sum
// and the count.
func (tel *telemetry) series(t *testing.T) (n int, by map[string]int) {
	t.Helper()
	by = make(map[string]int)
	for _, m := range tel.scope(t).Metrics {
		each := 1
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
			each = len(h.DataPoints[0].Bounds) + 3
		}
		by[m.Name] = each * len(pointsOf(t, m))
		n += by[m.Name]
	}
	return n, by
}

// A job costs so many series on each replica that runs it, and as many whatever happens to it; its
// lease costs none. The page says how many.
func TestSeriesOfAJob(t *testing.T) {
	traced(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		s := newScheduler(t, tel, q)
		add := func(name string, runs ...func() error) {
			n := 0
			_, err := s.NewJob(everyTen, gocron.NewTask(func() error {
				n++
				return runs[min(n, len(runs))-1]()
			}), gocron.WithName(name), survivesPanics, scheduler.WithSucceedWithin(time.Hour))
			require.NoError(t, err)
		}
		lives := []func() error{
			func() error { return nil },
			func() error { return fmt.Errorf("failed") },
			func() error { panic("panicked") },
			func() error { time.Sleep(15 * time.Second); return nil },
			func() error { return nil },
		}
		add("first", lives...)
		s.Start()
		pass(61 * time.Second) // whatever is there once is there
		one, before := tel.series(t)
		add("second", lives...)
		pass(61 * time.Second)
		two, after := tel.series(t)
		for name := range after {
			if n := after[name] - before[name]; n != 0 {
				t.Logf("%2d %s", n, name)
				require.True(t, strings.HasPrefix(name, "tenure.job."), name)
			}
		}
		require.Equal(t, 39, two-one)
		page, err := os.ReadFile("../docs/telemetry.md")
		require.NoError(t, err)
		require.Contains(t, string(page), fmt.Sprintf("**%d series a job**", two-one))
	})
}

// What is made once for a name may be asked for by several at the same moment.
func TestFirstUseByManyAtOnce(t *testing.T) {
	for range 20 {
		tel := newTelemetry(t, tenureotel.WithAttributes(environment))
		var ready, done sync.WaitGroup
		gate := make(chan struct{})
		for range 16 {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-gate
				ctx := tel.TraceAcquireStart(t.Context(), redlock.TraceAcquireStartData{Key: "orders"})
				for _, err := range []error{nil, redlock.ErrTimeout} {
					node := tel.TraceNodeStart(ctx, redlock.TraceNodeStartData{Op: redlock.OpAcquire, Key: "orders", Node: "node:6379"})
					tel.TraceNodeEnd(node, redlock.TraceNodeEndData{Op: redlock.OpAcquire, Key: "orders", Node: "node:6379", Err: err, OK: err == nil})
				}
				tel.TraceAcquireEnd(ctx, redlock.TraceAcquireEndData{Key: "orders", Err: redlock.ErrNoQuorum})
				tel.Scheduler().Skip(ctx, &scheduler.SkipError{Job: "report", Count: 1, Reason: scheduler.SkipMissed})
				tel.IncrementJob([16]byte{}, "bare", nil, gocron.Skip)
			})
		}
		ready.Wait()
		close(gate)
		tel.scope(t) // as a reader does meanwhile
		done.Wait()
		require.Equal(t, 16, tel.total(t, "tenure.lease.acquire.duration"))
		require.Equal(t, 32, tel.total(t, "tenure.node.operation.duration", "server.address", "node", "tenure.operation", "acquire"))
		require.Equal(t, 16, tel.count(t, "tenure.job.skipped", "tenure.reason", "missed"))
	}
}
