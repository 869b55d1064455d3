//go:build long

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// After a crash nobody passes over the dead. Those behind them come a turn after the expiry.
func TestExpiryBehindTheDead(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q, other := s.open(redlock.WithTTL(longTTL)), s.open(redlock.WithTTL(longTTL))
	held, control := s.hold(q, "key"), s.hold(q, "control")
	s.queueDead(20)
	granted, free := s.wait(other, "key"), s.wait(other, "control")
	held.StopExtending()
	control.StopExtending()
	first := receive(t, free, patience, "nobody called it")
	require.NoError(t, first.err)
	g := requireCalled(t, granted)
	require.NoError(t, g.err)
	require.Less(t, g.at.Sub(first.at), longTTL/2)
}
