//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Ticks of a key, or of all, are refused from the return of Pause until Resume, by all processes;
// what is no tick is not.
func TestPause(t *testing.T) {
	for name, key := range map[string]string{"key": "key", "all": redlock.AllKeys} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q, other := open(t, fleet), open(t, fleet)
				runTick(t, q)
				due := time.Now()
				p, err := q.Pause(t.Context(), key, redlock.PauseOptions{By: "Ann", Reason: "a / b"})
				require.NoError(t, err)
				require.GreaterOrEqual(t, time.Since(due), ttl/2, "as long as an acquisition may take that began before")
				require.Equal(t, redlock.Pause{Key: key, Since: p.Since, By: "Ann", Reason: "a / b", Version: p.Version, Nodes: 3}, p)
				require.True(t, p.Active(time.Now().Add(1000*time.Hour)))
				for _, q := range []*redlock.Quorum{q, other, open(t, fleet)} {
					said := requirePaused(t, q)
					require.Equal(t, "Ann", said.By)
					require.Equal(t, "a / b", said.Reason)
					require.Equal(t, key, said.Key)
					require.True(t, said.Until.IsZero())
					read, err := q.Paused(t.Context(), key)
					require.NoError(t, err)
					p.Nodes = read.Nodes
					require.Equal(t, p, read)
					require.GreaterOrEqual(t, read.Nodes, 2)
				}
				finish(t, acquire(t, q).Release)
				finish(t, acquire(t, q, atMostOnce(due.UnixMilli()+1e9)).Release)

				time.Sleep(time.Hour)
				requirePaused(t, other)
				resumed, err := other.Resume(t.Context(), key, redlock.PauseOptions{By: "Bob"})
				require.NoError(t, err)
				require.Greater(t, resumed.Version, p.Version)
				require.False(t, resumed.Active(time.Now().Add(time.Second)))
				require.True(t, resumed.Resumed)
				time.Sleep(time.Second)
				_, err = q.TryAcquire(t.Context(), "key", redlock.WithTick(time.Now().Add(-time.Minute), redlock.AtMostOnce, time.Hour))
				require.ErrorIs(t, err, redlock.ErrPaused, "for good")
				if key == redlock.AllKeys {
					runTick(t, q)
				}
			})
		})
	}
}

// A pause with an end ends by itself, and goes by when a tick was due and not by its number.
func TestPauseUntil(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		until := time.Now().Add(time.Hour)
		p, err := q.Pause(t.Context(), "key", redlock.PauseOptions{Until: until})
		require.NoError(t, err)
		require.Equal(t, until.UnixMilli(), p.Until.UnixMilli())
		time.Sleep(time.Hour - 10*time.Second)
		requirePaused(t, q)
		requirePaused(t, q, redlock.WithDue(until.Add(-time.Millisecond)))
		finish(t, acquire(t, q, redlock.WithTick(time.Now().Add(-30*time.Minute), redlock.AtMostOnce, time.Hour), redlock.WithDue(until)).Complete)
		time.Sleep(10 * time.Second)
		runTick(t, q)
	})
}
