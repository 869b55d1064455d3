package redlock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// said is how many lines with a text a log has about a node.
func said(log *lockedBuffer, n *redlocktest.Node, text string) (lines int) {
	addr := strings.TrimPrefix(n.URL(), "valkey://")
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, text) && strings.Contains(line, addr) {
			lines++
		}
	}
	return lines
}

func requireRepeated(t *testing.T, log *lockedBuffer, n *redlocktest.Node, begin, last string) {
	t.Helper()
	time.Sleep(50 * time.Second)
	require.Equal(t, 1, said(log, n, begin), "%s", log)
	require.Zero(t, said(log, n, last), "%s", log)
	time.Sleep(3 * time.Minute)
	require.Equal(t, 1, said(log, n, begin), "%s", log)
	require.Equal(t, 2, said(log, n, last), "after 1 and 3 minutes: %s", log)
	require.Contains(t, log.String(), "for=3m")
}

func requireEnded(t *testing.T, log *lockedBuffer, n *redlocktest.Node, last, end string) {
	t.Helper()
	require.Equal(t, 1, said(log, n, end), "%s", log)
	require.Regexp(t, `after=[3-5]m`, log.String())
	before := said(log, n, last)
	time.Sleep(8 * time.Minute)
	require.Equal(t, before, said(log, n, last), "it is over: %s", log)
}

// Who waits for a key gives up, twice, in two outages. The second one is not told of as having
// lasted since the first.
func TestOutageThatNobodyNotedIsOver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for outage := range 2 {
			freeze(t, fleet, 0, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
			_, err := q.Acquire(ctx, "key")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			cancel()
			require.Equal(t, outage+1, strings.Count(log.String(), "no quorum to acquire a key that is waited for\" key=key"), "%s", &log)
			thaw(t, fleet, 0, 1)
			time.Sleep(10 * time.Minute)
		}
		require.NotContains(t, log.String(), "for=10m")
	})
}
