package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/timetable"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// In a process that stood still for longer than its lease lived nothing may have ended the contexts
// of the run yet: what counts is the lease, by the clock.
func TestRunDoesNotBeginWithoutItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithoutRestartGate())
		require.NoError(t, err)
		defer q.Close()
		lease, err := q.Acquire(t.Context(), "job/job")
		require.NoError(t, err)
		s := &Scheduler{q: q}
		r := &run{job: &job{s: s}, lease: lease, sent: s.steady()}
		require.NoError(t, r.mayBegin(t.Context()))
		ended, end := context.WithCancelCause(t.Context())
		end(gocron.ErrStopJobsTimedOut)
		require.ErrorIs(t, r.mayBegin(ended), gocron.ErrStopJobsTimedOut)
		require.NoError(t, lease.Release(t.Context()))
		require.ErrorIs(t, r.mayBegin(t.Context()), redlock.ErrReleased)
	})
}

// Nor is a task that failed called again then. Its tick is run again by another replica.
func TestRetryNeedsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithoutRestartGate())
		require.NoError(t, err)
		defer q.Close()
		s, err := New(q, WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Shutdown()) }()
		r := &run{writing: make(chan struct{}, 1)}
		calls := 0
		j, err := s.newJob(gocron.DurationJob(time.Hour), gocron.NewTask(func() error {
			calls++
			return errors.Join(errors.New("it failed"), r.lease.Release(t.Context())) // while no context ends
		}), []gocron.JobOption{gocron.WithName("job"), WithRetry(3, time.Second)})
		require.NoError(t, err)
		lease, err := q.Acquire(t.Context(), j.key)
		require.NoError(t, err)
		r.turn, _, err = j.record.Begin(t.Context(), lease)
		require.NoError(t, err)
		r.job, r.lease, r.sent = j, lease, s.steady()
		s.granted(r, s.now())
		require.Error(t, r.attempts(t.Context(), t.Context()))
		require.Equal(t, 1, calls)
		require.Equal(t, joblog.Stopped, r.outcome().Outcome)
	})
}

// A program that gives its jobs new names all the time fills no memory.
func TestLockerForgetsNames(t *testing.T) {
	l := &Locker{cfg: &config{minHold: time.Hour, logger: slog.New(slog.DiscardHandler)}, jobs: make(map[string]pace)}
	for i := range 3 * maxPaces {
		l.note(t.Context(), fmt.Sprint("job ", i), time.Now())
	}
	require.Len(t, l.jobs, maxPaces)
	l.cfg.minHold = 0 // by now all of it is long ago
	l.note(t.Context(), "another", time.Now())
	require.Len(t, l.jobs, 1)
}

// A random job is remembered for as long whichever times were drawn.
func TestRandomJobIsRemembered(t *testing.T) {
	def, err := timetable.New(timetable.Spec{Kind: timetable.Random, Every: time.Second, Most: time.Hour})
	require.NoError(t, err)
	for range 100 {
		require.GreaterOrEqual(t, keep(def, joblog.Policy{}, time.Now()), overKeep)
	}
}
