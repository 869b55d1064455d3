package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// long is a quarantine that is long beside the time between two looks: (10 m + 2 s) × 1.01 + 2 ms,
// rounded up, and one.
const (
	longMaxTTL = 10 * time.Minute
)

// That a clock jumped is still why its server does not vote after a moment out of reach.
func TestClockJumpIsStillTheReasonAfterAnInterruption(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithMaxTTL(longMaxTTL))
		fleet.Node(1).JumpClock(time.Minute)
		time.Sleep(2 * ttl)
		require.Equal(t, "clock_jumped", redlock.ErrorType(q.Nodes(t.Context())[1].Err))
		freeze(t, fleet, 1)
		time.Sleep(2 * ttl)
		require.Equal(t, "timeout", redlock.ErrorType(q.Nodes(t.Context())[1].Err))
		thaw(t, fleet, 1)
		time.Sleep(2 * ttl)
		require.Equal(t, "clock_jumped", redlock.ErrorType(q.Nodes(t.Context())[1].Err))
	})
}
