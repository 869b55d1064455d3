//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Nodes whose clocks are far apart give nobody an advantage, however many of them had answered when
// a process began to wait.
func TestQueueTakesTurnsWithClocksApart(t *testing.T) {
	for range 3 {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			fleet.Node(0).JumpClock(time.Hour)
			fleet.Node(1).JumpClock(-time.Hour)
			fleet.Node(2).JumpClock(time.Second)
			for i, n := range fleet.Nodes() {
				n.SetDelay(time.Duration(i+1) * time.Millisecond) // so that the one with the right clock answers last
			}
			quorums := make([]*redlock.Quorum, 4)
			for i := range quorums {
				quorums[i] = open(t, fleet)
			}
			requireFair(t, contend(t, quorums, func(process int) int { return 1 + process }, 300))
		})
	}
}
