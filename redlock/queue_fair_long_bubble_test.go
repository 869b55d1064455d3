//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
