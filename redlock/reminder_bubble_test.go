package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
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

// So is that a node does not vote, unless it has said when it will.
func TestLostVoteIsLoggedAgain(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var astray atomic.Bool
		var log lockedBuffer
		open(t, fleet, logTo(&log), redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			dial := o.DialCtxFn
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
				if url == fleet.Node(2).URL() && astray.Load() {
					return fleet.Node(1).Dial(ctx) // the same server twice
				}
				return dial(ctx, addr, d, cfg)
			}
		}))
		astray.Store(true)
		require.NoError(t, fleet.Node(2).Restart(true))
		requireRepeated(t, &log, fleet.Node(2), "node does not vote", "node still does not vote")
		astray.Store(false)
		require.NoError(t, fleet.Node(1).Restart(true))
		time.Sleep(time.Minute)
		requireEnded(t, &log, fleet.Node(2), "node still does not vote", "node votes")
	})
}

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
	time.Sleep(2 * time.Hour)
	require.Equal(t, 1, said(log, n, begin), "%s", log)
	require.Equal(t, 6, said(log, n, last), "after 1, 3, 7, 15, 31 and 63 minutes: %s", log)
	require.Contains(t, log.String(), "for=15m")
}

func requireEnded(t *testing.T, log *lockedBuffer, n *redlocktest.Node, last, end string) {
	t.Helper()
	require.Equal(t, 1, said(log, n, end), "%s", log)
	require.Contains(t, log.String(), "after=2h")
	before := said(log, n, last)
	time.Sleep(3 * time.Hour)
	require.Equal(t, before, said(log, n, last), "it is over: %s", log)
}
