//go:build long

package redlock_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Field: 61 to 244 of 2,000 keys left behind. Random schedules of slow, frozen and restarted
// minorities: tokens increase in the order of the grants, no two leases are live at once, and
// nothing is left at the end.
func TestRandomSchedules(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		fewer := "50"
		if underRace { // the race detector's runtime can crash after very many bubbles
			fewer = "10"
		}
		require.NoError(t, checks.Value.Set(fewer))
		defer func() { require.NoError(t, checks.Value.Set(checks.DefValue)) }()
	}
	rapid.Check(t, func(rt *rapid.T) {
		alone(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
			quorums := []*redlock.Quorum{open(t, fleet), open(t, fleet), open(t, fleet)}
			var last uint64
			var held *redlock.Lease
			steps := rapid.IntRange(5, 40).Draw(rt, "steps")
			for range steps {
				switch rapid.SampledFrom([]string{"acquire", "acquire", "release", "stop", "sleep", "fault"}).Draw(rt, "step") {
				case "acquire":
					q := quorums[rapid.IntRange(0, len(quorums)-1).Draw(rt, "quorum")]
					l, err := q.TryAcquire(t.Context(), "key")
					if err != nil {
						continue
					}
					if held != nil && held.Err() == nil {
						rt.Fatalf("two live leases: %d and %d", held.FencingToken(), l.FencingToken())
					}
					if l.FencingToken() <= last {
						rt.Fatalf("token %d after %d", l.FencingToken(), last)
					}
					held, last = l, l.FencingToken()
				case "release":
					if held != nil {
						_ = held.Release(t.Context())
					}
				case "stop":
					if held != nil {
						held.StopExtending()
					}
				case "sleep":
					time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(rt, "ms")) * time.Millisecond)
				case "fault":
					// One node at a time, so that a quorum keeps its data.
					n := fleet.Node(0)
					switch rapid.SampledFrom([]string{"freeze", "thaw", "delay", "restart"}).Draw(rt, "fault") {
					case "freeze":
						require.NoError(t, n.Freeze())
					case "thaw":
						require.NoError(t, n.Thaw())
					case "delay":
						n.SetDelay(time.Duration(rapid.IntRange(0, 300).Draw(rt, "delay")) * time.Millisecond)
					case "restart":
						require.NoError(t, n.Restart(true))
					}
				}
			}
			require.NoError(t, fleet.Node(0).Thaw())
			fleet.Node(0).SetDelay(0)
			if held != nil {
				_ = held.Release(t.Context())
			}
			time.Sleep(2 * ttl)
			for i, n := range fleet.Nodes() {
				if _, left := n.Get("tenure:{key}"); left {
					rt.Fatalf("node %d still has the key", i)
				}
			}
		})
	})
}
