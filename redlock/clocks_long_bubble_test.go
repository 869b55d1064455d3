//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Tokens of a process with a wide skew lead by more. Those with a narrow one know it.
func TestTokensOfDifferentSkews(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		time.Sleep(time.Hour)
		for _, n := range fleet.Nodes() {
			n.JumpClock(-29 * time.Second)
		}
		time.Sleep(time.Hour)
		q, other := open(t, fleet), open(t, fleet, redlock.WithClockSkew(30*time.Second))
		time.Sleep(quarantine)
		l := acquire(t, other)
		last := l.FencingToken()
		require.InDelta(t, time.Now().UnixMicro(), last, 1e6, "it leads")
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, other.Close())
		for _, i := range []int{0, 1} {
			restart(t, fleet, i)
			fleet.Node(i).JumpClock(-29 * time.Second)
			for time.Sleep(time.Second); !q.Nodes(t.Context())[i].Votes; {
				time.Sleep(time.Second)
			}
		}
		freeze(t, fleet, 2)
		require.Greater(t, acquire(t, q).FencingToken(), last)
	})
}
