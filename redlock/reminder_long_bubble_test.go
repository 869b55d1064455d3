//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// What lasts is said again, more and more seldom, with for how long it has; and so is its end.
func TestOutageIsLoggedAgain(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		open(t, fleet, logTo(&log))
		require.NoError(t, fleet.Node(2).Kill())
		requireRepeated(t, &log, fleet.Node(2), "node failing", "node still failing")
		require.NoError(t, fleet.Node(2).Restart(true))
		time.Sleep(10 * time.Second)
		requireEnded(t, &log, fleet.Node(2), "node still failing", "node answers again")
	})
}
