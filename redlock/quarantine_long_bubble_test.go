//go:build long

package redlock_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// An uptime is in whole seconds. What that moves the end of a quarantine by is nobody's news.
func TestGateQuarantineIsLoggedOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		restart(t, fleet, 0, 1, 2)
		time.Sleep(700 * time.Millisecond)
		var log lockedBuffer
		q := open(t, fleet, redlock.WithMaxTTL(longMaxTTL), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			redlock.WithTTL(ttl+300*time.Millisecond)) // so that it looks at any part of a second
		for range 60 {
			for _, n := range q.Nodes(t.Context()) {
				require.False(t, n.QuarantinedUntil.IsZero())
			}
			time.Sleep(10 * time.Second)
		}
		require.Equal(t, 3, strings.Count(log.String(), "does not vote"), "a line a node: %s", &log)
		time.Sleep(20 * time.Second)
		require.Equal(t, 3, strings.Count(log.String(), "does not vote"), "a line a node: %s", &log)
		acquire(t, q)
	})
}

// A server in quarantine is looked at as one that votes is: it may be restarted once more.
func TestGateSecondRestartWithinTheQuarantineIsSeen(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithMaxTTL(longMaxTTL), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		status := func() redlock.NodeStatus { return q.Nodes(t.Context())[1] }
		acquire(t, q)
		restart(t, fleet, 1)
		first := time.Now()
		time.Sleep(2 * ttl)
		require.WithinRange(t, status().QuarantinedUntil, first.Add(longQuarantine), first.Add(longQuarantine+ttl+time.Second))
		restart(t, fleet, 1)
		second := time.Now()
		time.Sleep(2 * ttl)
		require.WithinRange(t, status().QuarantinedUntil, second.Add(longQuarantine), second.Add(longQuarantine+ttl+time.Second),
			"nobody saw that it was restarted again")
		time.Sleep(time.Until(second.Add(longQuarantine)) - time.Second)
		require.False(t, status().Votes)
		require.Equal(t, 2, strings.Count(log.String(), "does not vote"), "a line a restart: %s", &log)
		time.Sleep(ttl + 2*time.Second)
		require.True(t, status().Votes, "it waits for a quarantine more")
	})
}
