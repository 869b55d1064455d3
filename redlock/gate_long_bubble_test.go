//go:build long

package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// An absurd clock of a client changes nothing as long as the servers' are right.
func TestHintIsHeldToTheServersClock(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const skew = redlock.DefaultClockSkew
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			restart(t, fleet, 0, 1, 2)
			for _, n := range fleet.Nodes() {
				n.JumpClock(ahead) // seen from the servers, the client's clock is off by as much, the other way
			}
			time.Sleep(2 * quarantine)
			if ahead < 0 {
				time.Sleep(time.Hour) // until they are old enough by their own clocks
			}
			l := acquire(t, open(t, fleet))
			server := time.Now().Add(ahead)
			nearest := server.Add(skew)
			if ahead > 0 {
				nearest = server.Add(-skew)
			}
			require.EqualValues(t, nearest.UnixMicro(), l.FencingToken())
			require.NoError(t, l.Release(t.Context()))
			synctest.Wait()
		}
	})
}
