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
	held := s.hold(s.open(redlock.WithTTL(2*serverTTL)), "key")
	s.queueDead(20)
	granted := s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	held.StopExtending()
	require.NoError(t, requireCalled(t, granted).err)
}
