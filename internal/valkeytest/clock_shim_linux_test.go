package valkeytest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// near is how far two clocks of one machine that are read one after the other
// may seem apart. It is far below every jump in these tests.
const near = 20 * time.Second

// serverAhead returns by how much a server's clock is ahead.
func serverAhead(t *testing.T, n *valkeytest.Node) time.Duration {
	t.Helper()
	parts, err := n.Do(t, "TIME").AsStrSlice()
	require.NoError(t, err)
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	require.NoError(t, err)
	micros, err := strconv.ParseInt(parts[1], 10, 64)
	require.NoError(t, err)
	return time.Until(time.Unix(seconds, micros*1000))
}

func uptime(t *testing.T, n *valkeytest.Node) time.Duration {
	t.Helper()
	info, err := n.Do(t, "INFO", "server").ToString()
	require.NoError(t, err)
	_, rest, ok := strings.Cut(info, "uptime_in_seconds:")
	require.True(t, ok)
	text, _, _ := strings.Cut(rest, "\r")
	seconds, err := strconv.Atoi(text)
	require.NoError(t, err)
	return time.Duration(seconds) * time.Second
}

func TestClockJumps(t *testing.T) {
	f := valkeytest.Start(t, 2, valkeytest.WithClock())
	n, other := f.Node(0), f.Node(1)
	require.Zero(t, n.ClockOffset())
	require.InDelta(t, 0, serverAhead(t, n), float64(near))

	require.NoError(t, n.JumpClock(time.Hour))
	require.Equal(t, time.Hour, n.ClockOffset())
	require.InDelta(t, time.Hour, serverAhead(t, n), float64(near))

	require.NoError(t, n.JumpClock(-3*time.Hour))
	require.Equal(t, -2*time.Hour, n.ClockOffset())
	require.InDelta(t, -2*time.Hour, serverAhead(t, n), float64(near))

	require.Zero(t, other.ClockOffset())
	require.InDelta(t, 0, serverAhead(t, other), float64(near), "the other server is untouched")
}

func TestClockJumpMovesUptime(t *testing.T) {
	f := valkeytest.Start(t, 1, valkeytest.WithClock())
	n := f.Node(0)
	require.Less(t, uptime(t, n), near)
	require.NoError(t, n.JumpClock(time.Hour))
	// INFO shows the time of the server's last cron, which runs every 100 ms.
	require.Eventually(t, func() bool { return uptime(t, n) >= time.Hour }, 10*time.Second, 5*time.Millisecond)
	require.Less(t, uptime(t, n), time.Hour+near)
}

func TestClockSurvivesARestart(t *testing.T) {
	f := valkeytest.Start(t, 1, valkeytest.WithClock(), valkeytest.WithPersistence())
	n := f.Node(0)
	require.NoError(t, n.JumpClock(time.Hour))
	require.NoError(t, n.Do(t, "SET", "k", "v", "PX", "600000").Error())
	require.NoError(t, n.Restart(true))
	require.Equal(t, time.Hour, n.ClockOffset())
	require.InDelta(t, time.Hour, serverAhead(t, n), float64(near))
	require.Less(t, uptime(t, n), near, "it was started by that clock")
	require.Equal(t, "v", get(t, n, "k"))
}

func TestAge(t *testing.T) {
	const day = 24 * time.Hour
	f := valkeytest.Start(t, 2, valkeytest.WithAge(day))
	for _, n := range f.Nodes() {
		require.Eventually(t, func() bool { return uptime(t, n) >= day }, 10*time.Second, 5*time.Millisecond)
		require.Less(t, uptime(t, n), day+near)
		require.Zero(t, n.ClockOffset())
		require.InDelta(t, 0, serverAhead(t, n), float64(near), "its clock is right")
	}
	require.NoError(t, f.Node(0).Restart(false))
	require.Less(t, uptime(t, f.Node(0)), near, "a restarted server is young")
	require.GreaterOrEqual(t, uptime(t, f.Node(1)), day)
}
