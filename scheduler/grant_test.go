package scheduler

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

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
		require.NoError(t, lease.Release(t.Context()))
		require.ErrorIs(t, r.mayBegin(t.Context()), redlock.ErrReleased)
	})
}
