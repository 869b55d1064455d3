//go:build long

package redlock_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A job that rests while all nodes are restarted one after the other, without data, is not
// forgotten.
func TestIdleSequenceOutlivesRestartsOneAfterTheOther(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			bubble(t, nodes, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				var replicas []*redlock.Quorum
				for range 3 {
					q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))))
					defer q.KeepSequence("key")()
					replicas = append(replicas, q)
					time.Sleep(time.Second) // so that they do not all look at the same time
				}
				finish(t, acquire(t, replicas[0], atMostOnce(5), redlock.WithLabel("nightly")).Complete)
				time.Sleep(time.Minute)
				for range 3 {
					restartsOneByOne(t, fleet, nil)
				}
				requireKnown(t, fleet)
				de := requireDone(t, replicas[1], atMostOnce(5))
				require.Equal(t, int64(5), de.Completed)
				s, err := replicas[2].Sequence(t.Context(), "key")
				require.NoError(t, err)
				require.Equal(t, "nightly", s.Label)
				require.Equal(t, int64(5), s.Granted)
				require.False(t, s.CompletedAt.IsZero())
				require.InDelta(t, time.Hour, fleet.Node(0).TTL(recordKey)+time.Minute+time.Duration(3*nodes)*(quarantine+6*time.Second), float64(3*time.Second),
					"it is kept for as long as it was to be kept")
				require.Empty(t, log.String())
			})
		})
	}
}
