package redlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
)

// A timer that fires while an extension moves the deadline finds it moved: the lease goes on, and
// ends when it has to.
func TestTimerThatWasOvertakenByAnExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQuorum(1)
		l := grant(t, q, "k", &q.cfg.plain)
		deadline := clock.Instant(l.deadline.Load())
		l.deadline.Store(int64(deadline.Add(time.Second)))
		l.expire()
		require.NoError(t, l.Err(), "its deadline is still to come")
		time.Sleep(deadline.Sub(q.clock.Now()))
		synctest.Wait()
		require.NoError(t, l.Context().Err(), "an extension moves no timer")
		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(l.Context()), ErrLost, "the timer is set again")
	})
}
