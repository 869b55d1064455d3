package tenureotel_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
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
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		acquire(t, open(t, fleet), "orders")
		_, err := open(t, fleet, redlock.WithTracer(tel)).TryAcquire(t.Context(), "orders")
		require.ErrorIs(t, err, redlock.ErrHeld)
		zero(t, tel, "tenure.lease.lost", "tenure.reason", lossReasons, "tenure.lease.name", "orders")
		require.Zero(t, tel.value(t, "tenure.lease.held", "tenure.lease.name", "orders"))
	})
}

func TestCountersOfAnElectionBeginAtZero(t *testing.T) {
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		acquire(t, open(t, fleet), "election/poller")
		defer campaign(t, candidate(t, tel, open(t, fleet, redlock.WithTracer(tel))))()
		zero(t, tel, "tenure.election.transitions", "tenure.reason", ends, "tenure.election.name", "poller", "tenure.to", "follower")
		zero(t, tel, "tenure.election.transitions", "tenure.reason", []string{"elected"}, "tenure.election.name", "poller", "tenure.to", "leader")
		require.Zero(t, tel.value(t, "tenure.election.leader", "tenure.election.name", "poller"))
		require.Zero(t, tel.value(t, "tenure.election.lease.expiry_timestamp", "tenure.election.name", "poller"))
	})
}

// Of an election without a rival, as of the first order of a kind, the first event comes with the
// counters: no reader has seen them at zero.
func TestFirstEventsThatComeWithTheirCounters(t *testing.T) {
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		e := candidate(t, tel, open(t, fleet, redlock.WithTracer(tel)))
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
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		s := newScheduler(t, tel, open(t, fleet, redlock.WithTracer(tel)), scheduler.WithElection("jobs"))
		_, err := s.NewJob(everyTen, gocron.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		zero(t, tel, "tenure.job.skipped", "tenure.reason", skips, "tenure.job.name", "report")
		zero(t, tel, "tenure.job.runs", "tenure.outcome", runEnds, "tenure.job.name", "report")
		zero(t, tel, "tenure.election.transitions", "tenure.reason", ends, "tenure.election.name", "jobs", "tenure.to", "follower")
		require.Zero(t, tel.value(t, "tenure.election.leader", "tenure.election.name", "jobs"))
	})
}
