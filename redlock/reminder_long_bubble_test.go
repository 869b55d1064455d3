//go:build long

package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

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
		requireRepeated(t, &log, fleet.Node(2), `redlock: node does not vote" node=node-3.pipe:6379 reason="duplicate`, "node still does not vote")
		astray.Store(false)
		require.NoError(t, fleet.Node(1).Restart(true))
		time.Sleep(time.Minute)
		requireEnded(t, &log, fleet.Node(2), "node still does not vote", "node votes")
	})
}

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
