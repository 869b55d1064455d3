//go:build long

package redlock_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Three replicas whose clocks are up to two seconds apart each try every second's number, with a
// job that takes no time: every number is granted exactly once, in order.
func TestOnceReplicasOutOfStep(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		const ticks = 200
		var (
			mu   sync.Mutex
			runs []int64
			work sync.WaitGroup
		)
		start := time.Now()
		for _, ahead := range []time.Duration{0, 700 * time.Millisecond, 2 * time.Second} {
			q := open(t, fleet)
			random := rand.New(rand.NewPCG(1, uint64(ahead)))
			work.Go(func() {
				for n := int64(1); n <= ticks; n++ {
					late := time.Duration(random.Int64N(int64(3 * time.Millisecond)))
					time.Sleep(time.Until(start.Add(10*time.Second + time.Duration(n)*time.Second - ahead + late)))
					l, err := q.TryAcquire(t.Context(), "key", atMostOnce(n))
					if err != nil {
						if !errors.Is(err, redlock.ErrDone) && !errors.Is(err, redlock.ErrHeld) {
							t.Error(err)
						}
						continue
					}
					mu.Lock()
					runs = append(runs, n)
					mu.Unlock()
					if err := l.Complete(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		work.Wait()
		want := make([]int64, ticks)
		for i := range want {
			want[i] = int64(i + 1)
		}
		require.Equal(t, want, runs)
	})
}
