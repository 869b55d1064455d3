//go:build long

package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// When the keys of a dead holder expire, those who wait come in their order, but for one whose poll
// is due in that moment.
func TestSuccessorIsTheFirstOfTheQueue(t *testing.T) {
	const tries, waiters = 20, 4
	first := 0
	for range tries {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			l := acquire(t, open(t, fleet))
			successor := make(chan int, waiters)
			for i := range waiters {
				w := waitFor(t, open(t, fleet))
				defer w.cancel()
				go func() {
					if g := <-w.granted; g.err == nil {
						successor <- i
					}
				}()
			}
			time.Sleep(3 * ttl) // until each has asked for its rank
			l.StopExtending()
			if <-successor == 0 {
				first++
			}
			require.Less(t, time.Since(l.Deadline()), ttl/10)
		})
	}
	require.GreaterOrEqual(t, first, tries*3/4)
}

// Of many processes that wait a release calls one, and the others send nothing.
func TestReleaseCallsTheNextOnly(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		const waiters, called = 10, 10
		var ops [waiters]operations
		var waiting [waiters]*waiter
		for i := range waiting {
			waiting[i] = waitFor(t, open(t, fleet, redlock.WithTracer(&ops[i])))
		}
		for i := range called {
			time.Sleep(3 * turn) // until those are over that are told to come later
			var before [waiters]int64
			for j := range ops {
				before[j] = ops[j].all.Load()
			}
			released := time.Now()
			require.NoError(t, l.Release(t.Context()))
			g := waiting[i].take(t)
			require.Zero(t, g.at.Sub(released))
			synctest.Wait()
			for j := range ops {
				want := int64(0)
				if j == i || j == i-1 {
					want = 5 // an attempt on each node, and a release
				}
				require.Equal(t, want, ops[j].all.Load()-before[j], "waiter %d, when %d was called", j, i)
			}
			l = g.lease
		}
	})
}
