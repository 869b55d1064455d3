//go:build long

package redlock_test

import (
	"fmt"

	"testing"

	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Connections that are dead without a word are given up when they have not answered, so that a
// lease is extended on new ones.
func TestFarNodesWithDeadConnections(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, far} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				for _, n := range fleet.Nodes() {
					n.SetDelay(delay)
				}
				var conns holes
				q := open(t, fleet, conns.option(fleet), redlock.WithTTL(10*time.Second))
				for i := range 5 {
					timeOf(t, q, fmt.Sprint("first", i))
				}
				time.Sleep(time.Second)
				l := acquire(t, q)
				conns.cut()
				time.Sleep(time.Minute)
				require.NoError(t, l.Err())
				require.NoError(t, l.Release(t.Context()))
			})
		})
	}
}
