//go:build long

package redlock_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Whatever a server says, and whenever, the process goes on, and the other nodes decide.
func TestHostileServer(t *testing.T) {
	for p, at := range hostilePoints {
		t.Run(at, func(t *testing.T) {
			alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var l liar
				q := open(t, fleet, l.option(fleet, 0))
				settleVotes(t, q, 3)
				for i, lie := range lies {
					if (underRace || at != "HELLO" && at != "EVALSHA" && at != "SUBSCRIBE") && i%4 != p%4 {
						continue // the client reads all of them in the same way
					}
					about := fmt.Sprintf("lie %d, at %s: %.40q", i, at, lie.says)
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					l.tell(at, lie.says)
					goOn(t, fleet, q, at, about)
					runtime.ReadMemStats(&after)
					require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxHostile+4*l.told()*len(lie.says)), about)
					if at != "PING" { // which is sent when it is quiet for a long time
						require.Positive(t, l.told(), about)
					}
					if lie.ends && (at == "HELLO" || at == "INFO") {
						var why *redlock.ConditionError
						err := q.Nodes(t.Context())[0].Err
						require.ErrorAs(t, err, &why, about)
						require.Equal(t, redlock.Condition(wire.BadReply), why.Condition, about)
						require.ErrorContains(t, err, nodeAddr(fleet.Node(0))+": ", about)
						require.ErrorContains(t, err, "it sent ", about)
					}
					l.tell("", "")
					settleVotes(t, q, 3)
					require.NoError(t, q.Healthy(), about)
				}
			})
		})
	}
}
